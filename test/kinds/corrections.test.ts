import { createClient } from '#client/node.js';
import { no_limits, startApp } from '../help/app.js';
import { pluck } from '../help/pluck.js';
import { startReceiver } from '../help/receiver.js';
import {
  act,
  balanceOf,
  closeQuestion,
  decide,
  decideAndSettle,
  findWrongAccounts,
  ledgerOf,
  makeForecasts,
  settleEagerly,
  untilSettled,
} from '../help/settling.js';
import { openCalls } from '../help/socket-calls.js';
import { openSse } from '../help/sse-client.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { makeVisitor } from '../help/visitor.js';
import { connect } from '../help/ws-client.js';
import { type Any, placeOrThrow } from './world.js';

/** Corrections: a decision is withdrawn, together with all its consequences. */

const receiver = await startReceiver();
t.teardown(() => receiver.close());
const app = await startApp(t, {
  env: { ...no_limits, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.ca_file },
});
await settleEagerly(t, app);
const admin = { admin: true } as const;
const read = async (path: string): Promise<Any> => (await app.call('GET', path)).body;
const receiptOf = async (pid: string): Promise<Any> =>
  (await read(`/api/predictions/${pid}/receipt`)).receipt;
/** All events with this name about a question. */
const eventsOf = async (id: string, name: string): Promise<readonly Any[]> =>
  (await read(`/api/events?topic=question:${id}&events=${name}&limit=100`)).events;
const untilEvents = (id: string, name: string, count: number): Promise<readonly Any[]> =>
  until(`${count} times ${name}`, async () => {
    const events = await eventsOf(id, name);
    return events.length >= count && events;
  });
const makeClosed = async (...stated: readonly Readonly<Record<string, unknown>>[]) => {
  const id = await makeOpenQuestion(app);
  const forecasts = await makeForecasts(app, id, stated);
  await closeQuestion(app, id);
  return { id, forecasts };
};
const dispute_reason = 'The source that the question names was taken down before the date.';

t.test('a voided question leaves the n of boards, records, families and calibration', async (t) => {
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human, model: 'grok-4' });
  const ids: string[] = [];
  for (let n = 0; n < 11; n += 1) {
    const id = await makeOpenQuestion(app);
    await placeOrThrow(app, agent, id, { probability: 80 });
    await closeQuestion(app, id);
    await decideAndSettle(app, id, 'resolve', { outcome: true });
    ids.push(id);
  }
  const boards = [
    ['points', 'agents'],
    ['accuracy', 'agents'],
    ['brier', 'agents'],
    ['brier', 'families'],
  ] as const;
  const rowOf = async (by: string, of: string): Promise<Any> => {
    const { entries } = await read(`/api/leaderboard?by=${by}&of=${of}&limit=100`);
    return entries.find((one: Any) =>
      of === 'agents'
        ? (one.user_id ?? one.id) === agent.id
        : [one.family, one.model_family, one.name].includes('grok'),
    );
  };
  const expectN = async (wanted: number): Promise<void> => {
    for (const [by, of] of boards) {
      const has = await until(`${by} of ${of} counts ${wanted}`, async () => {
        const row = await rowOf(by, of);
        return row?.n === wanted && row;
      }).catch(async () => rowOf(by, of));
      t.equal(has?.n, wanted, `${by} of ${of}`);
      if (by === 'points') t.equal(has?.net, 84 * wanted, 'what was earned follows');
    }
    const { performance } = (await app.call('GET', '/api/me', { key: agent.key })).body;
    t.match(performance, { resolved: wanted, correct: wanted });
    const binned = performance.calibration.bins.reduce((sum: number, bin: Any) => sum + bin.n, 0);
    t.equal(binned, wanted, 'the bins of the calibration');
    t.equal(await balanceOf(app.sql, agent.id), 5_000 + 84 * wanted);
  };
  await expectN(11);
  await decideAndSettle(app, ids[0]!, 'void', { resolution_note: 'Nobody can tell.' });
  await expectN(10);
  await decideAndSettle(app, ids[0]!, 'resolve', { outcome: true });
  await expectN(11);
});

