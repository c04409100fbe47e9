import { type Static, Type } from '@sinclair/typebox';
import { common_faults, type Fault, isFault, refuse } from '../fault.js';
import { type Credentials, chooseCredentials, no_credentials } from '../http/pipeline.js';
import type { Address, WebSocket } from '../http/request.js';
import {
  type HttpRequest,
  type HttpResponse,
  remoteAddress,
  type us_socket_context_t,
} from '../http/request.js';
import { anonymous, type Caller, callerKey } from '../http/route.js';
import { sha256 } from '../ids.js';
import { describeError } from '../log.js';
import { withDeadline } from '../service.js';
import { most_call_bytes } from './calls.js';
import type { ReadFrame } from './frames.js';
import { defineOp, errorFrame, frame_id, makeFrame, ws_faults } from './frames.js';
import {
  type Core,
  close_codes,
  closeCodeOf,
  endSession,
  enterKey,
  isOverloaded,
  sayBye,
  sendText,
} from './hub.js';
import { isUsable, makeSession, type Session, takeFrameToken } from './session.js';
import { followDefaults, most_last } from './subscribe.js';

/** What clients say. A frame that is not one closes the socket; one that asks amiss is answered. */

const most_held = 128;

/** One message of a socket, as it came; `raw` is read before this returns. */
export const takeMessage = (
  core: Core,
  session: Session,
  { raw, is_binary }: { readonly raw: Buffer; readonly is_binary: boolean },
) => {
  if (!isUsable(session)) return;
  core.stats.frames_in += 1;
  if (is_binary) return breakOff(core, session, 'Send text frames, not binary ones.');
  const read = core.readFrame(raw);
  const is_counted = read.kind !== 'frame' || read.frame.op.is_counted !== false;
  if (is_counted && !countFrame(core, session)) return;
  session.has_spoken ||= read.kind !== 'broken';
  if (session.held === null) receive(core, session, read);
  else hold(core, session, read);
};

/** A ping or a pong of the protocol: uWS answers it by itself, and it counts as any frame does. */
export const takeControl = (core: Core, session: Session): void => {
  if (!isUsable(session)) return;
  core.stats.frames_in += 1;
  countFrame(core, session);
};

/** Counts against the frame limit; false, and the socket is closed, when it is over. */
export const countFrame = (core: Core, session: Session): boolean => {
  const { frames_per_s, frames_burst } = core.limits;
  if (takeFrameToken(session, frames_per_s, frames_burst)) return true;
  endSession(core, session, close_codes.RATE, 'too many frames');
  return false;
};

/** Says why and closes: the client must change something before it comes back. */
export const closeFor = (core: Core, session: Session, fault: Fault): void => {
  sendText(core, session, errorFrame(fault));
  endSession(core, session, closeCodeOf(fault), fault.def.code);
};

const breakOff = (core: Core, session: Session, message: string): void => {
  sendText(core, session, errorFrame(refuse(ws_faults.INVALID_FRAME, { message })));
  endSession(core, session, close_codes.BAD_FRAME, message.slice(0, 100));
};

const answerTo = (
  core: Core,
  session: Session,
  read: Exclude<ReadFrame, { kind: 'broken' }>,
): string => {
  if (read.kind === 'refused') return errorFrame(read.fault, read.id);
  const { op, value, text, id } = read.frame;
  const given = op.take(core, session, value, text);
  return isFault(given) ? errorFrame(given, id) : given;
};

/** Does what a frame asks for and answers. */
const receive = (core: Core, session: Session, read: ReadFrame): void => {
  if (read.kind === 'broken') breakOff(core, session, read.problem);
  else sendText(core, session, answerTo(core, session, read));
};

/** Frames that come while a credential is looked up wait, so that their order keeps its meaning. */
const hold = (core: Core, session: Session, read: ReadFrame): void => {
  if (session.held !== null && session.held.length < most_held) session.held.push(read);
  else endSession(core, session, close_codes.RATE, 'too many frames');
};

/** It is known who speaks: takes what has waited for that. */
const takeHeld = (core: Core, session: Session): void => {
  const held = session.held ?? [];
  session.held = null;
  for (const read of held) {
    // A frame of these may have to ask again who speaks.
    if (session.held === null) receive(core, session, read);
    else hold(core, session, read);
  }
};

/** The socket was closed while somebody asked who it is: its connections are given back. */
const isGone = (core: Core, { ws, seats }: Session): boolean => {
  if (ws !== null) return false;
  for (const seat of seats.splice(0)) core.seats.leave(seat);
  return true;
};

/**
 * The way from an HTTP request to a socket. Every refusal is a close code and never an HTTP status,
 * because a browser cannot read the status of a failed upgrade: the socket is opened, told why, and
 * closed.
 */

const auth_deadline_ms = 5_000;

