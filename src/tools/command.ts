import { realpathSync } from 'node:fs';
import path from 'node:path';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { NoAnswer } from '#client/node.js';
import { printable } from '#client/printable.js';
import { exit_codes, sayUnknown } from '../boot/commands.mjs';
import { lockHolder } from '../boot/processes.mjs';
import { ConfigError, readConfig } from '../config.js';
import { isOutage } from '../kit/outage.js';
import { CannotStart } from '../kit/service.js';
import { readStatus } from '../process/embedded/data-dir.js';

/** The common part of all commands: arguments, exit code, errors in plain words, the terminal. */

export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

export interface Call {
  readonly argv: readonly string[];
  readonly screen: Screen;
  /** If set, errors are written here and not to the screen. */
  readonly errors?: Screen;
  readonly stop?: AbortSignal;
  /** How long the service may be unavailable before the command gives up. */
  readonly patience_ms?: number;
}

const common_options = {
  help: { type: 'boolean', short: 'h' },
  json: { type: 'boolean' },
} as const;

type Options = NonNullable<ParseArgsConfig['options']>;

/** The result of a command: its exit code, and the content of the `--json` document. */
export interface Outcome {
  readonly code: number;
  readonly result: Readonly<Record<string, unknown>>;
}

interface WorkCall extends Call {
  /** Writes the document of `--json` now instead of at the end. */
  report(result: Outcome['result']): void;
}

export interface Command<O extends Options> {
  readonly help: string;
  readonly options: O;
  /** Minimum and maximum number of positional arguments. */
  readonly takes?: readonly [least: number, most: number];
  /** Printed after an error. */
  readonly after_error?: string;
  /**
   * Returns the outcome, or only the exit code. To fail, throw an error with one sentence for the
   * person at the terminal. Write progress to the screen of this call, which is standard error with
   * `--json`.
   */
  readonly work: (
    values: ReturnType<typeof parseArgs<{ options: O & typeof common_options }>>['values'],
    args: readonly string[],
    call: WorkCall,
  ) => Promise<Outcome | number> | Outcome | number;
}

/** The command cannot continue. The sentence says why. */
export class Stopped extends Error {
  override readonly name = 'Stopped';
  constructor(
    sentence: string,
    readonly code: number = exit_codes.failed,
  ) {
    super(sentence);
  }
}

/** An argument or a setting is wrong. The user has to change the command or the setting. */
export const wrongUsage = (sentence: string): Stopped => new Stopped(sentence, exit_codes.usage);

/** Postgres, Redis or the service is unavailable. The same command may work later. */
export const unreachable = (sentence: string): Stopped =>
  new Stopped(sentence, exit_codes.unreachable);

/** Returns the first argument of a command that has actions. Throws for any unknown action. */
export const readAction = <const A extends string>(typed: string, actions: readonly A[]): A => {
  const action = actions.find((name) => name === typed);
  if (action === undefined) throw wrongUsage(sayUnknown('action', typed, actions));
  return action;
};

const system_problems: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  EACCES: 'this user may not read or write it',
  EISDIR: 'it is a folder',
  ENOSPC: 'the disk is full',
  EROFS: 'the file system is read-only',
};

const explain = (error: unknown): Pick<Stopped, 'message' | 'code'> => {
  const { failed, usage, unreachable: away } = exit_codes;
  if (!(error instanceof Error)) return { message: String(error), code: failed };
  if (error instanceof Stopped) return error;
  if (error instanceof ConfigError || error instanceof CannotStart) {
    return { message: error.message, code: usage };
  }
  if (error instanceof NoAnswer) {
    const message = `Nothing answers. Start the service with npm start, or give --url (${error.message}).`;
    return { message, code: away };
  }
  const { code = '', path: file } = error as NodeJS.ErrnoException;
  const problem = system_problems[code];
  if (problem !== undefined && file !== undefined) {
    return { message: `${file}: ${problem}.`, code: failed };
  }
  if (!isOutage(error)) return { message: error.message, code: failed };
  return { message: `Postgres does not answer: ${error.message}.`, code: away };
};