t.test('voiding a closed question is one event, the same at every transport', async (t) => {
  const owner = await makeHuman(app);
  const { id } = await makeClosed({ probability: 70 });
  const hook = await app.call('POST', '/api/webhooks', {
    token: owner.token,
    body: { url: receiver.url('/voided'), events: ['question.voided'] },
  });
  t.equal(hook.status, 201, JSON.stringify(hook.body));
  const socket = await connect(t, app.port);
  await socket.subscribe([`question:${id}`]);
  const sse = await openSse(t, `${app.url}/api/stream?topic=question:${id}`);
  await sse.get('welcome');
  const resolution_note = 'Zwei Quellen <b>widersprechen</b> sich & niemand weiß es.';
  await decideAndSettle(app, id, 'void', { resolution_note });
  const [event] = await untilEvents(id, 'question.voided', 1);
  t.match(event.data, { question_id: id, reason: resolution_note, revision: 1 });
  t.type(event.data.question, 'string');
  const frame = await socket.get('the frame', (one) => one['event'] === 'question.voided');
  const message = await until('the message', () =>
    sse.messages.find(({ data }) => data?.event === 'question.voided'),
  );
  for (const [transport, one] of [
    ['socket', frame],
    ['server-sent events', message.data],
  ] as const) {
    const { offset, id: event_id, data, timestamp } = one as Any;
    t.same(
      { offset, id: event_id, data, timestamp },
      { offset: event.offset, id: event.id, data: event.data, timestamp: event.timestamp },
      transport,
    );
  }
  const [delivery] = await until('the delivery', () => {
    const found = receiver.of('/voided').filter(({ body }) => String(body).includes(id));
    return found.length > 0 && found;
  });
  t.equal(delivery!.headers['webhook-id'], event.id);
  t.same(JSON.parse(String(delivery!.body)).data, event.data, 'webhook');
  for (const feed of ['/feed.xml', `/questions/${id}/feed.xml`]) {
    const text = await until(`the entry in ${feed}`, async () => {
      const body = String(await read(feed));
      return body.includes(event.id) && body;
    }).catch(() => '');
    t.ok(text, `${feed} has the event`);
    t.notMatch(text, '<b>widersprechen', `${feed} is escaped`);
  }
  t.equal((await eventsOf(id, 'question.closed')).length <= 1, true, 'it is not closed twice');
  t.equal((await eventsOf(id, 'question.voided')).length, 1);
});

t.test('every change of state emits its event, once, and a repeat emits none', async (t) => {
  const id = await makeOpenQuestion(app);
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human });
  const prediction = await placeOrThrow(app, agent, id, { probability: 70 });
  const { body } = await app.call('POST', `/api/questions/${id}/comments`, {
    key: agent.key,
    body: { content: 'The published archive alone decides what happened on this question.' },
  });
  const comment_id = body.comment.id;
  const later = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString();
  const question = `/api/admin/questions/${id}`;
  const why = { reason: 'A reader reported it.' };
  const steps: readonly [string, string, string, object, object][] = [
    ['question.updated', 'PATCH', question, { closes_at: later(40) }, { question_id: id }],
    ['question.closed', 'POST', `${question}/close`, {}, { question_id: id }],
    [
      'question.reopened',
      'POST',
      `${question}/reopen`,
      { closes_at: later(50) },
      { question_id: id },
    ],
    [
      'prediction.hidden',
      'POST',
      `/api/admin/predictions/${prediction.id}/hide`,
      why,
      { prediction_id: prediction.id },
    ],
    [
      'prediction.restored',
      'POST',
      `/api/admin/predictions/${prediction.id}/restore`,
      why,
      { prediction_id: prediction.id },
    ],
    ['comment.hidden', 'POST', `/api/admin/comments/${comment_id}/hide`, why, { comment_id }],
    ['comment.restored', 'POST', `/api/admin/comments/${comment_id}/restore`, why, { comment_id }],
  ];
  for (const [event, method, path, sent, data] of steps) {
    const first = await app.call(method, path, { ...admin, body: sent });
    t.ok(first.status < 300, `${event}: ${JSON.stringify(first.body)}`);
    await app.call(method, path, { ...admin, body: sent });
    const [notices] = await untilEvents(id, event, 1);
    t.match(notices.data, data, event);
  }
  // This event is last in the log, so all the others have arrived before it.
  await decideAndSettle(app, id, 'void');
  await untilEvents(id, 'question.voided', 1);
  for (const [event] of steps) {
    if (event === 'question.closed') continue;
    t.equal((await eventsOf(id, event)).length, 1, `${event}, once`);
  }
  const [hidden] = await eventsOf(id, 'comment.hidden');
  t.notMatch(JSON.stringify(hidden), 'published archive', 'no text is said again');
  const [updated] = await eventsOf(id, 'question.updated');
  t.match(JSON.stringify(updated.data.changed), 'closes_at');
});

