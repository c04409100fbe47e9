import { setTimeout as delay } from 'node:timers/promises';
import { type Bed, makeKeys, prepareOnBed } from './env/bed.js';
import { startLogWriter } from './env/log-writer.js';
import { type RunningPeer, startPeer } from './env/peer.js';
import { type Groups, startMeter, treeOf } from './env/processes.js';
import { seed } from './env/seed.js';
import { openBenchPool, startServiceTarget } from './env/targets.js';
import { type Bench, figureOf, ratioOf, type Sample, type Subject } from './frame/types.js';
import { type Numbered, nowMs } from './load/fanout-events.js';
import { type SubscriberGroup, startSubscribers } from './load/subscriber.js';
import type { SubscribeJob } from './load/subscribers.js';

/**
 * Events of the log to many websockets, beside the same frames by bare uWebSockets.js, `ws` and
 * Socket.IO. For the service an event begins as a row in Postgres and goes through the relay and
 * Redis; for the peers it begins in their memory. As many as they carry: so many events are under
 * way at a time, a new one for each that all subscribers have. At a rate: events come when they are
 * due, whatever became of those before.
 *
 * A latency counts from before the commit (or before the message to the peer) until the frame has
 * been read by its subscriber, for one in fifty of them. Every subscriber must get every event, and
 * the sampled ones each in its place, or the bench fails.
 */

const subscribers = 2_000;
/** Events under way at a time. */
const window = 512;
const rate = 200;
const sample_every = 50;
const drain_ms = 120_000;

export interface FanoutTarget {
  readonly name: string;
  readonly port: number;
  readonly subscribers: number;
  readonly groups: Groups;
  readonly dialect: Pick<SubscribeJob, 'path' | 'hello' | 'ready' | 'ping'>;
  /** Hands events over; fulfilled when more can be. */
  publish(events: readonly Numbered[]): Promise<void> | void;
  lastErrors?(): string;
}

type Source = (delivered: number) => number;

/** How many more are due, for a window of events under way; `sent` of them were sent so far. */
export const keepWindow =
  (sent: () => number): Source =>
  (delivered) =>
    window - (sent() - Math.floor(delivered / subscribers));

/** How many more are due, at so many a second. */
export const keepRate = (sent: () => number): Source => {
  const started_ms = performance.now();
  return () => Math.floor(((performance.now() - started_ms) / 1_000) * rate) - sent();
};

interface Driven {
  readonly sent: number;
  readonly delivered: number;
  readonly seconds: number;
}

/** Publishes for so long, and then waits until everything has arrived. */
const drive = async (
  { group, target }: { readonly group: SubscriberGroup; readonly target: FanoutTarget },
  makeSource: (sent: () => number) => Source,
  seconds: number,
): Promise<Driven> => {
  let sent = 0;
  let delivered = 0;
  await group.start((count) => {
    delivered = count;
  });
  const source = makeSource(() => sent);
  const started_ms = performance.now();
  const ends_ms = started_ms + seconds * 1_000;
  while (performance.now() < ends_ms) {
    const due = source(delivered);
    if (due > 0) {
      const at = nowMs();
      const events = Array.from({ length: due }, (_, i) => ({ n: sent + i + 1, at }));
      sent += due;
      await target.publish(events);
    }
    await delay(1);
  }
  const within = { delivered, seconds: (performance.now() - started_ms) / 1_000 };
  const give_up_ms = performance.now() + drain_ms;
  while (delivered < sent * target.subscribers && performance.now() < give_up_ms) await delay(10);
  // What was under way at the end would have arrived a little later than the clock ran.
  return { sent, ...within };
};

