import { SingleBar } from 'cli-progress';
import type { Screen } from '../shared/bar.js';

/** The progress of one export: a bar of rows, or bytes alone where rows cannot be counted. */

export interface Progress {
  start(total_rows: number | null, rows: number, bytes: number): void;
  update(rows: number, bytes: number): void;
  /** Takes the bar away, so that other lines can be written. */
  stop(): void;
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

const with_rows = '[{bar}] {percentage} %  {value}/{total} rows  {size}  {rate}  {eta_formatted}';
const bytes_only = '{size}  {rate}';
/** Where the output is a file or a pipe, a line now and then. */
const plain_ms = 5_000;

export const makeProgress = (screen: Screen): Progress => {
  let bar: SingleBar | null = null;
  let began_ms = 0;
  let began_bytes = 0;
  const payload = (bytes: number) => {
    const seconds = Math.max(0.001, (performance.now() - began_ms) / 1_000);
    return { size: megabytes(bytes), rate: `${megabytes((bytes - began_bytes) / seconds)}/s` };
  };
  return {
    start(total_rows, rows, bytes) {
      began_ms = performance.now();
      began_bytes = bytes;
      bar = new SingleBar({
        format: total_rows === null ? bytes_only : with_rows,
        barCompleteChar: '█',
        barIncompleteChar: '░',
        barsize: 28,
        hideCursor: true,
        clearOnComplete: true,
        stream: screen as NodeJS.WriteStream,
        noTTYOutput: true,
        notTTYSchedule: plain_ms,
        etaBuffer: 100,
        fps: 10,
      });
      bar.start(total_rows ?? 1, rows, payload(bytes));
    },
    update(rows, bytes) {
      bar?.update(rows, payload(bytes));
    },
    stop() {
      bar?.stop();
      bar = null;
    },
  };
};
