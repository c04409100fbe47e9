import { setTimeout as wait } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import { makeId } from '../ids.js';
import { describeError } from '../log.js';
import { makeLoop } from '../loop.js';
import { loadScript } from '../redis/client.js';
import type { Service } from '../service.js';

/**
 * How many connections there are under a name, over all processes. Each process says in Redis how
 * many it has, as absolute numbers, and twice a second that it lives; one that was killed counts no
 * more a moment later. Nothing is believed for long: a Redis that was emptied is told everything
 * again, and while it is away each process holds the limit by itself.
 */
export interface Seats {
  /** Takes one of `most`; false when none is left. Never rejects. */
  take(name: string, most: number): Promise<boolean>;
  leave(name: string): void;
}

export interface SharedSeats extends Seats, Service {}

export interface SeatOptions {
  readonly redis: Redis;
  readonly prefix: string;
  readonly log: Logger;
  /** How long a process counts after it was last heard of; for tests. */
  readonly counts_ms?: number;
}

const takeSeat = loadScript('seat-2.lua');
const sayPresent = loadScript('presence-1.lua');

const say_every_ms = 500;
const usual_counts_ms = 2_500;
const look_every_ms = 250;
/** Seats that nobody keeps up are forgotten after the longest life of a socket. */
const kept_ms = 6 * 3_600_000;
const chunk = 500;

/** Counts by name, of one process. */
export const makeCounts = () => {
  const counts = new Map<string, number>();
  return {
    counts,
    of: (name: string): number => counts.get(name) ?? 0,
    add(name: string, change: 1 | -1): number {
      const count = (counts.get(name) ?? 0) + change;
      if (count > 0) counts.set(name, count);
      else counts.delete(name);
      return count;
    },
  };
};

/** For one process alone. */
export const makeOwnSeats = (): Seats => {
  const own = makeCounts();
  return {
    async take(name, most) {
      if (own.of(name) >= most) return false;
      own.add(name, 1);
      return true;
    },
    leave: (name) => void own.add(name, -1),
  };
};

interface Parts extends Required<SeatOptions> {
  readonly own: ReturnType<typeof makeCounts>;
  /** The name of this process. */
  readonly me: string;
  readonly processes_key: string;
}

const seatKey = ({ prefix }: Parts, name: string): string => `${prefix}:{ws}:seats:${name}`;

/**
 * A process that was killed a moment ago still counts, and its sockets come here. So nobody is
 * refused before all processes that have seats have said again that they live.
 */
const ask = async (parts: Parts, name: string, most: number): Promise<boolean> => {
  const { redis, own, me, processes_key, counts_ms } = parts;
  let asked = 0;
  for (let waited_ms = 0; ; waited_ms += look_every_ms) {
    if (redis.status !== 'ready') return true;
    const args = [me, own.of(name) - 1, most, asked, counts_ms, kept_ms];
    asked = Number(await takeSeat(redis, [processes_key, seatKey(parts, name)], args));
    if (asked <= 1 || waited_ms > counts_ms) return asked === 1;
    await wait(look_every_ms);
  }
};

/** A write that is lost is made good by the next one, or when this process counts anew. */
const tell = (parts: Parts, name: string): void => {
  const { redis, own, me } = parts;
  if (redis.status !== 'ready') return;
  const key = seatKey(parts, name);
  const count = own.of(name);
  const told = count > 0 ? redis.hset(key, me, count) : redis.hdel(key, me);
  told.catch(() => undefined);
};

const tellAll = async (parts: Parts): Promise<void> => {
  const { redis, own, me } = parts;
  const names = [...own.counts.keys()];
  for (let from = 0; from < names.length; from += chunk) {
    const pipeline = redis.pipeline();
    for (const name of names.slice(from, from + chunk)) {
      const key = seatKey(parts, name);
      const count = own.of(name);
      if (count > 0) pipeline.hset(key, me, count).pexpire(key, kept_ms);
    }
    await pipeline.exec();
  }
};

const saySo = async (parts: Parts): Promise<'rest'> => {
  const { redis, log, me, processes_key, counts_ms } = parts;
  if (redis.status !== 'ready') return 'rest';
  try {
    const is_known = await sayPresent(redis, [processes_key], [me, counts_ms]);
    if (is_known === 0) await tellAll(parts);
  } catch (error) {
    log.warn(describeError(error), 'seats: Redis does not answer');
  }
  return 'rest';
};

export const createSeats = (options: SeatOptions): SharedSeats => {
  const { redis, prefix, log, counts_ms = usual_counts_ms } = options;
  const own = makeCounts();
  const processes_key = `${prefix}:{ws}:processes`;
  const parts: Parts = { ...options, counts_ms, own, me: makeId(), processes_key };
  const turn = () => saySo(parts);
  const loop = makeLoop({ name: 'seats', log, every_ms: say_every_ms, turn });
  const leave = (name: string): void => {
    own.add(name, -1);
    tell(parts, name);
  };
  return {
    name: 'seats',
    async take(name, most) {
      if (own.of(name) >= most) return false;
      own.add(name, 1);
      try {
        if (await ask(parts, name, most)) return true;
      } catch (error) {
        log.warn(describeError(error), 'seats: Redis did not answer, the limit holds here alone');
        return true;
      }
      leave(name);
      return false;
    },
    leave,
    start: () => loop.start(),
    async stop() {
      await loop.stop();
      if (redis.status === 'ready')
        await redis.zrem(processes_key, parts.me).catch(() => undefined);
    },
  };
};
