import { type Static, Type } from '@sinclair/typebox';
import { common_faults, type Fault, faultBody, isFault, refuse } from '../fault.js';
import type { Mounted, WholeCall } from '../http/mount.js';
import type { Address, BodyRead, Outgoing } from '../http/request.js';
import { exchange_counters, isTooLarge } from '../http/request.js';
import { findJsonProblem } from '../http/validation.js';
import { countFrame } from './entry.js';
import { defineOp, type Op, ws_faults } from './frames.js';
import { type Core, close_codes, endSession, sendText } from './hub.js';
import { type CallLine, isUsable, type Session } from './session.js';

/**
 * Finds the text of the member `body` in the text of a frame: what is hashed and compared of a call
 * are the bytes its caller wrote, as over HTTP, and not another spelling of the same value.
 */

const quote = 0x22;
const backslash = 0x5c;

/** Where the text that begins at `at` ends: behind its closing quote. */
const endOfText = (json: string, at: number): number => {
  for (let end = json.indexOf('"', at + 1); ; end = json.indexOf('"', end + 1)) {
    let slashes = 0;
    while (json.charCodeAt(end - 1 - slashes) === backslash) slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
};

const ends_scalar = /[,}\]\s]/g;

const endOfScalar = (json: string, at: number): number => {
  ends_scalar.lastIndex = at;
  return ends_scalar.exec(json)?.index ?? json.length;
};

/** Quotes and brackets are all that matters inside of an object or an array. */
const endOfNested = (json: string, at: number): number => {
  let depth = 0;
  for (let i = at; ; ) {
    const code = json.charCodeAt(i);
    if (code === quote) {
      i = endOfText(json, i);
      continue;
    }
    i += 1;
    if (code === 0x7b || code === 0x5b) depth += 1;
    else if (code === 0x7d || code === 0x5d) {
      depth -= 1;
      if (depth === 0) return i;
    }
  }
};

const endOfValue = (json: string, at: number): number => {
  const code = json.charCodeAt(at);
  if (code === quote) return endOfText(json, at);
  return code === 0x7b || code === 0x5b ? endOfNested(json, at) : endOfScalar(json, at);
};

const skipSpace = (json: string, at: number): number => {
  let i = at;
  while (json.charCodeAt(i) <= 0x20) i += 1;
  return i;
};

/** `json` is known to be the text of an object; '' when it has no body. */
export const bodyTextOf = (json: string): string => {
  let body = '';
  let at = skipSpace(json, skipSpace(json, 0) + 1);
  while (json.charCodeAt(at) === quote) {
    const name_end = endOfText(json, at);
    const name = json.slice(at, name_end);
    const start = skipSpace(json, skipSpace(json, name_end) + 1);
    const end = endOfValue(json, start);
    // As the parser does: a name may be spelt with escapes, and the last of equal names counts.
    if (name === '"body"' || (name.includes('\\') && JSON.parse(name) === 'body')) {
      body = json.slice(start, end);
    }
    at = skipSpace(json, skipSpace(json, end) + 1);
  }
  return body;
};

/** One call over a socket: what an exchange is for a request. */

export const call_frame = Type.Object({
  id: Type.Union([Type.Integer({ minimum: 0 }), Type.String({ maxLength: 64 })]),
  route: Type.String({ pattern: '^[A-Za-z]{1,20} /[!-~]{0,8000}$' }),
  headers: Type.Optional(
    Type.Record(Type.String(), Type.String({ pattern: '^[\\t -~\\u0080-\\u00ff]*$' })),
  ),
  body: Type.Optional(Type.Unknown()),
});
type CallFrame = Static<typeof call_frame>;

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

interface CallParts {
  readonly session: Session;
  readonly frame: CallFrame;
  readonly text: string;
  /** Takes the frame that answers the call; called once at most. */
  readonly onReply: (call: SocketCall, reply: string) => void;
}

/** The call that a frame asks for, or why it is none. */
const makeSocketCall = (parts: CallParts): SocketCall | Fault => {
  const headers = readHeaders(parts.session, parts.frame.headers);
  return isFault(headers) ? headers : new SocketCall(parts, headers);
};

