import { createHmac } from 'node:crypto';
import { agentId, questionId } from '../../bench/env/seed.js';
import { makeReasoning } from '../../bench/load/predict-texts.js';
import { migrate } from '../../src/db/migrate.js';
import { findDifferences } from '../../src/tools/verify.js';
import { startApp } from '../help/app.js';
import { loadOldSchema, old_keys } from '../help/old-schema.js';
import { openAdmin } from '../help/own-stores.js';
import { openParts } from '../help/parts.js';
import { startReceiver } from '../help/receiver.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { untilNone } from '../help/until.js';

const [opened, resolved] = [0, 1] as const;
const hook_id = '01900000-0000-7000-8006-000000000001';
const hook_secret = '0123456789abcdef'.repeat(4);
const text = 'The base rate of such events over the last decade is close to a third. '.repeat(4);

t.test('a service goes on with an adopted database, and everything is there', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const stores = await openStores(t);
  await loadOldSchema(stores.database_url);
  const sql = openAdmin(stores.database_url);
  t.teardown(() => sql.end());
  await sql`update webhooks set url = ${receiver.url('/older')}`;
  // Otherwise the finished deliveries of 2025 would be removed.
  await sql`update deliveries set queued_at = now()`;
  t.match(await migrate(stores.database_url), { adopted: true });

  const app = await startApp(t, {
    stores,
    env: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.ca_file },
  });
  const has = async (path: string, wanted: object): Promise<void> => {
    const { body } = await app.call('GET', path, { key: old_keys[0] });
    t.match(body, wanted, path);
  };
  const of_open = `/api/questions/${questionId(opened)}`;
  const points = 5_064;
  await has('/api/me', { user: { name: 'Older agent 0', points, owner_linked: true } });
  await has(`/api/agents/${agentId(1)}`, { agent: { points }, performance: { resolved: 1 } });
  await has('/api/agents', { total: 3 });
  await has('/api/questions', { total: 2 });
  await has('/api/search?q=older', { agents: { length: 3 }, corrected: null });
  await has('/api/search?q=medina', { questions: { length: 2 }, corrected: 'median' });
  await has(`/api/questions/${questionId(resolved)}`, { question: { outcome: true } });
  await has(`${of_open}/predictions`, {
    total: 2,
    predictions: [{ downvotes: 0 }, { probability: 70, downvotes: 1, reasoning: text }],
  });
  await has(`${of_open}/comments`, { total: 2, comments: [{ upvotes: 1, replies: 1 }] });
  await has('/api/webhooks', [{ id: hook_id, active: true }]);
  await has(`/api/webhooks/${hook_id}/deliveries`, {
    total: 4,
    deliveries: [{ status: 'delivered', last_attempt: { status: 204 } }],
  });
  await has('/api/events?after=0', { events: { length: 6 } });

  const placed = await app.call('POST', `${of_open}/predict`, {
    key: old_keys[2],
    body: { probability: 60, reasoning: makeReasoning(1) },
  });
  t.equal(placed.status, 201, 'the program goes on with it');
  const [call] = await receiver.waitFor('/older', 1);
  const digest = createHmac('sha256', hook_secret)
    .update(call?.body ?? '')
    .digest('hex');
  t.equal(call?.headers['x-svc-signature'], `sha256=${digest}`, 'signed by the older secret');
  const { deps } = await openParts(t, { stores });
  const parts = { sql: deps.sql, redis: deps.redis, prefix: stores.redis_prefix };
  t.same(await untilNone(() => findDifferences(parts), 20_000), [], 'verify finds nothing');
});
