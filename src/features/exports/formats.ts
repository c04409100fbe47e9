import type { Column } from './columns.js';
import type { LineKind } from './select-store.js';

/** The formats of an export: what each is called, and what stands around and between its rows. */

export const format_names = ['csv', 'ndjson', 'json', 'parquet'] as const;
export type Format = (typeof format_names)[number];

export const content_types: Readonly<Record<Format, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  ndjson: 'application/x-ndjson',
  json: 'application/json',
  parquet: 'application/vnd.apache.parquet',
};

/** A format in which a row is a text; lines that become Parquet are those of NDJSON. */
export interface TextFormat {
  readonly line: LineKind;
  readonly separator: string;
  /** Before the first row. */
  readonly head: string;
  /** Behind the last row, when there is one. */
  readonly last: string;
  /** The end; `manifest` is JSON, or null when it was not asked for. */
  tail(manifest: string | null): string;
}

export interface HeadParts {
  readonly schema: string;
  readonly columns: readonly string[];
  /** What the list of rows is called. */
  readonly name: string;
}

const no_head: HeadParts = { schema: '', columns: [], name: '' };

export const textFormat = (format: Format, parts: HeadParts = no_head): TextFormat => {
  const { schema, columns, name } = parts;
  if (format === 'csv') {
    const head = `${columns.join(',')}\r\n`;
    return { line: 'csv', separator: '\r\n', head, last: '\r\n', tail: () => '' };
  }
  if (format === 'ndjson' || format === 'parquet') {
    const tail = (manifest: string | null) =>
      manifest === null ? '' : `{"manifest":${manifest}}\n`;
    return { line: 'json', separator: '\n', head: '', last: '\n', tail };
  }
  return {
    line: 'json',
    separator: ',\n',
    head: `{"schema":${JSON.stringify(schema)},"${name}":[\n`,
    last: '\n',
    tail: (manifest) => `]${manifest === null ? '' : `,"manifest":${manifest}`}}\n`,
  };
};

/** Of rows that are made here rather than by Postgres. */
export type RowValue = string | number | boolean | null | Readonly<Record<string, number>>;
export type MadeRow = Readonly<Record<string, RowValue>>;

const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;

/** RFC 4180; a text that a spreadsheet would take for a formula gets a `'` in front. */
const toCell = ({ is_free }: Column, value: RowValue | undefined): string => {
  if (value === null || value === undefined) return '';
  if (typeof value === 'object') return quoted(JSON.stringify(value));
  if (is_free !== true) return String(value);
  const text = String(value);
  return quoted(/^[=+@\t\r-]/.test(text) ? `'${text}` : text);
};

export const toLine = (kind: LineKind, columns: readonly Column[], row: MadeRow): string =>
  kind === 'csv'
    ? columns.map((column) => toCell(column, row[column.name])).join(',')
    : JSON.stringify(Object.fromEntries(columns.map(({ name }) => [name, row[name] ?? null])));
