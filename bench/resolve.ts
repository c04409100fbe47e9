import { setTimeout as delay } from 'node:timers/promises';
import type { Sql } from '../src/db/client.js';
import { type Bed, makeKeys, prepareOnBed, writeKeys } from './env/bed.js';
import { makeKeyBudget } from './env/key-budget.js';
import { block, makeLoad } from './env/load-rounds.js';
import { questionId, seed, seedForecasts } from './env/seed.js';
import { openPool } from './env/stores.js';
import { type StoredTarget, startServiceTarget } from './env/targets.js';
import { waitUntilEmpty } from './env/wait.js';
import { type Bench, figureOf, ratioOf, type Sample, type Subject } from './frame/types.js';

/**
 * Seconds from the decision about a question with 100,000 predictions until everybody is paid, and
 * what agents who predict on other questions notice of it. They come at a fixed rate, once with
 * nothing else going on and once while a question resolves; they are among those who are paid, so
 * that both want the same accounts. After each resolution the books are checked: nets
 * paid once, scores stored and balances equal to the sum of the ledger, or the bench fails.
 */

const predictions = 100_000;
const quick_predictions = 20_000;
/** Of all agents, so many predict meanwhile. */
const writers = 10_000;
const writer_rate = 300;
const connections = 32;
const key_budget = 54;
const admin_key = 'bench-admin-key-0123456789abcdefghij';
const longest_s = 120;

interface Season {
  readonly target: StoredTarget;
  readonly keys_file: string;
  /** Predictions of each question that is resolved. */
  readonly size: number;
  /** Questions below this number are resolved, those from it on are predicted on. */
  readonly resolved: number;
}

/** Wrong books end the bench: figures of a job that forgets somebody mean nothing. */
const checkBooks = async (sql: Sql, question_id: string, size: number): Promise<void> => {
  const [row] = await sql<{ scored: number; paid: number; off: number }[]>`
    select
      (select count(*)::int from scores where question_id = ${question_id}) as scored,
      (
        select count(distinct agent_id)::int
        from predictions p
        where question_id = ${question_id}
          and (
            select count(*) from ledger l
            where l.agent_id = p.agent_id and l.subject_id = p.id and l.reason = 'settlement'
          ) = (p.probability <> 50)::integer
      ) as paid,
      (
        select count(*)::int
        from accounts a
        join (select agent_id, sum(amount) as total from ledger group by agent_id) l
          using (agent_id)
        where a.balance <> l.total
      ) as off`;
  if (row?.scored === size && row.paid === size && row.off === 0) return;
  throw new Error(`The books are wrong after resolving: ${JSON.stringify(row)}`);
};

const readDone = async (sql: Sql, question_id: string) => {
  const [row] = await sql<{ done: number; state: string }[]>`
    select done, state from resolutions where question_id = ${question_id}`;
  return row ?? { done: 0, state: 'running' };
};

/** Decides a question as an admin does and waits until everybody is paid. */
const resolveOnce = async (season: Season, question: number): Promise<Sample> => {
  const { target, size } = season;
  const { sql } = target;
  const question_id = questionId(question);
  const started_ms = performance.now();
  const answer = await fetch(
    `http://127.0.0.1:${target.port}/api/admin/questions/${question_id}/resolve`,
    {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-admin-key': admin_key },
      body: JSON.stringify({ outcome: true }),
    },
  );
  if (answer.status !== 202) throw new Error(`Not resolved: ${await answer.text()}`);
  await answer.arrayBuffer();
  const decided_ms = performance.now() - started_ms;
  for (;;) {
    const { state } = await readDone(sql, question_id);
    const elapsed_ms = performance.now() - started_ms;
    if (state === 'done') {
      return {
        decided_ms,
        resolve_s: elapsed_ms / 1_000,
        settled_per_second: size / (elapsed_ms / 1_000),
      };
    }
    if (elapsed_ms > longest_s * 1_000) throw new Error('The settling takes too long.');
    await delay(50);
  }
};

