import { hostname } from 'node:os';
import type { Logger } from 'pino';
import { makeId } from '../kit/ids.js';
import { describeError } from '../kit/log.js';
import { makeLoop } from '../kit/loop.js';
import type { Service } from '../kit/service.js';
import { joinChannel, loadScript, type RedisClient } from './client.js';

/**
 * Runs tasks on the home process of their subject, such as a question. Tasks of one subject are
 * cheaper together: they share transactions and the memory of the process.
 *
 * Every process announces itself twice a second in Redis. One in four api processes of each host
 * (rounded up) can be a home. Rendezvous hashing chooses a subject's home among them, so all
 * processes choose the same one. If a process ends, only its own subjects move.
 *
 * For a moment two processes may both believe that they are the home, and a task may run twice. A
 * lock or a key in Postgres must make that safe for every task. If the home has ended, failed or is
 * too slow, or if Redis is down, the task runs in the calling process.
 */

/** A kind of task. Its argument and result are sent as JSON. */
export interface Task<A, R> {
  readonly name: string;
  readonly subjectOf: (argument: A) => string;
  /** `tried_ms`: when the home got the task and may have run it; null if it was not sent. */
  readonly run: (argument: A, tried_ms: number | null) => Promise<R>;
}

export interface HomeProcesses extends Service {
  /** Declares a task. The returned function runs it on the home of its subject. */
  onHome<A, R>(task: Task<A, R>): (argument: A) => Promise<R>;
  /** Returns true if this process is the home of the subject. */
  isHere(subject: string): boolean;
}

export interface HomeProcessOptions {
  readonly redis: RedisClient;
  readonly openSubscriber: () => Promise<RedisClient>;
  readonly prefix: string;
  readonly log: Logger;
  /** Index among the processes of this host. */
  readonly index: number;
  /** A clock that all processes share. */
  readonly clock: () => Date;
}

type Call = readonly [number: number, name: string, argument: unknown];
/** The result is missing if the task failed. */
type Result = readonly [number: number, result?: unknown];

interface Message {
  readonly from: string;
  readonly sent_ms: number;
  readonly calls: Call[];
  readonly results: Result[];
}

interface Waiting {
  readonly home: string;
  readonly since_ms: number;
  settle(result: Result | null): void;
}

const writePresence = loadScript('presence-1.lua');

/** More homes would have smaller batches, which cost more. One home serves four processes well. */
const processes_per_home = 4;
const every_ms = 500;
/** A process that is silent for longer than this is considered dead. */
const lives_ms = 2_000;
/** The home ignores calls that arrive later than this. */
const late_ms = 2_000;
/** If a task has no result after this time, it runs in the calling process. */
const patience_ms = 4_000;

/** FNV-1a with a final mix. Without the mix, names that differ only at the end hash alike. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let n = 0; n < text.length; n += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(n), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
};

/** Rendezvous hashing: returns the member whose hash together with the subject is highest. */
export const homeOf = (members: readonly string[], subject: string): string | undefined => {
  if (members.length < 2) return members[0];
  let [home, highest]: [string | undefined, number] = [undefined, -1];
  for (const member of members) {
    const hash = hashOf(`${subject} ${member}`);
    if (hash > highest) [home, highest] = [member, hash];
  }
  return home;
};

/** Returns one process in four (rounded up) of each host. Names are `host/index/id`. */
export const homesAmong = (names: readonly string[]): readonly string[] => {
  const hosts = new Map<string, { readonly name: string; readonly index: number }[]>();
  for (const name of names) {
    const [host = '', index] = name.split('/');
    hosts.set(host, [...(hosts.get(host) ?? []), { name, index: Number(index) }]);
  }
  return [...hosts.values()].flatMap((processes) =>
    processes
      .sort((a, b) => a.index - b.index)
      .slice(0, Math.ceil(processes.length / processes_per_home))
      .map(({ name }) => name),
  );
};

export const createHomeProcesses = (options: HomeProcessOptions): HomeProcesses => {
  const { redis, openSubscriber, prefix, log, index, clock } = options;
  const own_name = `${hostname()}-${process.ppid}/${index}/${makeId()}`;
  const members_key = `${prefix}:{home}:processes`;
  const channelOf = (name: string): string => `${prefix}:home:${name}`;
  const tasks = new Map<string, Task<unknown, unknown>>();
  const waiting = new Map<number, Waiting>();
  const outbox = new Map<string, Message>();
  /** Tasks that this process runs for other processes. */
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
    settle(({ home }) => home === name);
  };

  const send = async (name: string): Promise<void> => {
    const message = outbox.get(name);
    outbox.delete(name);
    const heard = await redis.spublish(channelOf(name), JSON.stringify(message)).catch(() => 0);
    if (heard === 0) drop(name);
  };

  /** Calls and results for one process in one turn of the event loop share a message. */
  const messageTo = (name: string): Message => {
    const known = outbox.get(name);
    if (known !== undefined) return known;
    const message = { from: own_name, sent_ms: clock().getTime(), calls: [], results: [] };
    outbox.set(name, message);
    setImmediate(() => void send(name));
    return message;
  };

  const serve = async (from: string, [number, name, argument]: Call): Promise<void> => {
    const result = await tasks
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
    members = homesAmong(await redis.zrange(members_key, 0, '-1'));
  };

  const loop = makeLoop({
    name: 'home processes',
    log,
    every_ms,
    async turn() {
      await renew().catch((error: unknown) => {
        members = [];
        log.debug(describeError(error), 'home processes: Redis does not answer');
      });
      const late = performance.now() - patience_ms;
      settle(({ home, since_ms }) => since_ms < late || !members.includes(home));
      return 'rest';
    },
  });

  return {
    name: loop.name,
    isHere: (subject) => (homeOf(members, subject) ?? own_name) === own_name,
    onHome<A, R>(task: Task<A, R>) {
      const { name, subjectOf, run } = task;
      tasks.set(name, task as Task<unknown, unknown>);
      return (argument: A): Promise<R> => {
        const home = homeOf(members, subjectOf(argument)) ?? own_name;
        if (home === own_name) return run(argument, null);
        const tried_ms = clock().getTime();
        return new Promise<R>((resolve) => {
          const number = next_number++;
          waiting.set(number, {
            home,
            since_ms: performance.now(),
            settle: (result) =>
              resolve(
                result === null || result.length < 2 ? run(argument, tried_ms) : (result[1] as R),
              ),
          });
          messageTo(home).calls.push([number, name, argument]);
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
