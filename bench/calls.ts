import {
  best_connections,
  block,
  type LoadOptions,
  makeClosedLoop,
  makeLoad,
} from './env/load-rounds.js';
import { startForum } from './env/setup.js';
import { type Bench, ratioOf, type Subject } from './frame/bench.js';

/**
 * Durable predictions per second through calls over websockets, compared with the same requests
 * over HTTP: one service, the same agents in the same order, each agent with its own connection.
 *
 * `http`, `sockets`: a fleet of many agents with the same number of requests in flight, so that the
 * difference is the cost of a request. `burst_…`: a few agents arrive at once, each with 20
 * predictions. A socket takes all of them. HTTP/1.1 has one request in flight per connection, so an
 * agent waits for each answer.
 */

const agents = 4_000;
/** `burst_agents` × `burst` requests are in flight. An api process admits 512 writes. */
const burst_agents = 16;
const burst = 20;

const fleet = { agents, in_flight: best_connections };
const few = { agents: burst_agents, burst };
const ways: Readonly<Record<string, Omit<LoadOptions, 'keys_file'>>> = {
  http: { kind: 'predict', ...fleet, own_connections: agents },
  sockets: { kind: 'call', ...fleet },
  burst_http: { kind: 'predict', ...few, in_flight: burst_agents },
  burst_sockets: { kind: 'call', ...few, in_flight: burst_agents * burst },
};

export const bench: Bench = {
  question: 'How many durable predictions per second can websocket calls place?',
  figures: {
    sockets_over_http: { of: ratioOf('sockets', 'http'), min: 1 },
    burst_sockets_over_http: { of: ratioOf('burst_sockets', 'burst_http'), min: 1.3 },
  },
  async prepare(context) {
    // Two extra rounds for the warm-up.
    const questions = Object.keys(ways).length * block * (context.rounds + 2);
    const env = { TRUSTED_PROXIES: '127.0.0.1' };
    const { setup, keys_file, service } = await startForum(context, { agents, questions, env });
    const subjects = Object.entries(ways).map(([name, way]): Subject => {
      const run = makeLoad(setup, service, { ...way, keys_file });
      if (way.burst === undefined) return makeClosedLoop(name, context, run);
      // A burst takes far less time than this.
      const round = () => run({ seconds: 30 });
      return { name, warmUp: round, round };
    });
    return [() => subjects.slice(0, 2), () => subjects.slice(2)];
  },
};
