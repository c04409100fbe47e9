import type { Logger } from 'pino';
import { common_faults, type Fault, faultBody, isFault, refuse } from '../fault.js';
import type { Left, Taken, Window } from '../limits.js';
import { describeError, type LineWriter, makeLineWriter } from '../log.js';
import { isOutage } from '../pg/client.js';
import { QueueFullError } from '../pg/group-commit.js';
import { BodyStream, etagOf, matchesEtag, Prepared } from './body.js';
import type { Outgoing, Talk } from './request.js';
import type { Reply, Route } from './route.js';
import { callerKey } from './route.js';
import { type Check, compileCheck } from './validation.js';

/** How answers leave: bodies, common headers, ETags, refusals of what was thrown, the log line. */

const json_type = 'application/json';

type Encoded = Omit<Outgoing, 'headers' | 'body'> & {
  readonly body: Outgoing['body'] | BodyStream;
};

const encode = (outgoing: Reply | Fault, request_id: string): Encoded => {
  if (isFault(outgoing)) {
    const body = JSON.stringify(faultBody(outgoing, request_id));
    return { status: outgoing.def.status, body, content_type: 'application/json' };
  }
  const { status, body, content_type } = outgoing;
  if (content_type !== undefined) {
    return { status, body: body as Encoded['body'], content_type };
  }
  if (body === undefined) return { status, body: '', content_type: null };
  return { status, body: JSON.stringify(body), content_type: 'application/json' };
};

/** uWS writes a value as it is: a line break in it would begin another header. */
const checkHeader = (name: string, value: string): [string, string] => {
  if (/[\r\n\0]/.test(value)) throw new Error(`the header ${name} has a line break`);
  return [name, value];
};

/** Sends the one answer of a talk and writes its log line. */
export type Finish = (talk: Talk, outgoing: Reply | Fault) => void;

export const makeFinish = (log: Logger): Finish => {
  const write = makeLineWriter(log);
  return (talk, outgoing) => finish(talk, outgoing, { log, write });
};

interface Lines {
  readonly log: Logger;
  /** Null where requests are not logged. */
  readonly write: LineWriter | null;
}

const finish = (talk: Talk, outgoing: Reply | Fault, { log, write }: Lines): void => {
  const { asked, request_id, headers } = talk;
  for (const [name, value] of Object.entries(outgoing.headers ?? {})) {
    headers.push(checkHeader(name, value));
  }
  const { status, body, content_type } = encode(outgoing, request_id);
  if (isFault(outgoing)) headers.push(['Cache-Control', 'no-store']);
  headers.push(['X-Request-Id', request_id]);
  if (!(body instanceof BodyStream)) {
    asked.send({ status, headers, body, content_type });
    writeLine(talk, status, write);
    return;
  }
  Promise.resolve(asked.stream?.({ status, headers, content_type }, body))
    .catch((error: unknown) => log.error({ request_id, ...describeError(error) }, 'http: cut'))
    .finally(() => writeLine(talk, status, write));
};

