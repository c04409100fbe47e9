import { setTimeout as wait } from 'node:timers/promises';
import type { Test } from 'tap';
import { startTime } from '../../src/boot/processes.mjs';
import { type Acknowledged, makeLoad } from '../help/load.js';
import { startReceiver } from '../help/receiver.js';
import { type ServiceOptions, startService, type TestService } from '../help/service.js';
import { allow, until } from '../help/until.js';
import { startListeners, type Wish } from './listeners.js';
import { startMembers } from './members.js';
import { awaitTruth, countRepeats, deliveredIds, type Witnesses } from './truth.js';

/**
 * Faults under load. Clients predict, listeners follow the log over every transport, members share
 * a consumer, and a receiver gets webhooks. Then a fault occurs. Soon after it, all of them must
 * agree again. Several faults strike one service, one after another, while the load continues.
 */

/** Set by `npm run faults`: longer faults, more clients, and a separate check after each fault. */
export const is_long = process.env['LONG_FAULTS'] === 'true';

/** Maximum duration of a file, or of one test with several faults. */
export const fault_limits = { timeout: is_long ? 0 : 580_000 };

export type FaultWorld = Witnesses;

export interface Fault {
  /** Causes the fault. Resolves when everything that was taken away is back. */
  readonly strike: (world: FaultWorld, t: Test) => Promise<unknown>;
  /** Requests per second from all clients together. Default: 100. */
  readonly per_second?: number;
  /** The log must be complete within this time after the fault. */
  readonly recovery_ms?: number;
  /** True if some clients must have retried. */
  readonly is_noticed?: true;
}

export interface WorldOptions extends ServiceOptions {
  /** Plain websockets, each on one topic. */
  readonly followers?: number;
}

/** Maximum number of unfinished or unsettled calls when a signer ends. See `send_limits`. */
const max_repeats = 100;

