import { type Fault, NoAnswer } from './errors.js';
import type { CallOptions, OperationId } from './types.js';
import { places } from './wire.js';

/**
 * Performs one call, from its values to its answer. It retries only if that is safe:
 *
 *   3xx                  no: the credentials are for this address, and a POST must stay a POST
 *   408, 429             the call was not started; waits for the Retry-After of the answer
 *   409 in progress      an earlier try of this call is still running
 *   502, 503, 504, lost  the call may have taken effect; a POST or PATCH has one Idempotency-Key
 *                        for all its tries, so that a repeat is the same call
 *   unusable             broken or missing JSON, or another content type: the same as lost
 */

export interface CallRequest {
  readonly method: string;
  readonly url: string;
  /** The end of the URL: path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** The type of the expected answer: `json`, a page, no body, or any type except a page. */
  readonly expects: string;
}

export interface CallAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed value if it is JSON, otherwise the text. */
  readonly body: unknown;
}

export interface Retry {
  readonly operation: OperationId;
  readonly tries: number;
  readonly wait_ms: number;
  readonly why: string;
}

export interface CallDefaults {
  readonly base_url: string;
  readonly headers: () => Promise<Readonly<Record<string, string>>>;
  readonly timeout_ms: number;
  readonly patience_ms: number;
  readonly onRetry: ((retry: Retry) => void) | undefined;
}

export interface AnyInput extends CallOptions {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

/** A random time below a limit: `base_ms`, doubled with each try, but at most `max_ms`. */
export const backoff = (tries: number, base_ms: number, max_ms: number): number =>
  Math.random() * Math.min(max_ms, base_ms * 2 ** Math.min(tries, 20));

/** A wait that a service asks for, limited to `max_ms`. 0 if it is negative or not a number. */
export const boundWait = (ms: number, max_ms = 60_000): number =>
  ms > 0 ? Math.min(ms, max_ms) : 0;

const longest_retry_ms = 3_600_000;

/** The wait in a `Retry-After` header, which contains seconds or a date. 0 if it is unusable. */
export const retryAfterMs = (headers: Headers): number => {
  const text = headers.get('retry-after') ?? '';
  const seconds = Number(text);
  const ms = Number.isNaN(seconds) ? Date.parse(text) - Date.now() : seconds * 1_000;
  return boundWait(ms, longest_retry_ms);
};

/** Waits. If the signal is aborted meanwhile, rejects with the signal's reason. */
export const pause = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
    if (signal?.aborted) end();
  });

/** 128 random bits. */
const makeKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');

const targetOf = (path: string, { params = {}, query = {} }: AnyInput): string => {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(params[name])),
  );
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) search.set(name, String(value));
  }
  const text = search.toString();
  return text === '' ? filled : `${filled}?${text}`;
};

/** Returns the method, the target and the expected type of a call to an operation. */
export const placeOf = (operation: OperationId, input: AnyInput) => {
  if (!Object.hasOwn(places, operation)) throw new TypeError(`There is no operation ${operation}.`);
  const [path = '', method = 'GET', expects = 'json'] = places[operation].split(' ').reverse();
  const target = targetOf(path.startsWith('/') ? path : `/api/${path}`, input);
  return { method, target, expects };
};

/** Lowercases the names, so that a given header replaces the client's own. */
export const lowerNames = (headers: Readonly<Record<string, string>> = {}) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

const requestOf = async (
  { base_url, headers }: CallDefaults,
  operation: OperationId,
  input: AnyInput,
): Promise<CallRequest> => {
  const { method, target, expects: usual } = placeOf(operation, input);
  const own: Record<string, string> = { ...(await headers()), ...lowerNames(input.headers) };
  if (method === 'POST' || method === 'PATCH') {
    own['idempotency-key'] = input.idempotency_key ?? makeKey();
  }
  if (input.body !== undefined) own['content-type'] = 'application/json';
  const url = base_url + target;
  const is_asked = 'accept' in own || (input.query?.['format'] ?? 'json') !== 'json';
  const expects = usual === 'asked' ? (is_asked ? 'any' : 'json') : usual;
  return { method, url, target, headers: own, body: JSON.stringify(input.body), expects };
};

/** In a browser, the answer shows only that there is a redirect, and has no status. */
const isRedirect = ({ type, status }: Response): boolean =>
  type === 'opaqueredirect' || (status >= 300 && status < 400 && status !== 304);

/** The fault for a redirect. It names the address to use instead. */
export const redirectFault = (
  { status, headers }: Pick<Response, 'status' | 'headers'>,
  { method, url, target }: Pick<CallRequest, 'method' | 'url' | 'target'>,
): Fault => {
  const location = headers.get('location') ?? '';
  const to = location !== '' && URL.canParse(location, url) ? new URL(location, url).href : '';
  const use = to.endsWith(target) ? `Use ${to.slice(0, -target.length)}` : 'Use its target';
  return {
    code: 'REDIRECTED',
    error: `${method} ${url} is redirected${to === '' ? '' : ` to ${to}`}. ${use} as the address of the service.`,
    status: status || 302,
    category: 'internal',
    retryable: false,
  };
};