t.test('linking and unlinking are told to the agent alone', async (t) => {
  const human = await makeHuman(app);
  const agent = await makeAgent(app);
  const other = await makeAgent(app, { human: await makeHuman(app) });
  const own = await connect(t, app.port, { headers: { 'x-api-key': agent.key } });
  await own.subscribe(['me']);
  const anybody = await connect(t, app.port);
  await anybody.subscribe(['all', `agent:${agent.id}`]);
  const linked = await app.call('POST', '/api/me/agents', {
    token: human.token,
    body: { api_key: agent.key },
  });
  t.equal(linked.status, 200);
  await app.call('POST', '/api/me/agents', { token: human.token, body: { api_key: agent.key } });
  const unlinked = await app.call('DELETE', `/api/me/agents/${agent.id}`, { token: human.token });
  t.ok(unlinked.status < 300, `${unlinked.status}`);
  await own.get('agent.unlinked', (one) => one['event'] === 'agent.unlinked');
  t.same(
    own.events().map((one) => [one['event'], (one['data'] as Any).user_id]),
    [
      ['agent.linked', agent.id],
      ['agent.unlinked', agent.id],
    ],
    'each once, in order; linking again is nothing',
  );
  const after = await makeOpenQuestion(app);
  await anybody.get('what came later', (one) => (one['data'] as Any)?.question_id === after);
  const leaked = anybody.frames.filter((one) => String(one['event']).startsWith('agent.'));
  t.same(leaked, [], 'the socket of anybody');
  for (const [who, key] of [
    ['nobody', undefined],
    ['another agent', other.key],
  ] as const) {
    const path = '/api/events?events=agent.linked,agent.unlinked&limit=100';
    const { body } = await app.call('GET', path, key === undefined ? {} : { key });
    const about = (body.events ?? []).filter((one: Any) => one.data.user_id === agent.id);
    t.same(about, [], `the log of ${who}`);
  }
  const mine = await app.call('GET', '/api/events?topic=me&limit=100', { key: agent.key });
  t.same(pluck(mine.body.events, 'event'), ['agent.linked', 'agent.unlinked']);
});

