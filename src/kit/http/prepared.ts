import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { etagOf } from './etag.js';

/**
 * A body that is the same for everybody and is made once: its bytes in every content coding, and
 * its ETag. It is compressed beside the event loop; until that is done it goes out as it is.
 */

export type Coding = 'br' | 'gzip';

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
export const acceptsCoding = (accepted: string, coding: Coding): boolean =>
  accepted
    .toLowerCase()
    .split(',')
    .some((item) => {
      const [name, ...parts] = item.split(';').map((part) => part.trim());
      return name === coding && !parts.some((part) => /^q=0(?:\.0*)?$/.test(part));
    });
