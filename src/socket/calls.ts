import { type Static, Type } from '@sinclair/typebox';
import {
  type Address,
  type BodyRead,
  exchange_counters,
  isTooLarge,
  type Outgoing,
} from '../http/call.js';
import type { Mounted, WholeCall } from '../http/pipeline.js';
import { judgedAlone } from '../http/schemas.js';
import { findInexactProblem, findJsonProblem } from '../http/validation.js';
import { common_faults, type Fault, faultBody, isFault, refuse } from '../kit/fault.js';
import { close_codes, makeFrame, ws_faults } from './frames.js';
import { defineOp, type Op, type Session } from './session.js';

/**
 * Calls: `{"op":"call","id":9,"route":"POST /api/…","headers":{…},"body":{…}}` is answered with
 * `{"op":"reply","id":9,"status":201,"headers":{…},"body":{…}}` through the same route, limits and
 * handler as a request over HTTP. Answers come when they are ready, in any order.
 *
 * A call counts as a request, not as a frame. It is in flight until its answer has been passed to
 * the connection, which takes answers only while it has room. So a client that does not read is
 * refused further calls, and is closed with 4101 if it goes on like that.
 */

/** The largest body of the usual routes, plus the rest of the frame. */
export const max_call_bytes = 65_536 + 16_384;

/** Replies wait while a connection has more unread bytes than this. */
const unread_goal = 65_536;
/** Above this many characters of waiting replies, calls are refused. */
const full_chars = 1_048_576;
/** Above this many characters, the socket is closed with 4101. */
const max_chars = 16_777_216;
/** Longer replies have to be fetched over HTTP. A page of a list is far shorter. */
const max_reply_chars = 4_194_304;

const text_type = /^text\/|[/+](?:json|xml|x-ndjson|csv|javascript|yaml)\b/;
const credential_names = ['x-api-key', 'authorization', 'x-admin-key', 'cookie'];
/** Headers that only a browser itself may set, never a page. So a frame may not set them either. */
const browsers_own = /^(?:host|origin|sec-.*)$/;

export const call_frame = Type.Object({
  id: Type.Union([Type.Integer({ minimum: 0 }), Type.String({ maxLength: 64 })]),
  route: Type.String({ pattern: '^[A-Za-z]{1,20} /[!-~]{0,8000}$' }),
  headers: Type.Optional(
    Type.Record(Type.String(), Type.String({ pattern: '^[\\t -~\\u0080-\\u00ff]*$' })),
  ),
  /** Validated by the route of the call. */
  body: Type.Optional(judgedAlone(Type.Unknown())),
});
type CallFrame = Static<typeof call_frame>;

export const makeCallOp = (server: Pick<Mounted, 'call' | 'open'>): Op =>
  defineOp({
    schema: call_frame,
    max_bytes: max_call_bytes,
    is_envelope: true,
    is_counted: false,
    take(session, frame, text) {
      const known = session.calls;
      const calls = known instanceof CallQueue ? known : new CallQueue(session, server);
      session.calls = calls;
      const refused = calls.take(frame, text);
      return refused === null || !session.countFrame() ? '' : refused;
    },
  });

class CallQueue {
  readonly #working = new Set<SocketCall>();
  /** Replies that wait to be sent. */
  readonly #ready: string[] = [];
  #ready_chars = 0;
  /** Called when the call that revoked the credentials has got its reply. */
  #on_ended: (() => void) | null = null;
  /** A timer that runs while the client reads nothing. */
  #slow_timer: NodeJS.Timeout | undefined;

  constructor(
    readonly session: Session,
    readonly server: Pick<Mounted, 'call' | 'open'>,
  ) {}

  /** Number of calls whose reply has not been sent. */
  get in_flight(): number {
    return this.#working.size + this.#ready.length;
  }