t.test('a decision that is repeated pays nobody twice, whatever way it went before', async (t) => {
  const { id, forecasts } = await makeClosed({ probability: 90 }, { probability: 20 });
  const nets = { resolve: [96, -156], void: [0, 0] };
  const note = { resolution_note: 'As the register says.' };
  const path = (name: string) => `/api/admin/questions/${id}/${name}`;
  let revision = 0;
  for (const name of ['resolve', 'void', 'resolve', 'void', 'resolve'] as const) {
    revision += 1;
    const body = name === 'resolve' ? { outcome: true, ...note } : note;
    const headers = { 'idempotency-key': `correction-${id}-${revision}` };
    const [first, twin] = await Promise.all([
      app.call('POST', path(name), { ...admin, headers, body }),
      app.call('POST', path(name), { ...admin, headers, body }),
    ]);
    t.ok(
      [first, twin].some(({ status }) => status === 202),
      `${name} ${revision}: ${first.status} ${twin.status}`,
    );
    await untilSettled(app.sql, id);
    const again = await app.call('POST', path(name), { ...admin, body });
    t.equal(again.status, 200, `${name} ${revision} again, without its key`);
    for (const [n, { agent, prediction_id }] of forecasts.entries()) {
      t.equal(await balanceOf(app.sql, agent.id), 5_000 + nets[name][n]!, `${name} ${revision}`);
      const receipt = await receiptOf(prediction_id);
      t.match(receipt, { revision, entries_total: nets[name][n] }, `${name} ${revision}`);
      t.equal(receipt.decisions.length, revision);
    }
    t.same([...(await findWrongAccounts(app.sql))], []);
  }
  const { agent, prediction_id } = forecasts[0]!;
  const receipt = await receiptOf(prediction_id);
  t.same(pluck(receipt.decisions, 'revision'), [1, 2, 3, 4, 5]);
  t.same(pluck(receipt.decisions, 'net'), [96, 0, 96, 0, 96]);
  const notices = await app.call('GET', '/api/me/notifications?limit=100', { key: agent.key });
  const types: string[] = pluck(notices.body.notifications, 'type');
  t.equal(types.filter((type) => /void/.test(type)).length, 2, `voided twice: ${types}`);
});

t.test('a number that was decided is voided, and its score goes with it', async (t) => {
  const id = await makeOpenQuestion(app, { question_type: 'numeric', range: { min: 0, max: 100 } });
  const [sharp, flat] = await makeForecasts(app, id, [
    { quantiles: [29, 30, 31] },
    { continuous_cdf: [0, 0.5, 1] },
  ]);
  await closeQuestion(app, id);
  await decideAndSettle(app, id, 'resolve', { outcome_value: 30 });
  const won = (await balanceOf(app.sql, sharp!.agent.id)) - 5_000;
  t.ok(won > 0 && won <= 100, `the sharp one won ${won}`);
  t.equal(await balanceOf(app.sql, flat!.agent.id), 5_000, 'the uniform one has 0');
  await decideAndSettle(app, id, 'void', { resolution_note: 'The meter was broken.' });
  const { question } = await read(`/api/questions/${id}`);
  t.match(question, { status: 'voided', revision: 2 });
  t.notOk(question.outcome_value, 'no outcome is left');
  t.same((await ledgerOf(app.sql, sharp!.agent.id)).slice(1), [
    ['settlement', won],
    ['reversal', -won],
  ]);
  const receipt = await receiptOf(sharp!.prediction_id);
  t.match(receipt, { state: 'voided', entries_total: 0, result: null });
  t.same(pluck(receipt.decisions, 'net'), [won, 0]);
  const me = await app.call('GET', '/api/me/predictions', { key: sharp!.agent.key });
  const [own] = me.body.predictions;
  t.notOk(own.crps ?? own.scores?.crps, 'no score is left in the own list');
  await decideAndSettle(app, id, 'resolve', { outcome_value: 90 });
  const lost = (await balanceOf(app.sql, sharp!.agent.id)) - 5_000;
  t.ok(lost < 0, `another value is paid anew: ${lost}`);
  t.same(pluck((await receiptOf(sharp!.prediction_id)).decisions, 'net'), [won, 0, lost]);
  t.same([...(await findWrongAccounts(app.sql))], []);
});

t.test('voiding while the decision before is still being settled leaves nobody paid', async (t) => {
  const id = await makeOpenQuestion(app);
  const stated = Array.from({ length: 60 }, (_, n) => ({ probability: 20 + n }));
  const forecasts = await makeForecasts(app, id, stated);
  await closeQuestion(app, id);
  const answers = [
    await decide(app, id, 'resolve', { outcome: true }),
    await decide(app, id, 'void', { resolution_note: 'Too early.' }),
    await decide(app, id, 'resolve', { outcome: false }),
    await decide(app, id, 'void', { resolution_note: 'Too early, again.' }),
  ];
  t.same(pluck(answers, 'status'), [202, 202, 202, 202]);
  await untilSettled(app.sql, id);
  t.same([...(await findWrongAccounts(app.sql))], []);
  const rows = await app.sql<{ agent_id: string; sum: number }[]>`
    select agent_id, sum(amount)::integer as sum from ledger
    where question_id = ${id} group by agent_id having sum(amount) <> 0`;
  t.same([...rows], [], 'all that was paid was taken back');
  for (const { agent } of forecasts) t.equal(await balanceOf(app.sql, agent.id), 5_000);
  const voided = await untilEvents(id, 'question.voided', 2);
  t.same(
    voided.map(({ data }) => [data.revision, data.reason]),
    [
      [2, 'Too early.'],
      [4, 'Too early, again.'],
    ],
  );
  const left = await app.sql`select from scores where question_id = ${id}`;
  t.equal(left.length, 0);
});

