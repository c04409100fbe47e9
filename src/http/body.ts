import { createHash } from 'node:crypto';

/** Entity tags and `If-None-Match`: RFC 9110, 8.8.3 and 13.1.2. */

/** The tag of a body; weak, because one tag stands for every content coding of it. */
export const etagOf = (body: string | Uint8Array): string =>
  `W/"${createHash('sha1').update(body).digest('base64url')}"`;

/** A weak comparison sees only the text within the quotes. */
const opaqueOf = (tag: string): string => tag.trim().replace(/^W\//, '');

/** Whether a client that says `If-None-Match: wanted` has this already, by weak comparison. */
export const matchesEtag = (wanted: string, etag: string): boolean =>
  wanted === etag ||
  (wanted !== '' &&
    wanted.split(',').some((tag) => tag.trim() === '*' || opaqueOf(tag) === opaqueOf(etag)));

/**
 * The body of an answer that is made piece by piece: an export, a stream of events. The next piece
 * is asked for only when the reader has taken the ones before, so that a body of any length costs
 * the memory of a piece.
 *
 *   made ──open──▶ first piece at hand ──next…──▶ at its end ──▶ closed
 *     └────────────────────┴── the client is gone, or nothing may be sent any more ──▶ closed
 *
 * A failure before the first piece is an ordinary refusal; after it the connection is cut, so
 * that half a body is not taken for a whole one.
 */

type Piece = string | Uint8Array;

export interface StreamParts {
  /** `signal` is aborted when nobody reads any more: all waiting must end then. */
  readonly produce: (signal: AbortSignal) => AsyncIterable<Piece>;
  /** Called once when it is over, whether anything was sent or not. */
  readonly onEnd?: () => void;
  /** How long a reader may take nothing before the connection is cut. */
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

  /** Makes the first piece; throws its error. */
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

  /** The next piece; null at the end, and once it is closed. */
  async next(): Promise<Piece | null> {
    if (this.#closed || this.#pieces === null) return null;
    const next = this.#first ?? (await this.#pieces.next());
    this.#first = null;
    return next.done === true || this.#closed ? null : next.value;
  }

  /** Lets go of everything; the signal ends all waiting. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#gone.abort();
    this.#pieces?.return?.().catch(() => undefined);
    this.#parts.onEnd?.();
  }
}
