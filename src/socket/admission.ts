import { type Static, Type } from '@sinclair/typebox';
import { readSession } from '../http/call.js';
import { anonymous, type Caller, callerKey } from '../http/caller.js';
import { type Credentials, chooseCredentials, no_credentials } from '../http/credentials.js';
import {
  type HttpRequest,
  type HttpResponse,
  readCookies,
  remoteAddress,
  type us_socket_context_t,
} from '../http/uws.js';
import { common_faults, type Fault, isFault, refuse } from '../kit/fault.js';
import { sha256 } from '../kit/ids.js';
import { describeError } from '../kit/log.js';
import { withDeadline } from '../kit/service.js';
import { max_call_bytes } from './calls.js';
import {
  close_codes,
  closeCodeOf,
  errorFrame,
  type FrameId,
  frame_id,
  makeFrame,
  type ReadFrame,
  ws_faults,
} from './frames.js';
import { type Core, closeSilent, defineOp, isOverloaded, type Op, Session } from './session.js';
import { followDefaults, max_last } from './subscribe.js';

/**
 * Turns an HTTP request into a socket with a caller, and then takes the caller's frames. Every
 * refusal is a close code and never an HTTP status, because a browser cannot read the status of a
 * failed upgrade. So the socket is opened, gets the reason, and is closed. Frames that come during
 * the lookup of a credential wait, so that they are handled in order.
 */

const auth_deadline_ms = 5_000;
const max_held = 128;

/**
 * uWS stores this with a socket, but hands out shallow copies. Only the session keeps its identity.
 */
export interface SocketData {
  readonly session: Session;
}

/**
 * Answers the handshake immediately and looks up the credential afterwards. If an upgrade follows
 * an await inside a cork, the library may take it for an HTTP response and close it:
 * uNetworking/uWebSockets pull request 1929.
 */
export const upgrade = (
  core: Core,
  res: HttpResponse,
  req: HttpRequest,
  context: us_socket_context_t,
): void => {
  const given = {
    api_key: req.getHeader('x-api-key'),
    authorization: req.getHeader('authorization'),
    admin_key: req.getHeader('x-admin-key'),
  };
  const token = hasAny(given) || req.getQuery() === '' ? '' : (req.getQuery('token') ?? '');
  const own = core.options.origin?.() ?? '';
  const is_own = own !== '' && req.getHeader('origin') === own;
  const has_other = hasAny(given) || token !== '';
  const cookie = is_own && !has_other ? readSession(readCookies(req), own) : '';
  const secret = (token === '' ? cookie : token).slice(0, 512);
  const session = new Session(core, {
    address: core.options.readAddress(remoteAddress(res), req.getHeader('x-forwarded-for')),
    credentials: secret === '' ? given : core.options.readToken(secret),
    by_token: token !== '',
    by_cookie: cookie !== '',
  });
  const key = req.getHeader('sec-websocket-key');
  const protocol = req.getHeader('sec-websocket-protocol');
  const extensions = req.getHeader('sec-websocket-extensions');
  res.upgrade<SocketData>({ session }, key, protocol, extensions, context);
};

const hasAny = ({ api_key, authorization, admin_key }: Credentials): boolean =>
  api_key !== '' || authorization !== '' || admin_key !== '';

/** Time to ask the other processes (half a second) and to close a silent socket. */
const ask_others_ms = 1_000;

/** Sends the reason and closes. The client must change something, or wait, before it comes back. */
export const closeFor = (session: Session, fault: Fault, id?: FrameId): void => {
  if (fault.def === ws_faults.TOO_MANY_CONNECTIONS) {
    const retry_after_ms = session.core.limits.alive_ms + ask_others_ms;
    session.sayBye(close_codes.TOO_MANY_CONNECTIONS, fault.def.code, { retry_after_ms });
    return;
  }
  session.send(errorFrame(fault, id));
  session.end(closeCodeOf(fault), fault.def.code);
};

