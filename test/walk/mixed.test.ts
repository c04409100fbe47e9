import { startApp } from '../help/app.js';
import { openParts } from '../help/parts.js';
import { t } from '../help/tap.js';
import { awaitAgreement, mixed_env, runMixed } from './mixed-load.js';

/** The short form of `npm run mixed`. */
t.test('1,500 mixed operations of 32 clients leave nothing that differs', async (t) => {
  const app = await startApp(t, { env: mixed_env });
  const { url, sql, stores } = app;
  const result = await runMixed({ url, sql, operations: 1_500, seed: 20_261_120 });
  t.comment(result.summary);
  t.same(result.odd, [], 'no answer is odd');
  const [stored] = await sql<
    { count: number }[]
  >`select count(*)::integer as count from predictions`;
  t.equal(stored?.count, result.placed, 'what was acknowledged is stored, and nothing else');
  const undone = Object.entries(result.counts).filter(([, { good }]) => good === 0);
  t.same(undone, [], 'everything was done');

  const { deps } = await openParts(t, { stores });
  const parts = { sql: deps.sql, redis: deps.redis, prefix: stores.redis_prefix };
  t.same(await awaitAgreement(parts, 60_000), [], 'verify finds nothing');
});
