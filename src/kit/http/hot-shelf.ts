import { etagOf } from './etag.js';
import { type Headers, linesOf } from './header-lines.js';
import type { Reply } from './route.js';

/** The answers that are kept for many: see `hot.ts`. */

export interface Ages {
  /** From when on somebody makes it anew. */
  renew_ms: number;
  /** From when on it is not believed. */
  end_ms: number;
}

/** Of the time that an answer is believed, after so much of it somebody makes it anew. */
const renew_share = 0.8;

export const agesOf = (now_ms: number, for_ms: number): Ages => ({
  renew_ms: now_ms + for_ms * renew_share,
  end_ms: now_ms + for_ms,
});

/** It is believed for so long at most. */
export const bound = (ages: Ages, now_ms: number, for_ms: number): void => {
  const { renew_ms, end_ms } = agesOf(now_ms, for_ms);
  ages.renew_ms = Math.min(ages.renew_ms, renew_ms);
  ages.end_ms = Math.min(ages.end_ms, end_ms);
};

/** An answer as it is sent. */
export interface HotAnswer {
  readonly target: string;
  body: Buffer;
  etag: string;
  /** Value of the header `ETag`, and the lines of all headers that are the same for everybody. */
  head: Buffer;
  /** Members of its line in the log, behind the request's id. */
  readonly line: string;
}

/** What is known of it besides. */
export interface Kept extends HotAnswer, Ages {
  readonly tag: string;
  /** Header lines behind the ETag. */
  readonly lines: string;
  /** For who comes the usual way. */
  reply: Reply;
  readonly lag_ms: number;
  /** Bytes it counts for. */
  readonly size: number;
  /** Figures have moved since it was made. */
  is_moved: boolean;
}

/** What is known of an answer before it is made. */
export interface KeptParts extends Ages {
  readonly target: string;
  readonly tag: string;
  readonly lag_ms: number;
}

export const makeKept = (parts: KeptParts, reply: Reply, common: Headers): Kept => {
  const { target, tag, renew_ms, end_ms, lag_ms } = parts;
  const body = Buffer.from(reply.body as string);
  const etag = reply.etag ?? etagOf(body);
  const type = ['Content-Type', reply.content_type ?? 'application/json'] as const;
  const lines = linesOf([type, ...Object.entries(reply.headers ?? {}), ...common]);
  const head = Buffer.from(etag + lines);
  const line = `","method":"GET","path":${JSON.stringify(target.replace(/\?.*$/s, ''))},"status":`;
  const again = Object.assign({}, reply, { body, etag });
  const size = body.byteLength;
  return {
    target,
    body,
    etag,
    head,
    line,
    tag,
    lines,
    renew_ms,
    end_ms,
    lag_ms,
    size,
    reply: again,
    is_moved: false,
  };
};

/** Writes the body anew; false where that cannot be done at once. */
export const makeAnew = (kept: Kept): boolean => {
  const value = kept.reply.remake?.();
  if (value === undefined) return false;
  kept.body = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
  kept.etag = etagOf(kept.body);
  kept.head = Buffer.from(kept.etag + kept.lines);
  kept.reply = { ...kept.reply, body: kept.body, etag: kept.etag };
  kept.is_moved = false;
  return true;
};

/** Of all bodies together. */
const most_bytes = 64 * 1_048_576;

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
export const makeShelf = () => {
  const all = new Map<string, Kept>();
  const targets = makeIndex<string>();
  let bytes = 0;
  const forget = (target: string): void => {
    const known = all.get(target);
    if (known === undefined) return;
    all.delete(target);
    targets.delete(known.tag, target);
    bytes -= known.size;
  };
  return {
    forget,
    get: (target: string) => all.get(target),
    under: (tag: string) => [...targets.of(tag)],
    put(kept: Kept): void {
      forget(kept.target);
      all.set(kept.target, kept);
      targets.add(kept.tag, kept.target);
      bytes += kept.size;
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
