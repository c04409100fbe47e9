import { createHash } from 'node:crypto';
import { type Column, describeColumn } from './columns.js';
import type { Lines } from './copy-store.js';
import { type Format, textFormat } from './formats.js';
import { openParquetFile } from './parquet.js';

/**
 * The bytes of an export, made from its lines. They follow from the ask and its snapshot alone, so
 * an interrupted export goes on behind the bytes that are there.
 */

/** Bytes before any compression. */
export interface Digest {
  readonly bytes: number;
  /** Hex. */
  readonly sha256: string;
}

/** What an export is: from it alone the same file can be asked for again, and checked. */
export interface ManifestParts {
  readonly schema: string;
  readonly format: Format;
  readonly as_of: string;
  readonly snapshot: string;
  /** Follow the log behind this offset to miss nothing that came after the export. */
  readonly log_offset: number;
  readonly filters: Readonly<Record<string, string | boolean>>;
  readonly columns: readonly Column[];
}

/** `content` is of the file up to its manifest: the whole of it, where it holds none. */
export const makeManifest = (
  { columns, ...parts }: ManifestParts,
  { rows, content }: { readonly rows: number; readonly content: Digest | null },
) => ({ ...parts, rows, content, columns: columns.map(describeColumn) });

export interface ContentAsk {
  readonly manifest: ManifestParts;
  /** What the list of rows is called in a JSON document. */
  readonly name: string;
  readonly format: Format;
  /** Whether the file says itself what it is, where its format has a place for that. */
  readonly with_manifest: boolean;
}

export interface Result {
  readonly rows: number;
  /** The file up to its manifest. */
  readonly content: Digest;
  /** The file. */
  readonly file: Digest;
}

class Summed {
  readonly #hash = createHash('sha256');
  #bytes = 0;

  add(piece: Uint8Array): Uint8Array {
    this.#hash.update(piece);
    this.#bytes += piece.byteLength;
    return piece;
  }

  get digest(): Digest {
    return { bytes: this.#bytes, sha256: this.#hash.copy().digest('hex') };
  }
}

type Pieces = AsyncGenerator<Uint8Array, Result>;

async function* textPieces(ask: ContentAsk, pages: AsyncIterable<Lines>): Pieces {
  const { manifest: parts, name, with_manifest } = ask;
  const format = textFormat(ask.format, {
    schema: parts.schema,
    columns: parts.columns.map((column) => column.name),
    name,
  });
  const sum = new Summed();
  let rows = 0;
  if (format.head !== '') yield sum.add(Buffer.from(format.head));
  for await (const page of pages) {
    rows += page.rows;
    yield sum.add(page.text);
  }
  if (rows > 0) yield sum.add(Buffer.from(format.last));
  const content = sum.digest;
  const manifest = with_manifest ? JSON.stringify(makeManifest(parts, { rows, content })) : null;
  const tail = format.tail(manifest);
  if (tail !== '') yield sum.add(Buffer.from(tail));
  const file = sum.digest;
  // Without a manifest the end of the document is content like the rest.
  return { rows, content: manifest === null ? file : content, file };
}

/** Lines as JSON, of which a thread makes the file: a group of its rows is 100 ms of work. */
async function* parquetPieces(ask: ContentAsk, pages: AsyncIterable<Lines>): Pieces {
  const { manifest: parts } = ask;
  const parquet = openParquetFile(parts.columns);
  const sum = new Summed();
  let rows = 0;
  try {
    for await (const page of pages) {
      rows += page.rows;
      yield sum.add(await parquet.add(page.text));
    }
    const manifest = JSON.stringify(makeManifest(parts, { rows, content: null }));
    yield sum.add(await parquet.finish({ schema: parts.schema, manifest }));
  } finally {
    await parquet.close();
  }
  return { rows, content: sum.digest, file: sum.digest };
}

export const makeContent = (ask: ContentAsk, pages: AsyncIterable<Lines>): Pieces =>
  ask.format === 'parquet' ? parquetPieces(ask, pages) : textPieces(ask, pages);