/** What uWS keeps with a socket. It hands out a shallow copy, so identity lives one level down. */
export interface Kept {
  readonly session: Session;
  readonly request: Request;
}

/** SHA-256 of whichever credential was sent, in hex; null without one. */
const digestCredential = ({ api_key, authorization }: Credentials): string | null => {
  const secret = api_key !== '' ? api_key : authorization.replace(/^Bearer\s+/i, '');
  return secret === '' ? null : sha256(secret, 'hex');
};

/** The credentials as the headers of a request. */
const headersOfCredentials = (credentials: Credentials): Record<string, string> => {
  const { api_key, authorization, admin_key } = credentials;
  return {
    ...(api_key === '' ? {} : { 'x-api-key': api_key }),
    ...(authorization === '' ? {} : { authorization }),
    ...(admin_key === '' ? {} : { 'x-admin-key': admin_key }),
  };
};

/** A socket is no admin's in particular; each call over it chooses anew. */
const any_route = { auth: 'public', takes_key: false } as const;

/** Asks who it is, within a bound; an outage is a fault too. Never rejects. */
const askWho = async (core: Core, credentials: Credentials): Promise<Caller | Fault> => {
  const { api_key, authorization, admin_key } = credentials;
  if (api_key === '' && authorization === '' && admin_key === '') return anonymous;
  const chosen = chooseCredentials(any_route, credentials);
  if (isFault(chosen)) return chosen;
  try {
    const asked = Promise.resolve(core.options.authenticate(chosen));
    return await withDeadline(asked, auth_deadline_ms, 'Authenticating a socket');
  } catch (error) {
    core.log.warn(describeError(error), 'ws: could not authenticate');
    return refuse(common_faults.UNAVAILABLE);
  }
};

/** What is kept of an upgrade request. */
interface Request {
  readonly address: Address;
  readonly credentials: Credentials;
  /** `?token=` was used: without a subscribe frame the socket receives the default topics. */
  readonly by_token: boolean;
}

const readToken = (core: Core, req: HttpRequest): Credentials | null => {
  if (req.getQuery() === '') return null;
  const token = req.getQuery('token') ?? '';
  return token === '' ? null : core.options.readToken(token.slice(0, 512));
};

const readRequest = (core: Core, remote: string, req: HttpRequest): Request => {
  const given = {
    api_key: req.getHeader('x-api-key'),
    authorization: req.getHeader('authorization'),
    admin_key: req.getHeader('x-admin-key'),
  };
  const has_header = given.api_key !== '' || given.authorization !== '' || given.admin_key !== '';
  const token = has_header ? null : readToken(core, req);
  return {
    address: core.options.readAddress(remote, req.getHeader('x-forwarded-for')),
    credentials: has_header ? given : (token ?? no_credentials),
    by_token: token !== null,
  };
};

/** Takes a connection of those that a caller or an address may have; a fault when none is left. */
const takeSeat = async (
  core: Core,
  seats: string[],
  { name, most }: { readonly name: string; readonly most: number },
): Promise<Fault | null> => {
  if (!(await core.seats.take(name, most))) return refuse(ws_faults.TOO_MANY_CONNECTIONS);
  seats.push(name);
  return null;
};

/** The connection of a caller; none is needed by nobody in particular. */
const takeKeySeat = async (core: Core, seats: string[], caller: Caller): Promise<Fault | null> => {
  const key = callerKey(caller);
  if (key === null) return null;
  return takeSeat(core, seats, { name: `key:${key}`, most: core.limits.connections_key });
};

/**
 * Answers the handshake at once, and asks who it is afterwards, in `enter`. An upgrade that follows
 * an await, in a cork, may be taken for an HTTP response and closed by the library:
 * uNetworking/uWebSockets pull request 1929.
 */
export const makeUpgrade =
  (core: Core) =>
  (res: HttpResponse, req: HttpRequest, context: us_socket_context_t): void => {
    const { limits } = core;
    const request = readRequest(core, remoteAddress(res), req);
    const session = makeSession({
      address: request.address,
      frame_tokens: limits.frames_burst,
      lifetime_ms: limits.lifetime_ms,
    });
    const key = req.getHeader('sec-websocket-key');
    const protocol = req.getHeader('sec-websocket-protocol');
    const extensions = req.getHeader('sec-websocket-extensions');
    res.upgrade<Kept>({ session, request }, key, protocol, extensions, context);
  };

/**
 * A socket that has been opened is asked who it is, and welcomed or told why not. What it says in
 * the meantime waits.
 */

