import type { LineKind } from './cells-store.js';

/** The formats of an export: what each is called, and what stands around and between its rows. */

export const format_names = ['csv', 'ndjson', 'json', 'parquet'] as const;
export type Format = (typeof format_names)[number];

export const content_types: Readonly<Record<Format, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  ndjson: 'application/x-ndjson',
  json: 'application/json',
  parquet: 'application/vnd.apache.parquet',
};

/** A format in which a row is a text. */
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

export const textFormat = (format: Exclude<Format, 'parquet'>, parts: HeadParts): TextFormat => {
  const { schema, columns, name } = parts;
  if (format === 'csv') {
    const head = `${columns.join(',')}\r\n`;
    return { line: 'csv', separator: '\r\n', head, last: '\r\n', tail: () => '' };
  }
  if (format === 'ndjson') {
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
