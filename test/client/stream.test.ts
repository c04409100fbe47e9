import type { Test } from 'tap';
import {
  type Client,
  createClient,
  type Gap,
  type LogEvent,
  type StateUpdate,
  type StreamOptions,
  type StreamStatus,
  type Topic,
} from '#client/node.js';
import { openSql } from '../../src/db/client.js';
import type { Caller } from '../../src/http/caller.js';
import { refuse } from '../../src/kit/fault.js';
import { type HubLimits, ws_faults } from '../../src/socket/frames.js';
import type { HubOptions } from '../../src/socket/session.js';
import type { State, StateSource } from '../../src/socket/states.js';
import { startApp } from '../help/app.js';
import { range, startHub } from '../help/hub.js';
import { makeLogWriter } from '../help/log.js';
import { openStores, openTestRedis } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { startSocketFront } from './socket-front.js';

type StartArguments = [
  limits?: Partial<HubLimits>,
  head?: number,
  more?: Pick<HubOptions, 'states'>,
];

const start = async (t: Test, ...[limits, head, more]: StartArguments) => {
  const hub = await startHub(t, limits, head, more);
  const front = await startSocketFront(t, hub.port);
  const client = createClient({ base_url: front.url, backoff_ms: 200 });
  t.teardown(() => client.close());
  return { ...hub, front, client };
};

/** Collects the items of a stream in lists. */
const follow = (client: Client, options: Partial<StreamOptions<Topic>> = {}) => {
  const offsets: number[] = [];
  const gaps: Gap[] = [];
  const statuses: StreamStatus[] = [];
  const stream = client.stream({
    topics: ['all'],
    onItem: (item) => void offsets.push((item as LogEvent).offset),
    onStatus: (status) => void statuses.push(status),
    ...options,
  });
  const live = (): number => statuses.filter(({ status }) => status === 'live').length;
  return { stream, offsets, gaps, statuses, live };
};

t.test('goes on after every cut, without a hole and without a repeat', async (t) => {
  const { client, publish, front } = await start(t, {}, 20);
  const { offsets, live } = follow(client, { after: 5 });
  for (const round of range(1, 6)) {
    await until('it is live', () => live() >= round);
    publish(50);
    if (round % 2 === 0) await until('some came', () => offsets.length > 15 + 50 * (round - 1));
    front.cut();
    publish(10);
  }
  await until('all came', () => offsets.length >= 375);
  t.strictSame(offsets, range(6, 380));
  t.ok(front.opened >= 6);
});

t.test('an iterator gives the same, and the cursor is behind what was handled', async (t) => {
  const { client, publish, front } = await start(t, {}, 10);
  const offsets: number[] = [];
  const stream = client.stream({ topics: ['all'], after: 0 });
  for await (const { offset } of stream) {
    offsets.push(offset);
    t.equal(stream.cursor, offset - 1);
    if (offset === 4) front.cut();
    if (offset === 10) break;
  }
  t.strictSame(offsets, range(1, 10));
  await stream.done;
  publish(3);
  const next = client.stream({ topics: ['all'], after: offsets.at(-1) ?? 0 });
  t.equal((await next.next()).value?.offset, 11, 'another process goes on there');
  t.equal((await next.next()).value?.offset, 12);
  t.equal(next.cursor, 11);
  await next.return();
  t.match(await next.next(), { done: true });
});

t.test('an event on several topics comes once', async (t) => {
  const { client, publish, front } = await start(t);
  const topics = ['question:1', 'category:2', 'agent:3'] as const;
  const { offsets, live } = follow(client, { topics });
  await until('it is live', () => live() === 1);
  publish(5, ['question:1', 'category:2']);
  publish(5, ['category:2', 'agent:3', 'question:1']);
  front.cut();
  publish(5, ['agent:3']);
  publish(5, ['question:1', 'agent:3']);
  await until('all came', () => offsets.length >= 20);
  t.strictSame(offsets, range(1, 20));
});

