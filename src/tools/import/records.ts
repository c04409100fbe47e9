import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { parse } from 'csv-parse';

/** Reads a file of questions record by record, NDJSON or CSV; what is not a record says why. */

export type Entry =
  | { readonly line: number; readonly record: SourceRecord }
  | { readonly line: number; readonly problem: string };

export type SourceRecord = Readonly<Record<string, unknown>>;

const longest_line = 1_000_000;
const byte_order_mark = '\uFEFF';

/** By the name, else by the first character: a record of NDJSON begins with a brace. */
const isNdjson = async (file: string): Promise<boolean> => {
  if (/\.csv$/i.test(file)) return false;
  if (/\.(ndjson|jsonl)$/i.test(file)) return true;
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(1024), 0, 1024, 0);
    const start = buffer.toString('utf8', 0, bytesRead).replace(byte_order_mark, '').trimStart();
    return start.startsWith('{');
  } finally {
    await handle.close();
  }
};

const readLine = (text: string): { record: SourceRecord } | { problem: string } => {
  if (text.length > longest_line) return { problem: `the line is over ${longest_line} characters` };
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return { record: value as SourceRecord };
    }
    return { problem: 'the line is JSON but not an object' };
  } catch (error) {
    return { problem: `not valid JSON: ${error instanceof Error ? error.message : error}` };
  }
};

async function* readNdjson(file: string): AsyncGenerator<Entry> {
  const lines = createInterface({ input: createReadStream(file), crlfDelay: Infinity });
  let line = 0;
  for await (const raw of lines) {
    line += 1;
    const text = line === 1 ? raw.replace(byte_order_mark, '') : raw;
    if (text.trim() !== '') yield { line, ...readLine(text) };
  }
}

interface CsvRow {
  readonly info: { readonly lines: number };
  readonly record: SourceRecord;
}

/** A row that cannot be read is passed over and reported; rows may span several lines. */
async function* readCsv(file: string): AsyncGenerator<Entry> {
  const bad: Entry[] = [];
  const parser = parse({
    bom: true,
    columns: (names: string[]) => names.map((name) => name.trim()),
    info: true,
    skip_empty_lines: true,
    skip_records_with_error: true,
    max_record_size: longest_line,
  });
  parser.on('skip', (error: (Error & { lines?: number }) | undefined) => {
    const problem = `not valid CSV: ${error?.message ?? 'unreadable row'}`;
    bad.push({ line: error?.lines ?? 0, problem });
  });
  const input = createReadStream(file);
  input.on('error', (error) => parser.destroy(error));
  let last_line = 1;
  for await (const { info, record } of input.pipe(parser) as AsyncIterable<CsvRow>) {
    yield* bad.splice(0);
    // The parser says where a row ends; where it begins is the line after the row before.
    yield { line: last_line + 1, record };
    last_line = info.lines;
  }
  yield* bad.splice(0);
}

export async function* readRecords(file: string): AsyncGenerator<Entry> {
  yield* (await isNdjson(file)) ? readNdjson(file) : readCsv(file);
}
