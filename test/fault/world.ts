import os from 'node:os';
import type { Test } from 'tap';
import { type Acknowledged, makeLoad } from '../help/load.js';
import { startReceiver } from '../help/receiver.js';
import { type ServiceOptions, startService, type TestService } from '../help/service.js';
import { until } from '../help/until.js';
import { followTopics, listenToLog, type Wish } from './listeners.js';
import { awaitTruth, countRepeats, type Witnesses } from './truth.js';

/**
 * Faults under load: clients predict, listeners follow the log in every way there is, a receiver
 * gets webhooks. In the middle of it something happens, and soon after all of them must agree
 * again. Several faults may strike one service, one after the other.
 */

/** `npm run faults`: faults last longer, and more clients follow. */
export const is_long = process.env['LONG_FAULTS'] === 'true';

/** How long a file may take, or one test of several faults. */
export const fault_limits = { timeout: is_long ? 0 : 580_000 };

export type FaultWorld = Witnesses;

export interface Fault {
  /** What happens; fulfilled when whatever was taken away is there again. */
  readonly strike: (world: FaultWorld, t: Test) => Promise<unknown>;
  readonly per_second?: number;
  /** The log is to be whole so soon after it. */
  readonly recovery_ms?: number;
  /** Everything that follows from the log is to be right so soon after the load. */
  readonly right_ms?: number;
}

export interface WorldOptions extends ServiceOptions {
  /** Bare websockets, each on one topic. */
  readonly followers?: number;
}

/** Calls that can be under way or not yet settled when a signer ends; see `send_limits`. */
const most_repeats = 100;

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

/** Every tenth follows everything, every tenth with a filter, the others one question each. */
const wishOf = ({ questions }: TestService, n: number): Wish => {
  if (n % 10 === 0) return { topic: 'all' };
  if (n % 10 === 1) return { topic: 'all', min_confidence: 60 + (n % 3) * 10 };
  return { topic: `question:${questions[n % questions.length]?.id}` };
};

/** The load rests, and leaves the first agent to the test. */
export const startWorld = async (t: Test, options: WorldOptions = {}): Promise<FaultWorld> => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const service = await startService(t, {
    ...{ agents: 500, questions: 40, ...options },
    env: {
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      WEBHOOK_CA_FILE: receiver.ca_file,
      ...options.env,
    },
  });
  const hook = await addHook(service, receiver.url('/events'));
  const listeners = await listenToLog(t, service.url);
  const wishes = Array.from({ length: options.followers ?? 0 }, (_, n) => wishOf(service, n));
  const followers = await followTopics(t, service.port, wishes);
  const load = makeLoad({ ...service, agents: service.agents.slice(1) });
  return { service, load, receiver, hook, listeners, followers };
};

/** Waits until everything that was acknowledged by now is among the ids. */
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
  await until(what, hasAll, within_ms, 50);
};

/** Waits until everything that was acknowledged by now has reached the receiver. */
export const untilDelivered = ({ load, receiver, hook }: FaultWorld): Promise<void> =>
  untilAmong(
    'what was acknowledged is delivered',
    load.acknowledged,
    () => receiver.of(hook.path).map(({ headers }) => String(headers['webhook-id'])),
    60_000,
  );

/** Waits until the sockets have told of everything that was acknowledged by now. */
export const untilHeard = ({ load, listeners }: FaultWorld, within_ms: number): Promise<void> =>
  untilAmong(
    'the socket tells of all',
    load.acknowledged,
    () => listeners[0]?.heard.map(({ id }) => id) ?? [],
    within_ms,
  );

/** Waits in the long form until the fault has lasted so long. */
export const lastFor = async (from_ms: number, least_ms: number): Promise<void> => {
  if (!is_long) return;
  await until('its time', () => performance.now() - from_ms >= least_ms, least_ms + 10_000);
};

/**
 * How long something may take that takes so long where cores are free: on a machine that has other
 * work, longer by as much as they are shared.
 */
export const allow = (ms: number): number =>
  ms * Math.max(1, (os.loadavg()[0] ?? 0) / os.availableParallelism());

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** Runs the fault and proves that nothing came of it; what was acknowledged meanwhile. */
export const survive = async (
  t: Test,
  world: FaultWorld,
  fault: Fault,
): Promise<readonly Acknowledged[]> => {
  const { per_second = 200, recovery_ms = 10_000, right_ms: right_within = 10_000 } = fault;
  const { load, service, listeners } = world;
  const [first, repeats_before] = [load.acknowledged.length, countRepeats(world)];
  load.resume(per_second);
  await load.more(80);
  const struck_ms = performance.now();
  await fault.strike(world, t);
  const back_ms = performance.now();
  const allowed_ms = allow(recovery_ms);
  await untilHeard(world, Math.max(allowed_ms, 20_000));
  const heard_ms = performance.now();
  t.ok(heard_ms - back_ms < allowed_ms, `the log is whole after ${seconds(heard_ms - back_ms)}`);
  await load.more(120);
  await load.stop();
  const stopped_ms = performance.now();
  const { right_ms, delivered_ms } = await awaitTruth(t, world, right_within);
  const repeats = countRepeats(world) - repeats_before;
  t.ok(repeats <= most_repeats, `${repeats} deliveries were made twice`);
  const acknowledged = load.acknowledged.slice(first);
  const again = acknowledged.filter(({ tries }) => tries > 1);
  t.comment(
    `back after ${seconds(back_ms - struck_ms)}, log whole after ${seconds(heard_ms - struck_ms)}; ` +
      `longest answer ${seconds(Math.max(...acknowledged.map(({ waited_ms }) => waited_ms)))}; ` +
      `after the load all right within ${seconds(right_ms - stopped_ms)}, ` +
      `all delivered within ${seconds(delivered_ms - stopped_ms)}`,
  );
  t.comment(
    `${acknowledged.length} predictions, ${again.length} sent again, ` +
      `${again.filter(({ replayed }) => replayed).length} of them replayed; ` +
      `${repeats} repeated deliveries; ${listeners.map(({ name, ends }) => `${name} ended ${ends()} times`).join(', ')}`,
  );
  for (const line of service.troubles(50)) t.comment(JSON.stringify(line));
  t.same(service.troubles(60), [], 'no process died of an error');
  return acknowledged;
};
