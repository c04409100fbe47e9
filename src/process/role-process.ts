import { type ChildProcess, fork } from 'node:child_process';
import { closeSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { cpuTime } from '../boot/processes.mjs';
import { type Config, type RoleName, role_names } from '../config.js';
import { reopenLogs } from '../kit/log.js';
import { type Running, withDeadline } from '../kit/service.js';
import type { Say } from './embedded/data-dir.js';
import { stopProcesses } from './embedded/processes.js';

/**
 * Runs one role in its own process, starts it again whenever it ends, and kills it if it hangs.
 * States: starting → ready → (ended → starting …) → stopping → gone. Over IPC, the role sends
 * `ready`, `failed` and `alive`, the supervisor sends `stop` and `reopen`, and a closed channel
 * tells the role that the supervisor is gone. A role sends `alive` every second while its event
 * loop turns. If it is silent and uses no CPU time for 5 s, it counts as hung and is killed,
 * because no other process does its work. If it is busy but its event loop does not turn, it gets
 * 30 s, because a kill closes its sockets. After that, it is probably in an endless loop.
 */
export interface RoleArgs {
  readonly role: RoleName;
  /** Index among all processes of the service, from 0. */
  readonly index: number;
  /** True if several processes listen on the same port. */
  readonly shared_port: boolean;
  /** Differs per supervisor and index. If another process had this slot before, it is dead. */
  readonly slot?: string;
  /** The log file of the process. If missing, the log goes to standard output. */
  readonly log_file?: string;
}

type FromRole =
  | { readonly type: 'alive' }
  | { readonly type: 'ready'; readonly port?: number }
  | { readonly type: 'failed'; readonly message: string };
interface ToRole {
  readonly type: 'stop' | 'reopen';
}

export interface RoleProcess {
  /** Resolves once the process is ready, with the port that it listens on, if any. */
  readonly ready: Promise<number | undefined>;
  /**
   * Rejects if the role cannot work: it ended several times, each time after a few seconds at most.
   */
  readonly failed: Promise<never>;
  /** Asks the process to stop, and kills it if that takes longer than `within_ms`. */
  stop(within_ms: number): Promise<void>;
  kill(): void;
  /** Makes the process write its log to a new file. */
  reopenLog(): void;
}

interface RoleProcessOptions {
  readonly args: RoleArgs;
  readonly entry: string;
  readonly data_dir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly heap_mb: number;
  /** Opens the output for the process: a file (closed here after the start), or our own output. */
  readonly openOutput: () => number | 'inherit';
  readonly say: Say;
}

/** If a process ends this many times on its own, each time this soon, the service stops. */
const first_tries = 3;
const first_ms = 5_000;

const heartbeat_ms = 1_000;
const silent_ms = 5_000;
const busy_ms = 30_000;
/** Until it is ready, a process may load for this long without a turn of its event loop. */
const starting_ms = 60_000;
const look_ms = 500;

const dataWord = (data_dir: string): string => `--data=${data_dir}`;

const toWords = ({ args, data_dir }: RoleProcessOptions): string[] => [
  `--role=${args.role}`,
  `--index=${args.index}`,
  ...(args.shared_port ? ['--shared-port'] : []),
  ...(args.slot === undefined ? [] : [`--slot=${args.slot}`]),
  ...(args.log_file === undefined ? [] : [`--log-file=${args.log_file}`]),
  dataWord(data_dir),
];

/** Reads the arguments that `toWords` made. Returns null for a process without a role. */
export const readRoleArgs = (words: readonly string[]): RoleArgs | null => {
  const wordOf = (name: string): string | undefined =>
    words.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3);
  const role = role_names.find((name) => name === wordOf('role'));
  if (role === undefined) return null;
  const index = Number(wordOf('index') ?? 0);
  const [slot, log_file] = [wordOf('slot'), wordOf('log-file')];
  const shared_port = words.includes('--shared-port');
  return {
    ...{ role, index, shared_port },
    ...(slot === undefined ? {} : { slot }),
    ...(log_file === undefined ? {} : { log_file }),
  };
};

/** Ends the role processes of a service that was killed, because they would keep the port. */
export const endOrphans = (data_dir: string): Promise<void> => {
  const word = dataWord(data_dir);
  return stopProcesses(
    (command) => command.includes(word) && readRoleArgs(command) !== null,
    [['SIGKILL', 5_000]],
  );
};

