import { type Logger, pino } from 'pino';
import { hideCredentials } from './secrets.js';

const at_exit: (() => void)[] = [];

/** Before the destinations' own listeners, which write the rest when the process ends. */
const flushAtExit = (flush: () => void): void => {
  at_exit.push(flush);
  if (at_exit.length > 1) return;
  process.on('exit', () => {
    for (const one of at_exit) one();
  });
};

/**
 * Hands the lines of one turn of the event loop on together, a warning and what came before it at
 * once: the destination measures all it has buffered with each call, 6 KB to collect for a line.
 */
const gatherLines = (write: (lines: string) => unknown) => {
  let lines = '';
  const flush = (): void => {
    if (lines === '') return;
    write(lines);
    lines = '';
  };
  /** A line that nobody has to see at once. */
  const add = (line: string): void => {
    if (lines === '') setImmediate(flush);
    lines += hideCredentials(line);
  };
  return {
    flush,
    add,
    write(line: string): void {
      add(line);
      if (!line.startsWith('{"level":30')) flush();
    },
  };
};

/**
 * One JSON line a record, buffered and flushed at least every 200 ms. Secrets never get into a
 * record in the first place; the redaction list is the second fence, and keys inside of any text,
 * such as a path, are taken out of every line.
 */
export const makeLog = (level: string, base: Readonly<Record<string, unknown>>): Logger => {
  const gathered = gatherLines((lines) => destination.write(lines));
  flushAtExit(gathered.flush);
  const destination = pino.destination({
    dest: 1,
    sync: false,
    // A write costs as much as the lines in it.
    minLength: 32_768,
    maxWrite: 65_536,
    periodicFlush: 200,
  });
  return pino(
    {
      level,
      base,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: {
        paths: [
          'api_key',
          'token',
          'password',
          'secret',
          'signing_secret',
          'authorization',
          'headers.authorization',
          'headers["x-api-key"]',
          'headers["x-admin-key"]',
          '*.api_key',
          '*.token',
          '*.password',
          '*.secret',
        ],
        censor: '[redacted]',
      },
    },
    gathered,
  );
};

/** Ends a line that has begun as every line of the log does; its members are JSON already. */
export type LineWriter = (rest: string) => void;

/**
 * The short way into the same log, for lines that are written very often; null where none are. What
 * the lines of one millisecond begin with is written once.
 */
export const makeLineWriter = (log: Logger): LineWriter | null => {
  if (!log.isLevelEnabled('info')) return null;
  const inside = log as unknown as Readonly<Record<symbol, unknown>>;
  const always = String(inside[pino.symbols.chindingsSym]);
  const stream = inside[pino.symbols.streamSym] as {
    write(line: string): void;
    add?(line: string): void;
  };
  const add = (stream.add ?? stream.write).bind(stream);
  let last_ms = 0;
  let head = '';
  return (rest) => {
    const now_ms = Date.now();
    if (now_ms !== last_ms) {
      last_ms = now_ms;
      head = `{"level":30,"time":"${new Date(now_ms).toISOString()}"${always}`;
    }
    add(head + rest);
  };
};

/** What of an error goes into a log record: never the values of a statement. */
export const describeError = (error: unknown): Record<string, unknown> =>
  error instanceof Error
    ? {
        err: error.message,
        err_name: error.name,
        ...('code' in error ? { err_code: String(error.code) } : {}),
        stack: error.stack?.split('\n').slice(1, 6).join(' <').trim(),
      }
    : { err: String(error) };
