import { startApp } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import {
  balanceOf,
  closeQuestion,
  decide,
  decideAndSettle,
  findWrongAccounts,
  ledgerOf,
  makeForecasts,
  predict,
  settleEagerly,
  untilSettled,
} from '../../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** Decisions of an admin, and their effects on accounts and scores. */

const app = await startApp(t, { roles: ['api', 'relay'] });
await settleEagerly(t, app);
const near = (a: number | null, b: number): boolean => a !== null && Math.abs(a - b) < 5e-4;
const resolutionsOf = (question_id: string) => app.sql`
  select revision, outcome, total, done from resolutions
  where question_id = ${question_id}
  order by revision`;

t.test('resolving pays the net once and scores every prediction', async (t) => {
  const id = await makeOpenQuestion(app);
  const forecasts = await makeForecasts(app, id, [
    { probability: 10 },
    { prediction: true, confidence: 50 },
    { prediction: true, confidence: 90 },
  ]);
  // Moves all forecasts to the same time, because relative scores are weighted by the time in
  // which other agents have forecasts.
  await app.sql`update predictions set created_at = now() where question_id = ${id}`;
  await closeQuestion(app, id);
  const decision = {
    outcome: true,
    resolution_note: 'The register says so.',
    evidence_urls: ['https://register.city-archive.org/works/1'],
  };
  const answer = await decide(app, id, 'resolve', decision);
  t.equal(answer.status, 202);
  t.match(answer.body, {
    question: { status: 'resolved', outcome: true, correct_options: null, revision: 1 },
    resolution: { revision: 1, kind: 'resolve', outcome: true, total: 3, decided_by: 'admin' },
  });
  t.equal(answer.body.question.resolution_note, 'The register says so.');
  await untilSettled(app.sql, id);
  const entries = [[['settlement', -224]], [], [['settlement', 96]]];
  for (const [n, { agent }] of forecasts.entries()) {
    t.same(await ledgerOf(app.sql, agent.id), [['registration', 5_000], ...(entries[n] ?? [])]);
    t.equal(await balanceOf(app.sql, agent.id), 5_000 + [-224, 0, 96][n]!);
  }
  t.same(await findWrongAccounts(app.sql), []);
  const scores = await app.sql`
    select forecast, stated, correct, hit, brier, baseline, relative, net, revision, category
    from scores
    where question_id = ${id}
    order by forecast`;
  t.match(scores, [
    { forecast: 0.1, stated: 9_000, correct: false, hit: false, net: -224, category: 'society' },
    { forecast: 0.5, stated: 5_000, correct: false, hit: true, net: 0, revision: 1 },
    { forecast: 0.9, stated: 9_000, correct: true, hit: true, net: 96 },
  ]);
  for (const [n, relative] of [-190.333, 51.083, 139.251].entries()) {
    t.ok(near(scores[n]?.['relative'], relative), `relative score ${relative}`);
  }
  t.ok(near(scores[2]?.['baseline'], 84.79969066));
  t.ok(near(scores[2]?.['brier'], 0.01));
  const progress = await decide(app, id, 'resolve', decision);
  t.match(progress.body.resolution, { state: 'done', total: 3, done: 3, revision: 1 });
  t.ok(progress.body.resolution.finished_at);
  const event = await until('the event', async () => {
    const [row] = await app.sql`
      select body from events where event = 'question.resolved' and question_id = ${id}`;
    return row;
  });
  t.match(JSON.parse(event['body']).data, { question_id: id, outcome: true, revision: 1 });
});