export const keepRole = (options: RoleProcessOptions): RoleProcess => {
  const { args, say } = options;
  const name = `The ${args.role} ${args.index} process`;
  const stopped = new AbortController();
  let child: ChildProcess | null = null;
  let tries = 0;
  let was_ready = false;
  let onReady = (_: number | undefined): void => undefined;
  let onFailed = (_: Error): void => undefined;
  const ready = new Promise<number | undefined>((resolve) => {
    onReady = resolve;
  });
  const failed = new Promise<never>((_, reject) => {
    onFailed = reject;
  });
  const live = async (): Promise<string> => {
    const from_ms = performance.now();
    child = forkRole(options);
    const { why, is_by_itself } = await watchRole(child, (port) => {
      was_ready = true;
      onReady(port);
    });
    child = null;
    if (was_ready && performance.now() - from_ms >= first_ms) tries = Number.NEGATIVE_INFINITY;
    // Until the process is ready for the first time, every exit counts, however late it comes.
    if (!was_ready || is_by_itself) tries += 1;
    if (tries >= first_tries) {
      stopped.abort();
      onFailed(new Error(`${name} ended ${tries} times during startup. The last reason: ${why}`));
    }
    return why;
  };
  const done = keepAlive({ name, say, live, stopped: stopped.signal });
  failed.catch(() => undefined);
  const kill = (): void => {
    stopped.abort();
    child?.kill('SIGKILL');
  };
  return {
    ready,
    failed,
    kill,
    reopenLog(): void {
      if (child?.connected) child.send({ type: 'reopen' } satisfies ToRole, () => undefined);
    },
    async stop(within_ms) {
      stopped.abort();
      if (child?.connected) child.send({ type: 'stop' } satisfies ToRole, () => undefined);
      const timer = setTimeout(kill, within_ms);
      await done;
      clearTimeout(timer);
    },
  };
};

const first_backoff_ms = 50;
/** Maximum pause before a restart, no matter how many times the process has ended. */
const longest_backoff_ms = 1_000;
const healthy_ms = 30_000;

interface KeepAliveOptions {
  readonly name: string;
  readonly say: Say;
  readonly stopped: AbortSignal;
  /** Starts the process and waits for its end. Resolves with the reason. */
  readonly live: () => Promise<string>;
}

/** Starts a process again whenever it ends, until it is stopped. */
export const keepAlive = async ({ name, say, stopped, live }: KeepAliveOptions): Promise<void> => {
  for (let backoff_ms = first_backoff_ms; ; ) {
    const started_ms = performance.now();
    const why = await live();
    if (stopped.aborted) return;
    if (performance.now() - started_ms >= healthy_ms) backoff_ms = first_backoff_ms;
    say(`${name} ended (${why}) and is being restarted.`);
    await rest(backoff_ms, stopped);
    if (stopped.aborted) return;
    backoff_ms = Math.min(backoff_ms * 2, longest_backoff_ms);
  }
};

/** Waits for `ms`, or until the signal is aborted. */
export const rest = (ms: number, signal: AbortSignal): Promise<void> =>
  wait(ms, undefined, { signal }).catch(() => undefined);

interface Ending {
  readonly why: string;
  /** False if something else ended the process, such as the kernel when memory is short. */
  readonly is_by_itself: boolean;
}

const watchRole = async (
  child: ChildProcess,
  onStarted: (port: number | undefined) => void,
): Promise<Ending> => {
  let message = '';
  const watchdog = watchHeartbeats(child.pid ?? 0, (why) => {
    message = why;
    child.kill('SIGKILL');
  });
  child.on('message', (said: FromRole) => {
    watchdog.onHeartbeat();
    if (said.type === 'failed') message = said.message;
    else if (said.type === 'ready') {
      watchdog.onReady();
      onStarted(said.port);
    }
  });
  const ending = await whenEnded(child);
  watchdog.stop();
  const is_by_itself = !['SIGKILL', 'SIGTERM'].includes(child.signalCode ?? '');
  return { why: message === '' ? ending : message, is_by_itself };
};

