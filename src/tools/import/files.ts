import { isUtf8 } from 'node:buffer';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { CsvError, parse } from 'csv-parse/sync';
import { findInexactProblem } from '../../http/validation.js';
import { foldName } from '../../kit/names.js';
import { Stopped } from '../command.js';

/** Reads a file of records, NDJSON or CSV, and gives each record the number of its first line. */

/** A record of the file, or the reason why it cannot be read. */
export type Entry =
  | { readonly line: number; readonly record: SourceRecord }
  | { readonly line: number; readonly problem: string };

export type SourceRecord = Readonly<Record<string, unknown>>;

interface Line {
  readonly line: number;
  readonly text: string;
  /** The line end, which stays in a cell that spans several lines. */
  readonly end: string;
}

const longest_record = 1_000_000;
const [line_feed, carriage_return] = [0x0a, 0x0d];
const byte_order_mark = '\uFEFF';
const save_as = 'Save the file as UTF-8 text, and import it again.';

const decode = (bytes: Buffer, line: number): string => {
  if (!isUtf8(bytes)) throw new Stopped(`Line ${line} is not valid UTF-8. ${save_as}`);
  const text = bytes.toString();
  if (text.includes('\0')) throw new Stopped(`Line ${line} is not text. ${save_as}`);
  return line === 1 && text.startsWith(byte_order_mark) ? text.slice(1) : text;
};

/**
 * Returns the end of the next line and the start of the one after; null if more bytes are needed.
 */
const findEnd = (bytes: Buffer, is_all: boolean): readonly [number, number] | null => {
  const feed = bytes.indexOf(line_feed);
  const at = bytes.subarray(0, feed === -1 ? bytes.length : feed).indexOf(carriage_return);
  if (at === -1) return feed === -1 ? null : [feed, feed + 1];
  if (at + 1 === bytes.length && !is_all) return null;
  return [at, bytes[at + 1] === line_feed ? at + 2 : at + 1];
};

/** Yields lines. They may end in LF, CRLF or CR, also mixed. Throws if a line is not UTF-8. */
async function* readLines(file: string): AsyncGenerator<Line> {
  let line = 0;
  let rest: Buffer = Buffer.alloc(0);
  function* take(is_all: boolean) {
    for (let end = findEnd(rest, is_all); end !== null; end = findEnd(rest, is_all)) {
      line += 1;
      const text = decode(rest.subarray(0, end[0]), line);
      yield { line, text, end: rest.toString('latin1', ...end) };
      rest = rest.subarray(end[1]);
    }
  }
  for await (const chunk of createReadStream(file)) {
    rest = Buffer.concat([rest, chunk as Buffer]);
    yield* take(false);
    if (rest.length > 16 * longest_record) {
      throw new Stopped(`Line ${line + 1} is too long. This is not a file of records.`);
    }
  }
  yield* take(true);
  if (rest.length > 0) yield { line: line + 1, text: decode(rest, line + 1), end: '' };
}

/** Decides by the file name, else by the first character: an NDJSON record starts with a brace. */
const isNdjson = async (file: string): Promise<boolean> => {
  if (/\.(csv|tsv)$/i.test(file)) return false;
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

const readJsonLine = (text: string): { record: SourceRecord } | { problem: string } => {
  if (text.length > longest_record) {
    return { problem: `the line has more than ${longest_record} characters` };
  }
  try {
    const value: unknown = JSON.parse(text);
    const problem = findInexactProblem(text);
    if (problem !== null) return { problem };
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return { record: value as SourceRecord };
    }
    return { problem: 'the line is JSON but not an object' };
  } catch (error) {
    return { problem: `not valid JSON: ${error instanceof Error ? error.message : error}` };
  }
};

async function* readNdjson(file: string): AsyncGenerator<Entry> {
  for await (const { line, text } of readLines(file)) {
    if (text.trim() !== '') yield { line, ...readJsonLine(text) };
  }
}

const separators = [',', ';', '\t'] as const;

/** Returns the most frequent separator outside of quotes; a comma if there are no separators. */
const separatorOf = (header: string): string => {
  const unquoted = header.replace(/"[^"]*"/g, '');
  const counts = separators.map((one) => unquoted.split(one).length);
  return separators[counts.indexOf(Math.max(...counts))] ?? ',';
};

type Row = { readonly cells: readonly string[] } | CsvError;

