import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { project_root } from './own-stores.js';
import {
  addTotals,
  begun,
  makeTapReader,
  no_more,
  no_totals,
  type ReadFile,
  type Totals,
} from './tap-reader.js';

/**
 * Runs compiled test files in several processes at once. The files of a folder run in one process,
 * one after another. If a process ends early, the file that it was running has failed, and another
 * process runs the other files of the folder.
 */

/**
 * Files that take a long time, start whole services, or change or measure their process. Each has
 * its own process and starts before the other files.
 */
const alone = [
  'fault/',
  'walk/',
  'clients/',
  'contract/plans',
  'http/native',
  'features/consensus/large',
  'features/log/conformance',
  'features/webhooks/signer-kill',
  'tools/backup',
  'tutorials/forum-for-friends',
  'web/every-page',
];

/** A process without further files ends within this time, unless something was left open. */
const end_ms = 30_000;

export interface RunOptions {
  /** The checkout whose `dist` has the files. Default: this one. */
  readonly root?: string;
  /** Number of processes that run at the same time. */
  readonly at_once: number;
  readonly env: NodeJS.ProcessEnv;
  /** Maximum time for one file. */
  readonly file_ms: number;
  /** Shows comments of files that pass. */
  readonly shows_comments: boolean;
  readonly say: (line: string) => void;
}

export interface Result extends Totals {
  /** Files that did not finish because the run was stopped. */
  readonly not_run: readonly string[];
}

export const nameOf = (file: string): string => file.replace(/^dist\//, '').replace(/\.js$/, '.ts');

/** The file that a process is running. */
interface Running {
  readonly file: string;
  readonly began: number;
  is_loaded: boolean;
}

const isAlone = (file: string): boolean =>
  alone.some((start) => file.startsWith(`dist/test/${start}`));

/** One group for each file that runs alone, and then one per folder, the largest folders first. */
const groupFiles = (files: readonly string[]): string[][] => {
  const groups = new Map<string, string[]>();
  for (const file of files) {
    const key = isAlone(file) ? file : path.dirname(file);
    groups.set(key, [...(groups.get(key) ?? []), file]);
  }
  const isFirst = ([file = '']: readonly string[]): number => Number(isAlone(file));
  return [...groups.values()].sort((a, b) => isFirst(b) - isFirst(a) || b.length - a.length);
};

/**
 * Assigns files to processes. A process without work takes the next folder. If no folder is left,
 * the process takes the second half of the longest folder in progress.
 */
const makeQueue = (files: readonly string[]) => {
  const waiting = groupFiles(files);
  const begun = new Set<string[]>();
  const longest = (): string[] | undefined =>
    [...begun].filter(({ length }) => length > 1).sort((a, b) => b.length - a.length)[0];
  return {
    /** The files for one process. Other processes may later take some of them. */
    next(): string[] | undefined {
      let folder = waiting.shift();
      if (folder === undefined) {
        const other = longest();
        folder = other?.splice(Math.ceil(other.length / 2));
      }
      if (folder !== undefined) begun.add(folder);
      return folder;
    },
    done: (folder: string[]) => begun.delete(folder),
    /** Test files that no process has begun to run. */
    left: (): readonly string[] => [...waiting, ...begun].flat(),
  };
};

const seconds = (since: number): string => `${((performance.now() - since) / 1_000).toFixed(1)} s`;

export const startFiles = (files: readonly string[], options: RunOptions) => {
  const { env, file_ms, say, shows_comments } = options;
  const { root = project_root, at_once } = options;
  const process_file = path.join(root, 'dist', 'test', 'help', 'test-process.js');
  const queue = makeQueue(files);
  const children = new Set<ChildProcess>();
  const cut: string[] = [];
  let totals = no_totals();
  let is_stopped = false;

  const report = (file: string, read: ReadFile, began: number, problem?: string): void => {
    const { failures, comments, left_out } = read;
    const failed = problem === undefined ? read.failed : Math.max(1, read.failed);
    totals = addTotals(totals, { ...read, failed });
    for (const test of left_out) say(`left out: ${test}`);
    say(`${failed > 0 ? 'FAIL' : '  ok'}  ${nameOf(file)}  ${seconds(began)}`);
    for (const line of failed > 0 ? failures : shows_comments ? comments : []) say(line);
    if (problem !== undefined) say(`      ${problem}`);
  };

  /** Runs files of a folder in one process, until the process ends. */
  const runProcess = (folder: string[]): Promise<void> =>
    new Promise((resolve) => {
      const child = spawn(process.execPath, ['--enable-source-maps', process_file], {
        cwd: root,
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      });
      children.add(child);
      /** Null if the process has no files left and should end. */
      let running: Running | null = null;
      let last = '';
      let problem: string | undefined;
      let timer: NodeJS.Timeout | undefined;

      const giveNext = (): void => {
        const file = folder.shift();
        running = file === undefined ? null : { file, began: performance.now(), is_loaded: false };
        if (child.connected) child.send(file ?? no_more, () => undefined);
        clearTimeout(timer);
        timer = setTimeout(
          () => {
            problem =
              file === undefined
                ? 'Its process does not end: something is still open.'
                : `It did not end within ${file_ms / 1_000} s.`;
            child.kill('SIGKILL');
          },
          file === undefined ? end_ms : file_ms,
        );
      };
      const reader = makeTapReader((read) => {
        // Output of a process that is being stopped is not a result.
        if (running === null || is_stopped) return;
        report(running.file, read, running.began);
        last = running.file;
        giveNext();
      });
      child.on('message', (message) => {
        if (message === begun && running !== null) running.is_loaded = true;
      });
      const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
      lines.on('line', reader.line);
      const closed = new Promise((done) => lines.once('close', done));
      child.once('exit', async (code, signal) => {
        await closed;
        clearTimeout(timer);
        children.delete(child);
        const ended = `Its process ended early (${signal ?? `exit code ${code}`}).`;
        if (running === null) {
          if (problem !== undefined) report(last, reader.take(), performance.now(), problem);
        } else if (is_stopped) cut.push(running.file);
        // The last file ended the process before this file was loaded. Run this file elsewhere.
        else if (!running.is_loaded && last !== '') folder.unshift(running.file);
        else report(running.file, reader.take(), running.began, problem ?? ended);
        resolve();
      });
      giveNext();
    });

  const work = async (): Promise<void> => {
    for (let folder = queue.next(); folder !== undefined && !is_stopped; folder = queue.next()) {
      while (folder.length > 0 && !is_stopped) await runProcess(folder);
      if (folder.length === 0) queue.done(folder);
    }
  };

  const workers = Array.from({ length: at_once }, work);
  const result = Promise.all(workers).then(
    (): Result => ({ ...totals, not_run: [...cut, ...queue.left()].sort() }),
  );
  return {
    result,
    /** Ends the processes. The result contains everything that had passed by then. */
    stop(): void {
      is_stopped = true;
      for (const child of children) child.kill('SIGTERM');
    },
  };
};