const welcomeFrame = (core: Core, session: Session): string => {
  const { limits, options } = core;
  const named = callerKey(session.caller) !== null;
  return makeFrame('welcome', undefined, {
    session: session.id,
    node: options.node,
    time: new Date().toISOString(),
    as: session.caller.kind,
    head: core.head,
    oldest: options.source.oldest(),
    tick_ms: limits.tick_ms,
    limits: {
      frames_per_s: limits.frames_per_s,
      frames_burst: limits.frames_burst,
      frame_bytes: limits.frame_bytes,
      call_bytes: most_call_bytes,
      calls: limits.calls,
      topics: named ? limits.topics : limits.topics_anonymous,
      connections: named ? limits.connections_key : limits.connections_ip,
      replay_events: limits.replay_events,
      replay_span: limits.replay_span,
      last: most_last,
      backpressure_bytes: limits.backpressure_bytes,
      unread_ms: limits.unread_ms,
      hello_ms: limits.hello_ms,
      lifetime_ms: Math.round(session.ends_ms - session.opened_ms),
    },
  });
};

const decide = async (core: Core, request: Request, seats: string[]): Promise<Caller | Fault> => {
  // The hub does not know yet where the log stands, or is about to go.
  if (core.head < 0) return refuse(common_faults.UNAVAILABLE);
  if (core.draining) return anonymous;
  if (isOverloaded(core)) return refuse(common_faults.UNAVAILABLE);
  const { limit_key } = request.address;
  const full = await takeSeat(core, seats, {
    name: `address:${limit_key}`,
    most: core.limits.connections_ip,
  });
  if (full !== null) return full;
  const { admit } = core.options;
  const refused = admit === undefined ? null : await admit(request.address);
  const who = refused ?? (await askWho(core, request.credentials));
  return isFault(who) ? who : ((await takeKeySeat(core, seats, who)) ?? who);
};

const letIn = async (core: Core, { session, request }: Kept): Promise<void> => {
  const who = await decide(core, request, session.seats).catch((error: unknown) => {
    core.log.warn(describeError(error), 'ws: could not decide on a socket');
    return refuse(common_faults.UNAVAILABLE);
  });
  if (isGone(core, session)) return;
  if (core.draining) return sayBye(core, session, close_codes.DRAINING, 'draining');
  if (isFault(who)) return closeFor(core, session, who);
  session.caller = who;
  session.credential = digestCredential(request.credentials);
  session.credential_headers = headersOfCredentials(request.credentials);
  enterKey(core, session);
  core.ticker.join(session);
  sendText(core, session, welcomeFrame(core, session));
  if (request.by_token) followDefaults(core, session);
  takeHeld(core, session);
};

/** The open callback. */
export const enter = (core: Core, ws: WebSocket<Kept>): void => {
  const kept = ws.getUserData();
  kept.session.ws = ws;
  kept.session.held = [];
  core.sessions.add(kept.session);
  core.stats.opened += 1;
  letIn(core, kept).catch(core.onBug);
};

/** A socket that was opened without a credential shows it by a frame. */

const secret = Type.String({ minLength: 1, maxLength: 512 });
const auth_frame = Type.Object({
  id: frame_id,
  api_key: Type.Optional(secret),
  token: Type.Optional(secret),
});
type AuthFrame = Static<typeof auth_frame>;

const readCredentials = (core: Core, { api_key, token }: AuthFrame): Credentials | Fault => {
  if (api_key !== undefined && token !== undefined) return refuse(common_faults.AMBIGUOUS_AUTH);
  if (api_key !== undefined) return { api_key, authorization: '', admin_key: '' };
  if (token !== undefined) return core.options.readToken(token);
  return refuse(common_faults.MISSING_AUTH, { message: 'Send "api_key" or "token".' });
};

const authenticate = async (core: Core, session: Session, frame: AuthFrame): Promise<void> => {
  const { id } = frame;
  const credentials =
    session.caller.kind === 'anonymous'
      ? readCredentials(core, frame)
      : refuse(ws_faults.ALREADY_AUTHENTICATED);
  if (isFault(credentials)) return sendText(core, session, errorFrame(credentials, id));
  session.held = [];
  const who = await askWho(core, credentials);
  const refused = isFault(who) ? who : await takeKeySeat(core, session.seats, who);
  if (isGone(core, session)) return;
  if (refused !== null || isFault(who)) {
    const fault = refused ?? (who as Fault);
    sendText(core, session, errorFrame(fault, id));
    endSession(core, session, closeCodeOf(fault), fault.def.code);
    return;
  }
  session.caller = who;
  session.credential = digestCredential(credentials);
  session.credential_headers = headersOfCredentials(credentials);
  enterKey(core, session);
  sendText(core, session, makeFrame('authenticated', id, { as: session.caller.kind }));
  takeHeld(core, session);
};

export const auth_op = defineOp({
  schema: auth_frame,
  take: (core, session, frame) => {
    authenticate(core, session, frame).catch((error: unknown) => core.onBug(error));
    return '';
  },
});
