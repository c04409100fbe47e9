import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { makePause } from '../../kit/loop.js';
import { type Column, csvLine } from './columns.js';
import type { Lines, Selected } from './copy-store.js';
import type { Format } from './schema.js';
import type { ExportScope } from './select-store.js';

/** The formats of exports. Each one turns rows, one line each, into the bytes of a file. */

export interface Subject {
  /** Used in paths and in file names. */
  readonly name: string;
  readonly schema: string;
  readonly columns: readonly Column[];
  /** The member of a JSON document that lists the rows. */
  readonly list: string;
  select(scope: ExportScope): Selected;
}

/** The properties of columns that a Parquet file needs. */
export interface TypedColumns {
  readonly columns: readonly Pick<Column, 'name' | 'type'>[];
}

/** Rows, size and SHA-256 of a file before any compression. */
export interface Result {
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
}

export const rowsOf = <R>({ text }: Lines): R[] =>
  text
    .toString()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as R);

type Pages = AsyncIterable<Lines>;

/** Everything that defines a file, except for its lines. */
export interface FileKind {
  readonly subject: Subject;
  readonly format: Format;
  /** CSV for versions of Excel that use decimal commas: with `;` and a byte order mark. */
  readonly for_excel: boolean;
}

async function* csvPieces({ subject: { columns }, for_excel }: FileKind, pages: Pages) {
  const [start, separator] = for_excel ? ['\uFEFF', ';'] : ['', ','];
  yield Buffer.from(`${start}${columns.map(({ name }) => name).join(separator)}\r\n`);
  for await (const page of pages) {
    const rows = rowsOf<Readonly<Record<string, unknown>>>(page);
    yield Buffer.from(rows.map((row) => csvLine(columns, row, separator)).join(''));
  }
}

async function* jsonPieces({ subject: { schema, list } }: FileKind, pages: Pages) {
  yield Buffer.from(`{"schema":${JSON.stringify(schema)},"${list}":[`);
  let before = '\n';
  for await (const { text } of pages) {
    yield Buffer.from(before + text.toString().trimEnd().replaceAll('\n', ',\n'));
    before = ',\n';
  }
  yield Buffer.from('\n]}\n');
}

async function* ndjsonPieces(_: FileKind, pages: Pages) {
  for await (const { text } of pages) yield text;
}

/** Lines of JSON to add, or null at the end. The worker answers with the bytes that are ready. */
export type ParquetCall = Uint8Array | null;

const heap_mb = 256;

/** A worker thread makes the file, because one group of rows takes 100 ms. */
export async function* parquetPieces({ columns }: TypedColumns, pages: Pages) {
  const worker = new Worker(new URL('./parquet-worker.js', import.meta.url), {
    workerData: columns,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: heap_mb },
  });
  const call = async (message: ParquetCall): Promise<Uint8Array> => {
    const answered = once(worker, 'message') as Promise<[Uint8Array]>;
    worker.postMessage(message);
    return (await answered)[0];
  };
  try {
    for await (const { text } of pages) yield await call(text);
    yield await call(null);
  } finally {
    await worker.terminate();
  }
}

const makers: Readonly<
  Record<Format, (kind: FileKind, pages: Pages) => AsyncIterable<Uint8Array>>
> = {
  csv: csvPieces,
  ndjson: ndjsonPieces,
  json: jsonPieces,
  parquet: ({ subject }, pages) => parquetPieces(subject, pages),
};

/**
 * Rows per turn of the event loop. A page is a chunk from Postgres, at most about 64 kB of lines.
 */
export const rows_a_turn = 200;

/** The bytes depend on the lines alone, so an interrupted export can be resumed. */
export async function* makeContent(
  kind: FileKind,
  pages: Pages,
): AsyncGenerator<Uint8Array, Result> {
  const hash = createHash('sha256');
  let bytes = 0;
  let rows = 0;
  const pause = makePause(rows_a_turn);
  async function* counted() {
    for await (const page of pages) {
      rows += page.rows;
      yield page;
      // Without a pause, all pages that have arrived would be processed in the same turn.
      await pause(page.rows);
    }
  }
  for await (const piece of makers[kind.format](kind, counted())) {
    hash.update(piece);
    bytes += piece.byteLength;
    if (piece.byteLength > 0) yield piece;
  }
  return { rows, bytes, sha256: hash.digest('hex') };
}
