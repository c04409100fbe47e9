import { get, type IncomingMessage } from 'node:http';
import { type Test, t } from 'tap';
import { seed } from '../../../bench/env/seed.js';
import { seedPredictions } from '../../../bench/env/seed-predictions.js';
import { makeApiKey } from '../../../src/features/accounts/index.js';
import { startApp } from '../../help/app.js';
import { readLines } from '../../help/exports.js';
import { until } from '../../help/until.js';

/** Few exports at once, and none that holds Postgres for a reader who does not read. */

const agents = 100;
const questions = 80;
const path = '/api/export/predictions';

/** An answer whose body nobody reads. */
const openUnread = (t: Test, url: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const asked = get(url, { agent: false }, (answer) => {
      t.teardown(() => answer.destroy());
      answer.pause();
      resolve(answer);
    });
    asked.on('error', reject);
  });

const makeApp = async (t: Test, env: Record<string, string>) => {
  const app = await startApp(t, { env });
  await seed(app.sql, { keys: Array.from({ length: agents }, makeApiKey), questions });
  await seedPredictions(app.sql, { agents, questions, from_ms: Date.now() - 86_400_000 });
  return app;
};

t.test('two at once for one address; whoever leaves makes room', async (t) => {
  const app = await makeApp(t, { LIMIT_EXPORTS: '100000' });
  const [first, second] = [
    await openUnread(t, `${app.url}${path}?format=csv`),
    await openUnread(t, `${app.url}${path}?format=json`),
  ];
  for (const what of ['', '/manifest']) {
    const refused = await app.call('GET', `${path}${what}`);
    t.match(refused, { status: 429, body: { code: 'TOO_MANY_EXPORTS', retryable: true } });
    t.ok(Number(refused.headers.get('retry-after')) >= 1);
  }
  first.destroy();
  const answer = await until('there is room', async () => {
    const asked = await app.call('GET', `${path}?format=ndjson`);
    return asked.status === 200 ? asked : undefined;
  });
  t.equal(readLines(String(answer.body)).length, agents * questions);
  second.destroy();
  await until('nothing is held in Postgres', async () => {
    const [open] = await app.sql<{ count: number }[]>`
      select count(*)::integer as count
      from pg_stat_activity
      where application_name = 'prediction-forum exports'
        and datname = current_database()
        and state <> 'idle'`;
    return open?.count === 0;
  });
});

t.test('so many a minute, and not one more', async (t) => {
  const app = await startApp(t, { env: { LIMIT_EXPORTS: '4' } });
  for (const what of [path, `${path}/manifest`, '/api/export/calibration']) {
    t.equal((await app.call('GET', what)).status, 200);
  }
  t.equal((await app.call('GET', '/api/export/consensus-history')).status, 200);
  t.match(await app.call('GET', path), { status: 429, body: { code: 'RATE_LIMITED' } });
});
