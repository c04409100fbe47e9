import { common_faults, type Fault, isFault, refuse } from '../fault.js';
import { type Credentials, chooseCredentials, no_credentials } from '../http/pipeline.js';
import type { Address } from '../http/request.js';
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
import type { Core } from './core.js';
import { ws_faults } from './frames.js';
import { makeSession, type Session } from './session.js';

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
export const digestCredential = ({ api_key, authorization }: Credentials): string | null => {
  const secret = api_key !== '' ? api_key : authorization.replace(/^Bearer\s+/i, '');
  return secret === '' ? null : sha256(secret, 'hex');
};

/** The credentials as the headers of a request. */
export const headersOfCredentials = (credentials: Credentials): Record<string, string> => {
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
export const askWho = async (core: Core, credentials: Credentials): Promise<Caller | Fault> => {
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
export interface Request {
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
export const takeSeat = async (
  core: Core,
  seats: string[],
  { name, most }: { readonly name: string; readonly most: number },
): Promise<Fault | null> => {
  if (!(await core.seats.take(name, most))) return refuse(ws_faults.TOO_MANY_CONNECTIONS);
  seats.push(name);
  return null;
};

/** The connection of a caller; none is needed by nobody in particular. */
export const takeKeySeat = async (
  core: Core,
  seats: string[],
  caller: Caller,
): Promise<Fault | null> => {
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