const needs_no_escape = /^[ !#-[\]-~]*$/;
const quote = (text: string): string =>
  needs_no_escape.test(text) ? `"${text}"` : JSON.stringify(text);

const writeLine = (talk: Talk, status: number, write: LineWriter | null): void => {
  if (write === null) return;
  const { asked, request_id } = talk;
  const { method, path, started_ms, socket, aborted } = asked;
  const caller = callerKey(talk.caller);
  const ms = Math.round((performance.now() - started_ms) * 100) / 100;
  const who = caller === null ? '' : `,"caller":${quote(caller)}`;
  const where = socket === undefined ? '' : `,"socket":${quote(socket)}`;
  write(
    `,"request_id":${quote(request_id)},"method":${quote(method)},"path":${quote(path)}` +
      `,"status":${status},"ms":${ms}${who}${where}${aborted ? ',"aborted":true' : ''}}\n`,
  );
};

/** The answer to a CORS preflight, or to OPTIONS in general. */
export const sendOptions = (talk: Talk, allow: readonly string[]): void => {
  const requested = talk.asked.header('access-control-request-headers');
  const allowed_headers = /^[\w\-, ]{1,500}$/.test(requested)
    ? requested
    : 'Content-Type, X-API-Key, Authorization, Idempotency-Key, X-Request-Id';
  talk.asked.send({
    status: 204,
    headers: [
      ['Allow', allow.join(', ')],
      ['Access-Control-Allow-Methods', allow.join(', ')],
      ['Access-Control-Allow-Headers', allowed_headers],
      ['Access-Control-Max-Age', '86400'],
      ['X-Request-Id', talk.request_id],
    ],
    body: '',
    content_type: null,
  });
};

/**
 * What may be kept: by anybody what an anonymous caller is told, by the caller alone what somebody
 * with a credential is told; and always only to ask again with its ETag.
 */
const kept_by = { anybody: 'public, no-cache', caller: 'private, no-cache' } as const;

/** Bytes in the coding that the client takes; a frame of a socket carries text as it is. */
const codePrepared = ({ asked, headers }: Talk, prepared: Prepared): Uint8Array => {
  headers.push(['Vary', 'Accept-Encoding']);
  const accepted = asked.stream === undefined ? '' : asked.header('accept-encoding');
  const coded = prepared.codedFor(accepted);
  if (coded === null) return prepared.bytes;
  headers.push(['Content-Encoding', coded.coding]);
  return coded.bytes;
};

/** Adds the ETag of a cacheable answer; 304 without a body when the client has it already. */
export const withEtag = (talk: Talk, route: Route, outgoing: Reply): Reply => {
  const { headers, content_type = 'application/json' } = outgoing;
  const own_rule = headers?.['Cache-Control'];
  const is_anonymous = talk.caller.kind === 'anonymous';
  if (!route.cacheable || outgoing.status !== 200 || own_rule === 'no-store') {
    if (own_rule === undefined && (!is_anonymous || route.method !== 'GET')) {
      talk.headers.push(['Cache-Control', 'no-store']);
    }
    return outgoing;
  }
  const { body } = outgoing;
  const prepared = body instanceof Prepared ? body : null;
  const sent = (outgoing.content_type === undefined ? JSON.stringify(body) : body) as string;
  const etag = prepared?.etag ?? outgoing.etag ?? etagOf(sent);
  talk.headers.push(['ETag', etag]);
  if (own_rule === undefined) {
    talk.headers.push(['Cache-Control', is_anonymous ? kept_by.anybody : kept_by.caller]);
  }
  const kept = headers === undefined ? {} : { headers };
  if (matchesEtag(talk.asked.header('if-none-match'), etag)) {
    if (prepared !== null) talk.headers.push(['Vary', 'Accept-Encoding']);
    return { kind: 'reply', status: 304, body: undefined, ...kept };
  }
  const bytes = prepared === null ? sent : codePrepared(talk, prepared);
  return { kind: 'reply', status: 200, body: bytes, content_type, ...kept };
};

/** A throw is a bug or an outage; the client learns which of the two, and the request id. */
export const refuseThrown = (error: unknown, talk: Talk, log: Logger): Fault => {
  const { request_id, asked } = talk;
  const record = { request_id, path: asked.path, ...describeError(error) };
  if (isOutage(error) || error instanceof QueueFullError) {
    log.warn(record, 'http: a store is away');
    return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });
  }
  log.error(record, 'http: a handler threw');
  return refuse(common_faults.INTERNAL);
};

const policyOf = (windows: readonly Window[]): string => {
  let text = '';
  for (const { name, limit, window_ms } of windows) {
    const policy = `"${name}";q=${limit};w=${Math.round(window_ms / 1000)}`;
    text = text === '' ? policy : `${text}, ${policy}`;
  }
  return text;
};

