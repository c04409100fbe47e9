import type { LineKind } from './cells-store.js';
import type { Column } from './columns.js';

/** Rows that are made here rather than by Postgres, as lines. */

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
