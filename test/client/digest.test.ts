import type { Test } from 'tap';
import { WebSocket } from 'ws';
import {
  createClient,
  type Gap,
  type LogEvent,
  type Mismatch,
  type StreamOptions,
} from '#client/node.js';
import { storeDigests } from '../../src/features/events/digest.js';
import { sha256 } from '../../src/kit/ids.js';
import { serveLog } from '../features/log/log-server.js';
import { startApp, type TestApp } from '../help/app.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { startFront } from './front.js';
import { type SocketFront, startSocketFront } from './socket-front.js';

/** Clients of a service that omits a part of its log but looks healthy. */

type Tamper = NonNullable<SocketFront['tamper']>;

/** The client compares the newest events only at the next tick. */
const tick_ms = 2_000;

/** Leaves events out, and links the next event to the one before the gap. */
const leaveOut = (isOut: (offset: number) => boolean): Tamper => {
  let prev = 0;
  return (frame) => {
    if (frame.op !== 'event') return [frame];
    const offset = Number(frame['offset']);
    if (isOut(offset)) return [];
    const sent = { ...frame, prev };
    prev = offset;
    return [sent];
  };
};

const isThousandth = (offset: number): boolean => offset % 1_000 === 0;

/**
 * For each connection, holds back events until an offset is divisible by 9 or another kind of frame
 * arrives. Then sends all of them in order.
 */
const holdBack = (): Tamper => {
  const held_of = new Map<object, Parameters<Tamper>[0][]>();
  return (frame, connection) => {
    const held = held_of.get(connection) ?? [];
    held_of.set(connection, held);
    held.push(frame);
    return frame.op === 'event' && Number(frame['offset']) % 9 !== 0 ? [] : held.splice(0);
  };
};

/** A client whose socket goes through the tampering proxy but whose calls do not. */
const openClient = async (t: Test, app: { port: number; url: string }, tamper: Tamper | null) => {
  const front = await startSocketFront(t, app.port);
  front.tamper = tamper;
  const client = createClient({
    base_url: app.url,
    openSocket: () => new WebSocket(`${front.url.replace('http', 'ws')}/ws`) as never,
  });
  t.teardown(() => client.close());
  const follow = (options: Partial<StreamOptions<'all'>> = {}) => {
    const found: Mismatch[] = [];
    const offsets: number[] = [];
    const stream = client.stream({
      topics: ['all'],
      after: 0,
      onItem: (item) => void offsets.push((item as LogEvent).offset),
      onMismatch: (mismatch) => void found.push(mismatch),
      ...options,
    });
    return { stream, found, offsets };
  };
  return { client, front, follow };
};

/** Waits until the process has followed the log up to its head. */
const untilFollowed = ({ call }: TestApp, head: number) =>
  until('the process knows all', async () => {
    return (await call('GET', '/api/events?limit=1')).body.head === head;
  });

t.test('one of two processes drops every 1,000th event, and the client says so', async (t) => {
  // The first tick must compare all events, so all are written before it.
  const options = { roles: ['api'], tick_ms: 6_000 } as const;
  const { app: honest, log } = await serveLog(t, options);
  const dropping = await startApp(t, { ...options, stores: honest.stores });
  const right = (await openClient(t, honest, null)).follow();
  const short = (await openClient(t, dropping, leaveOut(isThousandth))).follow();
  const began_ms = performance.now();
  await log.write(1_500);
  const [first] = await until('it is found', () => short.found.length > 0 && short.found);
  const took_ms = Math.round(performance.now() - began_ms);
  t.comment(`found ${took_ms} ms after 1,500 events began to be written`);
  t.ok(took_ms < 60_000);
  t.match(first, { after: 0, until: 1_001, tick: null, wrong: 'stream' });
  t.match(first?.record, /^[0-9a-f]{64}$/);
  t.not(first?.came, first?.record);
  await log.write(1_000);
  await until('the next one too', () => short.found.length > 1);
  t.match(short.found[1], { after: 1_001, until: 2_001, wrong: 'stream' });
  await until('all came', () => right.offsets.length === 2_500);
  t.equal(short.offsets.length, 2_498);
  t.same(short.stream.faults, { repeats: 0, holes: 0 }, 'nothing else has shown it');
  await until('ticks agree', () => [right, short].every((one) => one.stream.agreed === 2_500));
  t.same(right.found, []);
  t.equal(short.found.length, 2, 'each part is reported once');
});

t.test('every event comes through cuts, over HTTP and beside private ones', async (t) => {
  const { app, log } = await serveLog(t, { tick_ms });
  for (let n = 0; n < 2; n += 1) await log.write(4_000);
  await log.write(3, { audience_id: '0190a000-0000-7000-8000-000000000009' });
  await log.write(4_000);
  const { front, follow } = await openClient(t, app, null);
  const whole = follow({ backfill: true });
  const newest = follow({ after: undefined as never, last: 100 });
  const live = follow({ after: undefined as never });
  await until('the replays', () => whole.offsets.length === 12_000 && newest.offsets.length >= 100);
  front.cut();
  await log.write(997);
  const all = [whole, newest, live];
  await until('all agree', () => all.every(({ stream }) => stream.agreed === 13_000));
  t.same(
    all.map(({ found }) => found),
    [[], [], []],
  );
  t.equal(whole.offsets.length, 12_997);
});

