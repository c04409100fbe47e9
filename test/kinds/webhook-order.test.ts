import type { ServerResponse } from 'node:http';
import { redeliver, startReplay } from '../../src/features/webhooks/delivery-store.js';
import { sendPing } from '../../src/features/webhooks/pinging.js';
import { findTarget } from '../../src/features/webhooks/store.js';
import { makeId } from '../../src/kit/ids.js';
import { startHookApp } from '../features/webhooks/app.js';
import { makeIsSigned } from '../features/webhooks/http-verifying.js';
import { begin, answer as head, startHostile } from '../features/webhooks/raw-servers.js';
import { editHook, makeWorld } from '../features/webhooks/world.js';
import { range } from '../help/hub.js';
import { pluck } from '../help/pluck.js';
import type { Received } from '../help/receiver.js';
import { makeAgent, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { place } from './world.js';

/** Webhooks with `order: "question"`: an event waits until earlier ones are done or abandoned. */

const world = await makeWorld(t);
const { sql } = world.deps;
t.beforeEach(world.reset);

const order = 'question';
const questions = range(1, 10).map(() => makeId());
const [a = '', b = ''] = questions;

/** Records events of these questions, in this order. The first has offset 1. */
const record = (...ids: readonly string[]) =>
  world.record(...ids.map((question_id) => ({ question_id })));
const offsetOf = ({ headers }: Received): number => Number(headers['x-svc-offset']);
const arrived = (path = '/'): number[] => world.receiver.of(path).map(offsetOf);
const states = async () => (await world.deliveries()).map(({ state }) => state);
const reach = (...wanted: readonly string[]) =>
  until(`states ${wanted}`, async () => String(await states()) === String(wanted));
/** Makes waiting deliveries due now, even if their webhook is paused. */
const hurry = async (): Promise<void> => {
  await sql`update webhooks set paused_until = now() where paused_until > now()`;
  await world.makeDue();
};
const fail = (...paths: readonly string[]): void => {
  for (const path of paths) world.receiver.script(path, { status: 500 });
};

/** The first event of a question fails and waits for a retry. The second waits for the first. */
const failFirst = async (hook: Parameters<typeof world.addHook>[0] = { order }) => {
  const made = await world.addHook(hook);
  fail('/');
  await record(a, a);
  await world.startSigner({ maintenance: { every_ms: 20 } });
  return made;
};
const heldBack = () => reach('waiting', 'pending');

t.test('a failing event holds back its question', async (t) => {
  await failFirst();
  await record(a);
  await reach('waiting', 'pending', 'pending');
  const [first, second] = await world.deliveries();
  t.ok((first?.wait_ms ?? 0) > 3_900 && (first?.wait_ms ?? 0) < 6_100, 'one step');
  t.equal(second?.attempts, 0, 'it was not tried');
  await hurry();
  await reach('delivered', 'delivered', 'delivered');
  t.same(arrived(), [1, 1, 2, 3]);
});

t.test('it holds back no other question, and no webhook without an order', async (t) => {
  await world.addHook({ order });
  await world.addHook({ path: '/free' });
  fail('/', '/free');
  await record(a, b, a, b);
  await world.startSigner();
  await until('what may arrive', () => arrived().length === 3 && arrived('/free').length === 4);
  t.same(arrived().toSorted(), [1, 2, 4]);
  t.same(arrived('/free').toSorted(), [1, 2, 3, 4]);
});

t.test('an event that asks for time holds back its question only', async (t) => {
  await world.addHook({ order });
  world.receiver.script('/', { status: 429, headers: { 'Retry-After': '10' } });
  await record(a, a, b);
  await world.startSigner();
  await reach('waiting', 'pending', 'delivered');
  const [first] = await world.deliveries();
  t.ok(Math.abs((first?.wait_ms ?? 0) - 10_000) < 1_500, `${first?.wait_ms} ms`);
  await hurry();
  await reach('delivered', 'delivered', 'delivered');
  t.same(arrived().toSorted().slice(-2), [2, 3]);
  t.equal(arrived().at(-1), 2);
});

t.test('a body that never ends does not hold its question for ever', async (t) => {
  const pair = await world.receiver.issue({ names: ['127.0.0.1'] });
  const hangs = { '/': begin(head('200 OK', 'Content-Length: 5')) };
  const hostile = await startHostile(t, pair, hangs);
  await world.addHook({ order, url: hostile.url('/') });
  await record(a, a);
  await world.startSigner({ webhooks: world.openWebhooks({ limits: { wall_ms: 300 } }) });
  await reach('delivered', 'delivered');
  t.equal(hostile.count('/'), 2);
});

/** Ways to give up an event, so that the next one is sent. */
const given_up: Readonly<Record<string, () => Promise<unknown>>> = {
  exhausted: async () => {
    await failFirst();
    await heldBack();
    fail('/');
    await sql`update deliveries set attempts = 9, next_at = now() where state = 'waiting'`;
  },
  expired: async () => {
    await failFirst();
    await heldBack();
    await sql`
      update deliveries set expires_at = now(), next_at = now() where state = 'waiting'`;
  },
  blocked: async () => {
    const hook = await world.addHook({ order });
    await sql`update webhooks set url = 'https://10.0.0.1/'`;
    await record(a);
    await world.startSigner();
    await reach('blocked');
    await editHook(world, hook, { url: world.receiver.url('/') });
    await record(a);
  },
  skipped_disabled: async () => {
    const hook = await failFirst();
    await heldBack();
    await editHook(world, hook, { active: false });
    await reach('skipped_disabled', 'skipped_disabled');
    await sql`delete from deliveries where event_offset = 2`;
    await editHook(world, hook, { active: true });
    await record(a);
  },
};

for (const [state, giveUp] of Object.entries(given_up)) {
  t.test(`an event that is ${state} lets its question go on`, async (t) => {
    await giveUp();
    await reach(state, 'delivered');
    const last = state === 'skipped_disabled' ? 3 : 2;
    t.equal(arrived().at(-1), last);
    t.equal(arrived().filter((offset) => offset === last).length, 1);
  });
}

/** Answers deliveries by a rule, and records the order in which events were first accepted. */
const answerBy = (count: number, rule: (one: Received) => Promise<number> | number) => {
  const taken: number[] = [];
  const give = (response: ServerResponse, one: Received): void => {
    void Promise.resolve(rule(one)).then((status) => {
      if (status < 300 && !taken.includes(offsetOf(one))) taken.push(offsetOf(one));
      response.writeHead(status).end();
    });
  };
  world.receiver.script('/', ...Array<typeof give>(count).fill(give));
  return taken;
};
/** The questions of the offsets 1, 2, 3 …: the questions take turns. */
const inTurn = (count: number, among: number) =>
  range(0, count - 1).map((n) => questions[n % among] ?? '');
const ofQuestion = (offsets: readonly number[], n: number, among: number) =>
  offsets.filter((offset) => (offset - 1) % among === n);

const numbersFrom = (seed: number) => {
  let last = seed;
  return (): number => {
    last = (last * 1_103_515_245 + 12_345) % 2 ** 31;
    return last / 2 ** 31;
  };
};

t.test('the order holds whatever fails, and everything arrives', async (t) => {
  await world.addHook({ order });
  const random = numbersFrom(42);
  const taken = answerBy(500, () => (random() < 0.4 ? 500 : 204));
  await record(...inTurn(50, 5));
  await world.startSigner();
  await until('all', async () => {
    await hurry();
    return (await states()).every((state) => state === 'delivered');
  });
  t.equal(taken.length, 50);
  for (const n of range(0, 4)) {
    t.same(ofQuestion(taken, n, 5), ofQuestion(range(1, 50), n, 5), `question ${n}`);
  }
});

t.test('two signers keep the order, and one call at a time for each question', async (t) => {
  await world.addHook({ order });
  const random = numbersFrom(7);
  const [busy, overlaps] = [new Set<number>(), [] as number[]];
  const taken = answerBy(100, async (one) => {
    const question = (offsetOf(one) - 1) % 10;
    if (busy.has(question)) overlaps.push(offsetOf(one));
    busy.add(question);
    for (let turns = random() * 20; turns > 0; turns -= 1) await new Promise(setImmediate);
    busy.delete(question);
    return 204;
  });
  await world.startSigner();
  await world.startSigner();
  await record(...inTurn(50, 10));
  await record(...inTurn(50, 10));
  await world.settled(100, 'delivered');
  t.same(overlaps, []);
  for (const n of range(0, 9)) {
    t.same(ofQuestion(taken, n, 10), ofQuestion(range(1, 100), n, 10), `question ${n}`);
  }
});

t.test('a backlog drains in order when its receiver is back', async (t) => {
  await world.addHook({ order });
  await sql`update webhooks set url = 'https://127.0.0.1:10999/'`;
  await record(...inTurn(60, 4));
  await world.startSigner();
  await until('the first of each fails', async () => {
    return (await states()).filter((state) => state === 'waiting').length === 4;
  });
  await sql`update webhooks set url = ${world.receiver.url('/')}`;
  await hurry();
  await world.settled(60, 'delivered');
  for (const n of range(0, 3)) {
    t.same(ofQuestion(arrived(), n, 4), ofQuestion(range(1, 60), n, 4), `question ${n}`);
  }
});

t.test('an order that is switched on holds what is still to come', async (t) => {
  const hook = await failFirst({});
  await reach('waiting', 'delivered');
  await editHook(world, hook, { order });
  await record(a);
  await reach('waiting', 'delivered', 'pending');
  await hurry();
  await reach('delivered', 'delivered', 'delivered');
  t.same(arrived().slice(-2), [1, 3]);
});

t.test('an order that is switched off frees what waits', async (t) => {
  const hook = await failFirst();
  await heldBack();
  await editHook(world, hook, { order: 'none' });
  await reach('waiting', 'delivered');
  t.same(arrived(), [1, 2]);
});

t.test('what was skipped in a pause holds nothing, and is replayed in order', async (t) => {
  const hook = await failFirst();
  await heldBack();
  await editHook(world, hook, { active: false });
  await record(a);
  await reach('skipped_disabled', 'skipped_disabled', 'skipped_disabled');
  await editHook(world, hook, { active: true });
  await record(a);
  await reach('skipped_disabled', 'skipped_disabled', 'skipped_disabled', 'delivered');
  await sql.begin((tx) => startReplay(tx, hook.id, { after: 0, until: 3 }));
  await world.settled(4, 'delivered');
  t.same(arrived(), [1, 4, 1, 2, 3]);
});

t.test('a replay keeps the order, also over a retry', async (t) => {
  const hook = await world.addHook({ order });
  await record(...inTurn(10, 2));
  await world.startSigner({ maintenance: { every_ms: 20 } });
  await world.settled(10, 'delivered');
  let has_failed = false;
  const taken = answerBy(20, (one) => {
    const fails = offsetOf(one) === 3 && !has_failed;
    has_failed ||= fails;
    return fails ? 500 : 204;
  });
  await sql.begin((tx) => startReplay(tx, hook.id, { after: 0, until: 10 }));
  await until('all of it', async () => {
    await hurry();
    return taken.length === 10;
  });
  t.equal(has_failed, true);
  t.same(ofQuestion(taken, 0, 2), [1, 3, 5, 7, 9]);
  t.same(ofQuestion(taken, 1, 2), [2, 4, 6, 8, 10]);
});

t.test(
  'an event that is sent again comes before a later one, and does not hold it for ever',
  async (t) => {
    const hook = await world.addHook({ order });
    await record(a, a);
    await world.startSigner();
    await reach('delivered', 'delivered');
    const [first] = await world.deliveries();
    fail('/');
    await redeliver(sql, hook.id, first?.id ?? '');
    await reach('waiting', 'delivered');
    await record(a);
    await reach('waiting', 'delivered', 'pending');
    await hurry();
    await reach('delivered', 'delivered', 'delivered');
    t.same(arrived(), [1, 2, 1, 1, 3]);
  },
);

t.test('an event that was given up is sent again alone', async (t) => {
  const hook = await failFirst();
  await heldBack();
  fail('/');
  await sql`update deliveries set attempts = 9, next_at = now() where state = 'waiting'`;
  await reach('exhausted', 'delivered');
  const [first] = await world.deliveries();
  await redeliver(sql, hook.id, first?.id ?? '');
  await reach('delivered', 'delivered');
  t.same(arrived(), [1, 1, 2, 1]);
});

t.test('a ping does not wait', async (t) => {
  const { owner, id } = await failFirst();
  await heldBack();
  const target = await findTarget(sql, owner, id);
  if (target === undefined) throw new Error('there is no such webhook');
  t.match(await sendPing(world.webhooks, target, new Date()), { delivered: true, status: 204 });
  await heldBack();
});

const service = await startHookApp(t);
const { app, human } = service;

t.test('an order is told, kept by other changes, and refused unless it is one', async (t) => {
  const { call, create } = await service.begin();
  const made = await create({ order });
  const path = `/${made.id}`;
  const isOrdered = async (what: string): Promise<void> => {
    t.equal((await call('GET', path)).body.order, order, what);
    t.same(pluck((await call('GET', '')).body, 'order'), [order], what);
  };
  t.equal(made.order, order);
  await isOrdered('at first');
  const url = service.receiver.url('/other');
  for (const body of [
    { url },
    { events: ['question.closed'] },
    { filter: null },
    { active: true },
  ]) {
    t.match(await call('PATCH', path, body), { status: 200, body: { order } });
  }
  t.equal((await call('POST', `${path}/rotate-secret`, {})).body.order, order);
  await isOrdered('after other changes');
  for (const wrong of ['questions', 'QUESTION', '', 'global', true, 1, {}, ['question'], null]) {
    const fields = [{ path: 'body.order' }];
    const refused = { status: 400, body: { code: 'INVALID_REQUEST', fields } };
    const body = { url, events: ['question.closed'], order: wrong };
    t.match(await call('POST', '', body), refused, JSON.stringify(wrong));
    t.match(await call('PATCH', path, { order: wrong }), refused, JSON.stringify(wrong));
  }
  const put = await call('PUT', path, { order: 'none' });
  t.equal(put.status, 405);
  t.match(put.headers.get('allow'), /PATCH/);
  await isOrdered('after refusals');
  t.equal((await create()).order, 'none');
});

t.test(
  'all kinds of events of a question are in order, each attempt with its own signature',
  async (t) => {
    await service.begin();
    const { receiver } = service;
    const names = ['created', 'closed', 'resolved'].map((name) => `question.${name}`);
    const events = [...names, 'prediction.placed', 'comment.created'];
    const body = { url: receiver.url('/'), events, order, signature: 'rfc9421' };
    const made = await app.call('POST', '/api/webhooks', { token: human.token, body });
    t.equal(made.status, 201);
    receiver.script('/', { status: 500 });
    const question = await makeOpenQuestion(app);
    const agent = await makeAgent(app, { human });
    t.equal((await place(app, agent, question, { prediction: true, confidence: 80 })).status, 201);
    const said = await app.call('POST', `/api/questions/${question}/comments`, {
      key: agent.key,
      body: { content: 'The timetable of the branch says so, in its edition of this morning.' },
    });
    t.equal(said.status, 201);
    for (const [act, more] of [
      ['close', {}],
      ['resolve', { outcome: true, note: 'The room is open.' }],
    ] as const) {
      const path = `/api/admin/questions/${question}/${act}`;
      const { status, body } = await app.call('POST', path, { admin: true, body: more });
      t.ok(status < 300, JSON.stringify(body));
    }
    await until('all are in the log, and all but the first wait', async () => {
      const rows = await app.sql<{ state: string }[]>`
      select state from deliveries where webhook_id = ${made.body.id} order by event_offset`;
      return String(pluck(rows, 'state')) === 'waiting,pending,pending,pending,pending';
    });
    await app.sql`update deliveries set next_at = now() where state = 'waiting'`;
    const all = await receiver.waitFor('/', 6);
    t.same(
      all.map(({ headers }) => headers['x-svc-event']),
      [
        'question.created',
        'question.created',
        'prediction.placed',
        'comment.created',
        'question.closed',
        'question.resolved',
      ],
    );
    const isSigned = makeIsSigned(app, receiver);
    for (const one of all) t.equal(await isSigned(one), true);
  },
);

t.test('events that a webhook did not ask for hold back nothing', async (t) => {
  const { create, settled } = await service.begin();
  const question = await makeOpenQuestion(app);
  const filter = { question_ids: [question] };
  const { id } = await create({ order, filter, events: ['question.closed'] });
  const closes_at = new Date(Date.now() + 86_400_000).toISOString();
  const path = `/api/admin/questions/${question}`;
  t.equal((await app.call('PATCH', path, { admin: true, body: { closes_at } })).status, 200);
  await app.call('POST', `${path}/close`, { admin: true, body: {} });
  t.match(await settled(id, 1, 'delivered'), [{ event: 'question.closed', attempts: 1 }]);
});
