import { createHash } from 'node:crypto';
import type { LogEntry } from '../../../src/features/events/log-entry.js';
import { defaultTopics, resolveTopic, topicsOf } from '../../../src/features/events/topics.js';
import { anonymous, type Caller } from '../../../src/http/caller.js';
import { isFault } from '../../../src/kit/fault.js';
import { startApp } from '../../help/app.js';
import { agentNamed, range } from '../../help/hub.js';
import { makeEntry } from '../../help/log.js';
import { pluck } from '../../help/pluck.js';
import { startStopwatch } from '../../help/stopwatch.js';
import { startPrivateStores } from '../../help/stores.js';
import { makeAgent, makeHuman, suspend } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { pillars } from '../../help/taxonomy.js';
import { until } from '../../help/until.js';
import { type Client, connect } from '../../help/ws-client.js';
import { serveLog } from '../log/log-server.js';

const id = (n: number): string => `0190a000-0000-7000-8000-${String(n).padStart(12, '0')}`;

t.test('a public event is on the topics of its places, a private one on one only', async (t) => {
  const places = { question_id: id(1), agent_id: id(2), category: 'c', subcategory: 's' };
  const names = (entry: LogEntry): string[] => topicsOf(entry).map(({ topic }) => topic);
  t.strictSame(names(makeEntry(1)), ['all']);
  t.strictSame(names(makeEntry(1, places)), [
    'all',
    `question:${id(1)}`,
    'category:c',
    'subcategory:s',
    `agent:${id(2)}`,
  ]);
  t.strictSame(topicsOf(makeEntry(1, { ...places, audience_id: id(3) })), [
    { topic: `me:${id(3)}`, label: 'me' },
  ]);
});

t.test('only topics that exist can be named, and only by those who may', async (t) => {
  const agent = agentNamed(id(1));
  const human: Caller = {
    kind: 'human',
    id: id(2),
    email_verified: true,
    is_admin: true,
    expires_at: new Date(),
  };
  const good = ['all', 'system', `question:${id(1)}`, `agent:${id(9)}`];
  for (const label of [...good, 'category:society', 'subcategory:models_architectures']) {
    t.strictSame(resolveTopic(label, anonymous, pillars), { topic: label, label });
  }
  const bad = ['', 'ALL', 'me:x', `me:${id(1)}`, 'question:', 'question:1', `question:${id(1)} `];
  for (const label of [
    ...bad,
    'category:',
    'category:A b',
    'category:sports',
    'category:data',
    'subcategory:society',
    'agent:x',
    'consensus:x',
    ':',
    'tick:1',
  ]) {
    const refused = resolveTopic(label, agent, pillars);
    t.ok(isFault(refused) && refused.def.code === 'INVALID_TOPIC', label);
    if (label === 'category:sports') {
      t.match(refused, { message: /There is no topic .*\. Categories are technology, society\./ });
    }
  }
  t.strictSame(resolveTopic('me', agent, pillars), { topic: `me:${id(1)}`, label: 'me' });
  const codes = [anonymous, human, { kind: 'admin' } as const].map((caller) => {
    const refused = resolveTopic('me', caller, pillars);
    return isFault(refused) ? refused.def.code : '';
  });
  t.strictSame(codes, ['MISSING_AUTH', 'AGENTS_ONLY', 'AGENTS_ONLY']);
  t.strictSame(pluck(defaultTopics(agent), 'topic'), ['all', `me:${id(1)}`]);
  t.strictSame(pluck(defaultTopics(human), 'topic'), ['all']);
});

const { app, log } = await serveLog(t);

/** The events of a test come after this offset. */
let base = 0;
t.beforeEach(() => {
  base = log.entries.length;
});
const numbersOf = (offsets: readonly number[]): number[] => offsets.map((one) => one - base);

const subscribe = async (socket: Client, topics: string[], after?: number) => {
  socket.send({ op: 'subscribe', id: 'sub', topics, ...(after === undefined ? {} : { after }) });
  return socket.answer('sub');
};

