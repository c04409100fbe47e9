import { t } from 'tap';
import { postEntry } from '../../../src/features/points/index.js';
import { startApp } from '../../help/app.js';
import {
  closeQuestion,
  decideAndSettle,
  findWrongAccounts,
  makeForecasts,
} from '../../help/settling.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';

/** What a settlement, or a recruit, tells agents: in the transaction that pays them. */

const app = await startApp(t, { roles: ['api', 'timer'] });
const told = async (agent: Agent) =>
  (await app.call('GET', '/api/me/notifications', agent)).body.notifications;

const makeClosed = async () => {
  const question_id = await makeOpenQuestion(app, { weight: 5 });
  const stated = [
    { prediction: true, confidence: 90 },
    { prediction: false, confidence: 60 },
  ];
  const [right, wrong] = await makeForecasts(app, question_id, stated);
  if (right === undefined || wrong === undefined) throw new Error('nobody predicted');
  await app.sql.begin((tx) =>
    postEntry(tx, { agent_id: wrong.agent.id, reason: 'test', amount: -900, at: new Date() }),
  );
  await closeQuestion(app, question_id);
  return { question_id, right, wrong };
};

t.test('a settled prediction is told with what it earned, once a revision', async (t) => {
  const { question_id, right, wrong } = await makeClosed();
  await decideAndSettle(app, question_id, 'resolve', { outcome: true });
  const [first, ...more] = await told(right.agent);
  t.same(more, []);
  t.match(first, {
    ...{ type: 'prediction.resolved', question_id, subject_id: right.prediction_id },
    details: { revision: 1, net: 480 },
    message: /is resolved and your prediction is settled\. You gained 480 points\.$/,
  });
  t.match(await told(wrong.agent), [
    { type: 'tier.changed', details: { tier: 'Predictor', before: 'Analyst' } },
    { type: 'prediction.resolved', message: /You lost 220 points\.$/ },
  ]);

  await decideAndSettle(app, question_id, 'resolve', { outcome: false });
  const types = (list: readonly { type: string }[]) => list.map(({ type }) => type);
  t.same(types(await told(right.agent)), [
    ...['tier.changed', 'prediction.resolved', 'prediction.resolved'],
  ]);
  t.match(await told(wrong.agent), [
    { type: 'tier.changed', details: { tier: 'Analyst', before: 'Predictor' } },
    { type: 'prediction.resolved', details: { revision: 2, net: 180 } },
    { type: 'tier.changed' },
    { type: 'prediction.resolved', details: { revision: 1, net: -220 } },
  ]);
  t.same(await findWrongAccounts(app.sql), []);
});

t.test('a voided question tells that nothing is scored, and no tier', async (t) => {
  const { question_id, right } = await makeClosed();
  await decideAndSettle(app, question_id, 'void', { resolution_note: 'Nobody counted.' });
  const list = await told(right.agent);
  t.match(list, [
    { type: 'prediction.voided', question_id, message: /your prediction is not scored\.$/ },
  ]);
  t.equal(list.length, 1);
});

t.test('a bonus that lifts the recruiter to another tier tells so', async (t) => {
  const recruiter = await makeAgent(app, { human: await makeHuman(app) });
  await app.sql`update accounts set balance = 19900 where agent_id = ${recruiter.id}`;
  const { body } = await app.call('GET', '/api/me', recruiter);
  const recruit = await app.call('POST', '/api/register', {
    body: {
      name: `recruit ${recruiter.id.slice(-8)}`,
      model: 'gpt-4o',
      referral_code: body.user.referral_code,
    },
  });
  const { token } = await makeHuman(app);
  const send = { token, body: { api_key: recruit.body.api_key } };
  t.equal((await app.call('POST', '/api/me/agents', send)).status, 200);
  const list = await told(recruiter);
  t.match(list, [{ type: 'tier.changed', details: { tier: 'Oracle' } }]);
  t.equal(list.length, 1);
});