t.test('nothing is scored that came when the outcome was public', async (t) => {
  const id = await makeOpenQuestion(app);
  const forecasts = await makeForecasts(app, id, [{ probability: 80 }, { probability: 99.96 }]);
  const [early, late] = forecasts;
  await app.sql`
    update questions set opens_at = now() - interval '9 days' where id = ${id}`;
  await app.sql`
    update predictions set created_at = now() - interval '5 days' where id = ${early!.prediction_id}`;
  await closeQuestion(app, id);
  await decideAndSettle(app, id, 'resolve', { outcome: true });
  const scoresOf = () => app.sql`
    select agent_id, net, stated, revision from scores where question_id = ${id} order by net`;
  t.match(await scoresOf(), [{ net: 84 }, { net: 100, stated: 9_996 }]);

  const day = 86_400_000;
  const resolveKnown = (days: number) => {
    const known_at = new Date(Date.now() - days * day).toISOString();
    return { outcome: true, known_at };
  };
  for (const days of [10, -1]) {
    const refused = await decide(app, id, 'resolve', resolveKnown(days));
    t.match(refused, { status: 400, body: { fields: [{ path: 'body.known_at' }] } });
  }
  const body = resolveKnown(2);
  const answer = await decide(app, id, 'resolve', body);
  t.match(answer.body.resolution, { revision: 2, known_at: body.known_at });
  await untilSettled(app.sql, id);
  t.match(await scoresOf(), [{ agent_id: early!.agent.id, net: 84, revision: 2 }]);
  t.same((await ledgerOf(app.sql, late!.agent.id)).slice(1), [
    ['settlement', 100],
    ['reversal', -100],
  ]);
  const receiptOf = async (pid: string) =>
    (await app.call('GET', `/api/predictions/${pid}/receipt`)).body.receipt;
  t.match(await receiptOf(late!.prediction_id), {
    state: 'settled',
    intervals: [],
    entries_total: 0,
    ends_at: body.known_at,
    result: { b: null, net: 0 },
  });
  t.match(await receiptOf(early!.prediction_id), {
    result: { net: 84 },
    intervals: [{ revision: 0, to: body.known_at, b: 0.08 }],
  });
  t.equal((await decide(app, id, 'resolve', body)).status, 200, 'the same again is nothing new');
  t.same(await findWrongAccounts(app.sql), []);

  const filed = await app.call('POST', `/api/questions/${id}/dispute`, {
    key: early!.agent.key,
    body: { reason: 'The register shows the doors open one day after the term had begun.' },
  });
  await app.call('POST', `/api/admin/disputes/${filed.body.dispute.id}/resolve`, {
    admin: true,
    body: { status: 'upheld', outcome: false, note: 'The register says so.' },
  });
  await untilSettled(app.sql, id);
  t.match(await scoresOf(), [{ net: -156, revision: 3 }], 'a dispute keeps the moment');
});

t.test('a question with options is resolved by their texts, several at once too', async (t) => {
  const options = ['Rises', 'Stays', 'Falls', 'Nobody can tell'];
  const id = await makeOpenQuestion(app, { question_type: 'multi', options, weight: 2 });
  const forecasts = await makeForecasts(app, id, [
    { selected_option: 'Rises', confidence: 70 },
    { probabilities: { Rises: 50, Falls: 50 } },
  ]);
  await closeQuestion(app, id);
  const named = [undefined, [], ['Sinks'], ['Falls', ' Falls '], options];
  const wrong: [object, string][] = [
    ...named.map((correct_options): [object, string] => [
      { correct_options },
      'body.correct_options',
    ]),
    [{ outcome: true }, 'body.outcome'],
    [{ correct_options: ['Falls'], evidence_urls: ['ftp://a.b/c'] }, 'body.evidence_urls.0'],
  ];
  for (const [body, path] of wrong) {
    const refused = await decide(app, id, 'resolve', body as Record<string, unknown>);
    t.match(refused, { status: 400, body: { code: 'INVALID_OUTCOME', fields: [{ path }] } });
  }
  t.same([...(await resolutionsOf(id))], [], 'nothing was decided');
  await decideAndSettle(app, id, 'resolve', { correct_options: ['Falls', 'Rises'] });
  const { question } = (await app.call('GET', `/api/questions/${id}`)).body;
  t.same(question.correct_options, ['Rises', 'Falls'], 'in the order of the question');
  // B = (.7 − .5)² + .1² + (.1 − .5)² + .1² = .22 and U = 4 · .25² = .25, so 200 · .03 / .75 = 8.
  const nets = [8, 67];
  for (const [n, { agent }] of forecasts.entries()) {
    t.equal(await balanceOf(app.sql, agent.id), 5_000 + nets[n]!);
  }
  t.same(await findWrongAccounts(app.sql), []);
});

