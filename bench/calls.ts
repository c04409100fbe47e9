import { makeKeys, prepareOnBed, waitUntilEmpty, writeKeys } from './env/bed.js';
import { best_connections, block, type LoadOptions, makeLoad } from './env/load-rounds.js';
import { questionId, seed } from './env/seed.js';
import { startService } from './env/service.js';
import { type Bench, ratioOf, type Subject } from './frame/bench.js';
import { countPredictions } from './predict.js';

/**
 * Durable predictions per second by calls over websockets, beside the same requests over HTTP: one
 * service, the same agents in the same order, each agent with one connection of its own.
 *
 * `http`, `sockets`: a fleet of many agents, as many requests in flight either way, so that the
 * difference is the cost of a request. `burst_…`: a few agents come at once, each with 20
 * predictions. A socket takes all of them; HTTP/1.1 has one request in flight a connection, so an
 * agent waits for each answer.
 */

const agents = 4_000;
/** For preparing the requests. */
const at_most = 12_000;
const burst_agents = 16;
const burst = 20;
/** A burst is over long before. */
const burst_seconds = 30;

const http = { kind: 'predict' } as const;
const call = { kind: 'call' } as const;
type Way = Pick<LoadOptions, 'kind' | 'agents' | 'in_flight' | 'burst' | 'own_connections'>;

const fleet = { agents, in_flight: best_connections };
const ways: Readonly<Record<string, Way>> = {
  http: { ...http, ...fleet, own_connections: agents },
  sockets: { ...call, ...fleet },
  burst_http: { ...http, agents: burst_agents, burst, in_flight: burst_agents },
  burst_sockets: { ...call, agents: burst_agents, burst, in_flight: burst_agents * burst },
};

export const bench: Bench = {
  name: 'calls',
  question: 'How many durable predictions per second pass by calls over websockets?',
  figures: {
    sockets_over_http: ratioOf('sockets', 'http'),
    burst_sockets_over_http: ratioOf('burst_sockets', 'burst_http'),
  },
  prepare: prepareOnBed(async (bed) => {
    const { quick, seconds, rounds } = bed.context;
    // One more warms up.
    const all_rounds = rounds + 1;
    const burst_each = burst_agents * all_rounds;
    const keys = makeKeys(agents + 2 * burst_each);
    const keys_file = writeKeys(bed, keys);
    const questions = Object.keys(ways).length * block * all_rounds;
    await bed.createDatabase('service', (sql) => seed(sql, { keys, questions }));
    const target = await startService(bed, { TRUSTED_PROXIES: '127.0.0.1' });
    const subjects = Object.entries(ways).map(([name, way], n): Subject => {
      const is_burst = way.burst !== undefined;
      const run = makeLoad(bed, target, {
        ...{ ...way, keys_file, wanted_status: 201, idOf: questionId },
        first_agent: is_burst ? agents + (n - 2) * burst_each : 0,
        first_subject: n * block * all_rounds,
        first_text: n * 10_000_000,
        countRows: (question_ids) => countPredictions(target.sql, question_ids),
        settle: async () => ({ hand_off_s: await waitUntilEmpty(target.sql, ['outbox']) }),
      });
      const round = () => run({ seconds: is_burst ? burst_seconds : seconds, at_most });
      const warmUp = () => run({ seconds: is_burst ? burst_seconds : quick ? 1 : 4, at_most });
      return { name, warmUp, round };
    });
    return { stages: [() => subjects.slice(0, 2), () => subjects.slice(2)] };
  }),
};
