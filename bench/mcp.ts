import { block, type LoadOptions, makeClosedLoop, makeLoad } from './env/load-rounds.js';
import { startForum } from './env/setup.js';
import { type Bench, ratioOf } from './frame/bench.js';

/**
 * Durable predictions per second through the tool `predict` of the Model Context Protocol (revision
 * 2026-07-28), compared with REST. There are 500 concurrent agents, each on its own connection.
 * Over MCP, a refusal has the status 200 too, so the rows are counted.
 */

const agents = 500;

export const bench: Bench = {
  question: 'How many durable predictions per second do 500 agents place over MCP, and over REST?',
  figures: { mcp_over_rest: { of: ratioOf('mcp', 'rest') } },
  async prepare(context) {
    // Each pair of an agent and a question occurs once. Two extra rounds are the warm-up.
    const questions = 2 * block * (context.rounds + 2);
    const { setup, keys_file, service } = await startForum(context, {
      agents,
      questions,
      env: { TRUSTED_PROXIES: '127.0.0.1' },
    });
    const subjects = (['predict', 'mcp'] as const).map((kind) => {
      const load: LoadOptions = {
        kind,
        keys_file,
        agents,
        in_flight: agents,
        own_connections: agents,
      };
      const name = kind === 'mcp' ? 'mcp' : 'rest';
      return makeClosedLoop(name, context, makeLoad(setup, service, load));
    });
    return [() => subjects];
  },
};
