import { ByteWriter, type ColumnSource, ParquetWriter } from 'hyparquet-writer';
import type { Column, ColumnType } from './columns.js';

/**
 * Rows as Parquet, a row group at a time, so that memory holds one group whatever the length of the
 * file. Texts are byte arrays of UTF-8, times millisecond timestamps, lists, objects and any
 * values JSON.
 */

/** Rows of a group: some 8 MB of common texts. */
const group_rows = 5_000;

type Element = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number];

const kinds: Readonly<Record<ColumnType, Omit<Element, 'name'>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  integer: { type: 'INT32' },
  number: { type: 'DOUBLE' },
  boolean: { type: 'BOOLEAN' },
  time: { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' },
  list: { type: 'BYTE_ARRAY', converted_type: 'JSON' },
  object: { type: 'BYTE_ARRAY', converted_type: 'JSON' },
  json: { type: 'BYTE_ARRAY', converted_type: 'JSON' },
};

export type RowValues = Readonly<Record<string, unknown>>;

/** A value of JSON as the writer wants it. */
const toValue = (type: ColumnType, value: unknown): unknown => {
  if (value === null || value === undefined) return null;
  return type === 'time' ? new Date(value as string) : value;
};

export interface ParquetFile {
  /** Puts a row to the group that waits. */
  add(row: RowValues): void;
  /** Whether no more rows belong to that group. */
  is_full(): boolean;
  /** Ends the group; the bytes that are ready. */
  takeGroup(): Uint8Array;
  /** Ends the file with what waits and the footer, which has what the file says of itself. */
  finish(described: Readonly<Record<string, string>>): Uint8Array;
}

export const makeParquetFile = (columns: readonly Column[]): ParquetFile => {
  const bytes = new ByteWriter(1_048_576);
  const schema: Element[] = [
    { name: 'root', num_children: columns.length },
    ...columns.map(
      ({ name, type }): Element => ({ name, repetition_type: 'OPTIONAL', ...kinds[type] }),
    ),
  ];
  const writer = new ParquetWriter({ writer: bytes, schema, createdBy: 'prediction-forum' });
  /** Values of the group, column by column: rows of it would be as much again to collect. */
  let values: unknown[][] = columns.map(() => []);
  let waiting = 0;
  const writeGroup = (): void => {
    if (waiting === 0) return;
    const columnData = columns.map(
      ({ name }, n): ColumnSource => ({ name, data: values[n] as unknown[] }),
    );
    writer.write({ columnData, rowGroupSize: group_rows });
    values = columns.map(() => []);
    waiting = 0;
  };
  /** Takes what was written so far; offsets inside the file go on. */
  const take = (): Uint8Array => {
    const taken = bytes.getBytes().slice();
    bytes.index = 0;
    return taken;
  };
  return {
    add(row) {
      for (const [n, { name, type }] of columns.entries()) {
        values[n]?.push(toValue(type, row[name]));
      }
      waiting += 1;
    },
    is_full: () => waiting >= group_rows,
    takeGroup() {
      writeGroup();
      return take();
    },
    finish(described) {
      writeGroup();
      writer.kvMetadata = Object.entries(described).map(([key, value]) => ({ key, value }));
      writer.finish();
      return take();
    },
  };
};