t.test('only a closed question resolves, and a yes/no question by its outcome', async (t) => {
  const id = await makeOpenQuestion(app);
  const code = async (act: 'resolve' | 'void', body: object, of = id) =>
    (await decide(app, of, act, body as Record<string, unknown>)).body.code;
  t.equal(await code('resolve', { outcome: true }), 'INVALID_TRANSITION');
  await closeQuestion(app, id);
  t.equal(await code('resolve', {}), 'INVALID_OUTCOME');
  t.equal(await code('resolve', { correct_options: ['YES'] }), 'INVALID_OUTCOME');
  t.equal(await code('resolve', { outcome: 'yes' }), 'INVALID_REQUEST');
  const nowhere = '01900000-0000-7000-8000-00000000ffff';
  t.equal(await code('resolve', { outcome: true }, nowhere), 'QUESTION_NOT_FOUND');
  t.equal(await code('void', {}, nowhere), 'QUESTION_NOT_FOUND');
  t.equal(await code('void', {}, 'nonsense'), 'QUESTION_NOT_FOUND');
});

t.test('a note whose normal form is too long is refused', async (t) => {
  const id = await makeOpenQuestion(app);
  // U+0958 becomes two characters in NFC.
  const voidWith = (letters: number) =>
    decide(app, id, 'void', { resolution_note: '\u0958'.repeat(letters) });
  const fields = [{ path: 'body.resolution_note' }];
  t.match((await voidWith(2_501)).body, { code: 'INVALID_REQUEST', fields });
  t.equal((await voidWith(2_500)).status, 202);
});

t.test('exactly the same decision again changes nothing', async (t) => {
  const id = await makeOpenQuestion(app);
  const [forecast] = await makeForecasts(app, id, [{ probability: 80 }]);
  await closeQuestion(app, id);
  const body = { outcome: true, resolution_note: 'Seen.' };
  await decideAndSettle(app, id, 'resolve', body);
  const again = await decide(app, id, 'resolve', body);
  t.equal(again.status, 200);
  t.match(again.body.resolution, { revision: 1, state: 'done', total: 1, done: 1 });
  t.equal((await resolutionsOf(id)).length, 1);
  const audit = `/api/admin/audit?subject_id=${id}&act=question.resolve`;
  const { acts } = (await app.call('GET', audit, { admin: true })).body;
  t.match(acts, [{ reason: 'Seen.' }], 'and is written down once');
  t.equal(acts.length, 1);
  await decideAndSettle(app, id, 'resolve', { ...body, resolution_note: 'Seen twice.' });
  const [score] = await app.sql`select revision, net from scores where question_id = ${id}`;
  t.same(score, { revision: 2, net: 84 }, 'another note is another revision');
  const entries = [
    ['registration', 5_000],
    ['settlement', 84],
  ];
  t.same(await ledgerOf(app.sql, forecast!.agent.id), entries, 'that moves no point');
});

t.test('a repeated call with its key gets the first answer', async (t) => {
  const id = await makeOpenQuestion(app);
  await closeQuestion(app, id);
  const call = (outcome: boolean) =>
    app.call('POST', `/api/admin/questions/${id}/resolve`, {
      admin: true,
      headers: { 'idempotency-key': 'resolve-once' },
      body: { outcome },
    });
  const first = await call(true);
  t.equal(first.status, 202);
  await untilSettled(app.sql, id);
  const again = await call(true);
  t.equal(again.headers.get('idempotency-replayed'), 'true');
  t.same(again.body, first.body);
  t.equal((await call(false)).body.code, 'IDEMPOTENCY_MISMATCH');
  t.equal((await resolutionsOf(id)).length, 1);
});

t.test('a voided question pays and scores nobody', async (t) => {
  const id = await makeOpenQuestion(app);
  const forecasts = await makeForecasts(app, id, [{ probability: 80 }, { probability: 0 }]);
  await decideAndSettle(app, id, 'void', { resolution_note: 'The wording was not clear.' });
  for (const { agent, prediction_id } of forecasts) {
    t.same(await ledgerOf(app.sql, agent.id), [['registration', 5_000]]);
    const { receipt } = (await app.call('GET', `/api/predictions/${prediction_id}/receipt`)).body;
    t.match(receipt, { state: 'voided', result: null, outcomes: [], revision: 1, entries: [] });
  }
  t.same([...(await app.sql`select * from scores where question_id = ${id}`)], []);
  const [question] =
    await app.sql`select status, revision, outcome from questions where id = ${id}`;
  t.same(question, { status: 'voided', revision: 1, outcome: null });
  await until('its closing is in the log', async () => {
    const closed = await app.sql`
      select id from events where event = 'question.closed' and question_id = ${id}`;
    return closed.length === 1;
  });
  const late = await makeHuman(app);
  const agent = await makeAgent(app, { human: late });
  await t.rejects(predict(app, agent, id, { probability: 60 }), /QUESTION_NOT_OPEN/);
  t.same(await findWrongAccounts(app.sql), []);
});

