import { closeSync, fstatSync, openSync, stat, write, writeSync } from 'node:fs';
import { type Logger, pino } from 'pino';

/**
 * Matches API keys (`sk_`) and session tokens (`hs_`), also with a percent-encoded underscore. A
 * client may put one into a path or into `X-Request-Id`, and nothing that is stored or logged may
 * repeat it.
 */
const credential = /(?:sk|hs)(?:_|%5f)[\w-]{20,}/i;
const credentials = new RegExp(credential, 'gi');

export const hasCredential = (text: string): boolean => credential.test(text);

const redacted = [
  ...['api_key', 'token', 'password', 'secret'].flatMap((name) => [name, `*.${name}`]),
  'signing_secret',
  'authorization',
  'headers.authorization',
  'headers["x-api-key"]',
  'headers["x-admin-key"]',
];

/**
 * Writes one JSON line per record to standard output or a file, at least every 200 ms. Records
 * never contain secrets in the first place. The redaction list is a second safeguard, and keys
 * inside any text, such as a path, are removed from every line.
 */
export const makeLog = (
  level: string,
  base: Readonly<Record<string, unknown>>,
  target: number | string = 1,
) => {
  const output = new LogOutput(target, (dropped, code) =>
    log.warn({ dropped, code }, 'log: lines were dropped'),
  );
  const log: Logger = pino(
    {
      level,
      base,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: redacted, censor: '[redacted]' },
    },
    { write: (line: string) => output.write(line.replace(credentials, '[redacted]')) },
  );
  /** `dropped`: number of lines lost since the start. */
  return { log, dropped: () => output.dropped };
};

/** Describes an error for the log, without the values of an SQL statement. */
export const describeError = (error: unknown): Record<string, unknown> =>
  error instanceof Error
    ? {
        err: error.message,
        err_name: error.name,
        ...('code' in error ? { err_code: String(error.code) } : {}),
        stack: error.stack?.split('\n').slice(1, 6).join(' <').trim(),
      }
    : { err: String(error) };

/** Lines are collected for this long before a write. A failed write is retried after this time. */
const every_ms = 200;
/** If a pipe is full, the log waits only this long: the reader will soon empty the pipe. */
const pipe_ms = 10;
/** A write starts early when this many characters are waiting. */
const enough = 32_768;
/** If nothing can be written, the log stores at most this many characters. */
const most = 1_048_576;

/**
 * Returns the lines left to write after `written` bytes. A line that was cut is written again.
 * Other processes use the same file, so a line break first ends the part that is already there.
 */
const fromCut = (lines: Buffer, written: number): Buffer => {
  if (written === 0) return lines;
  const start = lines.lastIndexOf('\n', written - 1) + 1;
  const left = lines.subarray(start);
  return start === written ? left : Buffer.concat([Buffer.from('\n'), left]);
};

/** If somebody moves its file, the log notices within this time. */
const look_ms = 1_000;

const outputs: LogOutput[] = [];

/** Reopens the log files, for example after a rotation. */
export const reopenLogs = (): void => {
  for (const output of outputs) output.reopen();
};

const flushAll = (): void => {
  for (const output of outputs) output.flushSync();
};

/**
 * Writes lines without blocking. (`sonic-boom`, which comes with pino, keeps a process from ever
 * ending if the disk is full.) A failed write (full disk, a pipe without a reader) is retried.
 * Meanwhile up to `most` characters are stored, and further lines are dropped and counted.
 */
export class LogOutput {
  dropped = 0;
  #fd: number;
  /** The path of the file; null for a descriptor that somebody else opened. */
  readonly #file: string | null;
  #is_moved = false;
  readonly #onAgain: (dropped: number, code: string) => void;
  #lines = '';
  /** Bytes that are being written or wait for a retry. */
  #chunk: Buffer = Buffer.alloc(0);
  /** Number of bytes of `#chunk` that have been written. */
  #written = 0;
  #is_writing = false;
  /** True while a flush of collected lines is scheduled. */
  #is_waiting = false;
  #reported = 0;
  /** Error code of the last write; empty if it succeeded. */
  #trouble = '';

