/**
 * The body of an answer that is made piece by piece: an export, a stream of events. The next piece
 * is asked for only when the reader has taken the ones before, so that a body of any length costs
 * the memory of a piece.
 *
 *   made ──open──▶ first piece at hand ──next…──▶ at its end ──▶ closed
 *     └────────────────────┴── the client is gone, or nothing may be sent any more ──▶ closed
 *
 * What goes wrong before the first piece is an ordinary refusal; after it the connection is cut, so
 * that half a body is not taken for a whole one.
 */

export type Piece = string | Uint8Array;

export interface StreamParts {
  /** `signal` is aborted when nobody reads any more: whatever waits must give up then. */
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

  /** Makes the first piece; throws what goes wrong with it. */
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

  /** Lets go of everything; what is being waited for is told by the signal. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#gone.abort();
    this.#pieces?.return?.().catch(() => undefined);
    this.#parts.onEnd?.();
  }
}
