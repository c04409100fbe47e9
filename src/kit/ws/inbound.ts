import { type Fault, isFault, refuse } from '../fault.js';
import { close_codes, closeCodeOf } from './close-codes.js';
import { type Core, endSession, sendText } from './core.js';
import { errorFrame, ws_faults } from './frames.js';
import type { ReadFrame } from './ops.js';
import { isUsable, type Session, takeFrameToken } from './session.js';

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
export const takeHeld = (core: Core, session: Session): void => {
  const held = session.held ?? [];
  session.held = null;
  for (const read of held) {
    // A frame of these may have to ask again who speaks.
    if (session.held === null) receive(core, session, read);
    else hold(core, session, read);
  }
};

/** The socket was closed while somebody asked who it is: its connections are given back. */
export const isGone = (core: Core, { ws, seats }: Session): boolean => {
  if (ws !== null) return false;
  for (const seat of seats.splice(0)) core.seats.leave(seat);
  return true;
};
