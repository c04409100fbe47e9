import type { Config } from '../config.js';
import { type Running, withDeadline } from '../kit/service.js';
import type { FromRole, RoleArgs, ToRole } from './role-process.js';
import { startBeating } from './role-process.js';

/**
 * The inside of a role process. It obeys the supervisor alone: signals are ignored, because a
 * terminal's Ctrl-C reaches every process at once while the order of the end is the supervisor's.
 */
export interface ChildOptions {
  readonly config: Config;
  readonly args: RoleArgs;
  readonly start: (config: Config, args: RoleArgs) => Promise<Running>;
}

/** The supervisor has its own limit, below this one. */
const stop_ms = 19_000;
/** Without a supervisor the next start is already waiting for the port. */
const orphan_stop_ms = 1_500;

/** Runs until the supervisor says stop or is gone; the exit code. */
export const runRole = async ({ config, args, start }: ChildOptions): Promise<number> => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => undefined);
  }
  const told = whenTold();
  startBeating(() => void say({ type: 'alive' }));
  let running: Running;
  try {
    running = await start(config, args);
  } catch (error) {
    console.error(error);
    await say({ type: 'failed', message: error instanceof Error ? error.message : String(error) });
    return 1;
  }
  await say({ type: 'ready', ...(running.port === undefined ? {} : { port: running.port }) });
  const limit_ms = await told;
  const name = `Stopping ${args.role}`;
  return withDeadline(running.stop(), limit_ms, name).then(
    () => 0,
    () => 1,
  );
};

const whenTold = (): Promise<number> =>
  new Promise((resolve) => {
    process.on('message', (message: ToRole) => {
      if (message.type === 'stop') resolve(stop_ms);
    });
    process.on('disconnect', () => resolve(orphan_stop_ms));
    if (!process.connected) resolve(orphan_stop_ms);
  });

/** Fulfilled when the message is on its way, or when nobody is there to hear it. */
const say = (message: FromRole): Promise<void> =>
  new Promise((resolve) => {
    if (!process.connected || process.send === undefined) return resolve();
    process.send(message, () => resolve());
  });
