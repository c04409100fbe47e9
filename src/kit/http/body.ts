import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

/** Entity tags and `If-None-Match`: RFC 9110, 8.8.3 and 13.1.2. */

/** The tag of a body; weak, because one tag stands for every content coding of it. */
export const etagOf = (body: string | Uint8Array): string =>
  `W/"${createHash('sha1').update(body).digest('base64url')}"`;

/** What two tags are compared by: what is between the quotes, whether they are weak or not. */
const opaqueOf = (tag: string): string => (tag.startsWith('W/') ? tag.slice(2) : tag);

const listed = /[\t ]*(?:,[\t ]*)*(?:W\/)?("[\x21\x23-\x7e\x80-\xff]*")[\t ]*(?:,|$)/y;

/**
 * Whether a client that says `If-None-Match: wanted` has this already, by weak comparison. A value
 * that is no list of tags matches nothing from where it goes wrong.
 */
export const matchesEtag = (wanted: string, etag: string): boolean => {
  if (wanted === '') return false;
  if (wanted === etag) return true;
  if (wanted.trim() === '*') return true;
  const opaque = opaqueOf(etag);
  listed.lastIndex = 0;
  for (let found = listed.exec(wanted); found !== null; found = listed.exec(wanted)) {
    if (found[1] === opaque) return true;
  }
  return false;
};

/**
 * A body that is the same for everybody and is made once: its bytes in every content coding, and
 * its ETag. It is compressed beside the event loop; until that is done it goes out as it is.
 */

type Coding = 'br' | 'gzip';

/** Below this a coding saves no packet. */
const least_bytes = 1_024;

const pack = {
  br: (bytes: Buffer) =>
    promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (bytes: Buffer) => promisify(gzip)(bytes, { level: 9 }),
} as const;

export class Prepared {
  readonly bytes: Buffer;
  readonly etag: string;
  /** Fulfilled when every coding is there. */
  readonly packed: Promise<void>;
  readonly #packed: Partial<Record<Coding, Buffer>> = {};

  constructor(text: string) {
    this.bytes = Buffer.from(text);
    this.etag = etagOf(this.bytes);
    this.packed = this.#pack().catch(() => undefined);
  }

  async #pack(): Promise<void> {
    if (this.bytes.byteLength < least_bytes) return;
    for (const coding of ['br', 'gzip'] as const) {
      this.#packed[coding] = await pack[coding](this.bytes);
    }
  }

  /** The best coding that a client accepts, and its bytes; null for none. */
  codedFor(accepted: string): { readonly coding: Coding; readonly bytes: Buffer } | null {
    for (const coding of ['br', 'gzip'] as const) {
      const bytes = this.#packed[coding];
      if (bytes !== undefined && acceptsCoding(accepted, coding)) return { coding, bytes };
    }
    return null;
  }
}

/** `Accept-Encoding`: RFC 9110, 12.5.3; only what is named counts, and `q=0` refuses it. */
const acceptsCoding = (accepted: string, coding: Coding): boolean =>
  accepted
    .toLowerCase()
    .split(',')
    .some((item) => {
      const [name, ...parts] = item.split(';').map((part) => part.trim());
      return name === coding && !parts.some((part) => /^q=0(?:\.0*)?$/.test(part));
    });

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

type Piece = string | Uint8Array;

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
