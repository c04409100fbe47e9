import { etagOf } from './etag.js';
import type { Reply } from './route.js';

/**
 * Answers that many people ask for at the same time, as bytes that are ready to send. An address
 * that is asked for once goes its way as ever; from so many times a second on, as its route says,
 * its answer is kept, and who asks while it is made waits for the same one. Whoever learns that it
 * is different now (the log, a change made in this process) drops what is kept under its tag, and
 * what is being made then is not kept. Where something may change unseen, a route says how long at
 * most an answer is believed. Only answers to anonymous callers are here, and only to GET.
 *
 *   cold ──asked for often──▶ made once, for all who wait ──▶ kept ──dropped, or too old──▶ cold
 */
export interface HotRule<P> {
  /** What an answer is dropped by: the id of a question, or `questions`. */
  readonly tag: (params: P) => string;
  /** Times a second from which on it is kept. */
  readonly after: number;
  /** Longest that it is believed; absent where the log tells of every change. */
  readonly keep_ms?: number;
  /** Longest that it is believed after figures have moved, where it cannot be made anew at once. */
  readonly lag_ms?: number;
}

/** An answer as it is sent. */
export interface HotAnswer {
  readonly target: string;
  body: Buffer;
  etag: string;
  /** Value of the header `ETag`, and the lines of all headers that are the same for everybody. */
  head: Buffer;
  /** Members of its line in the log, behind the request's id. */
  readonly line: string;
  end_ms: number;
}

interface Kept extends HotAnswer {
  readonly tag: string;
  /** Header lines behind the ETag. */
  readonly lines: string;
  readonly remake: (() => unknown) | null;
  readonly lag_ms: number;
  /** Figures have moved since it was made. */
  is_moved: boolean;
}

interface Build {
  readonly target: string;
  readonly tag: string;
  readonly lag_ms: number;
  end_ms: number;
  is_dropped: boolean;
  readonly reply: Promise<Reply | null>;
  readonly settle: (reply: Reply | null) => void;
}

export type Opened =
  | { readonly kind: 'cold' }
  | { readonly kind: 'join'; readonly reply: Promise<Reply | null> }
  | { readonly kind: 'build'; readonly build: Build };

export interface HotAnswers {
  find(target: string, now_ms: number): HotAnswer | undefined;
  /** Called by whoever is about to make the answer. */
  open(target: string, rule: HotRule<unknown>, params: unknown): Opened;
  /** Ends a build: what is kept and shared from now on, or null where it failed. */
  close(build: Build, reply: Reply | null, common: Headers): void;
  /** What is kept under the tag is no longer right. */
  drop(tag: string): void;
  /** The same where only figures have moved: what can be made anew at once is. */
  move(tag: string): void;
  clear(): void;
  stats(): { readonly kept: number; readonly bytes: number };
}

/** Of all bodies together. */
const most_bytes = 64 * 1_048_576;
const most_counted = 50_000;
const cold: Opened = { kind: 'cold' };

/** The reply with its body as a text, so that it is written once for all. */
export const writeBody = (reply: Reply): Reply & { readonly body: string } => {
  const { content_type = 'application/json' } = reply;
  const is_text = reply.content_type !== undefined && typeof reply.body === 'string';
  const body = is_text ? (reply.body as string) : JSON.stringify(reply.body);
  return { ...reply, body, content_type, etag: etagOf(body) };
};

const linesOf = (headers: Headers): string =>
  headers.map(([name, value]) => `\r\n${name}: ${value}`).join('');

/** How often each address was asked for within the second. */
const makeHeat = () => {
  let counts = new Map<string, number>();
  let since_ms = 0;
  return (target: string): number => {
    const now_ms = performance.now();
    if (now_ms - since_ms > 1_000 || counts.size >= most_counted) {
      counts = new Map();
      since_ms = now_ms;
    }
    const count = (counts.get(target) ?? 0) + 1;
    counts.set(target, count);
    return count;
  };
};

/** Names by tag, for dropping all of one. */
const makeIndex = <T>() => {
  const sets = new Map<string, Set<T>>();
  return {
    add(tag: string, item: T): void {
      const set = sets.get(tag) ?? new Set();
      sets.set(tag, set.add(item));
    },
    delete(tag: string, item: T): void {
      const set = sets.get(tag);
      set?.delete(item);
      if (set?.size === 0) sets.delete(tag);
    },
    of: (tag: string): Iterable<T> => sets.get(tag) ?? [],
    clear: () => sets.clear(),
  };
};