export const makeRound =
  (bed: Bed, group: SubscriberGroup, target: FanoutTarget) =>
  async (
    makeSource: (sent: () => number) => Source,
    seconds = bed.context.seconds,
  ): Promise<Sample> => {
    const { port, dialect, groups, subscribers: count } = target;
    const job = { ...dialect, port, count, at_once: 50, sample_every };
    await group.open(job).catch((error: unknown) => {
      throw new Error(`${target.name}: ${error}\n${target.lastErrors?.() ?? ''}`);
    });
    const { stores } = bed;
    const stored = { postgres: stores.postgresPids, redis: stores.redisPids };
    const load = () => [group.pid];
    const meter = startMeter({ ...groups, ...stored, load }, () => []);
    const driven = await drive({ group, target }, makeSource, seconds);
    const metered = meter.stop();
    const result = await group.stop();
    await group.leave();
    const wanted = driven.sent * count;
    if (result.delivered !== wanted || result.holes > 0 || result.ended > 0) {
      const { delivered, holes, ended } = result;
      const what = `${delivered} of ${wanted} delivered, ${holes} holes, ${ended} ended`;
      throw new Error(`${target.name}: ${what}.`);
    }
    const { p50_ms, p99_ms, max_ms, reads } = result;
    return {
      per_second: driven.delivered / driven.seconds,
      ...{ p50_ms, p99_ms, max_ms },
      events_s: driven.delivered / count / driven.seconds,
      frames_a_read: result.delivered / reads,
      ...metered,
    };
  };

const makeSubjects = (bed: Bed, group: SubscriberGroup, target: FanoutTarget) => {
  const run = makeRound(bed, group, target);
  const most: Subject = {
    name: target.name,
    warmUp: async () => void (await run(keepWindow, bed.context.quick ? 1 : 3)),
    round: () => run(keepWindow),
  };
  const at_rate: Subject = { name: `${target.name}_at_${rate}`, round: () => run(keepRate) };
  return { most, at_rate };
};

export const startServiceFanout = async (bed: Bed): Promise<FanoutTarget> => {
  await bed.stores.createDatabase('service');
  const sql = openBenchPool(bed, 'service');
  await seed(sql, { keys: makeKeys(64), questions: 64 });
  const started = await startServiceTarget(bed, { TRUSTED_PROXIES: '127.0.0.1' });
  const { port, groups, lastErrors = () => '' } = started;
  const writer = await startLogWriter({ sql, redis_url: bed.stores.redis_url });
  bed.onClose(writer.close);
  return {
    ...{ name: 'service', port, subscribers, groups, publish: writer.write, lastErrors },
    dialect: {
      path: '/ws',
      hello: '{"op":"subscribe","topics":["all"]}',
      ready: '{"op":"subscribed"',
    },
  };
};

const plain = { path: '/', hello: '', ready: '{"op":"welcome"}' };
const socketio = {
  path: '/socket.io/?EIO=4&transport=websocket',
  hello: '40',
  ready: '42["welcome"]',
  ping: { text: '2', pong: '3' },
};

const startPeerFanout = async (
  bed: Bed,
  name: string,
  dialect: FanoutTarget['dialect'],
): Promise<FanoutTarget> => {
  const module = new URL(`./peers/fanout-${name}.js`, import.meta.url);
  const peer: RunningPeer = await startPeer(module, {});
  bed.onClose(peer.stop);
  const groups = { cpu: () => treeOf(peer.pid) };
  const publish = (events: readonly Numbered[]) => peer.send(events);
  return { name, port: peer.port, subscribers, groups, dialect, publish };
};

export const fanout: Bench = {
  name: 'fanout',
  question: `How many event frames per second reach ${subscribers} subscribers, and how late?`,
  ratios: {
    service_over_uws: ratioOf('service', 'uws'),
    service_over_ws: ratioOf('service', 'ws'),
    service_over_socketio: ratioOf('service', 'socketio'),
  },
  figures: { p99_ms_at_200: figureOf(`service_at_${rate}`, 'p99_ms') },
  prepare: prepareOnBed(async (bed) => {
    const group = startSubscribers();
    bed.onClose(group.close);
    const service = makeSubjects(bed, group, await startServiceFanout(bed));
    const uws = makeSubjects(bed, group, await startPeerFanout(bed, 'uws', plain));
    const ws = makeSubjects(bed, group, await startPeerFanout(bed, 'ws', plain));
    const io = makeSubjects(bed, group, await startPeerFanout(bed, 'socketio', socketio));
    return {
      stages: [
        () => ({ subjects: [service.most, uws.most, ws.most, io.most] }),
        () => ({ subjects: [service.at_rate, uws.at_rate] }),
      ],
    };
  }),
};
