import { type Fault, isFault, refuse } from '../fault.js';
import { close_codes, closeCodeOf } from './close-codes.js';
import { type Core, endSession, sendText } from './core.js';
import { errorFrame, ws_faults } from './frames.js';
import type { Frame } from './ops.js';
import { isUsable, type Session, takeFrameToken } from './session.js';

/** What clients say. A frame that is not one closes the socket; one that asks amiss is answered. */

const most_held = 32;

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
  if (read.kind === 'broken') return breakOff(core, session, read.problem);
  session.has_spoken = true;
  if (read.kind === 'refused') sendText(core, session, errorFrame(read.fault, read.id));
  else receive(core, session, read.frame);
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

/** Does what a frame asks for and answers. */
export const receive = (core: Core, session: Session, frame: Frame): void => {
  if (session.held !== null) hold(core, session, frame);
  else {
    const given = frame.op.take(core, session, frame.value, frame.text);
    sendText(core, session, isFault(given) ? errorFrame(given, frame.id) : given);
  }
};

/** Frames that come while a credential is looked up wait, so that their order keeps its meaning. */
const hold = (core: Core, session: Session, frame: Frame): void => {
  if (session.held !== null && session.held.length < most_held) session.held.push(frame);
  else endSession(core, session, close_codes.RATE, 'too many frames');
};
