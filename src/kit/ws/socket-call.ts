import { type Static, Type } from '@sinclair/typebox';
import { common_faults, type Fault, faultBody, isFault, refuse } from '../fault.js';
import type { WholeCall } from '../http/mount.js';
import type { Address, BodyRead, Outgoing } from '../http/request.js';
import { exchange_counters, isTooLarge } from '../http/request.js';
import { findJsonProblem } from '../http/validation.js';
import { bodyTextOf } from './call-body.js';
import { ws_faults } from './frames.js';
import type { Session } from './session.js';

/** One call over a socket: what an exchange is for a request. */

export const call_frame = Type.Object({
  id: Type.Union([Type.Integer({ minimum: 0 }), Type.String({ maxLength: 64 })]),
  route: Type.String({ pattern: '^[A-Za-z]{1,20} /[!-~]{0,8000}$' }),
  headers: Type.Optional(
    Type.Record(Type.String(), Type.String({ pattern: '^[\\t -~\\u0080-\\u00ff]*$' })),
  ),
  body: Type.Optional(Type.Unknown()),
});
export type CallFrame = Static<typeof call_frame>;

/** Answers above are told to be fetched over HTTP; a page of a list is far below. */
const most_reply_chars = 4_194_304;
const text_type = /^text\/|[/+](?:json|xml|x-ndjson|csv|javascript|yaml)\b/;
const credential_names = ['x-api-key', 'authorization', 'x-admin-key', 'cookie'];
/** What a browser says of a request itself, and no page may: a frame cannot say it either. */
const browsers_own = /^(?:host|origin|sec-.*)$/;

/** Headers of the call, those of the socket's credential among them. */
const readHeaders = (
  { credential_headers }: Session,
  given: CallFrame['headers'],
): Readonly<Record<string, string>> | Fault => {
  if (given === undefined) return credential_headers;
  const headers: Record<string, string> = {};
  let bytes = 0;
  const names = Object.keys(given);
  for (const name of names) {
    const value = given[name] as string;
    const key = name.toLowerCase();
    if (credential_names.includes(key)) return refuse(ws_faults.CREDENTIALS_IN_CALL);
    if (browsers_own.test(key)) continue;
    bytes += key.length + value.length;
    headers[key] = value;
  }
  if (isTooLarge(names.length, bytes)) return refuse(common_faults.HEADERS_TOO_LARGE);
  return Object.assign(headers, credential_headers);
};

export interface CallParts {
  readonly session: Session;
  readonly frame: CallFrame;
  readonly text: string;
  /** Takes the frame that answers the call; called once at most. */
  readonly onReply: (call: SocketCall, reply: string) => void;
}

/** The call that a frame asks for, or why it is none. */
export const makeSocketCall = (parts: CallParts): SocketCall | Fault => {
  const headers = readHeaders(parts.session, parts.frame.headers);
  return isFault(headers) ? headers : new SocketCall(parts, headers);
};

export class SocketCall implements WholeCall {
  /** Where it stands among the calls of its socket. */
  place = 0;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly address: Address;
  readonly started_ms = performance.now();
  readonly awaits_body = false;
  readonly socket: string;
  aborted = false;
  ends_credentials = false;
  longest_ms: number | undefined;
  #done = false;
  #raw_body: string | null = null;
  #on_gone: (() => void) | null = null;
  readonly #id: CallFrame['id'];
  readonly #body: unknown;
  readonly #text: string;
  readonly #onReply: CallParts['onReply'];

  constructor(
    { session, frame, text, onReply }: CallParts,
    readonly headers: Readonly<Record<string, string>>,
  ) {
    const { route } = frame;
    const space = route.indexOf(' ');
    const mark = route.indexOf('?', space);
    this.method = route.slice(0, space);
    this.path = mark === -1 ? route.slice(space + 1) : route.slice(space + 1, mark);
    this.query = mark === -1 ? '' : route.slice(mark + 1);
    this.address = session.address;
    this.socket = session.id;
    this.#id = frame.id;
    this.#body = frame.body;
    this.#text = text;
    this.#onReply = onReply;
  }

