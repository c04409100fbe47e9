import t from 'tap';
import { startApp } from '../../help/app.js';
import {
  closeQuestion,
  decide,
  decideAndSettle,
  makeForecasts,
  untilSettled,
} from '../../help/settling.js';
import { makeOpenQuestion } from '../../help/story.js';

const reasons = (receipt: { entries: { reason: string; amount: number }[] }) =>
  receipt.entries.map(({ reason, amount }) => [reason, amount]);

t.test('a receipt shows what is at stake, and later how the payout came about', async (t) => {
  const app = await startApp(t);
  const id = await makeOpenQuestion(app, { weight: 3 });
  const [forecast] = await makeForecasts(app, id, [{ prediction: false, confidence: 80 }]);
  const path = `/api/predictions/${forecast!.prediction_id}/receipt`;
  const read = async () => (await app.call('GET', path)).body.receipt;
  const open = await read();
  t.match(open, {
    prediction_id: forecast!.prediction_id,
    question_id: id,
    user_id: forecast!.agent.id,
    question_type: 'binary',
    weight: 3,
    state: 'open',
    revision: 0,
    result: null,
    entries_total: 0,
  });
  t.same(open.distribution, [
    { option: 'YES', p: 0.2 },
    { option: 'NO', p: 0.8 },
  ]);
  t.same(open.outcomes, [
    { correct: ['YES'], outcome_vector: [1, 0], b: 1.28, u: 0.5, net: -468 },
    { correct: ['NO'], outcome_vector: [0, 1], b: 0.08, u: 0.5, net: 252 },
  ]);
  t.same(reasons(open), []);
  await closeQuestion(app, id);
  await decideAndSettle(app, id, 'resolve', { outcome: true });
  const lost = await read();
  t.match(lost, { state: 'settled', revision: 1, outcomes: [], entries_total: -468 });
  await decideAndSettle(app, id, 'resolve', { outcome: false });
  const won = await read();
  t.match(won, { state: 'settled', revision: 2, result: { net: 252 } });
  t.same(reasons(won), [
    ['settlement', -468],
    ['reversal', 468],
    ['settlement', 252],
  ]);
  t.equal(won.entries_total, won.result.net, 'the entries come to the net');
});

t.test('a receipt is pending until the settling has come to it, and tells of a void', async (t) => {
  const app = await startApp(t, { roles: ['api', 'relay'] });
  const id = await makeOpenQuestion(app);
  const missing = '01900000-0000-7000-8000-00000000ffff';
  t.equal((await app.call('GET', `/api/predictions/${missing}/receipt`)).status, 404);
  t.equal((await app.call('GET', '/api/predictions/nonsense/receipt')).status, 404);
  const agent_id = '01900000-0000-7000-8002-000000000001';
  const prediction_id = '01900000-0000-7000-8004-000000000001';
  await app.sql`
    insert into agents (
      id, name, name_key, model, model_family, persona_archetype, risk_profile, roles,
      referral_code, key_digest
    )
    values (
      ${agent_id}, 'Solo', 'solo', 'gpt-5', 'gpt', 'data_driven', 'moderate', '{predictor}', 'solo',
      sha256('solo')
    )`;
  await app.sql`insert into accounts (agent_id, balance) values (${agent_id}, 0)`;
  await app.sql`
    insert into predictions (
      question_id, agent_id, id, prediction, probability, confidence, reasoning, citations,
      model_family, body_digest, event_id
    )
    values (
      ${id}, ${agent_id}, ${prediction_id}, true, 80, 80, repeat('x', 200), '{}', 'gpt', '',
      ${prediction_id}
    )`;
  const read = async () =>
    (await app.call('GET', `/api/predictions/${prediction_id}/receipt`)).body.receipt;
  t.equal((await decide(app, id, 'void', {})).status, 202);
  t.match(await read(), { state: 'pending', result: null, outcomes: [], entries: [] });
  await startApp(t, { stores: app.stores, roles: ['timer', 'api'] });
  await untilSettled(app.sql, id);
  const voided = await read();
  t.match(voided, { state: 'voided', result: null, revision: 1, entries_total: 0, entries: [] });
});

t.test('simulate answers the net of every form of forecast', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const simulate = (body: object) => app.call('POST', '/api/points/simulate', { body });
  const nets = async (body: object) => {
    const { status, body: answer } = await simulate(body);
    if (status !== 200) return answer.code;
    return answer.simulation.outcomes.map((one: { net: number }) => one.net);
  };
  t.same(await nets({ probability: 80 }), [84, -156]);
  t.same(await nets({ prediction: false, confidence: 90 }), [-224, 96]);
  t.same(await nets({ probability: 0.5, weight: 5 }), [0, 0]);
  t.same(await nets({ probability: 100, weight: 2 }), [200, -600]);
  const options = ['a', 'b', 'c'];
  // p = (.7, .15, .15), U = 2/3: B = .135 and .4 + 1.4 · .55 …
  const even = (await simulate({ options, selected_option: 'a', confidence: 70 })).body.simulation;
  t.same(
    even.distribution.map(({ p }: { p: number }) => p),
    [0.7, 0.15, 0.15],
  );
  for (const { b, u, net, outcome_vector } of even.outcomes) {
    const p = even.distribution;
    const sum = outcome_vector.reduce(
      (s: number, o: number, i: number) => s + (p[i].p - o) ** 2,
      0,
    );
    t.ok(Math.abs(sum - b) < 1e-9 && Math.abs(u - 2 / 3) < 1e-9);
    t.equal(net, Math.round(100 * (1 - b / u)));
  }
  t.same(await nets({ options, probabilities: { a: 50, b: 30, c: 20 } }), [
    ...(await nets({ options, probabilities: { a: 0.5, b: 0.3, c: 0.2 } })),
  ]);
  t.same(await nets({ probability: 1 }), 'INVALID_CONFIDENCE');
  t.same(await nets({ options, selected_option: 'z', confidence: 50 }), 'INVALID_OPTION');
  t.same(await nets({ options: ['a', ' A'], probability: 50 }), 'INVALID_OPTIONS');
  t.same(await nets({}), 'INVALID_OPTION');
  t.same(await nets({ probability: 50, weight: 6 }), 'INVALID_REQUEST');
  t.same(await nets({ question_id: 'nonsense', probability: 50 }), 'QUESTION_NOT_FOUND');
  const question_id = await makeOpenQuestion(app, { question_type: 'multi', options, weight: 4 });
  const of_question = await simulate({ question_id, selected_option: 'b', confidence: 100 });
  t.match(of_question.body.simulation, { question_id, weight: 4, question_type: 'multi' });
  const draft = await makeOpenQuestion(app, { publish: false });
  t.same(await nets({ question_id: draft, probability: 50 }), 'QUESTION_NOT_FOUND');
});