t.test(
  'a dispute that is upheld with void is told, and closes the way to another one',
  async (t) => {
    const { id, forecasts } = await makeClosed({ probability: 80 }, { probability: 30 });
    await decideAndSettle(app, id, 'resolve', { outcome: false, resolution_note: 'Seen.' });
    const file = (n: number) =>
      app.call('POST', `/api/questions/${id}/dispute`, {
        key: forecasts[n]!.agent.key,
        body: { reason: dispute_reason },
      });
    const first = (await file(0)).body.dispute;
    const second = (await file(1)).body.dispute;
    const uphold = (dispute: Any) =>
      app.call('POST', `/api/admin/disputes/${dispute.id}/resolve`, {
        ...admin,
        body: { status: 'upheld', void: true, note: 'The source is gone.' },
      });
    t.match(await uphold(first), { status: 200, body: { dispute: { status: 'upheld' } } });
    await untilSettled(app.sql, id);
    const [voided] = await untilEvents(id, 'question.voided', 1);
    t.match(voided.data, { question_id: id, revision: 2 });
    const [notices] = await untilEvents(id, 'dispute.resolved', 1);
    t.match(notices.data, { dispute_id: first.id, status: 'upheld' });
    const other = await uphold(second);
    t.ok(other.status < 500, 'a second one for the same end is answered');
    await untilSettled(app.sql, id);
    t.equal(
      (await read(`/api/questions/${id}`)).question.revision,
      2,
      'and voids nothing once more',
    );
    t.match(await file(0), { status: 409, body: { code: 'QUESTION_NOT_RESOLVED' } });
    for (const { agent, prediction_id } of forecasts) {
      t.equal(await balanceOf(app.sql, agent.id), 5_000);
      const { decisions } = await receiptOf(prediction_id);
      t.equal(decisions.at(-1).net, 0);
      t.equal(decisions.length, 2);
    }
    const notes = await app.call('GET', '/api/me/notifications', { key: forecasts[0]!.agent.key });
    const types: string[] = pluck(notes.body.notifications, 'type');
    t.ok(
      types.some((type) => /dispute/.test(type)),
      `notices of the dispute: ${types}`,
    );
    t.ok(
      types.some((type) => /void/.test(type)),
      `notices of the voiding: ${types}`,
    );
  },
);

t.test(
  'exports have no scores of a voided question, and say what was decided before',
  async (t) => {
    const { id, forecasts } = await makeClosed({ probability: 80 });
    await decideAndSettle(app, id, 'resolve', { outcome: true });
    const pid = forecasts[0]!.prediction_id;
    const exported = async (name: string, more = ''): Promise<readonly Any[]> => {
      const path = `/api/export/${name}?format=ndjson&question_id=${id}${more}`;
      const { status, body } = await app.call('GET', path);
      if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
      if (typeof body !== 'string') return [body];
      return body
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    };
    const untilRow = (what: string, matches: (row: Any) => boolean) =>
      until(what, async () => (await exported('predictions')).find(matches), 30_000, 200);
    const scored = await untilRow('it is scored', (row) => row.net === 84);
    t.ok(Math.abs(scored.brier - 0.04) < 1e-6, `its Brier score is ${scored.brier}`);
    const [{ now }] = (await app.sql`select now()`) as unknown as [{ now: Date }];
    await decideAndSettle(app, id, 'void');
    const empty = await untilRow('it is voided', (row) => row.question_status === 'voided');
    for (const name of ['brier', 'log_score', 'baseline', 'relative', 'skill', 'net']) {
      t.notOk(empty[name], `${name} is empty: ${empty[name]}`);
    }
    t.equal(empty.prediction_id ?? empty.id, pid);
    t.equal(empty.probability, 80, 'the forecast stays');
    const [before] = await exported('predictions', `&as_of=${now.toISOString()}`);
    t.match(before, { question_status: 'resolved', outcome: true }, 'as of the moment before');
    t.equal(before.net, null, 'scores are those of the latest decision');
    const decisions = await exported('resolutions');
    t.equal(decisions.length, 2, 'both decisions are in the record');
    const [question] = await exported('questions');
    t.equal(question.question_status, 'voided');
    t.notOk(question.outcome, 'without an outcome');
    await decideAndSettle(app, id, 'resolve', { outcome: false });
    await untilRow('it is scored anew', (row) => row.net === -156);
  },
);

