import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { startApp } from '../help/app.js';
import { startReceiver } from '../help/receiver.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

t.test('one prediction moves consensus, log, socket and webhook alike', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const app = await startApp(t, {
    env: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.ca_file },
  });
  const human = await makeHuman(app);
  const agent = await makeAgent(app);
  const question_id = await makeOpenQuestion(app);
  const body = { prediction: true, confidence: 80, reasoning: makeReasoning() };
  const path = `/api/questions/${question_id}/predict`;

  const unlinked = await app.call('POST', path, { key: agent.key, body });
  t.equal(unlinked.status, 403);
  t.equal(unlinked.body.code, 'AGENT_NOT_LINKED');

  const linked = await app.call('POST', '/api/me/agents', {
    token: human.token,
    body: { api_key: agent.key },
  });
  t.equal(linked.status, 200);
  t.equal(linked.body.agent.trust_label, 'verified');

  const hook = await app.call('POST', '/api/webhooks', {
    key: agent.key,
    body: { url: receiver.url('/hook'), events: ['prediction.placed', 'prediction.placed'] },
  });
  t.equal(hook.status, 201);
  t.same(hook.body.events, ['prediction.placed']);
  const listener = await connect(t, app.port, { path: `/ws?token=${agent.key}` });

  const placed = await app.call('POST', path, { key: agent.key, body });
  t.equal(placed.status, 201);
  t.match(placed.body.points, { points: 5000, tier: 'Analyst' });

  const repeated = await app.call('POST', path, { key: agent.key, body });
  t.equal(repeated.status, 200, 'a byte-identical repeat gets the first result');
  t.equal(repeated.headers.get('idempotency-replayed'), 'true');
  t.equal(repeated.body.prediction.id, placed.body.prediction.id);

  const second = await app.call('POST', path, {
    key: agent.key,
    body: { ...body, confidence: 70 },
  });
  t.equal(second.status, 409);
  t.equal(second.body.code, 'DUPLICATE_PREDICTION');

  const consensus = await until('the consensus', async () => {
    const answer = await app.call('GET', `/api/questions/${question_id}/consensus`);
    return answer.body.total_predictions === 1 ? answer.body : undefined;
  });
  t.match(consensus, {
    yes_percent: 100,
    avg_confidence: 80,
    model_breakdown: [{ model_family: 'claude', count: 1, yes_percent: 100, avg_confidence: 80 }],
  });

  const stored = await until('the log', async () => {
    const rows = await app.sql`select "offset", id, event, body from events order by "offset"`;
    return rows.length === 3 ? rows : undefined;
  });
  t.same(
    stored.map(({ offset, event }) => [offset, event]),
    [
      [1, 'question.created'],
      [2, 'agent.linked'],
      [3, 'prediction.placed'],
    ],
  );
  t.equal(stored[2]?.['id'], placed.body.event_id);

  const frame = await listener.get('the event', (seen) => seen['event'] === 'prediction.placed');
  const [delivery] = await receiver.waitFor('/hook', 1);
  const text = delivery?.body.toString('utf8') ?? '';
  t.equal(text, stored[2]?.['body'], 'the webhook carries the recorded bytes');
  const { event, data, timestamp } = frame;
  t.same({ event, data, timestamp }, JSON.parse(text), 'the socket carries the same event');
  t.equal(frame['offset'], 3);

  const hmac = createHmac('sha256', hook.body.secret).update(text).digest('hex');
  t.equal(delivery?.headers['x-svc-signature'], `sha256=${hmac}`);
  t.equal(delivery?.headers['x-svc-offset'], '3');
  const headers = delivery?.headers as Record<string, string>;
  t.ok(new Webhook(hook.body.signing_secret).verify(text, headers));

  const rows = await app.sql`select count(*)::int as count from predictions`;
  t.equal(rows[0]?.['count'], 1, 'one prediction is stored, whatever was repeated');
});
