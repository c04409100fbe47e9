import { createHash } from 'node:crypto';

/** Entity tags and `If-None-Match`: RFC 9110, sections 8.8.3 and 13.1.2. */

/** Returns the entity tag of a body. It is weak because all content codings share it. */
export const etagOf = (body: string | Uint8Array): string =>
  `W/"${createHash('sha1').update(body).digest('base64url')}"`;

/** Weak comparison ignores the prefix `W/`. */
const opaqueOf = (tag: string): string => tag.trim().replace(/^W\//, '');

/** Returns true if the client's `If-None-Match` (`wanted`) matches the tag, by weak comparison. */
export const matchesEtag = (wanted: string, etag: string): boolean =>
  wanted === etag ||
  (wanted !== '' &&
    wanted.split(',').some((tag) => tag.trim() === '*' || opaqueOf(tag) === opaqueOf(etag)));

/**
 * The body of an answer that is made piece by piece, such as an export or a stream of events. The
 * next piece is made only after the reader has taken the previous ones, so a body of any length
 * needs memory for only one piece.
 *
 *   made ──open──▶ first piece ready ──next…──▶ at the end ──▶ closed
 *     └───────────────────┴── the client is gone, or nothing may be sent any more ──▶ closed
 *
 * A failure before the first piece is answered as a normal error. After that, the connection is
 * cut, so that the client cannot mistake half a body for a whole one.
 */

type Piece = string | Uint8Array;

export interface StreamParts {
  /** `signal` is aborted when the reader is gone; all waiting must end then. */
  readonly produce: (signal: AbortSignal) => AsyncIterable<Piece>;
  /** Called once when the stream ends, even if nothing was sent. */
  readonly onEnd?: () => void;
  /** The connection is cut if the reader takes nothing for this long. */
  readonly stall_ms?: number;
}

export class BodyStream {
  readonly stall_ms: number;
  readonly #parts: StreamParts;
  readonly #gone = new AbortController();
  #pieces: AsyncIterator<Piece> | null = null;
  #first: IteratorResult<Piece> | null = null;
  #closed = false;

  constructor(parts: StreamParts) {
    this.#parts = parts;
    this.stall_ms = parts.stall_ms ?? 10_000;
  }

  /** Makes the first piece. Throws if that fails. */
  async open(): Promise<void> {
    if (this.#closed) return;
    try {
      this.#pieces = this.#parts.produce(this.#gone.signal)[Symbol.asyncIterator]();
      this.#first = await this.#pieces.next();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Returns the next piece, or null at the end and after `close`. */
  async next(): Promise<Piece | null> {
    if (this.#closed || this.#pieces === null) return null;
    const next = this.#first ?? (await this.#pieces.next());
    this.#first = null;
    return next.done === true || this.#closed ? null : next.value;
  }

  /** Releases everything. The aborted signal ends all waiting. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#gone.abort();
    this.#pieces?.return?.().catch(() => undefined);
    this.#parts.onEnd?.();
  }
}
