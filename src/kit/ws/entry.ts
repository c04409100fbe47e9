import type { Fault } from '../fault.js';
import { common_faults, isFault, refuse } from '../fault.js';
import type { WebSocket } from '../http/request.js';
import { anonymous, type Caller, callerKey } from '../http/route.js';
import { describeError } from '../log.js';
import { most_call_bytes } from './calls.js';
import { close_codes } from './close-codes.js';
import { type Core, enterKey, isOverloaded, sayBye, sendText } from './core.js';
import { makeFrame } from './frames.js';
import { closeFor, isGone, takeHeld } from './inbound.js';
import type { Session } from './session.js';
import { followDefaults, most_last } from './subscribe.js';
import {
  askWho,
  digestCredential,
  headersOfCredentials,
  type Kept,
  type Request,
  takeKeySeat,
  takeSeat,
} from './upgrade.js';

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
