import os from 'node:os';
import type { Test } from 'tap';
import { type Load, startLoad } from './load.js';
import { listenToLog } from './log-listener.js';
import { startReceiver } from './receiver.js';
import { type ServiceOptions, startService, type TestService } from './service.js';
import { awaitTruth, countRepeats, type Hook, type Witnesses } from './truth.js';
import { until } from './until.js';

/**
 * One fault under load: clients predict, a listener follows the log on a socket, a receiver gets
 * webhooks; in the middle of it something happens, and soon after all of them must agree again.
 */

export interface FaultWorld extends Witnesses {
  readonly load: Load;
}

export interface Fault {
  /** What happens; fulfilled when whatever was taken away is there again. */
  readonly strike: (world: FaultWorld) => Promise<void>;
  readonly service?: ServiceOptions;
  readonly per_second?: number;
  /** Answers before the fault, and after it is over. */
  readonly before?: number;
  readonly after?: number;
  /** The log is to be whole so soon after it; 10 s unless told. */
  readonly recovery_ms?: number;
  /** Everything that follows from the log is to be right so soon after the load; 10 s. */
  readonly right_ms?: number;
}

const usual_recovery_ms = 10_000;
/** Calls that can be under way or not yet settled when a signer ends; see `send_limits`. */
export const most_repeats = 100;

const addHook = async ({ url, agents }: TestService, target: string): Promise<Hook> => {
  const answer = await fetch(`${url}/api/webhooks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': agents[0]?.key ?? '' },
    body: JSON.stringify({ url: target, events: ['prediction.placed'] }),
  });
  if (answer.status !== 201) throw new Error(`no webhook: ${await answer.text()}`);
  const { id, secret } = (await answer.json()) as { id: string; secret: string };
  return { id, secret, path: new URL(target).pathname };
};

export const makeFaultWorld = async (
  t: Test,
  options: ServiceOptions = {},
): Promise<Omit<FaultWorld, 'load'>> => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const service = await startService(t, {
    ...options,
    env: {
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      WEBHOOK_CA_FILE: receiver.ca_file,
      ...options.env,
    },
  });
  const hook = await addHook(service, receiver.url('/events'));
  const listener = await listenToLog(t, service.port);
  return { service, receiver, hook, listener };
};

/** Waits until the socket has told of everything that was acknowledged by now. */
const untilHeard = async ({ load, listener }: FaultWorld, within_ms: number): Promise<void> => {
  const missing = new Set(load.acknowledged.map(({ event_id }) => event_id));
  let looked = 0;
  const look = (): boolean => {
    for (const { id } of listener.heard.slice(looked)) missing.delete(id);
    looked = listener.heard.length;
    return missing.size === 0;
  };
  await until('the socket tells of all', look, within_ms);
};

/**
 * How long something may take that takes so long where cores are free: on a machine that has other
 * work, longer by as much as they are shared.
 */
export const allow = (ms: number): number =>
  ms * Math.max(1, (os.loadavg()[0] ?? 0) / os.availableParallelism());

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

/** Runs the fault and proves that nothing came of it; says how long the recovery took. */
export const survive = async (t: Test, fault: Fault): Promise<FaultWorld> => {
  const { before = 300, after = 400, per_second = 300 } = fault;
  const { recovery_ms = usual_recovery_ms, right_ms: right_within = usual_recovery_ms } = fault;
  const parts = await makeFaultWorld(t, fault.service);
  const { service, listener } = parts;
  const load = startLoad({ ...service, per_second });
  const world: FaultWorld = { ...parts, load };
  await load.reach(before);
  const struck_ms = performance.now();
  await fault.strike(world);
  const back_ms = performance.now();
  const allowed_ms = allow(recovery_ms);
  await untilHeard(world, Math.max(allowed_ms, 20_000));
  const heard_ms = performance.now();
  const whole_ms = heard_ms - back_ms;
  t.ok(whole_ms < allowed_ms, `the log is whole again after ${seconds(whole_ms)}`);
  await load.reach(load.acknowledged.length + after);
  await load.stop();
  const stopped_ms = performance.now();
  const { right_ms, delivered_ms } = await awaitTruth(t, world, right_within);
  const repeats = countRepeats(world);
  t.ok(repeats <= most_repeats, `${repeats} deliveries were made twice`);
  const retried = load.acknowledged.filter(({ tries }) => tries > 1);
  t.comment(
    `back after ${seconds(back_ms - struck_ms)}, log whole after ${seconds(heard_ms - struck_ms)}; ` +
      `longest answer ${seconds(load.longestWait())}; ` +
      `after the load all right within ${seconds(right_ms - stopped_ms)}, ` +
      `all delivered within ${seconds(delivered_ms - stopped_ms)}`,
  );
  t.comment(
    `${load.acknowledged.length} predictions, ${retried.length} sent again, ` +
      `${retried.filter(({ replayed }) => replayed).length} of them replayed; ` +
      `${repeats} repeated deliveries; the socket ended ${listener.ends.length} times`,
  );
  const grave = service.troubles().filter(({ level }) => level >= 50);
  for (const line of grave) t.comment(JSON.stringify(line));
  t.same(
    grave.filter(({ level }) => level >= 60),
    [],
    'no process died of an error',
  );
  return world;
};
