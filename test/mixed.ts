import { t } from 'tap';
import { admin_key } from './help/app.js';
import { readNumbers } from './help/long-run.js';
import { startService } from './help/service.js';
import { awaitAgreement, mixed_env, runMixed } from './walk/mixed-load.js';

/**
 * `npm run mixed -- [--operations N] [--seed N]`: 32 concurrent clients register, link, predict,
 * suggest, decide, correct decisions, void, refer, use webhooks and comment, against the whole
 * service with its own processes and stores. Afterwards everything is settled, and verify must find
 * nothing.
 */

const { operations, seed } = readNumbers('mixed', {
  operations: 100_000,
  seed: 1 + (Date.now() % 1_000_000),
});

t.setTimeout(0);
t.test(`${operations} operations, seed ${seed}`, { timeout: 0 }, async (t) => {
  const env = { ...mixed_env, ADMIN_KEY: admin_key };
  const service = await startService(t, { agents: 1, questions: 1, env });
  const { url, sql, redis, prefix } = service;
  const result = await runMixed({
    url,
    sql,
    operations,
    seed,
    onProgress: (done) => {
      if (done % 10_000 === 0) t.comment(`${done} operations`);
    },
  });
  t.comment(result.summary);
  t.same(result.odd, [], 'no answer is odd');
  const [stored] = await sql<{ count: number }[]>`
    select count(*)::integer as count from predictions`;
  t.equal(stored?.count, result.placed, 'what was acknowledged is stored, and nothing else');
  t.same(await awaitAgreement({ sql, redis, prefix }, 120_000), [], 'verify finds nothing');
  t.same(
    [
      ...new Set(
        service.troubles(50).map(({ role, msg, err }) => JSON.stringify({ role, msg, err })),
      ),
    ],
    [],
    'nobody complained',
  );
});
