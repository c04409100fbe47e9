import { etagOf } from './etag.js';
import type { Headers } from './header-lines.js';
import {
  agesOf,
  bound,
  type HotAnswer,
  type Kept,
  type KeptParts,
  makeAnew,
  makeKept,
  makeShelf,
} from './hot-shelf.js';
import type { Reply } from './route.js';

/**
 * Answers that many people ask for at the same time, as bytes that are ready to send. An address
 * that is asked for once goes its way as ever; from so many times a second on, as its route says,
 * its answer is kept, and who asks while it is made waits for the same one. Whoever learns that it
 * is different now (the log, a change made in this process) drops what is kept under its tag, and
 * what is being made then is not kept. Where something may change unseen, a route says how long at
 * most an answer is believed. Only answers to anonymous callers are here, and only to GET.
 *
 * Shortly before that time is over, one who asks makes it anew while the others have the old one.
 *
 *   cold ──asked for often──▶ made once, for all who wait ──▶ kept ──dropped, or too old──▶ cold
 *                                     ▲                        │
 *                                     └──── four fifths old ───┘
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

interface Build extends KeptParts {
  is_dropped: boolean;
  readonly reply: Promise<Reply | null>;
  readonly settle: (reply: Reply | null) => void;
}

export type Opened =
  | { readonly kind: 'cold' }
  | { readonly kind: 'kept'; readonly reply: Reply }
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

const most_counted = 50_000;
const cold: Opened = { kind: 'cold' };

/** The reply with its body as a text, so that it is written once for all. */
export const writeBody = (reply: Reply): Reply & { readonly body: string } => {
  const { content_type = 'application/json' } = reply;
  const is_text = reply.content_type !== undefined && typeof reply.body === 'string';
  const body = is_text ? (reply.body as string) : JSON.stringify(reply.body);
  return Object.assign({}, reply, { body, content_type, etag: etagOf(body) });
};

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

/** Answers that are being made, for whoever asks for the same meanwhile. */
const makeBuilds = () => {
  const building = new Map<string, Build>();
  return {
    get: (target: string) => building.get(target),
    begin(parts: KeptParts): Build {
      let settle: Build['settle'] = () => undefined;
      const reply = new Promise<Reply | null>((resolve) => {
        settle = resolve;
      });
      const build: Build = { is_dropped: false, reply, settle, ...parts };
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
        bound(build, now_ms, build.lag_ms);
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
  const findBelieved = (target: string, now_ms: number): Kept | undefined => {
    const found = shelf.get(target);
    if (found === undefined) return undefined;
    if (found.end_ms > now_ms && (!found.is_moved || makeAnew(found))) return found;
    shelf.forget(target);
    return undefined;
  };
  return {
    find(target, now_ms) {
      const found = findBelieved(target, now_ms);
      return found !== undefined && found.renew_ms > now_ms ? found : undefined;
    },
    open(target, { after, tag, keep_ms, lag_ms = 0 }, params) {
      const now_ms = performance.now();
      const found = findBelieved(target, now_ms);
      const under_way = builds.get(target);
      if (found !== undefined) {
        const is_served = found.renew_ms > now_ms || under_way !== undefined;
        if (is_served) return { kind: 'kept', reply: found.reply };
        // One makes it anew; the others have this one until its end.
        found.renew_ms = Number.POSITIVE_INFINITY;
      } else {
        if (heat(target) < after) return cold;
        if (under_way !== undefined) return { kind: 'join', reply: under_way.reply };
      }
      const ages = agesOf(now_ms, keep_ms ?? Number.POSITIVE_INFINITY);
      const build = builds.begin({ target, tag: tag(params), lag_ms, ...ages });
      return { kind: 'build', build };
    },
    close(build, reply, common) {
      builds.end(build);
      if (reply === null) shelf.forget(build.target);
      else if (!build.is_dropped) shelf.put(makeKept(build, reply, common));
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
        if (kept.reply.remake !== undefined) kept.is_moved = true;
        else if (kept.lag_ms === 0) shelf.forget(target);
        else bound(kept, now_ms, kept.lag_ms);
      }
    },
    clear() {
      builds.drop(null);
      shelf.clear();
    },
    stats: shelf.stats,
  };
};
