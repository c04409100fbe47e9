import { createHash } from 'node:crypto';
import { type Format, textFormat } from './formats.js';
import { type Digest, type ManifestParts, makeManifest } from './manifest.js';

/**
 * The bytes of an export, made from pages of lines. They follow from the ask and its snapshot
 * alone, so an interrupted export goes on behind the bytes that are there.
 */

/** Lines of one page: rows and text without a separator at its end. */
export interface Lines {
  readonly rows: number;
  readonly text: Buffer;
}

export interface ContentAsk {
  readonly manifest: ManifestParts;
  /** What the list of rows is called in a JSON document. */
  readonly name: string;
  readonly format: Format;
  /** Whether the file says itself what it is, where its format has a place for that. */
  readonly with_manifest: boolean;
}

export interface ContentSource {
  readonly pages: AsyncIterable<Lines>;
  /** Called now and then, where work goes on for long. */
  readonly rest: () => Promise<void>;
}

export interface Content {
  readonly pieces: AsyncGenerator<Uint8Array>;
  /** What has been made so far; whole once the pieces are through. */
  result(): Result;
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

/** Behind the first page every one begins with the separator. */
async function* textPieces(
  ask: ContentAsk,
  { pages }: ContentSource,
  sum: Summed,
): AsyncGenerator<Uint8Array, Omit<Result, 'file'>> {
  const { manifest: parts, name, with_manifest } = ask;
  const names = parts.columns.map((column) => column.name);
  const format = textFormat(ask.format as Exclude<Format, 'parquet'>, {
    schema: parts.schema,
    columns: names,
    name,
  });
  let rows = 0;
  if (format.head !== '') yield sum.add(Buffer.from(format.head));
  const separator = Buffer.from(format.separator);
  for await (const page of pages) {
    if (rows > 0) yield sum.add(separator);
    rows += page.rows;
    yield sum.add(page.text);
  }
  if (rows > 0) yield sum.add(Buffer.from(format.last));
  const content = sum.digest;
  const manifest = with_manifest ? JSON.stringify(makeManifest(parts, { rows, content })) : null;
  const tail = format.tail(manifest);
  if (tail !== '') yield sum.add(Buffer.from(tail));
  // Without a manifest the end of the document is content like the rest.
  return { rows, content: with_manifest && tail !== '' ? content : sum.digest };
}

const newline = 0x0a;

/** One by one: most lines are ASCII, whose strings take half the memory and less work. */
function* textsOf(lines: Buffer): Generator<string> {
  for (let at = 0; at < lines.byteLength; ) {
    const next = lines.indexOf(newline, at);
    const end = next === -1 ? lines.byteLength : next;
    yield lines.toString('utf8', at, end);
    at = end + 1;
  }
}

/** Rows that are taken at a time, some ms of work. */
const rows_at_once = 100;

async function* parquetPieces(
  ask: ContentAsk,
  { pages, rest }: ContentSource,
  sum: Summed,
): AsyncGenerator<Uint8Array, Omit<Result, 'file'>> {
  const { makeParquetFile } = await import('./parquet.js');
  const file = makeParquetFile(ask.manifest.columns);
  let rows = 0;
  for await (const page of pages) {
    for (const text of textsOf(page.text)) {
      file.add(JSON.parse(text));
      rows += 1;
      if (file.is_full()) yield sum.add(file.takeGroup());
      if (rows % rows_at_once === 0) await rest();
    }
  }
  const said = makeManifest(ask.manifest, { rows, content: null });
  yield sum.add(file.finish({ schema: ask.manifest.schema, manifest: JSON.stringify(said) }));
  return { rows, content: sum.digest };
}

/** The separator that the pages of a format have between their lines, and which lines they are. */
export const linesOf = (format: Format) =>
  format === 'parquet'
    ? ({ line: 'json', separator: '\n' } as const)
    : textFormat(format, { schema: '', columns: [], name: '' });

export const makeContent = (ask: ContentAsk, source: ContentSource): Content => {
  const sum = new Summed();
  let result: Omit<Result, 'file'> | null = null;
  async function* run(): AsyncGenerator<Uint8Array> {
    const make = ask.format === 'parquet' ? parquetPieces : textPieces;
    result = yield* make(ask, source, sum);
  }
  return {
    pieces: run(),
    result() {
      if (result === null) throw new Error('the export is not through');
      return { ...result, file: sum.digest };
    },
  };
};
