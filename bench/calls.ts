import { type Bed, makeKeys, prepareOnBed, writeKeys } from './env/bed.js';
import { makeKeyBudget } from './env/key-budget.js';
import { best_connections, block, makeLoad } from './env/load-rounds.js';
import { questionId, seed } from './env/seed.js';
import { openPool } from './env/stores.js';
import { startServiceTarget } from './env/targets.js';
import { waitUntilEmpty } from './env/wait.js';
import { type Bench, ratioOf, type Subject } from './frame/types.js';
import { countPredictions } from './predict.js';

/**
 * Durable predictions per second by calls over websockets, beside the same requests over HTTP: one
 * service, the same agents in the same order, as many in flight. A call is made by whoever opened
 * the socket, so every agent has one; over HTTP all share the connections.
 */

const agents = 4_000;
/** The service allows 60 predictions a minute and key; rounds wait rather than meet it. */
const key_budget = 54;
/** For preparing the requests. */
const at_most = 12_000;
/** Below the limit of sockets of one address; the load has as many addresses as it needs. */
const an_address = 160;

const makeSubjects = async (bed: Bed, keys_file: string): Promise<readonly Subject[]> => {
  const { context } = bed;
  const target = await startServiceTarget(bed);
  const budget = makeKeyBudget(key_budget);
  const doors = { http: './load/predict-requests.js', sockets: './load/call-requests.js' } as const;
  return (['http', 'sockets'] as const).map((name, n) => {
    const run = makeLoad(bed, target, {
      source: new URL(doors[name], import.meta.url),
      ...(name === 'http' ? {} : { sockets: { keys_file, an_address } }),
      ...{ keys_file, agents, budget, wanted_status: 201, idOf: questionId },
      first_subject: n * block * (context.rounds + 1),
      first_text: n * 10_000_000,
      connections: context.connections ?? best_connections,
      countRows: (question_ids) => countPredictions(target.sql, question_ids),
      settle: async () => ({ hand_off_s: await waitUntilEmpty(target.sql, ['outbox']) }),
    });
    return {
      name,
      async warmUp() {
        await run({ seconds: context.quick ? 1 : 4, at_most });
      },
      round: () => run({ seconds: context.seconds, at_most }),
    };
  });
};

const fillDatabase = async ({ context, stores }: Bed): Promise<string> => {
  const keys = makeKeys(agents);
  await stores.createDatabase('service');
  const sql = openPool(stores.urlOf('service'), 'bench');
  await seed(sql, { keys, questions: 2 * block * (context.rounds + 1) });
  await sql.end({ timeout: 5 });
  return writeKeys(context, keys);
};

export const calls: Bench = {
  name: 'calls',
  question: 'How many durable predictions per second pass by calls over websockets?',
  reduce: { rss_mb: 'max' },
  ratios: { sockets_over_http: ratioOf('sockets', 'http') },
  prepare: prepareOnBed(async (bed) => {
    const subjects = await makeSubjects(bed, await fillDatabase(bed));
    return { stages: [() => ({ subjects })] };
  }),
};
