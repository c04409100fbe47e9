import { createHash } from 'node:crypto';
import { storeDigests } from '../../../src/features/events/digest.js';
import { createDigests, createDigestTracker } from '../../../src/features/events/index.js';
import { makeRecentEvents, PublishedEvent } from '../../../src/features/events/topics.js';
import { digest_answer } from '../../../src/features/log/schema.js';
import { compileCheck } from '../../../src/http/validation.js';
import { openParts } from '../../help/parts.js';
import { pluck } from '../../help/pluck.js';
import { readDocument, readFenced, readSection, runModule } from '../../help/readme.js';
import { openSse } from '../../help/sse-client.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { connect } from '../../help/ws-client.js';
import { serveLog } from './log-server.js';

/** The digest of the log, computed as a third party would, from the events it receives. */

const section = readSection(
  readDocument('docs/how-to/follow-events.md'),
  '## Proof that nothing is missing',
);
const zeros = '0'.repeat(64);
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const agent_id = '0190a000-0000-7000-8000-000000000009';
const checkAnswer = compileCheck(digest_answer, 'answer');

interface Said {
  readonly offset: number;
  readonly id: string;
  readonly body: string;
}

/** Digests by offset, as documented. An offset without a public event repeats the last digest. */
const digestsOf = (events: readonly Said[], head: number): readonly string[] => {
  const digests = [zeros];
  for (let n = 1; n <= head; n += 1) {
    const before = digests[n - 1] as string;
    const event = events.find(({ offset }) => offset === n);
    digests.push(event === undefined ? before : sha256(`${before} ${n} ${event.id} ${event.body}`));
  }
  return digests;
};

/** Extracts the event from the text of a frame, a line or a server-sent event. */
const saidIn = (text: string): Said => {
  const { offset, id } = JSON.parse(text);
  return { offset, id, body: `{${text.slice(text.indexOf('"event":'))}` };
};

const serve = async () => {
  const server = await serveLog(t, { tick_ms: 500 });
  const { app, log } = server;
  await log.write(700);
  await log.write(1, { audience_id: agent_id });
  await log.write(799);
  await log.write(2, { audience_id: agent_id });
  await log.write(723);
  const read = async (query = '') => (await app.call('GET', `/api/events/digest?${query}`)).body;
  const head = log.entries.length;
  const isPublic = ({ audience_id }: { audience_id: string | null }) => audience_id === null;
  const digests = digestsOf(log.entries.filter(isPublic), head);
  return { ...server, read, head, digests };
};

const { app, log, read, head, digests } = await serve();
const thousands = [0, 1_000, 2_000].map((offset) => ({ offset, digest: digests[offset] }));

t.test('the example of the documents is right', async (t) => {
  const [example = ''] = readFenced(section, 'text');
  let before = zeros;
  for (const [n, line] of example.trim().split('\n').entries()) {
    if (n % 2 === 1) t.equal(line, before);
    else if (line.includes(' ')) before = sha256(`${before} ${line}`);
  }
  t.match(example, /^2$/m, 'one is private');
});

t.test('every thousand is stored once, by any number of processes', async (t) => {
  const one = (await openParts(t, { stores: app.stores })).deps;
  const other = (await openParts(t, { stores: app.stores })).deps;
  const services = [createDigests(one), createDigests(other)];
  await Promise.all(services.map((service) => service.start()));
  await until('both are stored', async () => (await read()).digests.length === 3);
  await Promise.all(services.map((service) => service.stop()));
  const answer = await read();
  t.equal(checkAnswer(answer), null);
  t.same(answer, {
    digests: thousands,
    at: { offset: head, digest: digests[head] },
    head,
    oldest: 1,
    next_cursor: null,
  });
});

