import { startApp } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import {
  closeQuestion,
  decide,
  decideAndSettle,
  findWrongAccounts,
  makeForecasts,
  untilSettled,
} from '../../help/settling.js';
import { makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';

const reasons = (receipt: { entries: { reason: string; amount: number }[] }) =>
  receipt.entries.map(({ reason, amount }) => [reason, amount]);

const app = await startApp(t, { roles: ['api', 'relay', 'timer'] });

t.test('a receipt shows what is at stake, and later how the payout came about', async (t) => {
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
  t.match(await read(), { state: 'settled', revision: 1, outcomes: [], entries_total: -468 });
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

t.test(
  'a receipt shows each interval of a revised forecast, and the net follows from them',
  async (t) => {
    const id = await makeOpenQuestion(app, { weight: 5 });
    const [forecast] = await makeForecasts(app, id, [{ probability: 30.25 }]);
    const { agent, prediction_id: pid } = forecast!;
    const hours = (n: number) => `${n} hours`;
    await app.sql`update questions set opens_at = now() - interval '9 days' where id = ${id}`;
    await app.sql`
    update predictions set created_at = now() - ${hours(50)}::interval where id = ${pid}`;
    const revised = await app.call('PATCH', `/api/predictions/${pid}`, {
      key: agent.key,
      body: { probability: 80.5, reason: 'The register was changed yesterday, as planned.' },
    });
    t.equal(revised.status, 200);
    await app.sql`
    update predictions set revised_at = now() - ${hours(20)}::interval where id = ${pid}`;
    const read = async () =>
      (await app.call('GET', `/api/predictions/${pid}/receipt`)).body.receipt;
    const open = await read();
    t.match(open, { state: 'open', intervals: [{ revision: 0 }, { revision: 1 }], result: null });
    t.equal(open.outcomes.length, 2);
    await closeQuestion(app, id);
    // The question was closed for six hours during the first interval, and then reopened.
    await app.sql`
    insert into closed_times (question_id, from_at, to_at)
    values (${id}, now() - interval '40 hours', now() - interval '34 hours')`;
    await decideAndSettle(app, id, 'resolve', { outcome: true });
    const receipt = await read();
    const [first, second] = receipt.intervals;
    t.equal(first.to, second.from);
    t.equal(second.to, receipt.ends_at);
    const lasted = (one: { from: string; to: string }) => Date.parse(one.to) - Date.parse(one.from);
    t.ok(Math.abs(first.open_ms - (lasted(first) - 6 * 3_600_000)) <= 1);
    t.equal(second.open_ms, lasted(second));
    t.ok(Math.abs(first.b - 2 * 0.6975 ** 2) < 1e-9 && Math.abs(second.b - 2 * 0.195 ** 2) < 1e-9);
    const b =
      (first.b * first.open_ms + second.b * second.open_ms) / (first.open_ms + second.open_ms);
    t.ok(Math.abs(receipt.result.b - b) < 1e-9);
    t.equal(receipt.result.net, Math.round((100 * 5 * (0.5 - b)) / 0.5));
    t.equal(receipt.entries_total, receipt.result.net);
  },
);

t.test('an outcome that was disputed before it was settled is paid to nobody', async (t) => {
  const app = await startApp(t, { roles: ['api', 'relay'] });
  const id = await makeOpenQuestion(app);
  const stated = [true, false].map((prediction) => ({ prediction, confidence: 80 }));
  const [one, other] = await makeForecasts(app, id, stated);
  await closeQuestion(app, id);
  t.equal((await decide(app, id, 'resolve', { outcome: true })).status, 202);
  const receiptOf = async (pid = '') =>
    (await app.call('GET', `/api/predictions/${pid}/receipt`)).body.receipt;
  const pending = { state: 'pending', revision: 1, result: { net: 84 }, outcomes: [], entries: [] };
  t.match(await receiptOf(one?.prediction_id), pending);
  const filed = await app.call('POST', `/api/questions/${id}/dispute`, {
    key: other?.agent.key ?? '',
    body: { reason: 'The register shows the doors open one day after the term had begun.' },
  });
  const upheld = await app.call('POST', `/api/admin/disputes/${filed.body.dispute.id}/resolve`, {
    admin: true,
    body: { status: 'upheld', outcome: false, note: 'The register says so.' },
  });
  t.match(upheld, { status: 200, body: { dispute: { status: 'upheld', new_revision: 2 } } });

  await startApp(t, { roles: ['api', 'timer'], stores: app.stores });
  await untilSettled(app.sql, id);
  const nets = { entries_total: -156, result: { net: -156 } };
  t.match(await receiptOf(one?.prediction_id), { state: 'settled', revision: 2, ...nets });
  const scores = await app.sql`
    select agent_id, net, revision from scores where question_id = ${id} order by net`;
  t.match(scores, [
    { agent_id: one?.agent.id, net: -156, revision: 2 },
    { agent_id: other?.agent.id, net: 84, revision: 2 },
  ]);
  t.same(await findWrongAccounts(app.sql), []);
  for (const absent of ['01900000-0000-7000-8000-00000000ffff', 'nonsense']) {
    t.equal((await app.call('GET', `/api/predictions/${absent}/receipt`)).status, 404);
  }
});

t.test('simulate answers the net of every form of forecast', async (t) => {
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
  t.same(pluck(even.distribution, 'p'), [0.7, 0.15, 0.15]);
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
  for (const [body, code] of [
    [{ probability: 1 }, 'INVALID_CONFIDENCE'],
    [{ options, selected_option: 'z', confidence: 50 }, 'INVALID_OPTION'],
    [{ options: ['a', ' A'], probability: 50 }, 'INVALID_OPTIONS'],
    [{}, 'INVALID_OPTION'],
    [{ probability: 50, weight: 6 }, 'INVALID_REQUEST'],
    [{ question_id: 'nonsense', probability: 50 }, 'QUESTION_NOT_FOUND'],
  ] as const) {
    t.equal(await nets(body), code);
  }
  const question_id = await makeOpenQuestion(app, { question_type: 'multi', options, weight: 4 });
  const of_question = await simulate({ question_id, selected_option: 'b', confidence: 100 });
  t.match(of_question.body.simulation, { question_id, weight: 4, question_type: 'multi' });
  const draft = await makeOpenQuestion(app, { publish: false });
  t.same(await nets({ question_id: draft, probability: 50 }), 'QUESTION_NOT_FOUND');
});