/** Looks up the caller of an opened socket, then welcomes the socket or says why not. */
export const admit = async (session: Session): Promise<void> => {
  const { core, request } = session;
  const caller = await decide(session).catch((error: unknown) => {
    core.log.warn(describeError(error), 'ws: could not admit a socket');
    return refuse(common_faults.UNAVAILABLE);
  });
  if (isGone(session)) return;
  if (core.draining) return session.sayBye(close_codes.DRAINING, 'draining');
  if (isFault(caller)) return closeFor(session, caller);
  identify(session, caller, request.credentials);
  session.tick_due_ms = nextTick(core);
  session.send(welcomeFrame(session));
  if (request.by_token) followDefaults(session);
  takeHeld(session);
};

/** Returns when the next tick is due: after the interval ± 10 %, so that ticks are spread. */
export const nextTick = ({ limits }: Core): number =>
  performance.now() + limits.tick_ms * (0.9 + 0.2 * Math.random());

const decide = async (session: Session): Promise<Caller | Fault> => {
  const { core, request } = session;
  if (core.draining) return anonymous;
  // A negative head means that the hub does not know the head of the log yet.
  if (core.head < 0 || isOverloaded(core)) return refuse(common_faults.UNAVAILABLE);
  const { limit_key } = request.address;
  const full = await count(session, `address:${limit_key}`, core.limits.connections_ip);
  const refused = full ?? (await core.options.admit?.(request.address)) ?? null;
  if (refused !== null) return refused;
  const caller = await findCaller(session, request.credentials);
  const has_ended = isFault(caller) && caller.def === common_faults.INVALID_TOKEN;
  return has_ended && request.by_cookie ? anonymous : caller;
};

/** Takes one of the connections of a caller or an address. Returns a fault if all are in use. */
const count = async (session: Session, name: string, most: number): Promise<Fault | null> => {
  if (!(await session.core.connections.take(name, most))) {
    closeSilent(session.core, name);
    return refuse(ws_faults.TOO_MANY_CONNECTIONS);
  }
  session.countAs(name);
  return null;
};

/** A socket's credentials are chosen as on a public route; a call's, as on the route it calls. */
const any_route = { auth: 'public', takes_key: false } as const;

/** Returns the caller if there is room for one more socket; otherwise, or in an outage, a fault. */
const findCaller = async (session: Session, given: Credentials): Promise<Caller | Fault> => {
  const { options, limits, log } = session.core;
  if (!hasAny(given)) return anonymous;
  const chosen = chooseCredentials(any_route, given);
  if (isFault(chosen)) return chosen;
  try {
    const lookup = Promise.resolve(options.authenticate(chosen));
    const caller = await withDeadline(lookup, auth_deadline_ms, 'Authenticating a socket');
    const key = isFault(caller) ? null : callerKey(caller);
    if (key === null) return caller;
    return (await count(session, `key:${key}`, limits.connections_key)) ?? caller;
  } catch (error) {
    log.warn(describeError(error), 'ws: could not authenticate');
    return refuse(common_faults.UNAVAILABLE);
  }
};

/** From now on the socket speaks for this caller. */
const identify = (session: Session, caller: Caller, credentials: Credentials): void => {
  const { api_key, authorization, admin_key } = credentials;
  const secret = api_key !== '' ? api_key : authorization.replace(/^Bearer\s+/i, '');
  session.credential = secret === '' ? null : sha256(secret, 'hex');
  const headers = { 'x-api-key': api_key, authorization, 'x-admin-key': admin_key };
  session.credential_headers = Object.fromEntries(
    Object.entries(headers).filter(([, value]) => value !== ''),
  );
  session.caller = caller;
};

/**
 * True if the socket closed during the lookup of its caller. Then its connections no longer count.
 */
const isGone = (session: Session): boolean => {
  if (session.ws !== null) return false;
  session.uncount();
  return true;
};

