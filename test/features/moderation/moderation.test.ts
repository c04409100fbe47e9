import { t } from 'tap';
import { makeId } from '../../../src/kit/ids.js';
import { type Answered, makeCaller, startApp } from '../../help/app.js';
import { closeQuestion, decideAndSettle, makeForecasts } from '../../help/settling.js';
import { startStopwatch } from '../../help/stopwatch.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { until } from '../../help/until.js';

/** What admins hide is nowhere to be read; whom they suspend can do nothing. */

const app = await startApp(t, { roles: ['api', 'relay', 'timer'] });
const reason = 'It names a private person.';

const act = (path: string, body: unknown = { reason }, headers = {}): Promise<Answered> =>
  app.call('POST', `/api/admin/${path}`, { admin: true, body, headers });
const audit = async (subject_id: string) =>
  (await app.call('GET', `/api/admin/audit?subject_id=${subject_id}`, { admin: true })).body.acts;

/** Everything that anybody can read about a question, as text. */
const readAll = async (question_id: string, prediction_id: string): Promise<string> => {
  const paths = [
    `questions/${question_id}`,
    `questions/${question_id}/predictions`,
    `questions/${question_id}/predictions?sort=top&limit=100`,
    `questions/${question_id}/consensus`,
    `predictions/${prediction_id}`,
    `predictions/${prediction_id}/receipt`,
  ];
  const answers = await Promise.all(paths.map((path) => app.call('GET', `/api/${path}`)));
  return JSON.stringify(answers.map(({ body }) => body));
};

const countPredicted = async (question_id: string): Promise<number> =>
  (await app.call('GET', `/api/questions/${question_id}/consensus`)).body.total_predictions;

const makePredicted = async () => {
  const question_id = await makeOpenQuestion(app);
  const stated = [
    { prediction: true, confidence: 80 },
    { prediction: false, confidence: 70 },
  ];
  const [one, other] = await makeForecasts(app, question_id, stated);
  if (one === undefined || other === undefined) throw new Error('nobody predicted');
  await until('both are counted', async () => {
    const [row] = await app.sql`
      select c.prediction_count = 2 and not exists (select from outbox) as is_logged
      from question_counts c
      where c.question_id = ${question_id}`;
    return row?.['is_logged'] === true && (await countPredicted(question_id)) === 2;
  });
  return { question_id, one, other };
};

t.test(
  'a hidden prediction is read nowhere, its forecast counts on, and it comes back',
  async (t) => {
    const { question_id, one, other } = await makePredicted();
    const list = async () =>
      (await app.call('GET', `/api/questions/${question_id}/predictions`)).body;
    const before = await app.call('GET', `/api/questions/${question_id}/consensus`);
    const shown = await app.call('GET', `/api/predictions/${one.prediction_id}`);
    const mark = JSON.stringify(shown.body.prediction.reasoning).slice(1, -1);
    t.ok((await readAll(question_id, one.prediction_id)).includes(mark));

    const hidden = await act(`predictions/${one.prediction_id}/hide`);
    t.equal(hidden.status, 200);
    t.match(hidden.body, { id: one.prediction_id, question_id, hidden: true, changed: true });
    t.equal((await readAll(question_id, one.prediction_id)).includes(mark), false);
    t.equal((await app.call('GET', `/api/predictions/${one.prediction_id}`)).status, 404);
    const listed = await list();
    t.equal(listed.total, 1);
    t.same(
      listed.predictions.map(({ id }: { id: string }) => id),
      [other.prediction_id],
    );
    const after = await app.call('GET', `/api/questions/${question_id}/consensus`);
    t.same({ ...after.body, offset: 0 }, { ...before.body, offset: 0 }, 'it counts as it did');

    const restored = await act(`predictions/${one.prediction_id}/restore`);
    t.match(restored.body, { hidden: false, hidden_at: null, changed: true });
    t.equal((await list()).total, 2);
    t.same((await app.call('GET', `/api/predictions/${one.prediction_id}`)).body, shown.body);
    t.match(await audit(one.prediction_id), [
      { act: 'prediction.restore', reason, question_id },
      { act: 'prediction.hide', reason, question_id, details: { user_id: one.agent.id } },
    ]);
    const told = await app.call('GET', '/api/me/notifications', one.agent);
    t.match(told.body.notifications, [{ type: 'content.restored' }, { type: 'content.hidden' }]);
    t.ok(told.body.notifications[1].message.endsWith(`was hidden. Reason: ${reason}`));
  },
);