class SocketCall implements WholeCall {
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

/**
 * Calls: `{"op":"call","id":9,"route":"POST /api/…","headers":{…},"body":{…}}` is answered with
 * `{"op":"reply","id":9,"status":201,"headers":{…},"body":{…}}` by the same route value, limits and
 * handler as a request over HTTP. Answers come when they are ready, in any order.
 *
 * A call counts as a request, not as a frame. It is in flight until its answer has been handed to
 * the connection, which takes no more than it has room for: a client that does not read is refused
 * further calls, and closed with 4101 when it goes on like that.
 */

/** The largest body of the usual routes, and what stands around it. */
export const most_call_bytes = 65_536 + 16_384;

/** Unread bytes of a connection above which answers wait. */
const unread_goal = 65_536;
/** Characters of waiting answers: above the first no more calls are taken, above the other 4101. */
const full_chars = 1_048_576;
const most_chars = 16_777_216;

type Hands = Pick<Mounted, 'call' | 'open'>;

interface Line extends CallLine {
  readonly core: Core;
  readonly session: Session;
  /** Calls that are worked on, in no order; each knows its place. */
  readonly working: SocketCall[];
  /** Answers that wait to be sent. */
  readonly ready: string[];
  ready_chars: number;
  /** Waits for the answer to the call by which the credentials ended. */
  ended: (() => void) | null;
  /** Runs while the client reads nothing. */
  patience: NodeJS.Timeout | null;
}

export const makeCallOp = (hands: Hands): Op => {
  const sendSoon = makeSender();
  const lineOf = (core: Core, session: Session): Line => {
    session.calls ??= makeLine(core, session, hands);
    return session.calls as Line;
  };
  const onReply = (line: Line, call: SocketCall, reply: string): void => {
    leave(line, call);
    hands.open.delete(call);
    line.ready.push(reply);
    line.ready_chars += reply.length;
    if (line.ready_chars > most_chars) closeSlow(line);
    else sendSoon(line);
    if (line.ended === null || !call.ends_credentials) return;
    sendReady(line);
    line.ended();
  };
  return defineOp({
    schema: call_frame,
    most_bytes: most_call_bytes,
    is_envelope: true,
    is_counted: false,
    take(core, session, frame, text) {
      const line = lineOf(core, session);
      if (line.inFlight() >= core.limits.calls || line.ready_chars > full_chars) {
        return countFrame(core, session) ? refuse(ws_faults.TOO_MANY_CALLS) : '';
      }
      const call = makeSocketCall({
        session,
        frame,
        text,
        onReply: (one, reply) => onReply(line, one, reply),
      });
      if (isFault(call)) return countFrame(core, session) ? call : '';
      call.place = line.working.push(call) - 1;
      hands.open.add(call);
      hands.call(call);
      return '';
    },
  });
};

const makeLine = (core: Core, session: Session, hands: Hands): Line => {
  const line: Line = {
    core,
    session,
    working: [],
    ready: [],
    ready_chars: 0,
    patience: null,
    ended: null,
    inFlight: () => line.working.length + line.ready.length,
    onRead: () => sendReady(line),
    whenAnswered(done) {
      sendReady(line);
      if (line.working.some(({ ends_credentials }) => ends_credentials)) line.ended = done;
      else done();
    },
    onClose() {
      for (const call of line.working) {
        call.abort();
        hands.open.delete(call);
      }
      line.working.length = 0;
      dropReady(line);
    },
  };
  return line;
};

const leave = ({ working }: Line, call: SocketCall): void => {
  const last = working.pop();
  if (last === undefined || last === call) return;
  working[call.place] = last;
  last.place = call.place;
};

/** Answers of one turn of the event loop leave together: fewer writes for the same frames. */
const makeSender = () => {
  let dirty: Line[] = [];
  const sendAll = (): void => {
    const lines = dirty;
    dirty = [];
    for (const line of lines) {
      try {
        sendReady(line);
      } catch (error) {
        line.core.onBug(error);
      }
    }
  };
  return (line: Line): void => {
    if (dirty.length === 0) setImmediate(sendAll);
    // With more than one it is among them already, or waits for its reader.
    if (line.ready.length === 1) dirty.push(line);
  };
};

const dropReady = (line: Line): void => {
  line.ready.length = 0;
  line.ready_chars = 0;
  if (line.patience !== null) clearTimeout(line.patience);
  line.patience = null;
};

/** Sends what the connection has room for. */
const sendReady = (line: Line): void => {
  const { core, session, ready } = line;
  if (ready.length === 0) return;
  let sent = 0;
  while (sent < ready.length && hasRoom(session)) sent = sendSome(line, sent);
  ready.splice(0, sent);
  if (ready.length === 0 || !isUsable(session)) dropReady(line);
  else if (sent > 0 || line.patience === null) {
    if (line.patience !== null) clearTimeout(line.patience);
    line.patience = setTimeout(() => closeSlow(line), core.limits.unread_ms);
    line.patience.unref();
  }
};

const hasRoom = (session: Session): boolean =>
  isUsable(session) && (session.ws?.getBufferedAmount() ?? 0) <= unread_goal;

/** Sends answers in one write, until there is enough in it; the number of those that are sent. */
const sendSome = (line: Line, from: number): number => {
  const { core, session, ready } = line;
  let at = from;
  let chars = 0;
  const send = (): void => {
    while (at < ready.length && chars <= unread_goal) {
      const reply = ready[at] as string;
      sendText(core, session, reply);
      chars += reply.length;
      at += 1;
    }
  };
  if (ready.length - from === 1) send();
  else session.ws?.cork(send);
  line.ready_chars -= chars;
  return at;
};

const closeSlow = (line: Line): void => {
  dropReady(line);
  endSession(line.core, line.session, close_codes.SLOW, 'reads too slowly');
};
