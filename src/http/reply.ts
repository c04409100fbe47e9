import type { Logger } from 'pino';
import { QueueFullError } from '../db/group-commit.js';
import { common_faults, type Fault, faultBody, isFault, refuse } from '../kit/fault.js';
import { describeError, type LineWriter, makeLineWriter } from '../kit/log.js';
import { isOutage } from '../kit/outage.js';
import { BodyStream, etagOf, matchesEtag } from './body.js';
import type { Left, Taken, Window } from './limits.js';
import type { Outgoing } from './request.js';
import { type Context, callerKey, type Reply, type Route } from './route.js';

/** Answers: bodies, common headers, ETags, refusals after a throw, the log line. */

const json_type = 'application/json';

const encode = (outgoing: Reply | Fault, request_id: string) => {
  if (isFault(outgoing)) {
    const body = JSON.stringify(faultBody(outgoing, request_id));
    return { status: outgoing.def.status, body, content_type: json_type };
  }
  const { status, body, content_type } = outgoing;
  if (content_type !== undefined) {
    return { status, body: body as Outgoing['body'] | BodyStream, content_type };
  }
  if (body === undefined) return { status, body: '', content_type: null };
  return { status, body: JSON.stringify(body), content_type: json_type };
};

/** uWS writes a value as it is: a line break in it would begin another header. */
const checkHeader = (name: string, value: string): [string, string] => {
  if (/[\r\n\0]/.test(value)) throw new Error(`the header ${name} has a line break`);
  return [name, value];
};

/** Sends the one answer of a call and writes its log line. */
export type Finish = (ctx: Context, outgoing: Reply | Fault) => void;

export const makeFinish = (log: Logger): Finish => {
  const write = makeLineWriter(log);
  return (ctx, outgoing) => {
    const { request, request_id, headers } = ctx;
    for (const [name, value] of Object.entries(outgoing.headers ?? {})) {
      headers.push(checkHeader(name, value));
    }
    const { status, body, content_type } = encode(outgoing, request_id);
    if (isFault(outgoing)) headers.push(['Cache-Control', 'no-store']);
    headers.push(['X-Request-Id', request_id]);
    if (!(body instanceof BodyStream)) {
      request.send({ status, headers, body, content_type });
      writeLine(ctx, status, write);
      return;
    }
    Promise.resolve(request.stream?.({ status, headers, content_type }, body))
      .catch((error: unknown) => log.error({ request_id, ...describeError(error) }, 'http: cut'))
      .finally(() => writeLine(ctx, status, write));
  };
};