t.test('each socket hears what it asked for, and private events reach one agent', async (t) => {
  const [ada, ben] = [await makeAgent(app), await makeAgent(app)];
  const as = (key: string) => ({ headers: { 'x-api-key': key } });
  const all = await connect(t, app.port);
  const one = await connect(t, app.port);
  const own = await connect(t, app.port, as(ada.key));
  const other = await connect(t, app.port, as(ben.key));
  const legacy = await connect(t, app.port, { path: `/ws?token=${ada.key}` });
  await legacy.get('welcome', ({ op, as: kind }) => op === 'welcome' && kind === 'agent');
  await subscribe(all, ['all']);
  await subscribe(one, [`question:${id(1)}`, 'category:society', `agent:${ben.id}`]);
  await subscribe(own, ['me']);
  await subscribe(other, ['me', 'subcategory:data']);
  t.match(await subscribe(await connect(t, app.port), ['me']), { code: 'MISSING_AUTH' });

  const [first] = await log.write(1, { question_id: id(1), category: 'society' });
  await log.write(1, { agent_id: ben.id, subcategory: 'data' });
  await log.write(1, { audience_id: ada.id, question_id: id(1), agent_id: ben.id });
  await log.write(1, { question_id: id(2) });
  const heard = (socket: Client, topic?: string) => numbersOf(socket.offsets(topic));
  await until('the last', () => [all, legacy].every((one) => heard(one).includes(4)));
  await until('the private one', () => own.events().length === 1);
  t.strictSame(heard(all), [1, 2, 4]);
  t.strictSame(heard(one, `question:${id(1)}`), [1]);
  t.strictSame(heard(one, 'category:society'), [1]);
  t.strictSame(heard(one, `agent:${ben.id}`), [2]);
  t.strictSame(heard(own), [3]);
  t.strictSame(heard(other), [2]);
  t.strictSame(heard(legacy), [1, 2, 3, 4]);
  t.equal(legacy.events()[2]?.topic, 'me');
  t.strictSame(all.events()[0], {
    op: 'event',
    topic: 'all',
    offset: base + 1,
    prev: base,
    id: first?.id,
    ...JSON.parse(first?.body ?? ''),
  });
});

t.test('a client that resumes on another process ends with the exact sequence', async (t) => {
  const other = await startApp(t, { roles: ['api'], stores: app.stores });
  await log.write(30);
  const seen: number[] = [];
  let writing = true;
  const write = async (): Promise<void> => {
    while (writing) await log.write(7, { category: 'society' });
  };
  const written = write();
  for (let round = 0; round < 8; round += 1) {
    const after = seen.at(-1) ?? base;
    const socket = await connect(t, round % 2 === 0 ? app.port : other.port);
    t.match(await subscribe(socket, ['all'], after), { result: 'recovered' });
    const goal = round === 7 ? 0 : after + 40;
    await until('some more', () => (socket.offsets().at(-1) ?? 0) >= goal);
    if (round === 7) {
      writing = false;
      await written;
      await until('the end', () => socket.offsets().at(-1) === log.entries.length);
    }
    socket.ws.terminate();
    seen.push(...socket.offsets());
  }
  t.strictSame(seen, range(base + 1, log.entries.length), 'no hole and no repeat');
});