t.test('a frame that was lost on the way is noticed by the next, and asked for', async (t) => {
  const { client, publish, front } = await start(t, { tick_ms: 600_000 });
  const { offsets, live } = follow(client);
  await until('it is live', () => live() === 1);
  let lost = 0;
  front.tamper = (frame) => {
    const is_lost = frame.op === 'event' && frame['offset'] === 7 && lost++ === 0;
    return is_lost ? [] : [frame];
  };
  publish(12);
  await until('all came', () => offsets.length >= 12);
  t.strictSame(offsets, range(1, 12));
  t.ok(lost > 1, 'it was sent again');
  t.equal(front.opened, 1, 'over the same connection');
});

t.test('the last frame that was lost is noticed by the tick', async (t) => {
  const { client, publish, front } = await start(t, { tick_ms: 200 });
  const { offsets, live } = follow(client);
  await until('it is live', () => live() === 1);
  let lost = 0;
  front.tamper = (frame) =>
    frame.op === 'event' && frame['offset'] === 3 && lost++ === 0 ? [] : [frame];
  publish(3);
  await until('all came', () => offsets.length >= 3);
  t.strictSame(offsets, [1, 2, 3]);
});

t.test('what comes twice is handed on once', async (t) => {
  const { client, publish, front } = await start(t);
  const { offsets, live } = follow(client);
  await until('it is live', () => live() === 1);
  front.tamper = (frame) => (frame.op === 'event' ? [frame, frame] : [frame]);
  publish(20);
  await until('all came', () => offsets.length >= 20);
  front.tamper = null;
  publish(1);
  await until('one more', () => offsets.length >= 21);
  t.strictSame(offsets, range(1, 21));
});

t.test('an event that is named and never sent ends the stream, or is told of', async (t) => {
  const { client, publish, front } = await start(t);
  const gaps: Gap[] = [];
  const careless = follow(client);
  const listener = follow(client, { onGap: (gap) => void gaps.push(gap) });
  await until('both are live', () => careless.live() === 1 && listener.live() === 1);
  front.tamper = (frame) => (frame.op === 'event' && frame['offset'] === 2 ? [] : [frame]);
  publish(4);
  await t.rejects(careless.stream.done, { name: 'StreamGap', gap: { after: 1, reason: 'hole' } });
  await until('the others came', () => listener.offsets.length >= 3);
  t.strictSame(listener.offsets, [1, 3, 4]);
  t.match(gaps, [{ topic: 'all', after: 1, reason: 'hole' }]);
});

t.test('a cursor of another log is told of, and the stream goes on at its head', async (t) => {
  const { client, publish } = await start(t, { ahead_ms: 50 }, 10);
  const gaps: Gap[] = [];
  const careless = follow(client, { after: 500 });
  const listener = follow(client, { after: 500, onGap: (gap) => void gaps.push(gap) });
  await t.rejects(careless.stream.done, { name: 'StreamGap', gap: { reason: 'epoch' } });
  await until('it is live', () => listener.live() === 1);
  t.equal(listener.stream.cursor, 10);
  publish(3);
  await until('they came', () => listener.offsets.length === 3);
  t.strictSame(listener.offsets, [11, 12, 13]);
  t.match(gaps, [{ after: 500, until: 10, reason: 'epoch' }]);
});

t.test('filters and the newest so many', async (t) => {
  const { client, publish } = await start(t, {}, 30);
  const { offsets, live } = follow(client, { last: 5 });
  await until('it is live', () => live() === 1);
  publish(2);
  await until('they came', () => offsets.length >= 7);
  t.strictSame(offsets, range(26, 32));
  const filter = { odd: true } as StreamOptions['filter'];
  const odd = follow(client, { after: 20, ...(filter === undefined ? {} : { filter }) });
  await until('the odd ones came', () => odd.offsets.length >= 6);
  t.strictSame(odd.offsets, [21, 23, 25, 27, 29, 31]);
});

