import { questionId, seed, seedForecasts } from '../../../bench/env/seed.js';
import type { Db, Sql } from '../../../src/db/client.js';
import { makeApiKey } from '../../../src/features/accounts/rules.js';
import { readNewest, readQuoted, readVoted } from '../../../src/features/briefs/store.js';
import { startApp } from '../../help/app.js';
import { t } from '../../help/tap.js';
import { briefPath } from './world.js';

/** The queries of a brief on a question with many predictions use indexes and read few rows. */

const count = 6_000;

/** Prepends `explain` to a store's statement. SQL fragments stay unchanged. */
const explaining = (sql: Sql): Db => {
  const call = (strings: TemplateStringsArray, ...values: readonly unknown[]) => {
    if (!/^\s*select\s[^.]*\sfrom\s|^\s*select (?:p|v|a)\./.test(strings.join('?'))) {
      return sql(strings, ...(values as never[]));
    }
    const texts = [`explain (analyze, costs off, buffers off) ${strings[0]}`, ...strings.slice(1)];
    return sql(Object.assign(texts, { raw: texts }), ...(values as never[]));
  };
  return call as unknown as Db;
};

const planOf = async (rows: PromiseLike<unknown>): Promise<string> =>
  ((await rows) as { 'QUERY PLAN': string }[]).map((row) => row['QUERY PLAN']).join('\n');

/** The highest number of rows from one scan of predictions. */
const mostRows = (plan: string): number =>
  Math.max(
    0,
    ...plan
      .split('\n')
      .filter((line) => /Scan.* on predictions/.test(line))
      .map((line) => Number(/rows=(\d+)/.exec(line)?.[1]) * Number(/loops=(\d+)/.exec(line)?.[1])),
  );

t.test('of a question with many predictions a brief reads a few, by indexes', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const { sql } = app;
  await seed(sql, { keys: Array.from({ length: count }, makeApiKey), questions: 3 });
  for (const question of [0, 1, 2]) {
    await seedForecasts(sql, { question, first_agent: 0, count, events: false });
  }
  await sql`
    update predictions p
    set
      seq = n.seq,
      upvotes = case when n.seq % 50 = 0 then n.seq % 7 else 0 end
    from (
      select id, row_number() over (partition by question_id order by id) as seq from predictions
    ) n
    where n.id = p.id`;
  await sql`vacuum analyze`;
  const id = questionId(0);
  const db = explaining(sql);

  const newest = await planOf(readNewest(db, id, 1_000));
  t.match(newest, /Index Scan.* using predictions_by_seq/);
  t.ok(mostRows(newest) <= 1_001, newest);
  const voted = await planOf(readVoted(db, id, [1, 0], 20));
  t.match(voted, /Index Scan.* using predictions_voted/);
  t.ok(mostRows(voted) <= 40, voted);
  const shown = await readNewest(sql, id, 5);
  const ids = shown.map((row) => row.id);
  const quoted = await sql.begin(async (tx) => {
    // No scores exist yet, so a sequential scan of their empty table would be just as fast.
    await tx`set local enable_seqscan = off`;
    return planOf(readQuoted(explaining(tx as unknown as Sql), ids));
  });
  t.match(quoted, /predictions_by_id/);
  t.equal(mostRows(quoted), 5);
  t.match(quoted, /scores_agent/);
  const { status, body } = await app.call('GET', briefPath(id));
  t.equal(status, 200);
  t.equal(body.state.total_predictions, count);
  const read = body.sources.looked_at;
  t.ok(read > 1_000 && read <= 1_040, 'the newest, and those most voted before them');
  t.ok(body.notes.some((note: string) => /newest 1,000 predictions/.test(note)));
});