t.test('a key that holds no longer takes its sockets with it within a second', async (t) => {
  const human = await makeHuman(app);
  const agents = await Promise.all(range(1, 3).map(() => makeAgent(app, { human })));
  const [stays, rotated, suspended] = await Promise.all(
    agents.map((agent) => connect(t, app.port, { headers: { 'x-api-key': agent.key } })),
  );
  const by_frame = await connect(t, app.port);
  by_frame.send({ op: 'auth', id: 1, api_key: agents[1]?.key });
  t.match(await by_frame.answer(1), { op: 'authenticated', as: 'agent' });
  const session = await connect(t, app.port, {
    headers: { authorization: `Bearer ${human.token}` },
  });
  await session.get('welcome', ({ as }) => as === 'human');
  const { status } = await app.call('POST', '/api/me/rotate-key', { key: agents[1]?.key ?? '' });
  t.equal(status, 200);
  await suspend(app, agents[2]?.id);
  const readWatch = startStopwatch();
  const gone = [rotated, suspended, by_frame] as Client[];
  t.strictSame(await Promise.all(gone.map((socket) => socket.closed())), [4001, 4003, 4001]);
  const took_ms = readWatch();
  t.ok(took_ms < 1_000, `took ${Math.round(took_ms)} ms`);
  await app.call('POST', '/api/auth/logout', { token: human.token });
  t.equal(await session.closed(), 4001, 'the session of a person as well');
  const late = await makeHuman(app);
  const headers = { authorization: `Bearer ${late.token}` };
  const token_digest = createHash('sha256').update(late.token).digest();
  await app.sql`
    update human_tokens set expires_at = now() + interval '1 second'
    where digest = ${token_digest}`;
  const expiring = await connect(t, app.port, { headers });
  await expiring.get('welcome', ({ as }) => as === 'human');
  t.equal(await expiring.closed(), 4103, 'a session that has run out may be made anew');
  stays?.send({ op: 'ping', id: 1 });
  await stays?.answer(1);
});

t.test('an agent that is restored at once is let in again, and stays', async (t) => {
  const agent = await makeAgent(app);
  const open = () => connect(t, app.port, { headers: { 'x-api-key': agent.key } });
  const before = await open();
  await before.get('welcome', ({ as }) => as === 'agent');
  await suspend(app, agent.id);
  t.equal(await before.closed(), 4003);
  t.equal(await (await open()).closed(), 4003);
  await suspend(app, agent.id, 'restore');
  const after = await open();
  const other = await makeAgent(app);
  const last = await connect(t, app.port, { headers: { 'x-api-key': other.key } });
  await app.call('POST', '/api/me/rotate-key', { key: other.key });
  t.equal(await last.closed(), 4001, 'the revocations were read');
  after.send({ op: 'ping', id: 1 });
  await after.answer(1);
});

t.test('a plain request to the address of the sockets is answered what it lacks', async (t) => {
  t.match(await app.call('GET', '/ws'), { status: 426, body: { code: 'UPGRADE_REQUIRED' } });
});

t.test('with stores that fail', async (t) => {
  const stores = await startPrivateStores(t, { durable: false });
  const { app, log, redis } = await serveLog(t, { stores });
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human });

  t.test('sockets go on, in order, while Redis stands still, dies and is empty', async (t) => {
    const socket = await connect(t, app.port);
    await subscribe(socket, ['all']);
    const has = (n: number) => until(`event ${n}`, () => socket.offsets().at(-1) === n, 15_000);
    await log.write(3);
    await has(3);
    stores.redis.pause();
    await log.record(3);
    await has(6);
    stores.redis.resume();
    await stores.redis.kill();
    await log.record(3);
    await has(9);
    await stores.redis.restart({ empty: true });
    await until('Redis is back', () => redis.status === 'ready');
    await log.append(8, 9);
    await log.write(3);
    await has(12);
    t.strictSame(socket.offsets(), range(1, 12));
  });

  t.test('a key that is revoked while Redis is away still stops within a second', async (t) => {
    const socket = await connect(t, app.port, { headers: { 'x-api-key': agent.key } });
    await socket.get('welcome', ({ as }) => as === 'agent');
    await stores.redis.kill();
    t.equal((await app.call('POST', '/api/me/rotate-key', { key: agent.key })).status, 200);
    const readWatch = startStopwatch();
    t.equal(await socket.closed(), 4001);
    const took_ms = readWatch();
    t.ok(took_ms < 1_000, `took ${Math.round(took_ms)} ms`);
    await stores.redis.restart();
  });
});