t.test(
  'a resolved question is voided, a voided one resolved, each as a new revision',
  async (t) => {
    const id = await makeOpenQuestion(app);
    const forecasts = await makeForecasts(app, id, [{ probability: 80 }, { probability: 10 }]);
    await closeQuestion(app, id);
    const steps = [
      { act: 'resolve', body: { outcome: true }, nets: [84, -224] },
      { act: 'void', body: { resolution_note: 'Nobody can tell.' }, nets: [0, 0] },
      { act: 'resolve', body: { outcome: false }, nets: [-156, 96] },
      { act: 'void', body: {}, nets: [0, 0] },
    ] as const;
    for (const [n, { act, body, nets }] of steps.entries()) {
      await decideAndSettle(app, id, act, body);
      const status = act === 'void' ? 'voided' : 'resolved';
      const { question } = (await app.call('GET', `/api/questions/${id}`)).body;
      t.match(question, { status, revision: n + 1, outcome: act === 'void' ? null : n === 0 });
      const scored = await app.sql`select net from scores where question_id = ${id}`;
      t.equal(scored.length, act === 'void' ? 0 : 2, 'a voided question counts on no board');
      const groups = await app.sql`select from group_scores where question_id = ${id}`;
      t.equal(groups.length > 0, act !== 'void');
      for (const [at, { agent, prediction_id }] of forecasts.entries()) {
        t.equal(await balanceOf(app.sql, agent.id), 5_000 + nets[at]!);
        const { receipt } = (await app.call('GET', `/api/predictions/${prediction_id}/receipt`))
          .body;
        t.match(receipt, { revision: n + 1, entries_total: nets[at] });
        const nets_so_far = steps.slice(0, n + 1).map((one) => one.nets[at]);
        t.same(pluck(receipt.decisions, 'net'), nets_so_far, 'the receipt shows each revision');
        t.same(pluck(receipt.decisions, 'kind'), pluck(steps.slice(0, n + 1), 'act'));
      }
      t.same(await findWrongAccounts(app.sql), []);
    }
    const events = await app.sql<{ body: string }[]>`
    select body from outbox where question_id = ${id} and event = 'question.voided'
    union all
    select body from events where question_id = ${id} and event = 'question.voided'`;
    t.same(events.map(({ body }) => JSON.parse(body).data.revision).sort(), [2, 4]);
    t.match(
      events.map(({ body }) => JSON.parse(body).data).find(({ revision }) => revision === 2),
      { question_id: id, reason: 'Nobody can tell.' },
    );
  },
);

t.test('a question that was voided while it was open is scored until then', async (t) => {
  const id = await makeOpenQuestion(app);
  const [forecast] = await makeForecasts(app, id, [{ probability: 80 }]);
  await decideAndSettle(app, id, 'void');
  await decideAndSettle(app, id, 'resolve', { outcome: true });
  const { prediction_id } = forecast!;
  const { receipt } = (await app.call('GET', `/api/predictions/${prediction_id}/receipt`)).body;
  t.match(receipt, { state: 'settled', result: { net: 84 }, decisions: [{ net: 0 }, { net: 84 }] });
  t.equal(receipt.ends_at, receipt.decisions[0].decided_at, 'nobody could predict after it');
});