t.test('close codes say whether and when to come back', async (t) => {
  const { client, front, hub } = await start(t);
  for (const code of [4000, 4003, 4008]) {
    const { stream, live, statuses } = follow(client);
    await until('it is live', () => live() === 1);
    front.cut(code);
    await t.rejects(stream.done, { name: 'SocketRefused', close_code: code });
    t.notOk(statuses.some(({ status }) => status === 'waiting'));
  }
  const { live, statuses, stream } = follow(client);
  const waits = () => statuses.flatMap((one) => (one.status === 'waiting' ? [one] : []));
  await until('it is live', () => live() === 1);
  front.cut(4100);
  await until('it is back', () => live() === 2);
  t.match(waits(), [{ code: 4100 }]);
  t.ok((waits()[0]?.wait_ms ?? 0) >= 500, 'not at once');
  // A service that drains tells each client to reconnect within five seconds.
  await hub.drain();
  await until('it was sent away', () => waits().some(({ code }) => code === 4200));
  t.ok((waits().find(({ code }) => code === 4200)?.wait_ms ?? 9e9) <= 5_000);
  stream.close();
});

t.test('the credential goes in the first frame, and one that is no more ends it', async (t) => {
  const { client, front, hub } = await start(t);
  const me = follow(client.with({ api_key: 'key-ann' }), { topics: ['me'] });
  await until('it is live', () => me.live() === 1);
  const own = follow(client.with({ token: async () => 'key-bob' }), { topics: ['me', 'all'] });
  await until('it is live too', () => own.live() === 1);
  t.match(
    front.said.filter(({ op }) => op === 'auth'),
    [{ api_key: 'key-ann' }, { token: 'key-bob' }],
  );
  const matches = (caller: Caller): boolean => caller.kind === 'agent' && caller.id === 'bob';
  hub.closeWhere({ matches, code: 4001, reason: 'credential revoked' });
  await t.rejects(own.stream.done, { name: 'SocketRefused', close_code: 4001 });
  const wrong = follow(client.with({ api_key: 'wrong' }));
  await t.rejects(wrong.stream.done, { name: 'SocketRefused', fault: { code: 'INVALID_API_KEY' } });
  const nobody = follow(client, { topics: ['me'] });
  await t.rejects(nobody.stream.done, { name: 'Refused', fault: { code: 'MISSING_AUTH' } });
  me.stream.close();
});

t.test('a connection that lives and says nothing is given up', async (t) => {
  const { client, publish, front } = await start(t, { tick_ms: 100 });
  const { offsets, live, statuses } = follow(client);
  await until('it is live', () => live() === 1);
  front.tamper = () => [];
  publish(3);
  await until('it is given up', () => statuses.some(({ status }) => status === 'waiting'));
  front.tamper = null;
  await until('all came', () => offsets.length >= 3);
  t.strictSame(offsets, [1, 2, 3]);
  t.ok(statuses.some((one) => one.status === 'waiting' && one.why === 'no tick in time'));
});

t.test('a slow reader holds the service up, and misses nothing', async (t) => {
  const { client, publish, front } = await start(t);
  const stream = client.stream({ topics: ['all'], after: 0, buffer: 100 });
  publish(500);
  await until('it leaves', () => front.said.some(({ op }) => op === 'unsubscribe'));
  publish(500);
  const offsets: number[] = [];
  for await (const { offset } of stream) {
    offsets.push(offset);
    if (offset === 1_000) break;
  }
  t.strictSame(offsets, range(1, 1_000));
  t.equal(front.opened, 1);
  for (const { topics, op } of front.said) if (op === 'unsubscribe') t.same(topics, ['all']);
});

t.test('frames that are no frames end the connection and not the stream', async (t) => {
  const { client, publish, front } = await start(t);
  const { offsets, live } = follow(client);
  await until('it is live', () => live() === 1);
  let broken = 0;
  front.tamper = (frame) => (frame.op === 'event' && broken++ === 0 ? ['{"op":'] : [frame]);
  publish(3);
  await until('all came', () => offsets.length >= 3);
  t.strictSame(offsets, [1, 2, 3]);
  t.equal(front.opened, 2);
});