t.test('digests come in pages, and at any offset', async (t) => {
  await storeDigests(app.sql, 2_000);
  const first = await app.call('GET', '/api/events/digest?limit=2');
  t.same(pluck(first.body.digests, 'offset'), [0, 1_000]);
  t.match(first.headers.get('link'), /cursor=1001.*rel="next"/);
  const second = await read(`limit=2&cursor=${first.body.next_cursor}`);
  t.same(second.digests, thousands.slice(2));
  t.equal(second.next_cursor, null);
  t.same((await read('from=1000&limit=1')).digests, thousands.slice(1, 2));
  t.same((await read('from=1001')).digests, thousands.slice(2));
  for (const offset of [0, 1, 700, 701, 702, 999, 1_000, 1_001, 1_501, head]) {
    t.same((await read(`at=${offset}`)).at, { offset, digest: digests[offset] }, `at ${offset}`);
  }
  t.equal(digests[701], digests[700], 'a private event does not count');
  const wrong = await app.call('GET', `/api/events/digest?at=${head + 1}`);
  t.match(wrong, { status: 404, body: { code: 'DIGEST_UNKNOWN' } });
  for (const query of ['from=-1', 'at=x', 'at=1.5', 'cursor=x', 'limit=0']) {
    const refused = await app.call('GET', `/api/events/digest?${query}`);
    t.match(refused, { status: 400, body: { code: 'INVALID_REQUEST' } }, query);
  }
});

t.test('what comes over every transport has the digest of the record', async (t) => {
  await until('the process knows all', async () => {
    return (await app.call('GET', '/api/events?limit=1')).body.head === head;
  });
  const socket = await connect(t, app.port);
  const frames: string[] = [];
  socket.ws.on('message', (text) => frames.push(String(text)));
  socket.send({ op: 'subscribe', id: 1, topics: ['all'], after: 0 });
  await socket.answer(1);
  const over_socket = frames.filter((text) => text.startsWith('{"op":"event"')).map(saidIn);
  t.equal(digestsOf(over_socket, head)[head], digests[head], 'the socket');

  const lines: Said[] = [];
  const parsed: Said[] = [];
  for (let after = 0; after < head; after += 100) {
    const path = `/api/events?limit=100&after=${after}`;
    const { body } = await app.call('GET', `${path}&format=ndjson`);
    lines.push(...String(body).trim().split('\n').map(saidIn));
    for (const { offset, id, event, data, timestamp } of (await app.call('GET', path)).body
      .events) {
      parsed.push({ offset, id, body: JSON.stringify({ event, data, timestamp }) });
    }
  }
  const newest = (events: readonly Said[]) =>
    digestsOf([...new Map(events.map((e) => [e.offset, e])).values()], head)[head];
  t.equal(newest(lines), digests[head], 'lines');
  t.equal(newest(parsed), digests[head], 'parsed JSON');

  const sse = await openSse(t, `${app.url}/api/stream?after=0`);
  await until('all have come', () => sse.offsets().length === head - 3);
  const over_sse = sse.messages
    .filter(({ name }) => name === '')
    .map(({ data: { offset, id, ...rest } }) => ({ offset, id, body: JSON.stringify(rest) }));
  t.equal(newest(over_sse), digests[head], 'server-sent events');
});

t.test('the program of the documents says whether it has all', async (t) => {
  const [code = ''] = readFenced(section, 'js');
  const whole = runModule(code, { BASE: app.url });
  t.teardown(() => whole.stop());
  t.equal(await whole.ended, 0);
  t.match(whole.output(), `complete from 0 to ${head} ${digests[head]}`);
  const dropping = runModule(code.replace('> end.offset', '> end.offset || n === 1000'), {
    BASE: app.url,
  });
  t.teardown(() => dropping.stop());
  await dropping.ended;
  t.match(dropping.output(), 'DIFFERENT');
});

t.test('ticks have the digest of what the process has seen', async (t) => {
  const socket = await connect(t, app.port);
  const sse = await openSse(t, `${app.url}/api/stream`);
  await socket.subscribe(['all']);
  const tick = await socket.get('a tick', ({ op }) => op === 'tick');
  t.match(tick, { head, digest: digests[head] });
  const message = await until('a tick', () => sse.messages.find(({ name }) => name === 'tick'));
  t.match(message.data, { head, digest: digests[head] });
});