const needs_no_escape = /^[ !#-[\]-~]*$/;
const quote = (text: string): string =>
  needs_no_escape.test(text) ? `"${text}"` : JSON.stringify(text);

/** `write` is null where requests are not logged. */
const writeLine = (ctx: Context, status: number, write: LineWriter | null): void => {
  if (write === null) return;
  const { request_id } = ctx;
  const { method, path, started_ms, socket, aborted } = ctx.request;
  const caller = callerKey(ctx.caller);
  const ms = Math.round((performance.now() - started_ms) * 100) / 100;
  const who = caller === null ? '' : `,"caller":${quote(caller)}`;
  const where = socket === undefined ? '' : `,"socket":${quote(socket)}`;
  write(
    `,"request_id":${quote(request_id)},"method":${quote(method)},"path":${quote(path)}` +
      `,"status":${status},"ms":${ms}${who}${where}${aborted ? ',"aborted":true' : ''}}\n`,
  );
};

/** The answer to a CORS preflight, or to OPTIONS in general. */
export const sendOptions = (ctx: Context, allow: readonly string[]): void => {
  const requested = ctx.request.header('access-control-request-headers');
  const allowed_headers = /^[\w\-, ]{1,500}$/.test(requested)
    ? requested
    : 'Content-Type, X-API-Key, Authorization, Idempotency-Key, X-Request-Id';
  ctx.request.send({
    status: 204,
    headers: [
      ['Allow', allow.join(', ')],
      ['Access-Control-Allow-Methods', allow.join(', ')],
      ['Access-Control-Allow-Headers', allowed_headers],
      ['Access-Control-Max-Age', '86400'],
      ['X-Request-Id', ctx.request_id],
    ],
    body: '',
    content_type: null,
  });
};

/** Adds the ETag of a cacheable answer; 304 without a body when the client has it already. */
export const withEtag = (ctx: Context, route: Route, outgoing: Reply): Reply => {
  const { headers, content_type = 'application/json' } = outgoing;
  const own_rule = headers?.['Cache-Control'];
  const is_anonymous = ctx.caller.kind === 'anonymous';
  if (!route.cacheable || outgoing.status !== 200 || own_rule === 'no-store') {
    if (own_rule === undefined && (!is_anonymous || route.method !== 'GET')) {
      ctx.headers.push(['Cache-Control', 'no-store']);
    }
    return outgoing;
  }
  const { body } = outgoing;
  const sent = (outgoing.content_type === undefined ? JSON.stringify(body) : body) as string;
  const etag = outgoing.etag ?? etagOf(sent);
  ctx.headers.push(['ETag', etag]);
  if (own_rule === undefined) {
    // Caches may keep it, and ask again with its ETag each time.
    ctx.headers.push(['Cache-Control', `${is_anonymous ? 'public' : 'private'}, no-cache`]);
  }
  const kept = headers === undefined ? {} : { headers };
  if (matchesEtag(ctx.request.header('if-none-match'), etag)) {
    return { kind: 'reply', status: 304, body: undefined, ...kept };
  }
  return { kind: 'reply', status: 200, body: sent, content_type, ...kept };
};

/** A throw is a bug or an outage; the client learns which of the two, and the request id. */
export const refuseThrown = (error: unknown, ctx: Context, log: Logger): Fault => {
  const { request_id, request } = ctx;
  const record = { request_id, path: request.path, ...describeError(error) };
  if (isOutage(error) || error instanceof QueueFullError) {
    log.warn(record, 'http: a store is away');
    return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });
  }
  log.error(record, 'http: a handler threw');
  return refuse(common_faults.INTERNAL);
};

const policyOf = (windows: readonly Window[]): string =>
  windows
    .map(({ name, limit, window_ms }) => `"${name}";q=${limit};w=${Math.round(window_ms / 1000)}`)
    .join(', ');

/** By window: calls left, and the time until there are more. */
const stateOf = (
  windows: readonly Window[],
  left: readonly number[],
  reset_ms: readonly number[],
): string =>
  windows
    .map(({ name }, n) => `"${name}";r=${left[n]};t=${Math.ceil((reset_ms[n] ?? 0) / 1000)}`)
    .join(', ');

/** Replaces the calls left by those left after the call was given back. */
export const showGivenBack = (
  { headers }: Context,
  windows: readonly Window[],
  left: readonly Left[],
): void => {
  const shown = headers.find(([name]) => name === 'RateLimit') ?? ['', ''];
  const [calls, resets] = [left.map((one) => one.left), left.map(({ reset_ms }) => reset_ms)];
  shown[1] = stateOf(windows, calls, resets);
};

/** Adds the headers of the limits; the refusal when they are used up. */
export const applyLimits = (
  ctx: Context,
  windows: readonly Window[],
  taken: Taken,
): Fault | null => {
  ctx.headers.push(
    ['RateLimit-Policy', policyOf(windows)],
    ['RateLimit', stateOf(windows, taken.left, taken.reset_ms)],
  );
  if (taken.allowed) return null;
  const seconds = Math.max(1, Math.ceil(taken.retry_ms / 1000));
  const { limit, name } = windows[taken.refused] as Window;
  return refuse(common_faults.RATE_LIMITED, {
    message: `The limit of ${limit} calls per minute (${name}) is used up; try again in ${seconds} s.`,
    headers: { 'Retry-After': String(seconds) },
  });
};

export const markdown_type = 'text/markdown; charset=utf-8';

/**
 * `?format=` first, then the one that `Accept` names first; JSON where it names neither.
 */
export const wantsMarkdown = (format: string | undefined, accept: string): boolean => {
  if (format !== undefined) return format === 'markdown';
  const [first] =
    /text\/markdown(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))|application\/json/i.exec(accept) ?? [];
  return first?.toLowerCase() === 'text/markdown';
};
