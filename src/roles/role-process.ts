import { type ChildProcess, fork } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { findProcesses } from '../boot/processes.mjs';
import { type RoleName, role_names } from '../config.js';
import { type Say, stopProcess } from '../embedded/processes.js';

/**
 * A role process says every second that its event loop turns. One that is silent for 5 s stands
 * still (stopped, or in a loop without end): no job of it may take so long, and nobody else does
 * its work meanwhile.
 */

const beat_ms = 1_000;
const silent_ms = 5_000;
/** Until it is ready a process loads, and may do so in one piece. */
const starting_ms = 60_000;
const look_ms = 500;

/** The side of the role process. */
export const startBeating = (say: () => void): void => {
  setInterval(say, beat_ms).unref();
};

interface Listening {
  heard(): void;
  /** It has started: from now on the short limit counts. */
  ready(): void;
  stop(): void;
}

/** The side of the supervisor: calls `onSilent` once. */
const listenToBeats = (onSilent: () => void): Listening => {
  let limit_ms = starting_ms;
  let silence_ms = 0;
  let looked_ms = performance.now();
  const look = (): void => {
    const now_ms = performance.now();
    const passed_ms = now_ms - looked_ms;
    // What passes while this process stands still itself does not count.
    if (passed_ms < 4 * look_ms) silence_ms += passed_ms;
    looked_ms = now_ms;
    if (silence_ms < limit_ms) return;
    clearInterval(timer);
    onSilent();
  };
  const timer = setInterval(look, look_ms);
  timer.unref();
  return {
    heard() {
      silence_ms = 0;
    },
    ready() {
      limit_ms = silent_ms;
    },
    stop: () => clearInterval(timer),
  };
};

/**
 * One role in a process of its own, started again whenever it ends, and killed when it stands
 * still. States: starting → ready → (ended → starting …) → stopping → gone. The two talk over IPC:
 * `ready`, `failed` and `alive` come up, `stop` goes down, and a closed channel tells the child
 * that nobody is above it any more.
 */
export interface RoleArgs {
  readonly role: RoleName;
  /** Counts all processes of a service, from 0. */
  readonly index: number;
  /** Several processes listen on the same port. */
  readonly shared_port: boolean;
}

export type FromRole =
  | { readonly type: 'alive' }
  | { readonly type: 'ready'; readonly port?: number }
  | { readonly type: 'failed'; readonly message: string };
export interface ToRole {
  readonly type: 'stop';
}

export interface RoleProcess {
  readonly name: string;
  /** The port it listens on, if it does; rejects when it never gets ready. */
  readonly ready: Promise<number | undefined>;
  /** Asks it to stop and ends it by force when it takes longer. */
  stop(within_ms: number): Promise<void>;
  kill(): void;
}

interface RoleProcessOptions {
  readonly args: RoleArgs;
  readonly entry: string;
  readonly data_dir: string;
  readonly env: NodeJS.ProcessEnv;
  /** Most that the heap of the process may hold, in MB. */
  readonly heap_mb: number;
  /** File descriptor of the log, or the output of this process. */
  readonly output: number | 'inherit';
  readonly say: Say;
}

const first_backoff_ms = 100;
/** One that works between its ends is to be missed for no longer. */
const longest_backoff_ms = 1_000;
const healthy_ms = 30_000;
/** So often a process may end before it was ever ready; then the service does not start. */
const first_tries = 3;

const dataWord = (data_dir: string): string => `--data=${data_dir}`;

const toWords = ({ args, data_dir }: RoleProcessOptions): string[] => [
  `--role=${args.role}`,
  `--index=${args.index}`,
  ...(args.shared_port ? ['--shared-port'] : []),
  dataWord(data_dir),
];

/** What `toWords` made; null for a process that is no role's. */
export const readRoleArgs = (words: readonly string[]): RoleArgs | null => {
  const wordOf = (name: string): string | undefined =>
    words.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3);
  const role = role_names.find((name) => name === wordOf('role'));
  if (role === undefined) return null;
  return {
    role,
    index: Number(wordOf('index') ?? 0),
    shared_port: words.includes('--shared-port'),
  };
};

/** Ends the role processes of a service that was killed: they would keep the port. */
export const endOrphans = async (data_dir: string): Promise<void> => {
  const word = dataWord(data_dir);
  const orphans = findProcesses(
    (command) => command.includes(word) && readRoleArgs(command) !== null,
  );
  await Promise.all(orphans.map((pid) => stopProcess(pid, [['SIGKILL', 5_000]])));
};

export const keepRole = (options: RoleProcessOptions): RoleProcess => {
  const { args, say } = options;
  const name = `${args.role} ${args.index}`;
  const first = makeSettled<number | undefined>();
  const stopped = new AbortController();
  let child: ChildProcess | null = null;
  let was_ready = false;

  const runOnce = async (): Promise<{ message: string; lived_ms: number }> => {
    const started = Date.now();
    const running = forkRole(options);
    child = running;
    let message = '';
    const beats = listenToBeats(() => {
      message = 'it stood still';
      running.kill('SIGKILL');
    });
    running.on('message', (said: FromRole) => {
      beats.heard();
      if (said.type === 'failed') message = said.message;
      else if (said.type === 'ready') {
        was_ready = true;
        beats.ready();
        first.resolve(said.port);
      }
    });
    const ending = await whenEnded(running);
    beats.stop();
    child = null;
    return { message: message === '' ? ending : message, lived_ms: Date.now() - started };
  };

  const runOn = async (): Promise<void> => {
    let backoff_ms = first_backoff_ms;
    for (let tries = 1; !stopped.signal.aborted; tries += 1) {
      const { message, lived_ms } = await runOnce();
      if (stopped.signal.aborted) return;
      if (!was_ready && tries >= first_tries) {
        return first.reject(new Error(`The ${name} process does not start: ${message}`));
      }
      if (lived_ms >= healthy_ms) backoff_ms = first_backoff_ms;
      say(`The ${name} process ended (${message}); it is started again.`);
      await wait(backoff_ms, undefined, { signal: stopped.signal }).catch(() => undefined);
      backoff_ms = Math.min(backoff_ms * 2, longest_backoff_ms);
    }
  };

  const done = runOn();
  // Nobody has to wait for it: a stop before it is ready is no failure.
  first.promise.catch(() => undefined);
  const kill = (): void => {
    stopped.abort();
    child?.kill('SIGKILL');
  };
  return {
    name,
    ready: first.promise,
    kill,
    async stop(within_ms) {
      stopped.abort();
      if (child?.connected) child.send({ type: 'stop' } satisfies ToRole, () => undefined);
      const timer = setTimeout(kill, within_ms);
      await done;
      clearTimeout(timer);
    },
  };
};

interface Settled<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

const makeSettled = <T>(): Settled<T> => {
  let resolve: (value: T) => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
};

const forkRole = (options: RoleProcessOptions): ChildProcess => {
  const { entry, env, output, heap_mb } = options;
  const child = fork(entry, toWords(options), {
    env,
    execArgv: [...process.execArgv, `--max-old-space-size=${heap_mb}`],
    stdio: ['ignore', output, output, 'ipc'],
  });
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
