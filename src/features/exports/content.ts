import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { makePause } from '../../kit/loop.js';
import { type Column, csvLine } from './columns.js';
import type { Lines, Selected } from './copy-store.js';
import type { Format } from './schema.js';
import type { ExportScope } from './select-store.js';

/** The formats of an export, and its bytes made from its lines. */

export interface Subject {
  /** In paths and names of files. */
  readonly name: string;
  readonly schema: string;
  readonly columns: readonly Column[];
  /** The name of the list of rows in a JSON document. */
  readonly list: string;
  select(scope: ExportScope): Selected;
}

/** What a file of Parquet has to know of its columns. */
export interface TypedColumns {
  readonly columns: readonly Pick<Column, 'name' | 'type'>[];
}

/** The sums of a file before any compression. */
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

/** What a file is made of besides its lines. */
export interface FileKind {
  readonly subject: Subject;
  readonly format: Format;
  /** CSV as Excel opens it where a comma is in numbers: with `;` and a byte order mark. */
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

/** Lines of JSON to add, or null for the end; the answer is the bytes that are ready. */
export type ParquetCall = Uint8Array | null;

const heap_mb = 256;

/** A thread makes the file: a group of its rows is 100 ms of work. */
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

/** A page of lines is what Postgres sent at once, some 64 kB at most. */
export const rows_a_turn = 200;

/** The bytes follow from the lines alone, so an interrupted export can go on where it ended. */
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
      // Pages that are there already would come one after the other in the same turn.
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