/** What is kept, by address and by tag, the oldest dropped first when there is too much. */
const makeShelf = () => {
  const all = new Map<string, Kept>();
  const targets = makeIndex<string>();
  let bytes = 0;
  const forget = (target: string): void => {
    const known = all.get(target);
    if (known === undefined) return;
    all.delete(target);
    targets.delete(known.tag, target);
    bytes -= known.body.byteLength;
  };
  return {
    forget,
    get: (target: string) => all.get(target),
    under: (tag: string) => [...targets.of(tag)],
    put(kept: Kept): void {
      forget(kept.target);
      all.set(kept.target, kept);
      targets.add(kept.tag, kept.target);
      bytes += kept.body.byteLength;
      for (const oldest of all.keys()) {
        if (bytes <= most_bytes) break;
        forget(oldest);
      }
    },
    clear(): void {
      all.clear();
      targets.clear();
      bytes = 0;
    },
    stats: () => ({ kept: all.size, bytes }),
  };
};

type Headers = readonly (readonly [string, string])[];

const makeKept = ({ target, tag, end_ms, lag_ms }: Build, reply: Reply, common: Headers): Kept => {
  const body = Buffer.from(reply.body as string);
  const etag = reply.etag ?? etagOf(body);
  const type = ['Content-Type', reply.content_type ?? 'application/json'] as const;
  const lines = linesOf([type, ...Object.entries(reply.headers ?? {}), ...common]);
  const head = Buffer.from(etag + lines);
  const line = `","method":"GET","path":${JSON.stringify(target.replace(/\?.*$/s, ''))},"status":`;
  const remake = reply.remake ?? null;
  return { target, tag, body, etag, head, lines, line, end_ms, lag_ms, remake, is_moved: false };
};

/** Writes the body anew; false where that cannot be done at once. */
const makeAnew = (kept: Kept): boolean => {
  const value = kept.remake?.();
  if (value === undefined) return false;
  kept.body = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
  kept.etag = etagOf(kept.body);
  kept.head = Buffer.from(kept.etag + kept.lines);
  kept.is_moved = false;
  return true;
};

/** Answers that are being made, for whoever asks for the same meanwhile. */
const makeBuilds = () => {
  const building = new Map<string, Build>();
  return {
    get: (target: string) => building.get(target),
    begin(parts: Pick<Build, 'target' | 'tag' | 'end_ms' | 'lag_ms'>): Build {
      let settle: Build['settle'] = () => undefined;
      const reply = new Promise<Reply | null>((resolve) => {
        settle = resolve;
      });
      const build: Build = { ...parts, is_dropped: false, reply, settle };
      building.set(build.target, build);
      return build;
    },
    end(build: Build): void {
      if (building.get(build.target) === build) building.delete(build.target);
    },
    /** What may lag is kept for so long; the rest is made anew. */
    move(tag: string, now_ms: number): void {
      for (const build of building.values()) {
        if (build.tag !== tag) continue;
        build.end_ms = Math.min(build.end_ms, now_ms + build.lag_ms);
        if (build.lag_ms > 0) continue;
        build.is_dropped = true;
        building.delete(build.target);
      }
    },
    /** Who waits already may have it; who comes now asks anew. */
    drop(tag: string | null): void {
      for (const build of building.values()) {
        if (tag !== null && build.tag !== tag) continue;
        build.is_dropped = true;
        building.delete(build.target);
      }
    },
  };
};

export const createHotAnswers = (): HotAnswers => {
  const shelf = makeShelf();
  const builds = makeBuilds();
  const heat = makeHeat();
  return {
    find(target, now_ms) {
      const found = shelf.get(target);
      if (found === undefined) return undefined;
      if (found.end_ms > now_ms && (!found.is_moved || makeAnew(found))) return found;
      shelf.forget(target);
      return undefined;
    },
    open(target, { after, tag, keep_ms, lag_ms = 0 }, params) {
      if (heat(target) < after) return cold;
      const under_way = builds.get(target);
      if (under_way !== undefined) return { kind: 'join', reply: under_way.reply };
      const build = builds.begin({
        target,
        tag: tag(params),
        lag_ms,
        end_ms: performance.now() + (keep_ms ?? Number.POSITIVE_INFINITY),
      });
      return { kind: 'build', build };
    },
    close(build, reply, common) {
      builds.end(build);
      if (reply !== null && !build.is_dropped) shelf.put(makeKept(build, reply, common));
      build.settle(reply);
    },
    drop(tag) {
      builds.drop(tag);
      for (const target of shelf.under(tag)) shelf.forget(target);
    },
    move(tag) {
      const now_ms = performance.now();
      builds.move(tag, now_ms);
      for (const target of shelf.under(tag)) {
        const kept = shelf.get(target);
        if (kept === undefined) continue;
        if (kept.remake !== null) kept.is_moved = true;
        else if (kept.lag_ms === 0) shelf.forget(target);
        else kept.end_ms = Math.min(kept.end_ms, now_ms + kept.lag_ms);
      }
    },
    clear() {
      builds.drop(null);
      shelf.clear();
    },
    stats: shelf.stats,
  };
};