const makeSubjects = (bed: Bed, season: Season): readonly Subject[] => {
  const { context } = bed;
  const { target, size, resolved, keys_file } = season;
  const { sql } = target;
  const write = makeLoad(bed, target, {
    source: new URL('./load/predict-requests.js', import.meta.url),
    ...{ keys_file, agents: writers, wanted_status: 201 },
    connections: context.connections ?? connections,
    ...{ idOf: questionId, first_subject: resolved },
    budget: makeKeyBudget(key_budget),
  });
  const steady = { rate: writer_rate, at_most: writer_rate };
  let next_resolved = 0;
  let seconds = context.seconds;
  const resolving = async (for_seconds: number): Promise<Sample> => {
    const question = next_resolved;
    next_resolved += 1;
    const during = () => resolveOnce(season, question);
    const sample = await write({ ...steady, seconds: for_seconds, during });
    await checkBooks(sql, questionId(question), size);
    // The boards follow for a while; the next round should not begin in the middle of that.
    await waitForBoards(sql);
    return sample;
  };
  const alone: Subject = {
    name: 'writer_alone',
    warmUp: async () => {
      await write({ ...steady, seconds: 2 });
    },
    round: () => write({ ...steady, seconds: context.seconds }),
  };
  const beside: Subject = {
    name: 'writer_resolving',
    async warmUp() {
      // The load has to end before the settling does, or its figures would hold quiet time.
      const { resolve_s = seconds } = await resolving(context.seconds);
      seconds = Math.max(1, Math.min(context.seconds, Math.floor(resolve_s * 0.8)));
    },
    async round() {
      const sample = await resolving(seconds);
      const covered = Math.min(1, (sample['resolve_s'] ?? 0) / seconds);
      return { ...sample, covered, per_100k_s: ((sample['resolve_s'] ?? 0) * 100_000) / size };
    },
  };
  return [alone, beside];
};

const waitForBoards = (sql: Sql) => waitUntilEmpty(sql, ['standing_changes'], longest_s);

const fillDatabase = async (
  { context, stores }: Bed,
  { size, resolved }: Pick<Season, 'size' | 'resolved'>,
): Promise<string> => {
  const keys = makeKeys(size);
  await stores.createDatabase('service');
  const sql = openPool(stores.urlOf('service'), 'bench');
  await seed(sql, { keys, questions: resolved + block * (2 * context.rounds + 2) });
  for (let question = 0; question < resolved; question += 1) {
    await seedForecasts(sql, { question, first_agent: 0, count: size, events: false });
  }
  await sql`
    update questions
    set status = 'closed', closed_at = now()
    where id = any (${Array.from({ length: resolved }, (_, n) => questionId(n))})`;
  await sql`vacuum analyze`;
  await sql.end({ timeout: 5 });
  // Spread over all of them, so that some are in the chunk at hand at any time.
  const step = size / writers;
  return writeKeys(
    context,
    keys.filter((_, n) => n % step === 0),
  );
};

export const resolve: Bench = {
  name: 'resolve',
  question:
    'How long does a question with 100,000 predictions take to resolve, and what do others notice?',
  reduce: { rss_mb: 'max' },
  ratios: { p99_resolving_over_alone: ratioOf('writer_resolving', 'writer_alone', 'p99_ms') },
  figures: {
    resolve_100k_s: figureOf('writer_resolving', 'per_100k_s'),
    covered: figureOf('writer_resolving', 'covered'),
  },
  prepare: prepareOnBed(async (bed) => {
    const { context } = bed;
    const size = context.quick ? quick_predictions : predictions;
    const resolved = context.rounds + 1;
    context.tell(`${resolved} questions with ${size} predictions each are being made …`);
    const keys_file = await fillDatabase(bed, { size, resolved });
    const service = await startServiceTarget(bed, { ADMIN_KEY: admin_key });
    const { api, other } = service.groups;
    const target: StoredTarget = { ...service, groups: { api, other }, watched: other };
    await waitForBoards(target.sql);
    const season: Season = { target, keys_file, size, resolved };
    return { stages: [() => ({ subjects: makeSubjects(bed, season) })] };
  }),
};