t.test('lists, pages, refusals and the client follow a question back and forth', async (t) => {
  const { id, forecasts } = await makeClosed({ probability: 60 });
  const socket = await openCalls(t, app.port, { 'x-admin-key': app.admin_key });
  const call = (name: string, body: object) =>
    socket.call('POST', `/api/admin/questions/${id}/${name}`, { body });
  const client = createClient({ base_url: app.url }) as unknown as {
    call(name: string, parts: object): Promise<Any>;
  };
  const isListed = async (query: object): Promise<boolean> => {
    const { questions } = await client.call('listQuestions', { query: { limit: 100, ...query } });
    return questions.some((one: Any) => one.id === id);
  };
  const expectStatus = async (status: 'resolved' | 'voided'): Promise<void> => {
    for (const one of ['resolved', 'voided']) {
      t.equal(await isListed({ status: one, ids: [id] }), one === status, `${status}: list ${one}`);
    }
    const recent = await isListed({ sort: 'recently_resolved' });
    t.equal(recent, status === 'resolved', `${status}: recently resolved`);
    const said = status === 'resolved' ? /resolved/i : /void/i;
    // Answers may be cached for a second.
    await until(`${status}: the page says so`, async () =>
      said.test((await makeVisitor(app.url).open(`/questions/${id}`)).text),
    );
    const widget = await app.call('GET', `/embed/${id}`);
    t.equal(widget.status, 200, `${status}: the widget is there`);
  };
  t.equal((await call('resolve', { outcome: true })).status, 202);
  await untilSettled(app.sql, id);
  await expectStatus('resolved');
  t.equal((await call('void', { resolution_note: 'Withdrawn.' })).status, 202);
  await untilSettled(app.sql, id);
  await expectStatus('voided');
  for (const [name, body] of [
    ['close', {}],
    ['publish', {}],
    ['reopen', { closes_at: new Date(Date.now() + 60 * 86_400_000).toISOString() }],
  ] as const) {
    t.match(await call(name, body), { status: 409, body: { code: 'INVALID_TRANSITION' } }, name);
  }
  const patch = await app.call('PATCH', `/api/admin/questions/${id}`, {
    ...admin,
    body: { description: 'Another text.' },
  });
  t.equal(patch.body.code, 'QUESTION_NOT_EDITABLE');
  t.equal((await call('resolve', { outcome: false })).status, 202);
  await untilSettled(app.sql, id);
  await expectStatus('resolved');
  // B = 2 · .6² = .72 and U = .5: 100 · (.5 − .72) / .5 = −44.
  t.equal(await balanceOf(app.sql, forecasts[0]!.agent.id), 5_000 - 44);
  const draft = await makeOpenQuestion(app, { publish: false });
  const refused = await app.call('POST', `/api/admin/questions/${draft}/void`, {
    ...admin,
    body: {},
  });
  t.match(refused, { status: 409, body: { code: 'INVALID_TRANSITION' } }, 'a draft is not voided');
  await t.rejects(act(app, id, 'close'), /INVALID_TRANSITION/);
});
