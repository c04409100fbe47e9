import { closeSync, fstatSync, openSync, stat, write, writeSync } from 'node:fs';
import { type Logger, pino } from 'pino';

/**
 * API keys (`sk_`) and session tokens (`hs_`), also with the underscore percent-encoded. A client
 * may put one into a path or into `X-Request-Id`; nothing that is written down may repeat it.
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
 * One JSON line a record, on the standard output or into a file, and written at least every 200 ms. Secrets never
 * get into a record in the first place; the redaction list is the second fence, and keys inside of
 * any text, such as a path, are taken out of every line.
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
  /** `dropped`: lines that could not be written so far. */
  return { log, dropped: () => output.dropped };
};

/** An error as a log record: never the values of a statement. */
export const describeError = (error: unknown): Record<string, unknown> =>
  error instanceof Error
    ? {
        err: error.message,
        err_name: error.name,
        ...('code' in error ? { err_code: String(error.code) } : {}),
        stack: error.stack?.split('\n').slice(1, 6).join(' <').trim(),
      }
    : { err: String(error) };

/** Lines gathered for this time are written, and what failed is tried again after it. */
const every_ms = 200;
/** The same for a full pipe, which somebody is reading. */
const pipe_ms = 10;
/** This many characters are written at once. */
const enough = 32_768;
/** Most characters kept while nothing can be written. */
const most = 1_048_576;

/**
 * What is left of lines after so many bytes, from the beginning of the line that was cut: other
 * processes write to the same file, so a line break ends what is there of it.
 */
const fromCut = (lines: Buffer, written: number): Buffer => {
  if (written === 0) return lines;
  const start = lines.lastIndexOf('\n', written - 1) + 1;
  const left = lines.subarray(start);
  return start === written ? left : Buffer.concat([Buffer.from('\n'), left]);
};

/** A file that was moved away is missed within this time. */
const look_ms = 1_000;

const outputs: LogOutput[] = [];

/** Opens the files of logs again, as after a rotation. */
export const reopenLogs = (): void => {
  for (const output of outputs) output.reopen();
};

const flushAll = (): void => {
  for (const output of outputs) output.flushSync();
};

/**
 * Writes lines without making anybody wait. (`sonic-boom`, which pino brings, blocks the end of a
 * process for ever when the disk is full.) A failed write (the disk is full, nobody reads the
 * pipe) is tried again; meanwhile `most` is kept, and further lines are dropped and counted.
 */
export class LogOutput {
  dropped = 0;
  #fd: number;
  /** Null: a descriptor that somebody else opened. */
  readonly #file: string | null;
  #is_moved = false;
  readonly #onAgain: (dropped: number, code: string) => void;
  #lines = '';
  /** Being written, or to be tried again. */
  #chunk: Buffer = Buffer.alloc(0);
  /** Bytes of it that are written. */
  #written = 0;
  #is_writing = false;
  /** For what is gathered until a flush that is due. */
  #is_waiting = false;
  #reported = 0;
  /** Why the last write failed; empty when it did not. */
  #trouble = '';

  /** `onAgain`: lines can be written again, and this many had to be dropped. */
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

  /** The file was moved away, or somebody says so: the next lines go into a new one. */
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
      // The old file takes the lines until the next look.
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
    // The kept lines go first, and leave room for the line that says how many were dropped.
    if (code !== '') this.#flush();
    else if (this.#lines !== '') this.#flushLater();
    if (this.dropped > this.#reported) this.#onAgain(this.dropped - this.#reported, code);
    this.#reported = this.dropped;
  }

  /** Writes what it can, now: for the end of the process. */
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