  /**
   * Calls `onAgain` when lines can be written again, with the number of lines dropped meanwhile.
   */
  constructor(target: number | string, onAgain: (dropped: number, code: string) => void) {
    this.#file = typeof target === 'string' ? target : null;
    this.#fd = typeof target === 'string' ? openSync(target, 'a', 0o600) : target;
    if (this.#file !== null) setInterval(() => this.#look(this.#file ?? ''), look_ms).unref();
    this.#onAgain = onAgain;
    outputs.push(this);
    if (outputs.length === 1) process.once('exit', flushAll);
  }

  write(line: string): void {
    if (this.#lines.length + line.length > most) {
      this.dropped += 1;
      return;
    }
    this.#lines += line;
    this.#flushLater();
    if (this.#trouble === '' && this.#lines.length >= enough) this.#flush();
  }

  /** Continues in a new file, because the old one was moved or a caller asks for it. */
  reopen(): void {
    this.#is_moved = this.#file !== null;
    if (this.#is_moved && !this.#is_writing) this.#open(this.#file ?? '');
  }

  #look(file: string): void {
    stat(file, (error, found) => {
      const { dev, ino } = fstatSync(this.#fd);
      const is_there = error === null && found.dev === dev && found.ino === ino;
      if (!is_there && (error === null || error.code === 'ENOENT')) this.reopen();
    });
  }

  #open(file: string): void {
    this.#is_moved = false;
    try {
      const fd = openSync(file, 'a', 0o600);
      closeSync(this.#fd);
      this.#fd = fd;
    } catch {
      // Until the next check, the lines go to the old file.
      return;
    }
    this.#chunk = fromCut(this.#chunk, this.#written);
    this.#written = 0;
  }

  #flushLater(): void {
    if (this.#is_waiting) return;
    this.#is_waiting = true;
    setTimeout(() => {
      this.#is_waiting = false;
      this.#flush();
    }, every_ms).unref();
  }

  #flush(): void {
    if (this.#is_writing) return;
    if (this.#chunk.length === 0) {
      this.#chunk = Buffer.from(this.#lines);
      this.#lines = '';
    }
    if (this.#chunk.length === 0) return;
    this.#is_writing = true;
    write(this.#fd, this.#chunk, this.#written, (error, written) => {
      this.#is_writing = false;
      this.#written += written;
      if (this.#is_moved) this.#open(this.#file ?? '');
      if (error !== null) this.#fail(error.code ?? 'unknown');
      else if (this.#written < this.#chunk.length) this.#flush();
      else this.#succeed();
    });
  }

  #fail(code: string): void {
    this.#trouble = code;
    if (code === 'EAGAIN') {
      setTimeout(() => this.#flush(), pipe_ms).unref();
      return;
    }
    this.#chunk = fromCut(this.#chunk, this.#written);
    this.#written = 0;
    this.#flushLater();
  }

  #succeed(): void {
    const code = this.#trouble;
    this.#chunk = Buffer.alloc(0);
    this.#written = 0;
    this.#trouble = '';
    // The stored lines go first. This makes room for the line that says how many were dropped.
    if (code !== '') this.#flush();
    else if (this.#lines !== '') this.#flushLater();
    if (this.dropped > this.#reported) this.#onAgain(this.dropped - this.#reported, code);
    this.#reported = this.dropped;
  }

  /** Writes as much as possible before the process ends. */
  flushSync(): void {
    let rest = Buffer.from(this.#lines);
    if (!this.#is_writing) {
      rest = Buffer.concat([this.#chunk.subarray(this.#written), rest]);
      this.#chunk = Buffer.alloc(0);
      this.#written = 0;
    }
    this.#lines = '';
    for (let patience = 50; rest.length > 0 && patience > 0; patience -= 1) {
      try {
        rest = rest.subarray(writeSync(this.#fd, rest));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pipe_ms);
      }
    }
  }
}