export const mediaType = ({ headers }: Response): string =>
  (headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';

export const json_type = /^application\/(?:[\w.+-]+\+)?json$/;

/** Returns the parsed JSON, or else the text. Throws if the service cannot have sent it. */
const readBody = (answer: Response, text: string, { headers, expects }: CallRequest): unknown => {
  if (answer.status === 304 && 'if-none-match' in headers) return undefined;
  if (text === '' && expects !== 'json') return expects === 'none' ? undefined : text;
  const type = mediaType(answer);
  if (expects === 'json' ? json_type.test(type) : type === 'application/json') {
    return JSON.parse(text);
  }
  const is_page = type === 'text/html';
  if (is_page ? expects === 'html' : expects === 'any') return text;
  throw new Error(`${type || 'no content type'} instead of ${expects}`);
};

/** The content of a refusal: its parsed JSON if possible, otherwise its text. */
const readRefusal = (answer: Response, text: string): unknown => {
  if (!json_type.test(mediaType(answer))) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

/**
 * Makes one try and returns its answer, or the reason why none arrived. An aborted call rejects
 * with the reason of its signal.
 */
export const tryOnce = async (
  request: CallRequest,
  { timeout_ms, signal }: { readonly timeout_ms: number; readonly signal: AbortSignal | undefined },
): Promise<CallAnswer | NoAnswer> => {
  const { method, url, headers, body } = request;
  signal?.throwIfAborted();
  const late = AbortSignal.timeout(timeout_ms);
  let status: number | undefined;
  try {
    const answer = await fetch(url, {
      method,
      headers,
      body: body ?? null,
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
      redirect: 'manual',
    });
    if (isRedirect(answer)) {
      await answer.body?.cancel();
      const fault = redirectFault(answer, request);
      return { status: fault.status, headers: answer.headers, body: fault };
    }
    const text = await answer.text();
    status = answer.status;
    const is_read = status < 400;
    const value = is_read ? readBody(answer, text, request) : readRefusal(answer, text);
    return { status, headers: answer.headers, body: value };
  } catch (error) {
    signal?.throwIfAborted();
    // `fetch` reports only that it failed. The reason is in the cause.
    const { cause } = error as { readonly cause?: unknown };
    const { message } = (cause instanceof Error && cause.message !== '' ? cause : error) as Error;
    const why = late.aborted ? `timeout after ${timeout_ms} ms` : message;
    const none = status === undefined ? 'no answer' : 'no usable answer';
    return new NoAnswer(`${method} ${url}: ${none} (${why}).`, method !== 'GET', error, status);
  }
};

/** Milliseconds before the next try. Null if a retry is not allowed. No call takes effect twice. */
const waitBefore = (outcome: CallAnswer | NoAnswer, tries: number): number | null => {
  const usual_ms = 50 + backoff(tries, 200, 5_000);
  if (outcome instanceof NoAnswer) return usual_ms;
  const { status, body, headers } = outcome;
  const retry_after_ms = retryAfterMs(headers);
  if (status === 408 || status === 429) return retry_after_ms + usual_ms;
  if (status === 409) {
    const { code } = (body ?? {}) as { code?: unknown };
    return code === 'IDEMPOTENCY_IN_PROGRESS' ? Math.max(retry_after_ms, usual_ms) : null;
  }
  const maybe_done = status === 502 || status === 503 || status === 504;
  return maybe_done ? Math.max(retry_after_ms, usual_ms) : null;
};

/** Returns the last answer. Rejects with `NoAnswer` if no answer arrived. */
export const perform = async (
  defaults: CallDefaults,
  operation: OperationId,
  input: AnyInput,
): Promise<CallAnswer> => {
  const { signal, timeout_ms = defaults.timeout_ms } = input;
  const ends_ms = performance.now() + (input.patience_ms ?? defaults.patience_ms);
  const request = await requestOf(defaults, operation, input);
  for (let tries = 0; ; tries += 1) {
    const outcome = await tryOnce(request, { timeout_ms, signal });
    const wait_ms = waitBefore(outcome, tries);
    if (wait_ms === null || performance.now() + wait_ms > ends_ms) {
      if (outcome instanceof NoAnswer) throw outcome;
      return outcome;
    }
    const why = outcome instanceof NoAnswer ? outcome.message : String(outcome.status);
    defaults.onRetry?.({ operation, tries: tries + 1, wait_ms, why });
    await pause(wait_ms, signal);
  }
};

/** Returns the fault of an answer. Completes it if the answer is a proxy's, for example. */
export const faultOf = ({ status, headers, body }: CallAnswer): Fault => {
  const known = (typeof body === 'object' && body !== null ? body : {}) as Partial<Fault>;
  const { code = status >= 500 ? 'UNAVAILABLE' : 'INVALID_REQUEST' } = known;
  const error = known.error ?? `The service answered ${status}.`;
  const retryable = status >= 500 || status === 408 || status === 429;
  const retry_after_s = Math.ceil(retryAfterMs(headers) / 1_000);
  return {
    category: 'internal',
    retryable,
    ...known,
    code,
    error,
    status,
    ...(retry_after_s > 0 && { retry_after_s }),
  };
};