/** Returns the options and arguments. Throws an error with one sentence. */
const readArguments = (
  argv: readonly string[],
  options: Options,
  [least, most]: readonly number[],
) => {
  const known = { ...common_options, ...options };
  try {
    const parsed = parseArgs({ args: [...argv], allowPositionals: true, options: known });
    const { positionals, values } = parsed;
    if (values.help !== true && positionals.length < (least ?? 0)) {
      throw wrongUsage('An argument is missing.');
    }
    if (positionals.length > (most ?? 0)) {
      throw wrongUsage(`There is an extra argument: ${positionals[most ?? 0]}.`);
    }
    return parsed;
  } catch (error) {
    if (error instanceof Stopped) throw error;
    const { message } = error as Error;
    const typed = /^Unknown option '(-[^']*)'/.exec(message)?.[1];
    const names = Object.keys(known).map((name) => `--${name}`);
    throw wrongUsage(typed === undefined ? message : sayUnknown('option', typed, names));
  }
};

export const runCommand = async <const O extends Options>(
  call: Call,
  { help, options, takes = [0, 0], after_error, work }: Command<O>,
): Promise<number> => {
  const { argv, screen, errors = screen, stop } = call;
  const is_json = argv.includes('--json');
  let is_reported = !is_json;
  const end = (code: number, result: Outcome['result']): number => {
    const document = { ok: code === exit_codes.ok, exit_code: code, ...result };
    if (!is_reported) screen.write(`${JSON.stringify(document)}\n`);
    is_reported = true;
    return code;
  };
  const fail = (code: number, error: string): number => {
    writeLine(errors, error);
    return end(code, { error });
  };
  let parsed: ReturnType<typeof readArguments>;
  try {
    parsed = readArguments(argv, options, takes);
  } catch (error) {
    const { message } = error as Error;
    writeLine(errors, `${message}\n\n${help}`);
    return end(exit_codes.usage, { error: message });
  }
  const { values, positionals } = parsed;
  if (values['help'] === true) {
    screen.write(`${help}\n`);
    return exit_codes.ok;
  }
  try {
    const report = (result: Outcome['result']): void => void end(exit_codes.ok, result);
    const own = { ...call, screen: is_json ? errors : screen, report };
    const outcome = await work(values as Parameters<typeof work>[0], positionals, own);
    return typeof outcome === 'number' ? end(outcome, {}) : end(outcome.code, outcome.result);
  } catch (error) {
    if (stop?.aborted && !(error instanceof Stopped)) {
      return fail(exit_codes.failed, 'Interrupted. Run the same command again to continue.');
    }
    const { message, code } = explain(error);
    return fail(code, [message, after_error].join(' ').trim());
  }
};

export const startCommand = async (
  file: string,
  run: (call: Call) => Promise<number>,
  /** True if the first Ctrl-C only asks the command to end. */
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

/** Returns the settings of this folder's service. */
export const readPlaces = (): { readonly DATA_DIR: string; readonly PORT: number } => {
  try {
    return readConfig();
  } catch (error) {
    // A wrong setting of this folder's service must not keep a tool from using another service.
    if (error instanceof ConfigError) return { DATA_DIR: '.data', PORT: 8080 };
    throw error;
  }
};

export const isRunning = (data_dir: string): boolean =>
  lockHolder(path.join(data_dir, 'service.lock')) !== 0;

/**
 * Returns the address of this folder's service. While the service does not run, the address is made
 * from `PORT`.
 */
export const localUrl = (): string => {
  const { DATA_DIR, PORT } = readPlaces();
  const { state, url } = readStatus(DATA_DIR);
  if (state === 'running' && url !== undefined && isRunning(DATA_DIR)) return url;
  return `http://127.0.0.1:${PORT === 0 ? 8080 : PORT}`;
};

export const checkUrl = (url: string = localUrl()): string => {
  if (/^https?:\/\//.test(url) && URL.canParse(url)) return url.replace(/\/+$/, '');
  throw wrongUsage(`--url must be an address like http://127.0.0.1:8080, not ${url}.`);
};

/** Writes one or more lines, made safe for a terminal. */
export const writeLine = (screen: Screen, line: string): void => {
  screen.write(`${printable(line)}\n`);
};

export interface Progress {
  show(text: string): void;
  /** Prints a line that stays on the screen. */
  say(line: string): void;
}

/** Shows a command's progress: in a terminal on one line, elsewhere as a line every few seconds. */
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