/** Calls `onSilent` once if no heartbeat comes in time. */
const watchHeartbeats = (pid: number, onSilent: (why: string) => void) => {
  let limit_ms = starting_ms;
  let silence_ms = 0;
  /** The part of the silence in which the process used no CPU time. */
  let still_ms = 0;
  let cpu = cpuTime(pid);
  let looked_ms = performance.now();
  const look = (): void => {
    const passed_ms = performance.now() - looked_ms;
    looked_ms += passed_ms;
    // If this process itself hung, that time does not count.
    if (passed_ms >= 4 * look_ms) return;
    const cpu_before = cpu;
    cpu = cpuTime(pid);
    silence_ms += passed_ms;
    if (cpu === cpu_before) still_ms += passed_ms;
    const stands_still = still_ms >= limit_ms;
    if (!stands_still && silence_ms < Math.max(limit_ms, busy_ms)) return;
    clearInterval(timer);
    onSilent(stands_still ? 'it froze' : 'its event loop was blocked');
  };
  const timer = setInterval(look, look_ms).unref();
  return {
    onHeartbeat(): void {
      silence_ms = 0;
      still_ms = 0;
    },
    /** The process has started, so from now on the short limit applies. */
    onReady(): void {
      limit_ms = silent_ms;
    },
    stop: (): void => clearInterval(timer),
  };
};

const forkRole = (options: RoleProcessOptions): ChildProcess => {
  const { entry, env, openOutput, heap_mb } = options;
  const output = openOutput();
  const child = fork(entry, toWords(options), {
    env,
    execArgv: [...process.execArgv, `--max-old-space-size=${heap_mb}`],
    stdio: ['ignore', output, output, 'ipc'],
  });
  if (typeof output === 'number' && output > 2) closeSync(output);
  child.on('error', () => undefined);
  return child;
};

const whenEnded = (child: ChildProcess): Promise<string> =>
  new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
    child.once('error', (error) => {
      if (child.pid === undefined) resolve(error.message);
    });
  });

/** The limits of the supervisor are shorter than this one. */
const stop_ms = 19_000;
/** If the supervisor is gone, the next service may already be waiting for the port. */
const orphan_stop_ms = 1_500;

interface ChildOptions {
  readonly config: Config;
  readonly args: RoleArgs;
  readonly start: (config: Config, args: RoleArgs) => Promise<Running>;
}

/**
 * Runs inside a role process until the supervisor says stop or is gone. Returns the exit code. It
 * ignores signals: Ctrl-C in a terminal reaches every process at once, but the supervisor decides
 * in which order they stop.
 */
export const runRole = async ({ config, args, start }: ChildOptions): Promise<number> => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => undefined);
  }
  process.on('SIGUSR2', reopenLogs);
  process.on('message', (message: ToRole) => {
    if (message.type === 'reopen') reopenLogs();
  });
  const stopping = whenStopped();
  // The supervisor shows this message if the process keeps ending.
  process.on('uncaughtExceptionMonitor', (error) => {
    void sendUp({ type: 'failed', message: describe(error) });
  });
  setInterval(() => void sendUp({ type: 'alive' }), heartbeat_ms).unref();
  let running: Running;
  try {
    running = await start(config, args);
  } catch (error) {
    console.error(error);
    await sendUp({ type: 'failed', message: describe(error) });
    return 1;
  }
  await sendUp({ type: 'ready', ...(running.port === undefined ? {} : { port: running.port }) });
  const limit_ms = (await stopping) + config.DRAIN_DELAY_S * 1_000;
  return withDeadline(running.stop(), limit_ms, `Stopping ${args.role}`).then(
    () => 0,
    () => 1,
  );
};

const describe = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** Resolves when the process must stop, with the maximum time for that in ms. */
const whenStopped = (): Promise<number> =>
  new Promise((resolve) => {
    process.on('message', (message: ToRole) => {
      if (message.type === 'stop') resolve(stop_ms);
    });
    process.on('disconnect', () => resolve(orphan_stop_ms));
    if (!process.connected) resolve(orphan_stop_ms);
  });

/** Resolves when the message was sent, or at once if the supervisor is gone. */
const sendUp = (message: FromRole): Promise<void> =>
  new Promise((resolve) => {
    if (!process.connected || process.send === undefined) return resolve();
    process.send(message, () => resolve());
  });