  header(name: string): string {
    return this.headers[name] ?? '';
  }

  get raw_body(): string {
    this.#raw_body ??= this.#body === undefined ? '' : bodyTextOf(this.#text);
    return this.#raw_body;
  }

  exceeds(limit: number): boolean {
    // No character has more than three bytes for each of its units.
    return this.#text.length * 3 > limit && Buffer.byteLength(this.raw_body) > limit;
  }

  readBody(): BodyRead {
    const problem =
      this.#body === undefined
        ? 'The call has no body; send a JSON object.'
        : findJsonProblem(this.#body);
    if (problem === null) return { ok: true, value: this.#body };
    return { ok: false, fault: refuse(common_faults.INVALID_JSON, { message: problem }) };
  }

  send(outgoing: Outgoing): boolean {
    if (this.#done) {
      exchange_counters.late += 1;
      return false;
    }
    const reply = replyFrame(this.#id, this.method === 'HEAD' ? withoutBody(outgoing) : outgoing);
    this.#done = true;
    this.#onReply(this, reply);
    return true;
  }

  onGone(listener: () => void): void {
    if (this.aborted) listener();
    else this.#on_gone = listener;
  }

  /** The socket is gone; whoever works on the call goes on, and its answer is dropped. */
  abort(): void {
    this.aborted = true;
    this.#done = true;
    exchange_counters.aborted += 1;
    this.#on_gone?.();
  }
}

const withoutBody = (outgoing: Outgoing): Outgoing => ({
  ...outgoing,
  body: '',
  content_type: null,
});

const quoted_names = new Map<string, string>();

/** `"name":` with the name in small letters; there are few of them. */
const quotedName = (name: string): string => {
  const known = quoted_names.get(name);
  if (known !== undefined) return known;
  const quoted = `${JSON.stringify(name.toLowerCase())}:`;
  if (quoted_names.size < 200) quoted_names.set(name, quoted);
  return quoted;
};

/** The body as JSON: the answer itself, or its text as a text; null when a frame cannot hold it. */
const bodyOf = ({ body, content_type }: Outgoing): string | null => {
  if (body.length > most_reply_chars) return null;
  if (content_type === 'application/json') return body.toString();
  const is_text = typeof body === 'string' || text_type.test(content_type ?? '');
  return is_text ? JSON.stringify(body.toString()) : null;
};

const replyFrame = (id: CallFrame['id'], outgoing: Outgoing): string => {
  const { status, headers, content_type } = outgoing;
  const has_body = content_type !== null;
  const body = has_body ? bodyOf(outgoing) : '';
  if (body === null) return replyFrame(id, overHttp(outgoing));
  let frame = `{"op":"reply","id":${JSON.stringify(id)},"status":${status},"headers":{`;
  for (const [name, value] of headers) frame += `${quotedName(name)}${JSON.stringify(value)},`;
  // There is always the id of the request, and a comma behind it.
  if (!has_body) return `${frame.slice(0, -1)}}}`;
  return `${frame}"content-type":${JSON.stringify(content_type)}},"body":${body}}`;
};

/** Refused when the work is done, because only then it is known; nothing has an effect here. */
const overHttp = ({ headers }: Outgoing): Outgoing => {
  const request_id = headers.find(([name]) => name === 'X-Request-Id')?.[1] ?? '';
  const message = 'This answer is no text, or too long for a frame; ask for it over HTTP.';
  const fault = refuse(common_faults.HTTP_ONLY, { message });
  // What was said of the answer is not true of the refusal.
  const kept = headers.filter(([name]) => /^(?:X-Request-Id|RateLimit)/.test(name));
  return {
    status: fault.def.status,
    headers: [['Cache-Control', 'no-store'], ...kept],
    body: JSON.stringify(faultBody(fault, request_id)),
    content_type: 'application/json',
  };
};
