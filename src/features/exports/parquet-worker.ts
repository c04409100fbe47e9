import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { ByteWriter, type ColumnSource, ParquetWriter } from 'hyparquet-writer';
import type { ColumnType } from './columns.js';
import type { ParquetCall, TypedColumns } from './content.js';

/**
 * The worker thread of `parquetPieces`. It writes rows as Parquet, one row group at a time, so
 * memory holds only one group, however long the file is. Texts become UTF-8 byte arrays, times
 * become UTC timestamps in milliseconds, and lists and JSON values become JSON.
 */

/** Rows per group, about 8 MB of typical texts. */
const group_rows = 5_000;

type Element = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number];

const kinds: Readonly<Record<ColumnType, Omit<Element, 'name'>>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  integer: { type: 'INT32' },
  number: { type: 'DOUBLE' },
  boolean: { type: 'BOOLEAN' },
  time: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
  list: { type: 'BYTE_ARRAY', converted_type: 'JSON' },
  numbers: { type: 'BYTE_ARRAY', converted_type: 'JSON' },
  json: { type: 'BYTE_ARRAY', converted_type: 'JSON' },
  value: { type: 'BYTE_ARRAY', converted_type: 'JSON' },
};

const toValue = (type: ColumnType, value: unknown): unknown => {
  if (value === null || value === undefined) return null;
  return type === 'time' ? new Date(value as string) : value;
};

const serve = (port: MessagePort, columns: TypedColumns['columns']): void => {
  const bytes = new ByteWriter(1_048_576);
  const elements = columns.map(
    ({ name, type }): Element => ({ name, repetition_type: 'OPTIONAL', ...kinds[type] }),
  );
  const writer = new ParquetWriter({
    writer: bytes,
    schema: [{ name: 'root', num_children: columns.length }, ...elements],
    createdBy: 'prediction-forum',
  });
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

  const add = (line: string): void => {
    const row = JSON.parse(line) as Readonly<Record<string, unknown>>;
    for (const [n, { name, type }] of columns.entries()) values[n]?.push(toValue(type, row[name]));
    waiting += 1;
    if (waiting === group_rows) writeGroup();
  };

  port.on('message', (call: ParquetCall) => {
    if (call === null) {
      writeGroup();
      writer.finish();
    } else {
      const text = Buffer.from(call).toString();
      for (const line of text.split('\n')) if (line !== '') add(line);
    }
    // Sends the bytes written since the last message. Offsets inside the file continue.
    const taken = bytes.getBytes().slice();
    bytes.index = 0;
    port.postMessage(taken, [taken.buffer as ArrayBuffer]);
  });
};

if (parentPort !== null) serve(parentPort, workerData as TypedColumns['columns']);