t.test('onItem is waited for, and its error is that of the stream', async (t) => {
  const { client, publish } = await start(t, {}, 5);
  let under_way = 0;
  let most = 0;
  const wrong = new Error('the receiver cannot go on');
  const stream = client.stream({
    topics: ['all'],
    after: 0,
    onItem: async ({ offset }) => {
      under_way += 1;
      most = Math.max(most, under_way);
      await new Promise((resolve) => setImmediate(resolve));
      under_way -= 1;
      if (offset === 8) throw wrong;
    },
  });
  publish(10);
  await t.rejects(stream.done, wrong);
  t.equal(most, 1, 'one at a time');
  t.equal(stream.cursor, 7);
});

t.test('what a listener throws ends its stream, and nothing else', async (t) => {
  const { client, publish } = await start(t, {}, 3);
  const wrong = new Error('the status cannot be shown');
  const broken = client.stream({
    topics: ['all'],
    onStatus: ({ status }) => {
      if (status === 'live') throw wrong;
    },
  });
  await t.rejects(broken.done, wrong);
  const { offsets } = follow(client, { after: 0 });
  publish(1);
  await until('the other goes on', () => offsets.length === 4);
});

t.test('a signal ends a stream quietly', async (t) => {
  const { client, publish, hub } = await start(t);
  const stop = new AbortController();
  const { offsets, stream, live } = follow(client, { signal: stop.signal });
  await until('it is live', () => live() === 1);
  publish(2);
  await until('they came', () => offsets.length === 2);
  stop.abort();
  await stream.done;
  await until('its socket is closed', () => hub.stats().sockets === 0);
  const gone = client.stream({ topics: ['all'], signal: AbortSignal.abort() });
  t.match(await gone.next(), { done: true });
});

/** A hub with one state. Each `next` increases the number in it. */
const startStates = async (t: Test) => {
  let now: State = { version: 1, data: { n: 1, same: [1, { b: 2, a: 1 }], none: null, gone: 1 } };
  let reads = 0;
  const source: StateSource = {
    resolve: (label) => {
      if (label === 'consensus:no') return refuse(ws_faults.INVALID_TOPIC);
      return label.startsWith('consensus:') ? { topic: label, label } : null;
    },
    read: () => {
      reads += 1;
      return now;
    },
  };
  const hub = await start(t, { state_gap_ms: 1 }, 0, { states: [source] });
  const states: StateUpdate[] = [];
  const events: number[] = [];
  hub.client.stream({
    topics: ['all', 'consensus:q'],
    onItem: (item) => void (item.op === 'state' ? states.push(item) : events.push(item.offset)),
  });
  const next = async (): Promise<void> => {
    const version = now.version + 1;
    now = { version, data: { n: version, same: [1, { b: 2, a: 1 }], none: null } };
    const before = reads;
    hub.hub.touch('consensus:q');
    await until('it is read', () => reads > before);
  };
  await until('the first state', () => states.length === 1);
  return { ...hub, states, events, next, now: () => now };
};

const asked = (said: readonly { op: string; topics?: unknown }[]): number =>
  said.filter(({ op, topics }) => op === 'subscribe' && String(topics) === 'consensus:q').length;

t.test('deltas are put together, beside events', async (t) => {
  const { states, events, next, now, front, publish } = await startStates(t);
  t.match(states[0], { topic: 'consensus:q', version: 1, data: { n: 1, gone: 1 } });
  for (const n of range(1, 100)) {
    await next();
    if (n % 10 === 0) publish(1);
  }
  await until('the newest', () => states.at(-1)?.version === 101);
  const { gone, ...held } = states.at(-1)?.data ?? {};
  t.equal(gone, null, 'what is gone is null');
  t.strictSame(held, now().data);
  await until('the events', () => events.length === 10);
  t.equal(asked(front.said), 1, 'every delta fitted');
});

t.test('a delta that was lost leads to a snapshot', async (t) => {
  const { states, next, now, front } = await startStates(t);
  let deltas = 0;
  front.tamper = (frame) => (frame.op === 'delta' && ++deltas === 2 ? [] : [frame]);
  for (const _ of range(1, 4)) await next();
  await until('it asks again', () => asked(front.said) === 2);
  await until('the newest', () => states.at(-1)?.version === 5);
  t.strictSame(states.at(-1)?.data, now().data);
});