/** By window: calls left, and ms until there are more. */
const stateOf = (
  windows: readonly Window[],
  left: readonly (number | undefined)[],
  reset_ms: readonly (number | undefined)[],
): string => {
  let text = '';
  for (let i = 0; i < windows.length; i += 1) {
    const state = `"${windows[i]!.name}";r=${left[i]};t=${Math.ceil((reset_ms[i] ?? 0) / 1000)}`;
    text = text === '' ? state : `${text}, ${state}`;
  }
  return text;
};

/** Says what is left after the call was given back, in place of what was left with it. */
export const showGivenBack = (
  { headers }: Talk,
  windows: readonly Window[],
  left: readonly Left[],
): void => {
  const shown = headers.find(([name]) => name === 'RateLimit');
  if (shown === undefined) return;
  shown[1] = stateOf(
    windows,
    left.map((one) => one.left),
    left.map((one) => one.reset_ms),
  );
};

/** Adds the headers of the limits; the refusal when they are used up. */
export const applyLimits = (talk: Talk, windows: readonly Window[], taken: Taken): Fault | null => {
  talk.headers.push(
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

/** Of an answer that its route does not name the media type of; an empty one has none. */
const findUnnamedType = (route: Route, { body, content_type }: Reply): string | null => {
  if (body === undefined || body === '') return null;
  const type = content_type?.split(';')[0] ?? json_type;
  const named = [route.produces ?? json_type, ...route.also_produces];
  return named.includes(type) ? null : `${type} is not in produces`;
};

/** Tests: says where a success answer does not match the `returns` of its route. */
export const makeAnswerChecker = (): ((route: Route, outgoing: Reply) => string | null) => {
  const checks = new Map<string, Check>();
  return (route, outgoing) => {
    if (!(outgoing.status in route.returns)) return `status ${outgoing.status} is not in returns`;
    const unnamed = findUnnamedType(route, outgoing);
    if (unnamed !== null) return unnamed;
    const schema = route.returns[outgoing.status];
    if (schema === null || schema === undefined || outgoing.content_type !== undefined) return null;
    const name = `${route.id} ${outgoing.status}`;
    const check = checks.get(name) ?? compileCheck(schema, 'answer');
    checks.set(name, check);
    // What is sent is the JSON text, so that is what is checked: dates are texts by then.
    const fields = check(JSON.parse(JSON.stringify(outgoing.body)));
    return fields === null ? null : fields.map((f) => `${f.path}: ${f.message}`).join('; ');
  };
};

/** Which of two forms of one answer a caller wants: JSON for programs, Markdown for reading. */

export const markdown_type = 'text/markdown; charset=utf-8';

interface Range {
  readonly type: string;
  readonly q: number;
}

const readAccept = (accept: string): readonly Range[] =>
  accept
    .slice(0, 1_000)
    .split(',')
    .map((part) => {
      const [type = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
      const q = parameters.find((parameter) => parameter.startsWith('q='));
      const weight = q === undefined ? 1 : Number(q.slice(2));
      return { type, q: Number.isFinite(weight) ? weight : 0 };
    });

const weightOf = (ranges: readonly Range[], type: string): number => {
  const [family = ''] = type.split('/');
  for (const wanted of [type, `${family}/*`, '*/*']) {
    const found = ranges.find((range) => range.type === wanted);
    if (found !== undefined) return found.q;
  }
  return 0;
};

/**
 * `?format=` first, then what `Accept` names with more weight (RFC 9110 §12.5.1); JSON where both
 * weigh the same, and where neither is accepted.
 */
export const wantsMarkdown = (format: string | undefined, accept: string): boolean => {
  if (format !== undefined) return format === 'markdown';
  if (accept === '') return false;
  const ranges = readAccept(accept);
  return weightOf(ranges, 'text/markdown') > weightOf(ranges, 'application/json');
};