/** Returns the cells of one row, or why it is not a valid row. */
const readRow = (text: string, separator: string): Row => {
  const row = parseRow(text, separator);
  if (!(row instanceof CsvError) || row.code !== 'INVALID_OPENING_QUOTE') return row;
  const marked = parseRow(markInner(text, separator), separator);
  if (marked instanceof CsvError) return marked;
  return { cells: marked.cells.map((cell) => cell.replaceAll(mark, '"')) };
};

const parseRow = (text: string, delimiter: string): Row => {
  try {
    const options = { delimiter, record_delimiter: '\n', trim: true } as const;
    const rows: readonly string[][] = parse(text, options);
    return { cells: rows[0] ?? [] };
  } catch (error) {
    if (error instanceof CsvError) return error;
    throw error;
  }
};

/** A character that no text contains, because `decode` refuses it. */
const mark = '\0';

/** Marks quotes within a cell, as in `27"`, because they are ordinary characters. */
const markInner = (text: string, separator: string): string => {
  const by = `\\u{${separator.codePointAt(0)?.toString(16)}}`;
  const quoted = `[^\\S${by}]*"[^"]*(?:""[^"]*)*(?:"|$)[^${by}]*`;
  const cells = new RegExp(`(?:${quoted}|[^${by}]*)(?:${by}|$)`, 'gu');
  return text.replace(cells, (cell) =>
    cell.trimStart().startsWith('"') ? cell : cell.replaceAll('"', mark),
  );
};

const isOpen = (row: Row): boolean =>
  row instanceof CsvError && row.code === 'CSV_QUOTE_NOT_CLOSED';

const hasQuote = ({ text }: Line): boolean => text.replaceAll('""', '').includes('"');

