import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { makeId } from '../kit/ids.js';
import { describeError } from '../kit/log.js';
import { makeLoop } from '../kit/loop.js';
import type { Service } from '../kit/service.js';
import { joinChannel, loadScript, type RedisClient } from './client.js';

/**
 * Work that costs less where the like of it is done, because it shares a transaction and what was
 * read before: it is handed over to the process that owns its subject, over Redis.
 *
 * Every process says twice a second that it lives. The owner of a subject is found by rendezvous
 * hashing among some processes of each host, so that all processes name the same one, and only the
 * subjects of a process that went away move.
 *
 * Two processes may believe for a moment that they own a subject, and work may be done twice: it
 * must be safe under both, by a lock or a key in Postgres. So whatever goes wrong with the owner
 * (it does not live, fails, is too slow, or Redis is away), the work is done here.
 */

/** One kind of work; argument and result go through JSON. */
export interface Work<A, R> {
  readonly name: string;
  readonly subjectOf: (argument: A) => string;
  /** `tried_ms`: it was handed over at that time of the clock, and may have been done there. */
  readonly run: (argument: A, tried_ms: number | null) => Promise<R>;
}

export interface HandOver extends Service {
  /** Declares work; the function does it at the owner of its subject. */
  share<A, R>(work: Work<A, R>): (argument: A) => Promise<R>;
}

export interface HandOverOptions {
  readonly redis: RedisClient;
  readonly openSubscriber: () => Promise<RedisClient>;
  readonly prefix: string;
  readonly log: Logger;
  /** Number among the processes of this host. */
  readonly index: number;
  /** A clock that all processes share. */
  readonly clock: () => Date;
}

type Call = readonly [number: number, name: string, argument: unknown];
/** Without a result: it failed. */
type Result = readonly [number: number, result?: unknown];

interface Message {
  readonly from: string;
  readonly sent_ms: number;
  readonly calls: Call[];
  readonly results: Result[];
}

interface Waiting {
  readonly owner: string;
  readonly since_ms: number;
  settle(result: Result | null): void;
}

const writePresence = loadScript('presence-1.lua');

/** Of more owners each has smaller batches, which cost more; one owner keeps up with so many. */
const processes_an_owner = 4;
const every_ms = 500;
/** A process that has not said so for longer does not live. */
const lives_ms = 2_000;
/** The owner leaves alone what comes later. */
const late_ms = 2_000;
/** What has no result by then is done here. */
const patience_ms = 4_000;

/** FNV-1a, and a last mix: names that differ at their end only would be close to each other. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let n = 0; n < text.length; n += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(n), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
};

/** Rendezvous hashing: the member with the highest hash together with the subject. */
export const ownerOf = (members: readonly string[], subject: string): string | undefined => {
  if (members.length < 2) return members[0];
  let [owner, highest]: [string | undefined, number] = [undefined, -1];
  for (const member of members) {
    const hash = hashOf(`${subject} ${member}`);
    if (hash > highest) [owner, highest] = [member, hash];
  }
  return owner;
};

/** The first of each four processes of a host; names are `host/number/id`. */
export const ownersAmong = (names: readonly string[]): readonly string[] => {
  const hosts = new Map<string, { readonly name: string; readonly index: number }[]>();
  for (const name of names) {
    const [host = '', index] = name.split('/');
    hosts.set(host, [...(hosts.get(host) ?? []), { name, index: Number(index) }]);
  }
  return [...hosts.values()].flatMap((processes) =>
    processes
      .sort((a, b) => a.index - b.index)
      .slice(0, Math.ceil(processes.length / processes_an_owner))
      .map(({ name }) => name),
  );
};

