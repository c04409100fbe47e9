/** Counts the rows of a file that is still on its way, as far as its format shows them. */

export interface RowCounter {
  add(piece: Uint8Array): void;
  /** 0 for Parquet, in which rows cannot be told apart from outside. */
  rows(): number;
}

const line_feed = 0x0a;
const quote = 0x22;

/** A line feed inside quotes ends no row. */
const csvCounter = (): RowCounter => {
  let lines = 0;
  let is_quoted = false;
  return {
    add(piece) {
      for (const byte of piece) {
        if (byte === quote) is_quoted = !is_quoted;
        else if (byte === line_feed && !is_quoted) lines += 1;
      }
    },
    rows: () => Math.max(0, lines - 1),
  };
};

const lineCounter = (before: number): RowCounter => {
  let lines = 0;
  return {
    add(piece) {
      const { buffer, byteOffset, byteLength } = piece;
      const bytes = Buffer.from(buffer, byteOffset, byteLength);
      for (let at = bytes.indexOf(line_feed); at !== -1; at = bytes.indexOf(line_feed, at + 1)) {
        lines += 1;
      }
    },
    rows: () => Math.max(0, lines - before),
  };
};

export const makeRowCounter = (format: string): RowCounter => {
  if (format === 'csv') return csvCounter();
  if (format === 'ndjson') return lineCounter(0);
  if (format === 'json') return lineCounter(1);
  return { add: () => undefined, rows: () => 0 };
};
