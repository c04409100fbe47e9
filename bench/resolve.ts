import { setTimeout as delay } from 'node:timers/promises';
import type { Sql } from '../src/db/client.js';
import { block, makeLoad, waitUntilEmpty } from './env/load-rounds.js';
import { questionId, seedForecasts } from './env/seed.js';
import { startForum, type Target, writeKeys } from './env/setup.js';
import { type Bench, figureOf, ratioOf, type Sample, type Subject } from './frame/bench.js';

/**
 * Seconds from the decision about a question with 100,000 predictions, each revised twice, until
 * every agent is paid. Also measures the effect on agents who predict on other questions. They
 * predict at a fixed rate, once alone and once while a question is being resolved. They are among
 * the paid agents, so predictions and payments write to the same accounts. After each resolution,
 * each time-weighted net must be paid once, all scores must be stored, and balances must equal the
 * sum of the ledger. Otherwise the bench fails.
 */

const predictions = 100_000;
const quick_predictions = 20_000;
const revisions = 2;
/** Number of agents that predict while a question is being resolved. */
const writers = 10_000;
const rate = 300;
const admin_key = 'bench-admin-key-0123456789abcdefghij';
const longest_ms = 120_000;

/** Throws if the books are wrong, because figures of a job that forgets an agent mean nothing. */
const checkBooks = async (sql: Sql, question_id: string, size: number): Promise<void> => {
  const [row] = await sql<{ scored: number; paid: number; off: number }[]>`
    select
      (select count(*)::int from scores where question_id = ${question_id}) as scored,
      (
        select count(*)::int
        from (
          select agent_id, prediction_id, round(100 - sum(b * seconds) / sum(seconds)) as net
          from (
            select
              f.agent_id, f.prediction_id, 400 * (f.probability / 10000.0 - 1) ^ 2 as b,
              extract(epoch from lead(f.forecast_at, 1, date_trunc('milliseconds', q.closed_at)) over later - f.forecast_at)
                as seconds
            from forecasts f
            join questions q on q.id = f.question_id
            where f.question_id = ${question_id}
            window later as (partition by f.agent_id order by f.revision)
          ) stood
          group by agent_id, prediction_id
        ) earned
        left join ledger l
          on l.agent_id = earned.agent_id
          and l.subject_id = earned.prediction_id
          and l.reason = 'settlement'
        where coalesce(l.amount, 0) = earned.net
      ) as paid,
      (
        select count(*)::int
        from accounts a
        join (select agent_id, sum(amount) as total from ledger group by agent_id) l
          using (agent_id)
        where a.balance <> l.total
      ) as off`;
  if (row?.scored === size && row.paid === size && row.off === 0) return;
  throw new Error(`The ledger is wrong after resolving: ${JSON.stringify(row)}`);
};

/** Decides a question as an admin does and waits until every agent is paid. Returns seconds. */
const resolveOnce = async ({ port, sql }: Target, question_id: string): Promise<number> => {
  const started_ms = performance.now();
  const response = await fetch(
    `http://127.0.0.1:${port}/api/admin/questions/${question_id}/resolve`,
    {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-admin-key': admin_key },
      body: JSON.stringify({ outcome: true }),
    },
  );
  const text = await response.text();
  if (response.status !== 202) throw new Error(`Not resolved: ${text}`);
  for (;;) {
    const done = await sql`
      select from resolutions where question_id = ${question_id} and state = 'done'`;
    const elapsed_ms = performance.now() - started_ms;
    if (done.length > 0) return elapsed_ms / 1_000;
    if (elapsed_ms > longest_ms) throw new Error('The settlement takes too long.');
    await delay(50);
  }
};

export const bench: Bench = {
  question:
    'How long does resolving 100,000 revised predictions take, and how does it affect others?',
  figures: {
    p99_resolving_over_alone: { of: ratioOf('writer_resolving', 'writer_alone', 'p99_ms'), max: 2 },
    resolve_100k_s: { of: figureOf('writer_resolving', 'per_100k_s'), max: 45 },
    covered: { of: figureOf('writer_resolving', 'covered'), min: 0.8 },
  },
  async prepare(context) {
    const { quick, rounds, seconds } = context;
    const size = quick ? quick_predictions : predictions;
    const resolved = Array.from({ length: rounds + 1 }, (_, n) => questionId(n));
    context.log(`Making ${resolved.length} questions with ${size} predictions each …`);
    const { setup, keys, service } = await startForum(context, {
      agents: size,
      questions: resolved.length + block * (2 * rounds + 2),
      env: { ADMIN_KEY: admin_key },
      async fill(sql) {
        for (const question of resolved.keys()) {
          const size_of_it = { first_agent: 0, count: size, events: false, revisions };
          await seedForecasts(sql, { question, ...size_of_it });
        }
        await sql`
          update questions set status = 'closed', closed_at = now() where id = any (${resolved})`;
      },
    });
    const { sql } = service;
    // Writers spread evenly over all agents, so that each chunk that is settled contains some.
    const spread = keys.filter((_, n) => n % (size / writers) === 0);
    const waitForBoards = () => waitUntilEmpty(sql, ['standing_changes']);
    await waitForBoards();

    const write = makeLoad(setup, service, {
      kind: 'predict',
      keys_file: writeKeys(context, spread),
      agents: writers,
      in_flight: 32,
      idOf: (n) => questionId(resolved.length + n),
    });
    const questions = resolved.values();
    const resolving = async (for_seconds: number): Promise<Sample> => {
      const question_id = questions.next().value as string;
      const during = async () => ({ resolve_s: await resolveOnce(service, question_id) });
      const sample = await write({ rate, seconds: for_seconds, during });
      await checkBooks(sql, question_id, size);
      // The boards take a while to follow. The next round starts when they have caught up.
      await waitForBoards();
      return sample;
    };
    const alone: Subject = {
      name: 'writer_alone',
      warmUp: () => write({ rate, seconds: 2 }),
      round: () => write({ rate, seconds }),
    };
    let resolving_s = seconds;
    const beside: Subject = {
      name: 'writer_resolving',
      async warmUp() {
        // The load must end before settling does, or its figures would include quiet time.
        const { resolve_s = seconds } = await resolving(seconds);
        resolving_s = Math.max(1, Math.min(seconds, Math.floor(resolve_s * 0.8)));
      },
      async round() {
        const sample = await resolving(resolving_s);
        const resolve_s = sample['resolve_s'] ?? 0;
        const covered = Math.min(1, resolve_s / resolving_s);
        return { ...sample, covered, per_100k_s: (resolve_s * 100_000) / size };
      },
    };
    return [() => [alone, beside]];
  },
};
