import { type Logger, pino } from 'pino';
import { openLogOutput } from './log-output.js';
import { hideCredentials } from './secrets.js';

export interface Log {
  readonly log: Logger;
  /** Lines that could not be written so far. */
  readonly dropped: () => number;
}

/**
 * One JSON line a record, on the standard output and written at least every 200 ms. Secrets never
 * get into a record in the first place; the redaction list is the second fence, and keys inside of
 * any text, such as a path, are taken out of every line.
 */
export const makeLog = (level: string, base: Readonly<Record<string, unknown>>, fd = 1): Log => {
  const output = openLogOutput({
    fd,
    onAgain: (dropped, code) => log.warn({ dropped, code }, 'log: lines were dropped'),
  });
  const log = pino(
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
    { write: (line: string) => output.write(hideCredentials(line)) },
  );
  return { log, dropped: () => output.dropped() };
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
  const stream = inside[pino.symbols.streamSym] as { write(line: string): void };
  let last_ms = 0;
  let head = '';
  return (rest) => {
    const now_ms = Date.now();
    if (now_ms !== last_ms) {
      last_ms = now_ms;
      head = `{"level":30,"time":"${new Date(now_ms).toISOString()}"${always}`;
    }
    stream.write(head + rest);
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
