import { t } from 'tap';
import { startApp } from '../help/app.js';
import { openParts } from '../help/parts.js';
import { awaitAgreement, describeMixed, mixed_env, runMixed } from './mixed-load.js';

/** The short form of `npm run mixed`. */
t.setTimeout(165_000);

t.test('2,000 mixed operations of 32 clients leave nothing that differs', async (t) => {
  const app = await startApp(t, { env: mixed_env });
  const { url, sql, stores } = app;
  const result = await runMixed({ url, sql, operations: 2_000, clients: 32, seed: 20_261_120 });
  t.comment(describeMixed(result));
  t.same(result.odd, [], 'no answer is odd');
  const [stored] = await sql<
    { count: number }[]
  >`select count(*)::integer as count from predictions`;
  t.equal(stored?.count, result.placed, 'what was acknowledged is stored, and nothing else');
  for (const [name, { good }] of result.counts) t.ok(good > 0, `${name} was done`);
  t.equal(result.counts.size, 17);

  const { deps } = await openParts(t, { stores });
  const parts = { sql: deps.sql, redis: deps.redis, prefix: stores.redis_prefix };
  t.same(await awaitAgreement(parts, 60_000), [], 'verify finds nothing');
});
