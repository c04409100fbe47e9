import { setTimeout as delay } from 'node:timers/promises';
import { type Numbered, nowMs, startEmitter } from './env/events.js';
import { startMeter } from './env/processes.js';
import { type Setup, startForum, startPeer, type Target } from './env/setup.js';
import { type Bench, ratioOf, type Sample, type Subject } from './frame/bench.js';
import type { FanoutHandlers } from './peers/fanout.js';
import { type Dialect, dialectOf, plain, startSubscribers } from './sockets.js';

/**
 * Sends log events to many websockets, compared with the same frames from bare uWebSockets.js, `ws`
 * and Socket.IO. For the service an event starts as a row in Postgres and passes through the relay
 * and Redis. For the peers it starts in their memory. `NAME`: a fixed number of events is in
 * flight, and a new one is sent whenever all subscribers have received one. `NAME_at_200`: events
 * are sent at a fixed rate.
 *
 * Latency is measured for one in fifty subscribers. It runs from before the commit (or before the
 * message to the peer) until the subscriber has read the frame. The bench fails unless every
 * subscriber gets every event, and these subscribers get them in order.
 */

const subscribers = 2_000;
/** Number of events in flight. */
const window = 512;
const rate = 200;
const sample_every = 50;
const drain_ms = 120_000;

export interface FanoutTarget {
  readonly target: Target;
  readonly dialect: Dialect;
  /** Sends events. The promise resolves when more can be sent. */
  publish(events: readonly Numbered[]): Promise<void> | void;
}

type Subscribers = ReturnType<typeof startSubscribers>;

/** Publishes for this long, and then waits until all events have arrived. */
const drive = async (
  group: Subscribers,
  { publish }: FanoutTarget,
  { seconds, at_rate }: { readonly seconds: number; readonly at_rate: boolean },
) => {
  let sent = 0;
  let delivered = 0;
  const started_ms = performance.now();
  const elapsed_s = (): number => (performance.now() - started_ms) / 1_000;
  while (elapsed_s() < seconds) {
    if (!at_rate) delivered = await group.call('delivered');
    const due = at_rate
      ? Math.floor(elapsed_s() * rate) - sent
      : window - (sent - Math.floor(delivered / subscribers));
    if (due > 0) {
      const at = nowMs();
      const first = sent + 1;
      sent += due;
      await publish(Array.from({ length: due }, (_, n) => ({ n: first + n, at })));
    }
    await delay(1);
  }
  delivered = await group.call('delivered');
  const within = { sent, per_second: delivered / elapsed_s() };
  const give_up_ms = performance.now() + drain_ms;
  while (delivered < sent * subscribers && performance.now() < give_up_ms) {
    await delay(10);
    delivered = await group.call('delivered');
  }
  return within;
};

export const makeSubjects = (setup: Setup, group: Subscribers, fanout: FanoutTarget) => {
  const { target, dialect } = fanout;
  const { name, port, lastErrors } = target;
  const run = async (seconds: number, at_rate: boolean): Promise<Sample> => {
    const job = { ...dialect, port, count: subscribers, sample_every };
    await group.call('open', job).catch((error: unknown) => {
      throw new Error(`${name}: ${error}\n${lastErrors()}`);
    });
    const meter = startMeter(target.watched, () => setup.partsOf(target));
    const { sent, per_second } = await drive(group, fanout, { seconds, at_rate });
    const metered = { ...meter.stop(), ...meter.cpu(sent) };
    const { delivered, holes, ended, ...latencies } = await group.call('stop');
    const wanted = sent * subscribers;
    if (delivered !== wanted || holes > 0 || ended > 0) {
      const found = `${delivered} of ${wanted} delivered, ${holes} holes, ${ended} ended`;
      throw new Error(`${name}: ${found}.`);
    }
    return { per_second, ...latencies, ...metered };
  };
  const { seconds, quick } = setup.context;
  const warmUp = () => run(quick ? 1 : 3, false);
  const most: Subject = { name, warmUp, round: () => run(seconds, false) };
  return { most, at_rate: { name: `${name}_at_${rate}`, round: () => run(seconds, true) } };
};

const startPeerFanout = async (
  setup: Setup,
  name: string,
  dialect: Dialect,
): Promise<FanoutTarget> => {
  const target = await startPeer<FanoutHandlers>(setup, { name, module: 'fanout' });
  // Not awaited, because a peer sends all these events in one turn while the round continues.
  const publish = (events: readonly Numbered[]) => void target.call('publish', events);
  return { target, dialect, publish };
};

const socketio: Dialect = {
  path: '/socket.io/?EIO=4&transport=websocket',
  hello: ['40'],
  ready: '42["welcome"]',
  ping: { text: '2', pong: '3' },
};

export const bench: Bench = {
  question: `How many event frames per second reach ${subscribers} subscribers, and how late?`,
  figures: {
    service_over_uws: { of: ratioOf('service', 'uws'), min: 0.8 },
    service_over_ws: { of: ratioOf('service', 'ws'), min: 3 },
    service_over_socketio: { of: ratioOf('service', 'socketio'), min: 5 },
    p99_over_uws_at_200: {
      of: ratioOf(`service_at_${rate}`, `uws_at_${rate}`, 'p99_ms'),
      max: 1.5,
    },
  },
  async prepare(context) {
    const { setup, service: target } = await startForum(context, {
      agents: 64,
      questions: 64,
      env: { TRUSTED_PROXIES: '127.0.0.1' },
    });
    const group = startSubscribers(context);
    const emit = await startEmitter(setup, target.sql);
    const event = 'prediction.placed';
    const publish = (events: readonly Numbered[]) => emit(events.map((one) => ({ ...one, event })));
    const [service, uws, ws, io] = [
      { target, dialect: dialectOf('all'), publish },
      await startPeerFanout(setup, 'uws', plain),
      await startPeerFanout(setup, 'ws', plain),
      await startPeerFanout(setup, 'socketio', socketio),
    ].map((target) => makeSubjects(setup, group, target));
    return [
      () => [service!.most, uws!.most, ws!.most, io!.most],
      () => [service!.at_rate, uws!.at_rate],
    ];
  },
};
