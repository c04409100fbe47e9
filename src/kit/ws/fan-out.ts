import { type Channel, leaveChannel, passes } from './channels.js';
import { type Core, isOverloaded, lookUnread, markBroken } from './core.js';
import { eventFrame, frameTail, type Publication } from './frames.js';
import { startReplay } from './replay.js';
import { isUsable, type Join, type Session } from './session.js';

/**
 * From publications to sockets. A frame is made once for each topic that has listeners; each socket
 * gets its part of a batch in one write. The library's own publish is not used: it drops frames for
 * a slow reader and goes on behind the hole without a word about where it was, so a client could
 * resume from behind what it missed. Here each socket stands at a known offset at any time, and one
 * that does not read leaves the live stream there, to be brought up again at its own pace.
 */

/** Bytes that may be sent between two looks at what is unread. */
const look_every_bytes = 32_768;

/** While all sockets together leave too much unread, each may leave this part of its own limit. */
const overload_share = 16;

/** Frames in the order of their offsets; of one publication several may follow each other. */
interface Frames {
  readonly texts: Buffer[];
  readonly offsets: number[];
  bytes: number;
}

interface Queued {
  /** For sockets with one topic, which are most: all of a channel get the same. */
  readonly by_channel: Map<Channel, Frames>;
  /** For sockets with several, each its own, so that they are in order across its topics. */
  readonly by_session: Map<Session, Frames>;
}

/** Sends a batch, in order, to the sockets that listen to its topics. */
export const fanOut = (core: Core, batch: readonly Publication[]): void => {
  if (core.channels.size === 0) return;
  const queued: Queued = { by_channel: new Map(), by_session: new Map() };
  for (const publication of batch) queue(core, publication, queued);
  for (const [{ sessions }, frames] of queued.by_channel) {
    for (const session of sessions) if (session.topics.size === 1) flush(core, session, frames);
  }
  for (const [session, frames] of queued.by_session) flush(core, session, frames);
};

const add = <K>(lists: Map<K, Frames>, key: K, text: Buffer, offset: number): void => {
  let frames = lists.get(key);
  if (frames === undefined) {
    frames = { texts: [], offsets: [], bytes: 0 };
    lists.set(key, frames);
  }
  frames.texts.push(text);
  frames.offsets.push(offset);
  frames.bytes += text.byteLength;
};

const queue = (core: Core, publication: Publication, queued: Queued): void => {
  let tail: string | undefined;
  const { offset } = publication;
  for (const { topic } of publication.topics) {
    const channels = core.channels.get(topic);
    if (channels === undefined) continue;
    for (const channel of channels.values()) {
      if (!passes(channel, publication)) continue;
      tail ??= frameTail(publication);
      const text = Buffer.from(eventFrame(channel, offset, tail));
      channel.prev = offset;
      add(queued.by_channel, channel, text, offset);
      for (const session of channel.sessions) {
        if (session.topics.size > 1) add(queued.by_session, session, text, offset);
      }
    }
  }
};

const flush = (core: Core, session: Session, frames: Frames): void => {
  let stopped: number | null = null;
  try {
    if (isUsable(session)) {
      session.ws?.cork(() => {
        stopped = sendAll(core, session, frames);
      });
    }
    if (stopped !== null) leaveLive(core, session, stopped);
  } catch (error) {
    core.onBug(error);
  }
};

/** Sends whole events only; the offset behind which it stopped, or null when all are sent. */
const sendAll = (core: Core, session: Session, frames: Frames): number | null => {
  const { ws } = session;
  if (ws === null) return null;
  const { texts, offsets } = frames;
  const { backpressure_bytes } = core.limits;
  let unread = lookUnread(core, session);
  const most = isOverloaded(core) ? backpressure_bytes / overload_share : backpressure_bytes;
  // Nearly always all of it fits, and nothing has to be looked at in between.
  const fits = unread + frames.bytes <= most;
  let since_look = 0;
  let last = -1;
  for (let i = 0; i < texts.length; i += 1) {
    const text = texts[i] as Buffer;
    if (!fits) {
      const offset = offsets[i] as number;
      if (since_look > look_every_bytes || unread + since_look > most) {
        unread = lookUnread(core, session);
        since_look = 0;
      }
      if (offset !== last && unread > most) return offset - 1;
      last = offset;
      since_look += text.byteLength;
    }
    if (ws.send(text, false, false) === 2) {
      markBroken(core, session);
      return null;
    }
  }
  return null;
};

/** Takes the socket out of the live stream behind `cursor`, and starts to bring it up again. */
const leaveLive = (core: Core, session: Session, cursor: number): void => {
  core.stats.slow += 1;
  const refs = new Map(session.topics);
  const join: Join = { refs, prevs: new Map(), cursor, is_slow: true };
  for (const topic of refs.keys()) leaveChannel(core, session, topic);
  startReplay(core, session, { join, id: undefined, from: 'cursor' });
};
