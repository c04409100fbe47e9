import { realpathSync } from 'node:fs';
import path from 'node:path';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { lockHolder } from '../boot/processes.mjs';
import { NoAnswer } from '../client/node.js';
import { ConfigError, readConfig } from '../config.js';
import { isOutage } from '../kit/outage.js';
import { readStatus } from '../process/embedded/data-dir.js';

/** What all commands have in common: arguments, exit code, errors in plain words, the terminal. */

export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface Call {
  readonly argv: readonly string[];
  readonly screen: Screen;
  /** Where errors go, if not to the screen. */
  readonly errors?: Screen;
  readonly stop?: AbortSignal;
  /** How long the service may be away before the command gives up. */
  readonly patience_ms?: number;
}

type Options = NonNullable<ParseArgsConfig['options']>;

export interface Command<O extends Options> {
  readonly help: string;
  readonly options: O;
  /** Whether one argument stands without a name; `maybe`: it may be left out. */
  readonly takes_one: boolean | 'maybe';
  /** Said after an error. */
  readonly after_error?: string;
  /** The exit code. Throw an error with one sentence for the person at the terminal. */
  readonly work: (
    values: ReturnType<typeof parseArgs<{ options: O }>>['values'],
    argument: string,
  ) => Promise<number> | number;
}

/** The command cannot go on; the sentence says why. */
export class Stopped extends Error {
  override readonly name = 'Stopped';
}

const system_problems: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EACCES: 'this user may not read or write it',
  EISDIR: 'it is a folder',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
};

const explain = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof NoAnswer) {
    return `Nothing answers; start the service with npm start, or give --url (${error.message}).`;
  }
  const { code = '', path: file } = error as NodeJS.ErrnoException;
  const problem = system_problems[code];
  if (problem !== undefined && file !== undefined) return `${file}: ${problem}.`;
  if (error instanceof ConfigError || !isOutage(error)) return error.message;
  return `Postgres does not answer: ${error.message}.`;
};

export const runCommand = async <const O extends Options>(
  { argv, screen, errors = screen, stop }: Call,
  { help, options, takes_one, after_error, work }: Command<O>,
): Promise<number> => {
  let parsed: ReturnType<typeof parseArgs>;
  try {
    const common = { help: { type: 'boolean' } } as const;
    parsed = parseArgs({
      args: [...argv],
      allowPositionals: takes_one !== false,
      options: { ...common, ...options },
    });
  } catch (error) {
    writeLine(errors, `${error instanceof Error ? error.message : error}\n\n${help}`);
    return 1;
  }
  const { values, positionals } = parsed;
  const is_right = positionals.length === 1 || (takes_one !== true && positionals.length === 0);
  if (values['help'] === true || !is_right) {
    writeLine(screen, help);
    return values['help'] === true ? 0 : 1;
  }
  try {
    return await work(values as Parameters<typeof work>[0], positionals[0] ?? '');
  } catch (error) {
    if (stop?.aborted && !(error instanceof Stopped))
      writeLine(errors, 'Interrupted; run the same command again to go on.');
    else writeLine(errors, [explain(error), after_error].join(' ').trim());
    return 1;
  }
};

export const startCommand = async (
  file: string,
  run: (call: Call) => Promise<number>,
  /** Whether the first Ctrl-C only asks it to end. */
  ends_in_order = false,
): Promise<void> => {
  const [, program = '', ...argv] = process.argv;
  if (realpathSync(program) !== file) return;
  const stop = new AbortController();
  if (ends_in_order) process.once('SIGINT', () => stop.abort());
  const [screen, errors] = [process.stdout, process.stderr];
  process.exitCode = await run({ argv, screen, errors, stop: stop.signal });
};

export const service_options = { url: { type: 'string' } } as const;

const readPlaces = (): { readonly DATA_DIR: string; readonly PORT: number } => {
  try {
    return readConfig();
  } catch (error) {
    // A wrong setting of this folder's service does not keep a tool from another service.
    if (error instanceof ConfigError) return { DATA_DIR: '.data', PORT: 8080 };
    throw error;
  }
};

export const isRunning = (data_dir: string): boolean =>
  lockHolder(path.join(data_dir, 'service.lock')) !== 0;

/** Where the service of this folder listens: while it runs what it says, else what `PORT` says. */
export const localUrl = (): string => {
  const { DATA_DIR, PORT } = readPlaces();
  const { state, url } = readStatus(DATA_DIR);
  if (state === 'running' && url !== undefined && isRunning(DATA_DIR)) return url;
  return `http://127.0.0.1:${PORT === 0 ? 8080 : PORT}`;
};

export const checkUrl = (url: string = localUrl()): string => {
  if (/^https?:\/\//.test(url) && URL.canParse(url)) return url;
  throw new Stopped(`--url takes an address like http://127.0.0.1:8080, not ${url}.`);
};

/**
 * What a terminal may be shown of a text that others wrote: control characters (a line break and a
 * tab aside) and those that turn the direction of the text around them are replaced, so that no
 * name or message moves the cursor, changes colours, rings, or reads otherwise than it is.
 */
export const printable = (text: string): string =>
  text.replace(/(?![\t\n])[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, '\ufffd');

/** Writes one line, or several, that a terminal may be shown. */
export const writeLine = (screen: Screen, line: string): void => {
  screen.write(`${printable(line)}\n`);
};

export interface Progress {
  show(text: string): void;
  /** A line that stays. */
  say(line: string): void;
}

/** How far a command is: in one line of a terminal, elsewhere in a line every few seconds. */
export const makeProgress = (screen: Screen): Progress => {
  const every_ms = screen.isTTY === true ? 100 : 5_000;
  let shown_ms = performance.now();
  let is_drawn = false;
  const clear = (): void => {
    if (is_drawn) screen.write('\r\x1b[2K');
    is_drawn = false;
  };
  return {
    show(text) {
      if (performance.now() - shown_ms < every_ms) return;
      shown_ms = performance.now();
      if (screen.isTTY !== true) return writeLine(screen, text);
      clear();
      screen.write(printable(text).slice(0, (screen.columns ?? 80) - 1));
      is_drawn = true;
    },
    say(line) {
      clear();
      writeLine(screen, line);
    },
  };
};