const addHook = async ({ url, agents }: TestService, target: string) => {
  const response = await fetch(`${url}/api/webhooks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': agents[0]?.key ?? '' },
    body: JSON.stringify({ url: target, events: ['prediction.placed'] }),
  });
  if (response.status !== 201) throw new Error(`no webhook: ${await response.text()}`);
  const { id, secret } = (await response.json()) as { id: string; secret: string };
  return { id, secret, path: new URL(target).pathname };
};

/** One follower in ten gets everything, one in ten uses a filter. The others get one question. */
const wishOf = ({ questions }: TestService, n: number): Wish => {
  if (n % 10 === 0) return { topic: 'all' };
  if (n % 10 === 1) return { topic: 'all', min_confidence: 60 + (n % 3) * 10 };
  return { topic: `question:${questions[n % questions.length]?.id}` };
};

/** Starts everything with the load still paused. The load does not use the first agent. */
export const startWorld = async (t: Test, options: WorldOptions = {}): Promise<FaultWorld> => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const service = await startService(t, {
    agents: 500,
    questions: 100,
    ...options,
    env: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.ca_file, ...options.env },
  });
  const hook = await addHook(service, receiver.url('/events'));
  const wishes = Array.from({ length: options.followers ?? 0 }, (_, n) => wishOf(service, n));
  const listeners = startListeners(t, service.url, wishes);
  const load = makeLoad({ ...service, agents: service.agents.slice(1) });
  const members = await startMembers(t, service);
  return { service, load, receiver, hook, listeners, members };
};

/** Waits until the ids include every event acknowledged so far. */
const untilAmong = async (
  what: string,
  acknowledged: readonly Acknowledged[],
  ids: () => readonly string[],
  within_ms: number,
): Promise<void> => {
  const wanted = acknowledged.map(({ event_id }) => event_id);
  const hasAll = (): boolean => {
    const found = new Set(ids());
    return wanted.every((id) => found.has(id));
  };
  await until(what, hasAll, within_ms, 200);
};

/** Waits until every event acknowledged so far has reached the receiver. */
export const untilDelivered = (world: FaultWorld): Promise<void> =>
  untilAmong(
    'what was acknowledged is delivered',
    world.load.acknowledged,
    () => deliveredIds(world),
    allow(60_000),
  );

/** Waits until the socket has sent every event acknowledged so far. */
export const untilHeard = ({ load, listeners }: FaultWorld, within_ms: number): Promise<void> =>
  untilAmong(
    'the socket sends all',
    load.acknowledged,
    () => listeners[0]?.heard.map(({ id }) => id) ?? [],
    within_ms,
  );

/** The active relay and its host. Waits until a living relay reports that it is active. */
export const activeRelay = ({ hosts }: TestService) =>
  until(
    'an active relay',
    () => {
      const all = hosts.flatMap((host) =>
        host.log().flatMap(({ msg, fence, pid }) => {
          return msg === 'relay: active' ? [{ host, fence: Number(fence), pid: Number(pid) }] : [];
        }),
      );
      const newest = all.toSorted((a, b) => b.fence - a.fence)[0];
      return newest !== undefined && startTime(newest.pid) !== null && newest;
    },
    20_000,
    50,
  );

/** In the long form, waits until the fault has lasted this long. */
export const lastFor = async (from_ms: number, min_ms: number): Promise<void> => {
  if (!is_long) return;
  await until('its time', () => performance.now() - from_ms >= min_ms, min_ms + 10_000);
};

/** Ways in which the stream in Redis loses data. */
export const streamLosses = ({
  redis,
  prefix,
}: TestService): readonly (() => Promise<unknown>)[] => {
  const key = `${prefix}:{log}:events`;
  return [
    () => redis.del(key),
    () => redis.xgroup('DESTROY', key, 'signers'),
    async () => {
      const tail = await redis.xrevrange(key, '+', '-', 'COUNT', 50);
      await redis.xdel(key, ...tail.map(([id]) => id));
    },
    () => redis.xtrim(key, 'MAXLEN', 0),
  ];
};

const reads_every_ms = 50;

/** Runs the fault while pages and clients read as usual. */
export const whileReading = async (
  t: Test,
  { url, questions, agents }: TestService,
  work: () => Promise<void>,
): Promise<void> => {
  const paths = [
    '/api/questions',
    `/api/questions/${questions[0]?.id}`,
    `/api/questions/${questions[1]?.id}/consensus`,
    `/api/questions/${questions[2]?.id}/predictions`,
    '/api/leaderboard',
    '/api/me',
  ];
  const headers = { 'x-api-key': agents[0]?.key ?? '' };
  const failed: string[] = [];
  let count = 0;
  let is_over = false;
  const read = async (): Promise<void> => {
    for (; !is_over; count += 1) {
      const path = paths[count % paths.length] ?? '';
      try {
        const signal = AbortSignal.timeout(10_000);
        const answer = await fetch(url + path, { headers, signal });
        await answer.text();
        if (answer.status !== 200) failed.push(`${path}: ${answer.status}`);
      } catch (error) {
        failed.push(`${path}: ${String(error)}`);
      }
      await wait(reads_every_ms);
    }
  };
  const reading = read();
  await work();
  is_over = true;
  await reading;
  t.same(failed, [], `${count} reads went on`);
};

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** Runs the fault under load. Everything acknowledged must soon be in the log. */
const survive = async (t: Test, world: FaultWorld, fault: Fault): Promise<void> => {
  const { recovery_ms = 10_000 } = fault;
  const { load } = world;
  const first = load.acknowledged.length;
  await load.more(40);
  const struck_ms = performance.now();
  await fault.strike(world, t);
  const back_ms = performance.now();
  const allowed_ms = allow(recovery_ms);
  await untilHeard(world, Math.max(allowed_ms, 20_000));
  const heard_ms = performance.now();
  t.ok(heard_ms - back_ms < allowed_ms, `the log is whole after ${seconds(heard_ms - back_ms)}`);
  await load.more(60);
  const acknowledged = load.acknowledged.slice(first);
  const again = acknowledged.filter(({ tries }) => tries > 1);
  if (fault.is_noticed) t.ok(again.length > 0, 'clients noticed');
  t.comment(
    `back after ${seconds(back_ms - struck_ms)}, log whole after ${seconds(heard_ms - struck_ms)}; ` +
      `longest answer ${seconds(Math.max(...acknowledged.map(({ waited_ms }) => waited_ms)))}; ` +
      `${acknowledged.length} predictions, ${again.length} sent again, ` +
      `${again.filter(({ replayed }) => replayed).length} of them replayed`,
  );
};

/** Ends the load, and proves that the faults left no damage. */
const prove = async (t: Test, world: FaultWorld, right_ms: number, most: number): Promise<void> => {
  const { load, service, listeners } = world;
  await load.stop();
  const stopped_ms = performance.now();
  const times = await awaitTruth(t, world, right_ms);
  const repeats = countRepeats(world);
  t.ok(repeats <= most, `${repeats} deliveries were made twice`);
  t.comment(
    `after ${load.acknowledged.length} predictions all right within ` +
      `${seconds(times.right_ms - stopped_ms)}, ` +
      `all delivered within ${seconds(times.delivered_ms - stopped_ms)}; ` +
      listeners
        .slice(0, 3)
        .map(({ name, ends }) => `${name} ended ${ends} times`)
        .join(', '),
  );
  for (const line of service.troubles(50)) t.comment(JSON.stringify(line));
  t.same(service.troubles(60), [], 'no process died of an error');
};

/**
 * Runs faults one after another. Checks everything after the last fault, and in the long form after
 * each fault. Everything derived from the log must be right within `right_ms` after the load.
 */
export const surviveAll = async (
  t: Test,
  world: FaultWorld,
  faults: Readonly<Record<string, Fault>>,
  right_ms = 10_000,
): Promise<void> => {
  let most = 0;
  for (const [name, fault] of Object.entries(faults)) {
    most += max_repeats;
    world.load.resume(fault.per_second ?? 100);
    await t.test(name, fault_limits, async (t) => {
      await survive(t, world, fault);
      if (is_long) await prove(t, world, right_ms, most);
    });
  }
  await t.test('then all is right', (t) => prove(t, world, right_ms, most));
};
