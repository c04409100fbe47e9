import { setTimeout as pause } from 'node:timers/promises';
import { whyNoMember } from '../../http/caller.js';
import { isFault, refuse } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import { isOutage } from '../../kit/outage.js';
import { errorFrame, makeFrame } from '../../socket/frames.js';
import { defineOp, type Ops, type Session } from '../../socket/session.js';
import { untilRead } from '../../socket/subscribe.js';
import { type ConsumeFrame, cancel_frame, consume_frame, usual } from './schema.js';
import type { ConsumerKey } from './store.js';
import {
  type ConsumerParts,
  deliveryText,
  type Owning,
  refuseMembers,
  type Taken,
} from './taking.js';

/**
 * Consumers over the socket. `consume` makes the socket a member, and events are pushed until the
 * member has too many unacknowledged ones. The client acknowledges with calls, as over HTTP.
 */

interface Consumption {
  /** When this connection ends, its events become free again. */
  readonly connection: string;
  is_over: boolean;
  /** Ends the current wait. */
  end: () => void;
}

/** Maximum number of events per push. Even the longest events fit into a socket's unread limit. */
const pushed_most = 20;
const wait_ms = 25_000;
const retry_ms = 1_000;

export const makeConsumeOps = ({ consumers }: ConsumerParts): Ops => {
  /** For each socket, the consumers that push events to it, by name. */
  const open = new WeakMap<Session, Map<string, Consumption>>();

  const cancel = (session: Session, name: string): boolean => {
    const consumption = open.get(session)?.get(name);
    if (consumption === undefined) return false;
    open.get(session)?.delete(name);
    consumption.is_over = true;
    consumption.end();
    return true;
  };

  const push = async (session: Session, frame: ConsumeFrame, one: Consumption): Promise<void> => {
    const { consumer: name, member, in_flight = usual.in_flight } = frame;
    const { connection } = one;
    const request = { ...keyOf(session, name), member, connection, max_held: in_flight };
    const { unread_ms } = session.core.limits;
    while (!one.is_over && (await untilRead(session, performance.now() + unread_ms))) {
      const taken = await consumers.take(
        { ...request, limit: pushed_most },
        {
          within_ms: wait_ms,
          goesOn: () => !one.is_over,
          onWait: (end) => {
            one.end = end;
          },
        },
      );
      if (isFault(taken)) {
        session.send(errorFrame(taken, frame.id));
        return;
      }
      session.sendAll(framesOf(name, taken));
    }
  };

  /** Pushes events until the socket is closed. Continues after an outage of Postgres. */
  const run = async (session: Session, frame: ConsumeFrame, one: Consumption): Promise<void> => {
    const onClosed = (): void => {
      if (session.is_ending) cancel(session, frame.consumer);
    };
    session.on_read.add(onClosed);
    while (!one.is_over && session.is_usable) {
      try {
        await push(session, frame, one);
        break;
      } catch (error) {
        if (!isOutage(error)) session.core.onBug(error);
        await pause(retry_ms, undefined, { ref: false });
      }
    }
    session.on_read.delete(onClosed);
    if (!one.is_over) cancel(session, frame.consumer);
    await free(keyOf(session, frame.consumer), one);
  };

  /**
   * Frees the unacknowledged events of a connection. If Postgres is unavailable, their leases
   * expire instead.
   */
  const free = async (key: ConsumerKey, { connection }: Consumption): Promise<void> => {
    try {
      await consumers.end(key, connection);
    } catch (error) {
      if (!isOutage(error)) throw error;
    }
  };

  return {
    consume: defineOp({
      schema: consume_frame,
      take(session, frame) {
        const { id, consumer, member, in_flight = usual.in_flight } = frame;
        const unknown = refuseMembers(frame, consume_frame, 'frame');
        if (unknown !== null) return unknown;
        const why_not = whyNoMember(session.caller);
        if (why_not !== null) return refuse(why_not);
        cancel(session, consumer);
        const one = { connection: makeId(), is_over: false, end: () => undefined };
        const all = open.get(session) ?? new Map<string, Consumption>();
        open.set(session, all.set(consumer, one));
        run(session, frame, one).catch(session.core.onBug);
        return makeFrame('consuming', id, { consumer, member, in_flight });
      },
    }),
    cancel: defineOp({
      schema: cancel_frame,
      take(session, { id, consumer }) {
        cancel(session, consumer);
        return makeFrame('cancelled', id, { consumer });
      },
    }),
  };
};

const keyOf = (session: Session, name: string) => ({ owner: session.caller as Owning, name });

const framesOf = (consumer: string, { events, gap }: Taken): readonly string[] => {
  const backfill = `/api/me/consumers/${consumer}`;
  const lost = { topic: `consumer:${consumer}`, ...gap, reason: 'expired', backfill };
  const start = `{"op":"delivery","consumer":"${consumer}",`;
  return [
    ...(gap === null ? [] : [makeFrame('gap', undefined, lost)]),
    ...events.map((event) => start + deliveryText(event).slice(1)),
  ];
};