export const createHandOver = (options: HandOverOptions): HandOver => {
  const { redis, openSubscriber, prefix, log, index, clock } = options;
  const own_name = `${hostname()}-${process.ppid}/${index}/${makeId()}`;
  const members_key = `${prefix}:{hand-over}:processes`;
  const channelOf = (name: string): string => `${prefix}:hand-over:${name}`;
  const works = new Map<string, Work<unknown, unknown>>();
  const waiting = new Map<number, Waiting>();
  const outbox = new Map<string, Message>();
  /** What this process does for others. */
  const running = new Set<Promise<void>>();
  let members: readonly string[] = [];
  let next_number = 0;
  let subscriber: RedisClient | null = null;

  const settle = (fits: (one: Waiting) => boolean): void => {
    for (const [number, one] of waiting) {
      if (!fits(one)) continue;
      waiting.delete(number);
      one.settle(null);
    }
  };

  const drop = (name: string): void => {
    members = members.filter((member) => member !== name);
    settle(({ owner }) => owner === name);
  };

  const send = async (name: string): Promise<void> => {
    const message = outbox.get(name);
    outbox.delete(name);
    const heard = await redis.spublish(channelOf(name), JSON.stringify(message)).catch(() => 0);
    if (heard === 0) drop(name);
  };

  /** What is written to a process in one turn of the event loop goes as one message. */
  const messageTo = (name: string): Message => {
    const known = outbox.get(name);
    if (known !== undefined) return known;
    const message = { from: own_name, sent_ms: clock().getTime(), calls: [], results: [] };
    outbox.set(name, message);
    setImmediate(() => void send(name));
    return message;
  };

  const serve = async (from: string, [number, name, argument]: Call): Promise<void> => {
    const result = await works
      .get(name)
      ?.run(argument, null)
      .then(
        (done): Result => [number, done],
        () => undefined,
      );
    messageTo(from).results.push(result ?? [number]);
  };

  const receive = (text: string): void => {
    const { from, sent_ms, calls, results } = JSON.parse(text) as Message;
    for (const result of results) {
      const one = waiting.get(result[0]);
      waiting.delete(result[0]);
      one?.settle(result);
    }
    if (clock().getTime() - sent_ms > late_ms) return;
    for (const call of calls) {
      const served = serve(from, call);
      running.add(served);
      void served.finally(() => running.delete(served));
    }
  };

  const renew = async (): Promise<void> => {
    await writePresence(redis, [members_key], [own_name, lives_ms]);
    members = ownersAmong(await redis.zrange(members_key, 0, '-1'));
  };

  const loop = makeLoop({
    name: 'hand over',
    log,
    every_ms,
    async turn() {
      await renew().catch((error: unknown) => {
        members = [];
        log.debug(describeError(error), 'hand over: Redis does not answer');
      });
      const late = performance.now() - patience_ms;
      settle(({ owner, since_ms }) => since_ms < late || !members.includes(owner));
      return 'rest';
    },
  });

  return {
    name: loop.name,
    share<A, R>(work: Work<A, R>) {
      const { name, subjectOf, run } = work;
      works.set(name, work as Work<unknown, unknown>);
      return (argument: A): Promise<R> => {
        const owner = ownerOf(members, subjectOf(argument)) ?? own_name;
        if (owner === own_name) return run(argument, null);
        const tried_ms = clock().getTime();
        return new Promise<R>((resolve) => {
          const number = next_number++;
          waiting.set(number, {
            owner,
            since_ms: performance.now(),
            settle: (result) =>
              resolve(
                result === null || result.length < 2 ? run(argument, tried_ms) : (result[1] as R),
              ),
          });
          messageTo(owner).calls.push([number, name, argument]);
        });
      };
    },
    async start() {
      subscriber = await openSubscriber();
      await joinChannel(subscriber, channelOf(own_name), receive);
      await loop.start();
    },
    async stop() {
      await loop.stop();
      members = [];
      await redis.zrem(members_key, own_name).catch(() => undefined);
      await subscriber?.sunsubscribe(channelOf(own_name)).catch(() => undefined);
      await Promise.all(running);
    },
  };
};
