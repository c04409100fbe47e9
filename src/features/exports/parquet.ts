import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Column } from './columns.js';

/** A Parquet file that a thread of its own makes from lines of JSON, one call after the other. */
export interface ParquetFile {
  /** Takes some lines; the bytes that are ready meanwhile, often none. */
  add(lines: Uint8Array): Promise<Uint8Array>;
  /** The end of the file; its footer has what the file says of itself. */
  finish(described: Readonly<Record<string, string>>): Promise<Uint8Array>;
  close(): Promise<unknown>;
}

export type ParquetCall =
  | { readonly lines: Uint8Array }
  | { readonly described: Readonly<Record<string, string>> };

const heap_mb = 256;

export const openParquetFile = (columns: readonly Column[]): ParquetFile => {
  const worker = new Worker(new URL('./parquet-worker.js', import.meta.url), {
    workerData: columns,
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: heap_mb },
  });
  const call = async (message: ParquetCall): Promise<Uint8Array> => {
    const answered = once(worker, 'message') as Promise<[Uint8Array]>;
    worker.postMessage(message);
    const [bytes] = await answered;
    return bytes;
  };
  return {
    add: (lines) => call({ lines }),
    finish: (described) => call({ described }),
    close: () => worker.terminate(),
  };
};