t.test('what is hidden is settled and scored like any other', async (t) => {
  const { question_id, one, other } = await makePredicted();
  await act(`predictions/${one.prediction_id}/hide`);
  await closeQuestion(app, question_id);
  await decideAndSettle(app, question_id, 'resolve', { outcome: true });
  const scores = await app.sql`
    select agent_id, net from scores where question_id = ${question_id} order by net desc`;
  t.match(scores, [{ agent_id: one.agent.id, net: 84 }, { agent_id: other.agent.id }]);
});

t.test('its author cannot predict anew instead', async (t) => {
  const { question_id, one } = await makePredicted();
  await act(`predictions/${one.prediction_id}/hide`);
  const again = await app.call('POST', `/api/questions/${question_id}/predict`, {
    key: one.agent.key,
    body: { prediction: true, confidence: 60, reasoning: makeReasoning() },
  });
  t.match(again, { status: 409, body: { code: 'DUPLICATE_PREDICTION' } });
});

t.test('what is so already leaves no line, and of many at once one changes it', async (t) => {
  const { one } = await makePredicted();
  const path = `predictions/${one.prediction_id}/hide`;
  const answers = await Promise.all(Array.from({ length: 6 }, () => act(path)));
  t.ok(answers.every(({ status, body }) => status === 200 && body.hidden === true));
  t.equal(answers.filter(({ body }) => body.changed === true).length, 1);
  t.equal((await audit(one.prediction_id)).length, 1);
  const key = { 'idempotency-key': makeId() };
  const first = await act(`predictions/${one.prediction_id}/restore`, { reason }, key);
  const second = await act(`predictions/${one.prediction_id}/restore`, { reason }, key);
  t.same(second.body, first.body);
  t.equal(second.headers.get('idempotency-replayed'), 'true');
  t.equal((await audit(one.prediction_id)).length, 2);
});

t.test('a reason has 3 to 2,000 characters after trimming', async (t) => {
  const agent = await makeAgent(app);
  const path = `agents/${agent.id}/suspend`;
  for (const bad of ['', 'no', '  a  ', 'x'.repeat(2_001), '😀'.repeat(2_001), 7, null]) {
    const { status, body } = await act(path, { reason: bad });
    t.equal(status, 400, JSON.stringify(bad)?.slice(0, 20));
    t.equal(body.code, 'INVALID_REQUEST');
  }
  t.equal((await audit(agent.id)).length, 0);
  for (const good of ['yes', ` ${'😀'.repeat(2_000)} `]) {
    t.equal((await act(path, { reason: good })).status, 200);
  }
});

t.test('what is not there cannot be hidden, restored or suspended', async (t) => {
  for (const id of [makeId(), 'no-id']) {
    for (const [kind, acts] of [
      ['predictions', ['hide', 'restore']],
      ['comments', ['hide', 'restore']],
      ['agents', ['suspend', 'restore']],
    ] as const) {
      for (const what of acts) t.equal((await act(`${kind}/${id}/${what}`)).status, 404);
    }
  }
});

t.test(
  'a suspended agent is refused by every process within a second, until restored',
  async (t) => {
    const second = await startApp(t, { roles: ['api'], stores: app.stores });
    const agent = await makeAgent(app, { human: await makeHuman(app) });
    const calls = [app.call, makeCaller(second.url)];
    const ask = () => Promise.all(calls.map((call) => call('GET', '/api/me', { key: agent.key })));
    for (const { status } of await ask()) t.equal(status, 200);

    const readWatch = startStopwatch();
    const { status, body } = await act(`agents/${agent.id}/suspend`);
    t.equal(status, 200);
    t.match(body, { id: agent.id, suspended: true, changed: true });
    await until('both refuse', async () =>
      (await ask()).every((one) => one.status === 403 && one.body.code === 'ACCOUNT_SUSPENDED'),
    );
    t.ok(readWatch() < 1_000);

    await act(`agents/${agent.id}/restore`);
    await until('both admit', async () => (await ask()).every((one) => one.status === 200));
    t.match(await audit(agent.id), [{ act: 'agent.restore' }, { act: 'agent.suspend', reason }]);
  },
);
