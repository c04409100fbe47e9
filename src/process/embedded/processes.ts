import { type SpawnOptions, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { closeSync, readFileSync, statSync } from 'node:fs';
import net from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { findProcesses, startTime } from '../../boot/processes.mjs';
import { openLog, type Say } from './data-dir.js';

/** Starting and stopping a server process, for embedded Postgres and embedded Redis. */

export interface StoreOptions {
  /** The folder that contains the files of the server. */
  readonly data_dir: string;
  readonly say: Say;
}

/** A server that this process started and is responsible for. */
export interface EmbeddedStore {
  readonly url: string;
  readonly pid: number;
  /** Resolves when the server process has ended, for any reason. */
  readonly exited: Promise<void>;
  /** Stops the server, by force if it takes too long. Resolves when it is gone. */
  stop(): Promise<void>;
}

/** The signals to send, and after each signal how long to wait for the end of the process. */
export type StopSteps = readonly (readonly [signal: NodeJS.Signals, wait_ms: number])[];

export const signalProcess = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal);
  } catch {
    // The process has just ended on its own.
  }
};

/** Sends one signal after another until the process is gone. */
export const stopProcess = async (pid: number, steps: StopSteps): Promise<void> => {
  const born = startTime(pid);
  for (const [signal, wait_ms] of steps) {
    if (born === null || startTime(pid) !== born) return;
    signalProcess(pid, signal);
    const deadline = Date.now() + wait_ms;
    while (startTime(pid) === born && Date.now() < deadline) await wait(10);
  }
};

/** Ends all processes whose command line `accepts` returns true for. */
export const stopProcesses = async (
  accepts: (command: readonly string[]) => boolean,
  steps: StopSteps,
): Promise<void> => {
  await Promise.all(findProcesses(accepts).map((pid) => stopProcess(pid, steps)));
};

/** Each server gets its folder as the second argument, which identifies the server. */
export const isServerOf =
  (folder: string) =>
  (command: readonly string[]): boolean =>
    command[2] === folder;

/**
 * A shell of a few hundred kilobytes. When this process is gone, even after kill -9, the shell's
 * standard input closes and the shell ends the server. It checks the command line first, because
 * another process may have the pid by then.
 */
const watcher_script = `
while read -r _; do :; done
words=$(tr '\\0' ' ' < "/proc/$1/cmdline" || ps -o command= -p "$1")
case "$words" in *"$2"*) kill -s "$3" "$1" ;; esac`;

const startWatcher = (pid: number, folder: string, signal: NodeJS.Signals): (() => boolean) => {
  const words = ['store-watcher', String(pid), folder, signal.replace('SIG', '')];
  const stdio = ['pipe', 'ignore', 'ignore'] as const;
  const options = { cwd: '/', detached: true, stdio: [...stdio] };
  const watcher = spawn('sh', ['-c', watcher_script, ...words], options);
  watcher.on('error', () => undefined);
  watcher.unref();
  watcher.stdin?.on('error', () => undefined);
  if (watcher.stdin instanceof net.Socket) watcher.stdin.unref();
  // Killed, because the watcher would end the server if only its input were closed.
  return () => watcher.kill('SIGKILL');
};

interface ServerStart {
  readonly command: string;
  /** The second argument must be the folder of the server. */
  readonly args: readonly string[];
  readonly options: SpawnOptions;
  readonly log_file: string;
  readonly stop_steps: StopSteps;
  readonly ready_ms: number;
  readonly isReady: (pid: number) => boolean | Promise<boolean>;
}

/** Starts a server. Returns it, or the end of its output if it did not start. */
export const startServer = async (
  start: ServerStart,
): Promise<Omit<EmbeddedStore, 'url'> | string> => {
  const { log_file, stop_steps, args } = start;
  const log = openLog(log_file);
  const from = statSync(log_file).size;
  const place = { cwd: '/', detached: true, ...start.options };
  const child = spawn(start.command, args, { stdio: ['ignore', log, log], ...place });
  closeSync(log);
  const pid = child.pid ?? 0;
  let has_ended = false;
  const exited = new Promise<void>((resolve) => {
    const end = (): void => {
      has_ended = true;
      resolve();
    };
    child.once('exit', end);
    // The process could not be started at all.
    child.once('error', end);
  });
  const stop = async (): Promise<void> => {
    // If the process has ended, another one may have its pid by now.
    if (!has_ended) await stopProcess(pid, stop_steps);
    await exited;
  };
  void exited.then(startWatcher(pid, args[1] ?? '', stop_steps[0]?.[0] ?? 'SIGTERM'));
  const deadline = Date.now() + start.ready_ms;
  while (!has_ended && Date.now() < deadline) {
    if ((await start.isReady(pid)) && !has_ended) return { pid, exited, stop };
    await wait(5);
  }
  await stop();
  return lastLines(readFileSync(log_file).subarray(from).toString('utf8'));
};

/** Returns the last non-blank lines of a text, to show with an error. */
export const lastLines = (text: string, count = 6): string =>
  text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(-count)
    .map((line) => `  ${line}`)
    .join('\n');

/** Returns null if nothing listens on the port, otherwise an error code such as EADDRINUSE. */
export const probePort = (port: number, host = '127.0.0.1'): Promise<string | null> =>
  new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'ERROR'));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(null)));
  });

/**
 * Picks a free port below 32768. Systems give higher ports to outgoing connections, so no other
 * program takes this port by accident while a process restarts.
 */
export const pickPort = async (host = '127.0.0.1'): Promise<number> => {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = randomInt(20_000, 32_768);
    if ((await probePort(port, host)) === null) return port;
  }
  throw new Error(`No free port was found on ${host}.`);
};
