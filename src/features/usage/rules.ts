import type { CallsWire } from './schema.js';

/** How an agent's calls are stored: counts per hour, and its last call and last error as text. */

export interface CountedCall {
  readonly at: Date;
  readonly method: string;
  readonly route: string;
  readonly status: number;
  /** Error codes of the refusal, or of the refused items of a batch. */
  readonly codes: readonly string[];
}

/** `last` and `last_error` become text when the counts are written, not on each call. */
export interface Counted {
  calls: number;
  readonly errors: Map<string, number>;
  last: CountedCall | null;
  last_error: CountedCall | null;
}

export const makeCounted = (): Counted => ({
  calls: 0,
  errors: new Map(),
  last: null,
  last_error: null,
});

/** How long the last call is shown. */
export const kept_s = 7 * 86_400;
const hours_shown = 24;
const hour_ms = 3_600_000;

/** Hours since 1970. */
const hourOf = (at: Date): number => Math.floor(at.getTime() / hour_ms);
/** Returns the first of the 24 hours that are shown. The last one is the current hour. */
export const oldestHour = (now: Date): number => hourOf(now) - hours_shown + 1;

export const addCall = (counted: Counted, call: CountedCall): void => {
  counted.calls += 1;
  counted.last = call;
  if (call.codes.length > 0) counted.last_error = call;
  for (const code of call.codes) counted.errors.set(code, (counted.errors.get(code) ?? 0) + 1);
};

const lastText = ({ at, method, route, status }: CountedCall): string =>
  [at.toISOString(), method, route, status].join(' ');

const errorText = ({ at, route, codes }: CountedCall): string =>
  [at.toISOString(), route, codes.at(-1)].join(' ');

/** Returns the changes to an agent's hash as JSON, for the script. */
export const changeOf = ({ calls, errors, last, last_error }: Counted, now: Date): string => {
  const counts: (readonly [string, number])[] = [['calls', calls], ...errors];
  const add = counts.map(([name, count]) => [`${hourOf(now)}:${name}`, count]);
  const put = {
    ...(last === null ? {} : { last: lastText(last) }),
    ...(last_error === null ? {} : { error: errorText(last_error) }),
  };
  return JSON.stringify({ add: Object.fromEntries(add), put });
};

const readLast = (text: string | undefined): CallsWire['last'] => {
  if (text === undefined) return null;
  const [at = '', method = '', route = '', status] = text.split(' ');
  return { at, method, route, status: Number(status) };
};

const readLastError = (text: string | undefined): CallsWire['last_error'] => {
  if (text === undefined) return null;
  const [at = '', route = '', code = ''] = text.split(' ');
  return { at, route, code };
};

/** Reads the figures of a hash, without hours that are too old. */
export const readCalls = (hash: Readonly<Record<string, string>>, now: Date): CallsWire => {
  const oldest = oldestHour(now);
  const counts = new Map<string, number>();
  for (const [field, count] of Object.entries(hash)) {
    const [hour, name] = field.split(':');
    if (name === undefined || Number(hour) < oldest) continue;
    counts.set(name, (counts.get(name) ?? 0) + Number(count));
  }
  const count = counts.get('calls') ?? 0;
  counts.delete('calls');
  const errors_by_code = [...counts]
    .map(([code, count]) => ({ code, count }))
    .toSorted((one, other) => other.count - one.count);
  const begin = new Date(oldest * hour_ms).toISOString();
  const { since } = hash;
  return {
    since: since !== undefined && since < begin ? begin : (since ?? null),
    count,
    errors: errors_by_code.reduce((sum, one) => sum + one.count, 0),
    errors_by_code,
    last: readLast(hash['last']),
    last_error: readLastError(hash['error']),
  };
};
