import { ByteWriter, type ColumnSource, ParquetWriter } from 'hyparquet-writer';
import type { Column, ColumnType } from './columns.js';

/**
 * Rows as Parquet, a row group at a time, so that memory holds one group whatever the length of the
 * file. Texts are byte arrays of UTF-8, times millisecond timestamps, lists and objects JSON.
 */

/** Rows of a group: some 8 MB of common texts. */
export const group_rows = 5_000;

type Element = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number];

const kinds: Readonly<Record<ColumnType, Omit<Element, 'name'>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  integer: { type: 'INT32' },
  number: { type: 'DOUBLE' },
  boolean: { type: 'BOOLEAN' },
  time: { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' },
  list: { type: 'BYTE_ARRAY', converted_type: 'JSON' },
  object: { type: 'BYTE_ARRAY', converted_type: 'JSON' },
};

export type RowValues = Readonly<Record<string, unknown>>;

/** A value of JSON as the writer wants it. */
const toValue = (type: ColumnType, value: unknown): unknown => {
  if (value === null || value === undefined) return null;
  return type === 'time' ? new Date(value as string) : value;
};

export interface ParquetFile {
  /** Adds a group; the bytes that are ready. */
  addGroup(rows: readonly RowValues[]): Uint8Array;
  /** The footer, with what the file says of itself. */
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
  /** Takes what was written so far; offsets inside the file go on. */
  const take = (): Uint8Array => {
    const taken = bytes.getBytes().slice();
    bytes.index = 0;
    return taken;
  };
  return {
    addGroup(rows) {
      const columnData = columns.map(
        ({ name, type }): ColumnSource => ({
          name,
          data: rows.map((row) => toValue(type, row[name])),
        }),
      );
      writer.write({ columnData, rowGroupSize: group_rows });
      return take();
    },
    finish(described) {
      writer.kvMetadata = Object.entries(described).map(([key, value]) => ({ key, value }));
      writer.finish();
      return take();
    },
  };
};