  /** Starts a call. Returns null, or a fault if the call is refused. */
  take(frame: CallFrame, text: string): Fault | null {
    const { session, server } = this;
    if (this.in_flight >= session.core.limits.calls || this.#ready_chars > full_chars) {
      return refuse(ws_faults.TOO_MANY_CALLS);
    }
    const headers = readHeaders(session, frame.headers);
    if (isFault(headers)) return headers;
    const call = new SocketCall({ session, frame, text, headers }, (reply) =>
      this.#onReply(call, reply),
    );
    this.#working.add(call);
    server.open.add(call);
    server.call(call);
    return null;
  }

  /** Calls `done` after the reply to the call that revoked the credentials; now if no call did. */
  whenAnswered(done: () => void): void {
    this.sendReady();
    if ([...this.#working].some(({ ends_credentials }) => ends_credentials)) this.#on_ended = done;
    else done();
  }

  onClose(): void {
    for (const call of this.#working) {
      call.abort();
      this.server.open.delete(call);
    }
    this.#working.clear();
    this.#drop();
  }

  /** Sends as many replies as the connection has room for. */
  sendReady(): void {
    const { session } = this;
    const ready = this.#ready;
    if (ready.length === 0) return;
    const before = ready.length;
    session.ws?.cork(() => {
      while (ready.length > 0 && session.is_usable && session.lookUnread() <= unread_goal) {
        const reply = ready.shift() as string;
        this.#ready_chars -= reply.length;
        session.send(reply);
      }
    });
    if (ready.length === 0 || !session.is_usable) this.#drop();
    else if (ready.length < before || this.#slow_timer === undefined) {
      clearTimeout(this.#slow_timer);
      this.#slow_timer = setTimeout(() => this.#closeSlow(), session.core.limits.unread_ms).unref();
    }
  }

  /** Sends the replies of one turn of the event loop together, which takes fewer writes. */
  #onReply(call: SocketCall, reply: string): void {
    this.#working.delete(call);
    this.server.open.delete(call);
    this.#ready_chars += reply.length;
    if (this.#ready.push(reply) === 1)
      setImmediate(this.session.core.guard(() => this.sendReady()));
    if (this.#ready_chars > max_chars) this.#closeSlow();
    if (this.#on_ended === null || !call.ends_credentials) return;
    this.sendReady();
    this.#on_ended();
  }

  #drop(): void {
    this.#ready.length = 0;
    this.#ready_chars = 0;
    clearTimeout(this.#slow_timer);
    this.#slow_timer = undefined;
  }

  #closeSlow(): void {
    this.#drop();
    this.session.end(close_codes.SLOW, 'reads too slowly');
  }
}

/** Returns the headers of the call, including the socket's credential. */
const readHeaders = (
  { credential_headers }: Session,
  given: CallFrame['headers'] = {},
): Readonly<Record<string, string>> | Fault => {
  const headers: Record<string, string> = {};
  let bytes = 0;
  for (const [name, value] of Object.entries(given)) {
    const key = name.toLowerCase();
    if (credential_names.includes(key)) return refuse(ws_faults.CREDENTIALS_IN_CALL);
    if (browsers_own.test(key)) continue;
    bytes += key.length + value.length;
    headers[key] = value;
  }
  if (isTooLarge(Object.keys(given).length, bytes)) return refuse(common_faults.HEADERS_TOO_LARGE);
  return Object.assign(headers, credential_headers);
};

interface CallParts {
  readonly session: Session;
  readonly frame: CallFrame;
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** One call over a socket, as a request. */
class SocketCall implements WholeCall {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: CallParts['headers'];
  readonly address: Address;
  readonly socket: string;
  readonly started_ms = performance.now();
  readonly awaits_body = false;
  aborted = false;
  ends_credentials = false;
  longest_ms: number | undefined;
  #done = false;
  #raw_body: string | null = null;
  #on_gone: (() => void) | null = null;

  /** `onReply` gets the frame that answers the call, at most once. */
  constructor(
    readonly parts: CallParts,
    readonly onReply: (reply: string) => void,
  ) {
    const [method = '', target = ''] = parts.frame.route.split(' ');
    const [path = ''] = target.split('?', 1);
    this.method = method;
    this.path = path;
    this.query = target.slice(path.length + 1);
    this.headers = parts.headers;
    this.address = parts.session.request.address;
    this.socket = parts.session.id;
  }

  header(name: string): string {
    return this.headers[name] ?? '';
  }

  get raw_body(): string {
    const { frame, text } = this.parts;
    this.#raw_body ??= frame.body === undefined ? '' : bodyTextOf(text);
    return this.#raw_body;
  }

  exceeds(limit: number): boolean {
    return Buffer.byteLength(this.raw_body) > limit;
  }

  readBody(): BodyRead {
    const { body } = this.parts.frame;
    const problem =
      body === undefined
        ? 'The call has no body. Send a JSON object.'
        : (findJsonProblem(body) ?? findInexactProblem(this.raw_body));
    if (problem === null) return { value: body };
    return refuse(common_faults.INVALID_JSON, { message: problem });
  }

  send(outgoing: Outgoing): boolean {
    if (this.#done) {
      exchange_counters.late += 1;
      return false;
    }
    const reply = this.method === 'HEAD' ? { ...outgoing, body: '', content_type: null } : outgoing;
    const text = replyFrame(this.parts.frame.id, reply);
    this.#done = true;
    this.onReply(text);
    return true;
  }

  onGone(listener: () => void): void {
    if (this.aborted) listener();
    else this.#on_gone = listener;
  }

  /** The socket is gone. The handler goes on, and the reply is dropped. */
  abort(): void {
    this.aborted = true;
    this.#done = true;
    exchange_counters.aborted += 1;
    this.#on_gone?.();
  }
}

const json_token = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * Returns the text of the member `body` in the text of an object; '' if the object has no such
 * member. As over HTTP, calls are hashed and compared by the exact bytes that the caller wrote. If
 * a name occurs several times, the last one counts, as in the parser.
 */
export const bodyTextOf = (json: string): string => {
  let body = '';
  let name = '';
  let depth = 0;
  let start = 0;
  for (const { 0: token, index } of json.matchAll(json_token)) {
    if (depth === 1 && (token === ',' || token === '}')) {
      if (name !== '' && JSON.parse(name) === 'body') body = json.slice(start, index).trim();
      name = '';
    } else if (depth === 1 && token === ':') start = index + 1;
    else if (depth === 1 && name === '') name = token;
    if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
  }
  return body;
};

/**
 * Returns the body as JSON: the answer itself, or its text as a JSON string. Null if a frame cannot
 * hold it.
 */
const bodyOf = ({ body, content_type }: Outgoing): string | null => {
  if (body.length > max_reply_chars) return null;
  if (content_type === 'application/json') return body.toString();
  const is_text = typeof body === 'string' || text_type.test(content_type ?? '');
  return is_text ? JSON.stringify(body.toString()) : null;
};

const replyFrame = (id: CallFrame['id'], outgoing: Outgoing): string => {
  const { status, content_type } = outgoing;
  const headers: Record<string, string> = {};
  for (const [name, value] of outgoing.headers) headers[name.toLowerCase()] = value;
  if (content_type === null) return makeFrame('reply', id, { status, headers });
  const body = bodyOf(outgoing);
  if (body === null) return replyFrame(id, refuseForHttp(outgoing));
  headers['content-type'] = content_type;
  return `${makeFrame('reply', id, { status, headers }).slice(0, -1)},"body":${body}}`;
};

/**
 * Refuses an answer that a frame cannot hold. This is known only after the handler has run. That is
 * harmless, because routes with such answers change nothing.
 */
const refuseForHttp = ({ headers }: Outgoing): Outgoing => {
  const request_id = headers.find(([name]) => name === 'X-Request-Id')?.[1] ?? '';
  const message = 'This answer is not text, or too long for a frame. Request it over HTTP.';
  const fault = refuse(common_faults.HTTP_ONLY, { message });
  // Other headers describe the answer, not the refusal.
  const kept = headers.filter(([name]) => /^(?:X-Request-Id|RateLimit)/.test(name));
  return {
    status: fault.def.status,
    headers: [['Cache-Control', 'no-store'], ...kept],
    body: JSON.stringify(faultBody(fault, request_id)),
    content_type: 'application/json',
  };
};