/** True if the first quote on this line properly closes a cell that began on an earlier line. */
const closesWell = (text: string, separator: string): boolean => {
  const [start] = /^(?:[^"]|"")*"/.exec(text) ?? [''];
  const rest = text.slice(start.length).trimStart();
  return start !== '' && (rest === '' || rest.startsWith(separator));
};

type NumberedRow =
  | { readonly line: number; readonly cells: readonly string[] }
  | { readonly line: number; readonly problem: string };

/**
 * Yields rows with the numbers of their first lines. If a quote is never closed, the row that opens
 * it is lost, and reading continues on the line below.
 */
class RowReader {
  readonly #separator: string;
  /** Lines of a row with an open quote. */
  #waiting: Line[] = [];
  #size = 0;

  constructor(separator: string) {
    this.#separator = separator;
  }

  *read(given: Line): Generator<NumberedRow> {
    const lines = [given];
    for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
      if (this.#waiting.length === 0 && line.text.trim() === '') continue;
      this.#waiting.push(line);
      this.#size += line.text.length;
      const is_within = this.#waiting.length > 1 && !line.text.includes('"');
      const is_too_long = this.#size > longest_record;
      if (is_within && !is_too_long) continue;
      const row = this.#parse();
      if (isOpen(row) && !is_too_long) continue;
      lines.unshift(...(yield* this.#finish(row)));
    }
  }

  /** Yields the rows that still wait at the end of the file. */
  *end(): Generator<NumberedRow> {
    while (this.#waiting.length > 0) {
      for (const line of yield* this.#finish(this.#parse())) yield* this.read(line);
    }
  }

  #parse(): Row {
    const last = this.#waiting.length - 1;
    const texts = this.#waiting.map(({ text, end }, at) => (at === last ? text : text + end));
    return readRow(texts.join(''), this.#separator);
  }

  /**
   * Yields the waiting lines as a row, or as a problem. Returns the lines that must be read again.
   */
  *#finish(row: Row): Generator<NumberedRow, readonly Line[]> {
    const lines = this.#waiting;
    this.#waiting = [];
    this.#size = 0;
    if (!(row instanceof CsvError)) {
      yield { line: lines[0]!.line, cells: row.cells };
      return [];
    }
    const last = lines.length - 1;
    const is_last = isOpen(row)
      ? hasQuote(lines[last]!)
      : closesWell(lines[last]!.text, this.#separator);
    const at = is_last ? last : lines.slice(0, last).findLastIndex(hasQuote);
    const { line } = lines[Math.max(at, 0)]!;
    const is_single = last === 0 && !isOpen(row);
    const problem = is_single || (is_last && !isOpen(row)) ? sayProblem(row) : open_quote;
    yield { line, problem: `not valid CSV: ${problem}` };
    return lines.slice(Math.max(at, 0) + 1);
  }
}

const open_quote = 'a quote opens here and is not closed';
const text_after_quote = 'text follows a closing quote; double the quotes within a cell';

const sayProblem = ({ code, message }: CsvError): string =>
  /CLOSING_QUOTE/.test(code) ? text_after_quote : message;

async function* readRows(
  lines: AsyncIterable<Line>,
  separator: string,
): AsyncGenerator<NumberedRow> {
  const reader = new RowReader(separator);
  for await (const line of lines) yield* reader.read(line);
  yield* reader.end();
}

/** `Source ID` becomes `source_id`. */
const toName = (cell: string): string => foldName(cell).replace(/[\s-]+/g, '_');

const readHeader = (row: NumberedRow): readonly string[] => {
  const { line } = row;
  if ('problem' in row) throw new Stopped(`Line ${line}: ${row.problem}.`);
  const names = row.cells.map(toName);
  const twice = names.find((name, at) => name !== '' && names.indexOf(name) < at);
  if (twice !== undefined) throw new Stopped(`Line ${line}: the column ${twice} appears twice.`);
  return names;
};

const counted = (cells: number): string => (cells === 1 ? '1 cell' : `${cells} cells`);

/** Exports put a quote before text that a spreadsheet would treat as a formula. */
const unshield = (cell: string): string => cell.replace(/^'(?=[=+\-@\t\r])/, '');

const toRecord = (
  names: readonly string[],
  cells: readonly string[],
): { record: SourceRecord } | { problem: string } => {
  const is_longer = cells.slice(names.length).some((cell) => cell !== '');
  if (cells.length < names.length || is_longer) {
    return { problem: `the row has ${counted(cells.length)}, but the header has ${names.length}` };
  }
  const named = names.map((name, at) => [name, unshield(cells[at] ?? '')] as const);
  return { record: Object.fromEntries(named.filter(([name]) => name !== '')) };
};

/** Yields the rows of a CSV file, the header first. */
async function* readCsvRows(file: string): AsyncGenerator<NumberedRow> {
  const lines = readLines(file);
  let separator: string | undefined;
  /** Removes the line `sep=…`, which sets the separator, before the other lines are read. */
  async function* afterMark() {
    for await (const one of lines) {
      const marked = one.line === 1 ? /^"?sep=(.)"?$/i.exec(one.text)?.[1] : undefined;
      if (marked !== undefined) separator = marked;
      else yield one;
    }
  }
  const rest = afterMark();
  let first: Line | undefined;
  do {
    const next = await rest.next();
    if (next.done === true) return;
    first = next.value;
  } while (first.text.trim() === '');
  separator ??= separatorOf(first.text);
  async function* all() {
    yield first!;
    yield* rest;
  }
  yield* readRows(all(), separator);
}

async function* readCsv(file: string): AsyncGenerator<Entry> {
  let names: readonly string[] | undefined;
  for await (const row of readCsvRows(file)) {
    if (names === undefined) names = readHeader(row);
    else if ('problem' in row) yield row;
    // Spreadsheets leave rows of empty cells behind.
    else if (row.cells.some((cell) => cell !== ''))
      yield { line: row.line, ...toRecord(names, row.cells) };
  }
}

/** Reads a file record by record. */
export async function* readRecords(file: string): AsyncGenerator<Entry> {
  yield* (await isNdjson(file)) ? readNdjson(file) : readCsv(file);
}

/**
 * Reads the file once without importing it, so that an unsuitable file is refused as a whole.
 * Returns false if the file is empty. The header of a CSV must have one of the `columns`.
 */
export const checkFile = async (file: string, columns: readonly string[]): Promise<boolean> => {
  let first: Line | undefined;
  for await (const line of readLines(file)) if (line.text.trim() !== '') first ??= line;
  if (first === undefined) return false;
  const { line, text } = first;
  if (/^\s*\[\s*(?:\{|$)/.test(text)) {
    throw new Stopped(
      `Line ${line} starts a JSON list. Write one object per line, without brackets.`,
    );
  }
  if (await isNdjson(file)) return true;
  if (/^\s*\{/.test(text)) {
    throw new Stopped(`Line ${line} is NDJSON, not CSV. Its name must end in .ndjson.`);
  }
  for await (const row of readCsvRows(file)) {
    if (readHeader(row).some((name) => columns.includes(name))) break;
    const problem = 'it has no column that an import needs, such as question';
    throw new Stopped(`Line ${row.line} is not a header: ${problem}.`);
  }
  return true;
};