t.test('an upheld dispute voids the question', async (t) => {
  const id = await makeOpenQuestion(app);
  const [forecast] = await makeForecasts(app, id, [{ probability: 80 }]);
  await closeQuestion(app, id);
  await decideAndSettle(app, id, 'resolve', { outcome: false });
  const { key } = forecast!.agent;
  const file = async () => {
    const filed = await app.call('POST', `/api/questions/${id}/dispute`, {
      key,
      body: { reason: 'The source that the question names was taken down before the date.' },
    });
    return `/api/admin/disputes/${filed.body.dispute.id}/resolve`;
  };
  const path = await file();
  const uphold = (body: object, at = path) =>
    app.call('POST', at, { admin: true, body: { status: 'upheld', note: 'Right.', ...body } });
  t.match(await uphold({ void: true, outcome: true }), {
    status: 400,
    body: { code: 'INVALID_OUTCOME', fields: [{ path: 'body.outcome' }] },
  });
  t.match(await uphold({ status: 'rejected', void: true }), {
    status: 400,
    body: { fields: [{ path: 'body.void' }] },
  });
  t.match(await uphold({ void: true }), {
    status: 200,
    body: { dispute: { status: 'upheld', new_revision: 2 } },
  });
  await untilSettled(app.sql, id);
  t.match((await app.call('GET', `/api/questions/${id}`)).body.question, { status: 'voided' });
  t.same(await ledgerOf(app.sql, forecast!.agent.id), [
    ['registration', 5_000],
    ['settlement', -156],
    ['reversal', 156],
  ]);
  t.same(await findWrongAccounts(app.sql), []);
});

t.test('another outcome reverses what was paid, below zero too', async (t) => {
  const id = await makeOpenQuestion(app);
  const [right, wrong] = await makeForecasts(app, id, [{ probability: 90 }, { probability: 20 }]);
  await closeQuestion(app, id);
  await decideAndSettle(app, id, 'resolve', { outcome: true });
  // After being paid, the winner loses nearly all its points.
  await app.sql.begin(async (tx) => {
    await tx`
      insert into ledger (agent_id, id, reason, amount, balance_after)
      values (${right!.agent.id}, gen_random_uuid(), 'test', -5000, 96)`;
    await tx`update accounts set balance = 96 where agent_id = ${right!.agent.id}`;
  });
  await decideAndSettle(app, id, 'resolve', { outcome: false });
  t.equal(await balanceOf(app.sql, right!.agent.id), -224);
  t.equal(await balanceOf(app.sql, wrong!.agent.id), 5_084);
  const about = async (agent_id: string) => {
    const rows = await app.sql<{ reason: string; amount: number; balance_after: number }[]>`
      select reason, amount, balance_after
      from ledger
      where agent_id = ${agent_id} and question_id = ${id}
      order by id`;
    return rows.map(({ reason, amount, balance_after }) => [reason, amount, balance_after]);
  };
  t.same((await about(right!.agent.id)).slice(1), [
    ['reversal', -96, 0],
    ['settlement', -224, -224],
  ]);
  t.same((await about(wrong!.agent.id)).slice(1), [
    ['reversal', 156, 5_000],
    ['settlement', 84, 5_084],
  ]);
  t.same(await findWrongAccounts(app.sql), []);
  await decideAndSettle(app, id, 'resolve', { outcome: true });
  t.equal(await balanceOf(app.sql, right!.agent.id), 96);
  t.same((await about(right!.agent.id)).slice(3), [
    ['reversal', 224, 0],
    ['settlement', 96, 96],
  ]);
  t.same(await findWrongAccounts(app.sql), []);
  t.match(await resolutionsOf(id), [
    { revision: 1, outcome: true },
    { revision: 2, outcome: false },
    { revision: 3, outcome: true },
  ]);
});

t.test('a decision waits for predictions under way and lets none in later', async (t) => {
  const human = await makeHuman(app);
  const agents = await Promise.all(Array.from({ length: 40 }, () => makeAgent(app, { human })));
  const id = await makeOpenQuestion(app);
  const placing = agents.map((agent, n) =>
    predict(app, agent, id, { probability: 50 + n }).then(
      () => true,
      (error: Error) => (error.message.includes('QUESTION_NOT_OPEN') ? false : error.message),
    ),
  );
  await Promise.race(placing);
  await decideAndSettle(app, id, 'void');
  const placed = await Promise.all(placing);
  const odd = placed.filter((one) => typeof one === 'string');
  t.same(odd, []);
  const [row] = await resolutionsOf(id);
  const [stored] = await app.sql`
    select count(*)::integer as count from predictions where question_id = ${id}`;
  t.equal(row?.['total'], placed.filter((one) => one === true).length);
  t.equal(row?.['done'], stored?.['count']);
  t.same(await findWrongAccounts(app.sql), []);
});
