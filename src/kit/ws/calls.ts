import { isFault, refuse } from '../fault.js';
import type { Mounted } from '../http/mount.js';
import { close_codes } from './close-codes.js';
import { type Core, endSession, sendText } from './core.js';
import { ws_faults } from './frames.js';
import { countFrame } from './inbound.js';
import { defineOp, type Op } from './ops.js';
import { type CallLine, isUsable, type Session } from './session.js';
import { call_frame, makeSocketCall, type SocketCall } from './socket-call.js';

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
