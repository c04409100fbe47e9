import { type Bed, makeKeys, prepareOnBed, writeKeys } from './env/bed.js';
import { makeKeyBudget } from './env/key-budget.js';
import { makeClosedLoop, makeLoad } from './env/load-rounds.js';
import { questionId, seed } from './env/seed.js';
import { openPool } from './env/stores.js';
import { type StoredTarget, startServiceTarget } from './env/targets.js';
import { waitUntilEmpty } from './env/wait.js';
import { type Bench, ratioOf, type Subject } from './frame/types.js';
import { countPredictions } from './predict.js';

/**
 * Predictions per second with one api process and with two, on one Postgres: on 64 questions, where
 * the processes wait for each other's locks, and on 10,000, where they hardly do.
 */

const agents = 10_000;
const connections = 256;
/** Below the limit of 60 a minute and key. */
const key_budget = 54;
const few = 64;
const many = 10_000;

const fillDatabases = async ({ context, stores }: Bed, names: readonly string[]) => {
  const keys = makeKeys(agents);
  await stores.createDatabase('seeded');
  const sql = openPool(stores.urlOf('seeded'), 'bench');
  await seed(sql, { keys, questions: (few + many) * (context.rounds + 2) });
  await sql.end({ timeout: 5 });
  await stores.copyDatabase('seeded', names);
  return writeKeys(context, keys);
};

export const processes: Bench = {
  name: 'processes',
  question: 'What does a second api process give to predictions?',
  reduce: { rss_mb: 'max' },
  ratios: {
    two_over_one_on_64: ratioOf('two_64', 'one_64'),
    two_over_one_on_10000: ratioOf('two_10000', 'one_10000'),
  },
  prepare: prepareOnBed(async (bed) => {
    const { context } = bed;
    const keys_file = await fillDatabases(bed, ['one', 'two']);
    const rounds = context.rounds + 2;
    const make = (target: StoredTarget): readonly Subject[] => {
      const budget = makeKeyBudget(key_budget);
      return [few, many].map((subjects) => {
        const run = makeLoad(bed, target, {
          source: new URL('./load/predict-requests.js', import.meta.url),
          ...{ keys_file, agents, connections, subjects, budget, wanted_status: 201 },
          idOf: questionId,
          first_subject: subjects === few ? 0 : few * rounds,
          first_text: subjects === few ? 0 : 10_000_000,
          countRows: (question_ids) => countPredictions(target.sql, question_ids),
          settle: async () => ({ hand_off_s: await waitUntilEmpty(target.sql, ['outbox']) }),
        });
        return makeClosedLoop(`${target.name}_${subjects}`, context, run);
      });
    };
    const prefix = (name: string) => ({ REDIS_PREFIX: `bench-${name}` });
    const one = await startServiceTarget(bed, { ...prefix('one'), API_PROCESSES: '1' }, 'one');
    const two = await startServiceTarget(bed, { ...prefix('two'), API_PROCESSES: '2' }, 'two');
    return { stages: [() => ({ subjects: [...make(one), ...make(two)] })], missing: [] };
  }),
};