const welcomeFrame = ({ id, caller, core, ends_ms, opened_ms }: Session): string => {
  const { limits, options, head } = core;
  const { frames_per_s, frames_burst, frame_bytes, calls, replay_events, replay_span } = limits;
  const { backpressure_bytes, unread_ms, hello_ms } = limits;
  const is_named = callerKey(caller) !== null;
  return makeFrame('welcome', undefined, {
    session: id,
    node: options.node,
    time: new Date().toISOString(),
    as: caller.kind,
    head,
    oldest: options.source.oldest(),
    tick_ms: limits.tick_ms,
    limits: {
      frames_per_s,
      frames_burst,
      frame_bytes,
      call_bytes: max_call_bytes,
      calls,
      topics: is_named ? limits.topics : limits.topics_anonymous,
      connections: is_named ? limits.connections_key : limits.connections_ip,
      replay_events,
      replay_span,
      last: max_last,
      backpressure_bytes,
      unread_ms,
      hello_ms,
      lifetime_ms: Math.round(ends_ms - opened_ms),
    },
  });
};

const secret = Type.String({ minLength: 1, maxLength: 512 });
const auth_frame = Type.Object({
  id: frame_id,
  api_key: Type.Optional(secret),
  token: Type.Optional(secret),
});

const readCredentials = (
  { caller, core }: Session,
  { api_key, token }: Static<typeof auth_frame>,
): Credentials | Fault => {
  if (caller.kind !== 'anonymous') return refuse(ws_faults.ALREADY_AUTHENTICATED);
  if (api_key !== undefined && token !== undefined) return refuse(common_faults.AMBIGUOUS_AUTH);
  if (api_key !== undefined) return { ...no_credentials, api_key };
  if (token !== undefined) return core.options.readToken(token);
  return refuse(common_faults.MISSING_AUTH, { message: 'Send "api_key" or "token".' });
};

const authenticate = async (
  session: Session,
  credentials: Credentials,
  id: FrameId,
): Promise<void> => {
  session.held = [];
  const caller = await findCaller(session, credentials);
  if (isGone(session)) return;
  if (isFault(caller)) return closeFor(session, caller, id);
  identify(session, caller, credentials);
  session.send(makeFrame('authenticated', id, { as: caller.kind }));
  takeHeld(session);
};

/** Authenticates a socket that was opened without a credential. */
export const auth_op = defineOp({
  schema: auth_frame,
  take(session, frame) {
    const credentials = readCredentials(session, frame);
    if (isFault(credentials)) return credentials;
    authenticate(session, credentials, frame.id).catch(session.core.onBug);
    return '';
  },
});

/** Handles one message of a socket. `raw` is read before this returns. */
export const takeMessage = (session: Session, raw: Buffer, is_binary: boolean) => {
  const { core } = session;
  session.heard_ms = performance.now();
  if (!session.is_usable) return;
  core.stats.frames_in += 1;
  if (is_binary) return breakOff(session, 'Send text frames, not binary ones.');
  const read = core.readFrame(raw);
  const is_counted = !('op' in read) || read.op.is_counted !== false;
  if (is_counted && !session.countFrame()) return;
  session.has_spoken ||= !('problem' in read);
  receive(session, read);
};

/** Handles a ping or a pong of the protocol. uWS answers it, and it counts like any other frame. */
export const takeControl = (session: Session): void => {
  session.heard_ms = performance.now();
  if (!session.is_usable) return;
  session.core.stats.frames_in += 1;
  session.countFrame();
};

const breakOff = (session: Session, message: string): void => {
  session.send(errorFrame(refuse(ws_faults.INVALID_FRAME, { message })));
  session.end(close_codes.BAD_FRAME, message.slice(0, 100));
};

/** Acts on a frame, or holds it while the caller is looked up. */
const receive = (session: Session, read: ReadFrame<Op>) => {
  if (session.held !== null) {
    if (session.held.length < max_held) session.held.push(read);
    else session.end(close_codes.RATE, 'too many frames');
    return;
  }
  if ('problem' in read) return breakOff(session, read.problem);
  const given = 'op' in read ? read.op.take(session, read.value, read.text) : read.fault;
  session.send(isFault(given) ? errorFrame(given, read.id) : given);
};

/** Handles the held frames. If one of them is an `auth`, the ones after it wait again. */
const takeHeld = (session: Session): void => {
  const held = session.held ?? [];
  session.held = null;
  for (const read of held) receive(session, read);
};
