import { setTimeout as delay } from 'node:timers/promises';

/** HTTP calls of the command-line tools to a running service. */

export interface CallParts {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export interface Answer {
  readonly status: number;
  /** The parsed JSON; null when there is none. */
  readonly body: unknown;
}

export interface Caller {
  readonly url: string;
  /**
   * Answers of any status. Waits out a 429 as long as `Retry-After` says, and tries again after
   * a 503 or a lost connection; throws an Unreachable when that has gone on for `patience_ms`.
   */
  call(parts: CallParts): Promise<Answer>;
}

export interface CallerOptions {
  readonly url: string;
  readonly patience_ms: number;
  /** Tells that it is waiting, and for how long. */
  onWait?(ms: number, why: string): void;
}

export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

const call_ms = 30_000;

interface Tried {
  readonly answer?: Answer;
  /** Set where it makes sense to try again. */
  readonly retry?: { readonly after_ms: number; readonly why: string };
}

const parse = (text: string): unknown => {
  try {
    return text === '' ? null : JSON.parse(text);
  } catch {
    return null;
  }
};

/** The reason below "fetch failed", such as ECONNREFUSED. */
const reasonOf = (error: unknown): string => {
  const cause = error instanceof Error ? error.cause : undefined;
  if (typeof cause === 'object' && cause !== null && 'code' in cause) return String(cause.code);
  return error instanceof Error ? error.message : String(error);
};

const tryOnce = async (base: string, parts: CallParts): Promise<Tried> => {
  try {
    const response = await fetch(new URL(parts.path, base), {
      method: parts.method ?? 'GET',
      headers: {
        ...(parts.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...parts.headers,
      },
      ...(parts.body === undefined ? {} : { body: JSON.stringify(parts.body) }),
      signal: AbortSignal.timeout(call_ms),
    });
    const answer = { status: response.status, body: parse(await response.text()) };
    if (response.status !== 429 && response.status !== 503) return { answer };
    const seconds = Number(response.headers.get('retry-after') ?? '1');
    const after_ms = Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : 1000;
    return { answer, retry: { after_ms, why: response.status === 429 ? 'rate limit' : 'busy' } };
  } catch (error) {
    return { retry: { after_ms: 500, why: reasonOf(error) } };
  }
};

export const makeCaller = ({ url, patience_ms, onWait }: CallerOptions): Caller => ({
  url,
  async call(parts) {
    const give_up_ms = performance.now() + patience_ms;
    for (;;) {
      const { answer, retry } = await tryOnce(url, parts);
      if (retry === undefined && answer !== undefined) return answer;
      const { after_ms = 0, why = '' } = retry ?? {};
      if (performance.now() + after_ms > give_up_ms) {
        if (answer !== undefined) return answer;
        throw new Unreachable(why);
      }
      onWait?.(after_ms, why);
      await delay(after_ms);
    }
  },
});

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A member of a JSON answer by its path; undefined where there is none. */
export const pick = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), value);

/** The service's own sentence about a refusal. */
export const sentenceOf = ({ status, body }: Answer): string =>
  typeof pick(body, 'error') === 'string' ? String(pick(body, 'error')) : `status ${status}`;