t.test('states alone are live too; what is no topic ends the stream', async (t) => {
  const { client } = await startStates(t);
  let live = 0;
  const stream = client.stream({
    topics: ['consensus:q'],
    onStatus: ({ status }) => {
      if (status === 'live') live += 1;
    },
  });
  t.match(await stream.next(), { value: { op: 'state', version: 1 } });
  t.equal(live, 1);
  const wrong = client.stream({ topics: ['consensus:no'] });
  const error = await wrong.next().catch((error) => error);
  t.match(error, { name: 'Refused', fault: { code: 'INVALID_TOPIC' } });
});

t.test('a state comes anew with each connection', async (t) => {
  const { states, next, front } = await startStates(t);
  front.cut();
  await next();
  await until('the newest', () => states.at(-1)?.version === 2);
  t.same(
    states.map(({ version }) => version),
    [...new Set(states.map(({ version }) => version))],
  );
});

/** The log is longer than one replay of the service, and its first events are gone. */
const length = 10_800;
const gone = 500;

/** A whole service on such a log, and a function to write more events. */
const startOnLongLog = async (t: Test) => {
  const stores = await openStores(t);
  const sql = openSql({ url: stores.database_url, pool: 1, prepare: true, name: 'test' });
  t.teardown(() => sql.end({ timeout: 1 }));
  const redis = await openTestRedis(t, stores.redis_url);
  const log = makeLogWriter(sql, redis, stores.redis_prefix);
  for (const _ of range(1, 6)) await log.record(length / 6);
  await sql`delete from events where "offset" <= ${gone}`;
  await sql`update log_head set oldest = ${gone} + 1`;
  const app = await startApp(t, { stores, roles: ['api'] });
  const client = createClient({ base_url: app.url });
  t.teardown(() => client.close());
  return { client, log };
};

t.test('what a replay does not give', async (t) => {
  const { client, log } = await startOnLongLog(t);

  await t.test('it is read over HTTP, and then the stream goes on live', async (t) => {
    const gaps: Gap[] = [];
    const offsets: number[] = [];
    const lives: string[] = [];
    client.stream({
      topics: ['all'],
      after: 0,
      backfill: true,
      buffer: 150,
      onItem: ({ offset }: LogEvent) => void offsets.push(offset),
      onGap: (gap) => void gaps.push(gap),
      onStatus: (status) => {
        if (status.status === 'live') lives.push(status.result);
      },
    });
    await until('it goes on', () => offsets.length > length / 2);
    await log.record(10);
    await until('all came', () => offsets.length >= length - gone + 10);
    t.strictSame(offsets, range(gone + 1, length + 10));
    t.match(gaps, [{ topic: 'all', after: 0, until: gone, reason: 'expired' }]);
    t.equal(gaps.length, 1);
    t.notOk(lives.includes('gap'), 'no replay was asked for in vain again');

    const careless = client.stream({ topics: ['all'], after: 0, backfill: true });
    await t.rejects(careless.next(), { name: 'StreamGap', gap: { until: gone } });
    const whole = client.stream({ topics: ['all'], after: gone, backfill: true });
    for (const offset of range(gone + 1, gone + 300)) {
      const { value } = await whole.next();
      if (value?.offset !== offset) t.fail(`${value?.offset} instead of ${offset}`);
    }
    t.equal(whole.cursor, gone + 299);
    await whole.return();
  });

  await t.test('without backfill the reader gets where the rest is, or nothing more', async (t) => {
    const head = log.entries.length;
    const gaps: Gap[] = [];
    const resumed = client.stream({
      topics: ['all'],
      after: gone,
      onGap: (gap) => void gaps.push(gap),
    });
    await until('it is told', () => gaps.length > 0);
    await log.record(1);
    t.match(await resumed.next(), { value: { offset: head + 1 } });
    t.match(gaps, [{ topic: 'all', after: gone, until: head, reason: 'expired' }]);
    t.match(gaps[0]?.backfill, /^\/api\/events\?/);
    await t.rejects(client.stream({ topics: ['all'], after: gone }).next(), { name: 'StreamGap' });
  });
});