t.test('no honest process is accused, however late it starts or sends', async (t) => {
  const { app, log } = await serveLog(t, { tick_ms });
  const early = await openClient(t, app, holdBack());
  const empty = early.follow();
  await until('the empty log agrees', () => empty.stream.agreed === 0);
  await log.write(500);
  early.front.cut();
  await log.write(499);
  await log.write(1, { audience_id: '0190a000-0000-7000-8000-000000000009' });
  const late = await startApp(t, { roles: ['api'], stores: app.stores, tick_ms });
  const { follow } = await openClient(t, late, holdBack());
  const [whole, newest, live] = [
    follow(),
    follow({ after: undefined as never, last: 100 }),
    follow({ after: undefined as never }),
  ];
  await until('a thousand, of which one is private', () =>
    [empty, whole].every(({ offsets }) => offsets.length === 999),
  );
  await storeDigests(app.sql, 600);
  await app.sql`update log_head set oldest = 601`;
  await app.sql`delete from events where "offset" <= 600`;
  const fresh = await startApp(t, { roles: ['api'], stores: app.stores, tick_ms });
  const third = await openClient(t, fresh, holdBack());
  const gaps: unknown[] = [];
  const onGap = ({ until }: Gap) => void gaps.push(until);
  const behind = [third.follow({ after: 200, onGap }), third.follow({ onGap, backfill: true })];
  await until('the gaps', () => gaps.length === 2);
  await log.write(8);
  const all = [empty, whole, newest, live, ...behind];
  await until('all agree', () => all.every(({ stream }) => stream.agreed === 1_008), 60_000);
  t.same(gaps.sort(), [1_000, 600], 'the socket leaves out all that was, HTTP what is gone');
  t.same(
    all.map(({ found }) => found),
    all.map(() => []),
  );
});

t.test('a lossy socket, a process with a wrong view and a wrong tick are told apart', async (t) => {
  const { app, log } = await serveLog(t);
  await log.write(10);
  // The tick below covers all ten events, so the process must have them first.
  await untilFollowed(app, 10);
  const digestWithout = (left_out: number): string =>
    log.entries
      .filter(({ offset }) => offset !== left_out)
      .reduce(
        (digest, { offset, id, body }) => sha256(`${digest} ${offset} ${id} ${body}`, 'hex'),
        '0'.repeat(64),
      );
  const [whole, short] = [digestWithout(0), digestWithout(5)];
  const isFifth = (offset: number): boolean => offset === 5;
  const change: Tamper = (frame) => [frame['offset'] === 7 ? { ...frame, data: {} } : frame];
  const cases: readonly (readonly [wrong: string | undefined, Tamper, tick: string])[] = [
    [undefined, (frame) => [frame], whole],
    ['tick', (frame) => [frame], short],
    ['node', leaveOut(isFifth), short],
    ['stream', leaveOut(isFifth), whole],
    ['stream', change, whole],
  ];
  for (const [wrong, tamper, digest] of cases) {
    const { follow } = await openClient(t, app, (frame, connection) =>
      frame.op === 'subscribed'
        ? [frame, { op: 'tick', head: 10, heads: {}, digest }]
        : tamper(frame, connection),
    );
    const { stream, found } = follow();
    await until('it is compared', () => stream.agreed === 10);
    t.same(
      found.map((one) => one.wrong),
      wrong === undefined ? [] : [wrong],
    );
    stream.close();
  }
});

t.test('two transports are compared: which differs, and in which range', async (t) => {
  const { app, log } = await serveLog(t);
  await log.write(3_500);
  await untilFollowed(app, 3_500);
  const { client, front } = await openClient(t, app, null);
  const differing = async (one = client) =>
    (await one.compareTransports({ after: 500, until: 3_400 })).map((part) => [
      part.after,
      part.until,
      part.differing.join(),
    ]);
  const same = [
    [500, 1_000, ''],
    [1_000, 2_000, ''],
    [2_000, 3_000, ''],
    [3_000, 3_400, ''],
  ];
  t.same(await differing(), same);
  front.tamper = leaveOut((offset) => offset === 2_000);
  t.same(await differing(), same.with(1, [1_000, 2_000, 'socket']));

  front.tamper = leaveOut((offset) => offset === 3_333);
  const http = await startFront(t, app.url);
  const page = await app.call('GET', '/api/events?after=500&limit=100');
  page.body.events.splice(50, 1);
  const headers = { 'content-type': 'application/json' };
  http.moods.push('pass', { status: 200, headers, body: JSON.stringify(page.body) });
  const both = [[500, 1_000, 'http'], ...same.slice(1, 3), [3_000, 3_400, 'socket']];
  t.same(await differing(client.with({ base_url: http.url })), both);
  await t.rejects(client.compareTransports({ after: 0, until: 10_001 }), RangeError);
  await t.rejects(client.compareTransports({ after: 5, until: 5 }), RangeError);
  await t.rejects(client.compareTransports({ after: 3_000, until: 3_501 }), {
    code: 'DIGEST_UNKNOWN',
  });
});

t.test('only the whole log has a digest', async (t) => {
  const { app } = await serveLog(t);
  const { client } = await openClient(t, app, null);
  const onMismatch = (): void => undefined;
  t.throws(() => client.stream({ topics: ['all', 'me'], onMismatch }), TypeError);
  t.throws(() => client.stream({ topics: ['system'], onMismatch }), TypeError);
  const filter = { min_confidence: 10 };
  t.throws(() => client.stream({ topics: ['all'], filter, onMismatch }), TypeError);
  t.equal(client.stream({ topics: ['all', 'system'], onMismatch }).agreed, null);
});