t.test('a process knows the digest of what it has followed', async (t) => {
  const { deps } = await openParts(t, { stores: app.stores });
  const recent = makeRecentEvents();
  recent.reset(head);
  const tracker = createDigestTracker(deps, recent);
  t.equal(tracker.at(head), undefined, 'not before it has read the record');
  await tracker.start();
  t.teardown(() => tracker.stop());
  await until('it is known', () => tracker.at(head) !== undefined);
  t.equal(tracker.at(head), digests[head]);
  const fresh = await log.record(3);
  const last = fresh.at(-1)?.offset ?? 0;
  const now = digestsOf(
    log.entries.filter((e) => e.audience_id === null),
    last,
  );
  for (const entry of fresh) recent.push(new PublishedEvent(entry));
  tracker.onEvents(fresh.slice(0, 2));
  t.equal(tracker.at(last - 1), now[last - 1]);
  t.equal(tracker.at(last), undefined);
  tracker.onEvents([{ ...(fresh[2] as (typeof fresh)[0]), offset: last + 4 }]);
  t.equal(tracker.at(last + 4), undefined, 'a hole: it begins anew');
  await until('the record', () => tracker.at(last) !== undefined);
  t.equal(tracker.at(last), now[last]);
  await log.append(head + 1, last);
  t.equal((await read()).at.digest, now[last], 'the record says the same');
});

t.test('a process that is behind the record knows the digest when it has followed', async (t) => {
  const { deps } = await openParts(t, { stores: app.stores });
  const recent = makeRecentEvents();
  const end = log.entries.length;
  recent.reset(end);
  const behind = await log.record(3);
  const tracker = createDigestTracker(deps, recent);
  await tracker.start();
  t.teardown(() => tracker.stop());
  await until('it has read the record', () => tracker.at(end + 3) !== undefined);
  tracker.onEvents(behind.slice(0, 2));
  t.equal(tracker.at(end + 2), undefined, 'the record was ahead');
  const further = await log.record(1);
  tracker.onEvents([...behind.slice(2), ...further]);
  const isPublic = ({ audience_id }: { audience_id: string | null }) => audience_id === null;
  const digest = digestsOf(log.entries.filter(isPublic), end + 4)[end + 4];
  t.equal(tracker.at(end + 4), digest, 'at once');
  await log.append(end + 1, end + 4);
});

t.test('digests that are not stored yet are answered later', async (t) => {
  const far = await serveLog(t);
  for (let n = 0; n < 20; n += 1) await far.log.record(1_000);
  await far.log.record(1);
  const path = '/api/events/digest?at=';
  t.equal((await far.app.call('GET', `${path}20000`)).status, 200);
  const late = await far.app.call('GET', `${path}20001`);
  t.match(late, { status: 503, body: { code: 'UNAVAILABLE' } });
  t.ok(late.headers.get('retry-after'));
});

t.test('the digest before events that went is known, and none between', async (t) => {
  const { sql } = app;
  await storeDigests(sql, 1_200);
  t.same(pluck((await read()).digests, 'offset'), [0, 1_000, 1_200, 2_000]);
  await sql`update log_head set oldest = 1201`;
  await sql`delete from events where "offset" <= 1200`;
  for (const offset of [0, 1_000, 1_200, 1_201, 1_700, 2_003]) {
    t.same((await read(`at=${offset}`)).at, { offset, digest: digests[offset] }, `at ${offset}`);
  }
  for (const offset of [999, 1_001, 1_199]) {
    const gone = await app.call('GET', `/api/events/digest?at=${offset}`);
    t.match(gone, { status: 404, body: { code: 'DIGEST_UNKNOWN' } }, `at ${offset}`);
  }
});

t.test('no digest is made of events of which some are gone', async (t) => {
  const { sql } = app;
  await sql`delete from events where "offset" = 1301`;
  const [before, after] = [
    await read('at=1300'),
    await app.call('GET', '/api/events/digest?at=1302'),
  ];
  t.equal(before.at.digest, digests[1_300]);
  t.match(after, { status: 404, body: { code: 'DIGEST_UNKNOWN' } });
  await storeDigests(sql, 1_900);
  t.same(pluck((await read()).digests, 'offset'), [0, 1_000, 1_200, 2_000], 'nor stored');
});
