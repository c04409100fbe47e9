import { createHash, type Hash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync, rmSync, statSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { writeWhole } from '../../embedded/files.js';

/**
 * What is there of an export: FILE.part, and FILE.part.json, which says of which export. The length
 * of the part is the cursor: every byte in it has come from the service, in order.
 */

export interface PartState {
  readonly address: string;
  readonly query: Readonly<Record<string, string>>;
  readonly snapshot: string;
}

export const partName = (file: string): string => `${file}.part`;
const stateName = (file: string): string => `${file}.part.json`;

export const readState = (file: string): PartState | null => {
  try {
    return JSON.parse(readFileSync(stateName(file), 'utf8')) as PartState;
  } catch {
    return null;
  }
};

export const isSameExport = (a: PartState, b: Omit<PartState, 'snapshot'>): boolean =>
  a.address === b.address && JSON.stringify(a.query) === JSON.stringify(b.query);

export const forgetPart = (file: string): void => {
  rmSync(partName(file), { force: true });
  rmSync(stateName(file), { force: true });
};

export const forgetState = (file: string): void => rmSync(stateName(file), { force: true });

/** The state comes first: a part without one belongs to nothing. */
export const keepState = (file: string, state: PartState): void => {
  rmSync(partName(file), { force: true });
  writeWhole(stateName(file), `${JSON.stringify(state, null, 2)}\n`, 0o644);
};

export const partBytes = (file: string): number =>
  existsSync(partName(file)) ? statSync(partName(file)).size : 0;

/** Counts the rows of a file that is still on its way, as far as its format shows them. */
interface RowCounter {
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

const makeRowCounter = (format: string): RowCounter => {
  if (format === 'csv') return csvCounter();
  if (format === 'ndjson') return lineCounter(0);
  if (format === 'json') return lineCounter(1);
  return { add: () => undefined, rows: () => 0 };
};

export interface Part {
  readonly bytes: number;
  readonly rows: number;
  /** Hex. */
  readonly sha256: string;
  append(piece: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

const readThrough = async (file: string, hash: Hash, counter: RowCounter): Promise<number> => {
  let bytes = 0;
  if (!existsSync(partName(file))) return 0;
  for await (const piece of createReadStream(partName(file), { highWaterMark: 1_048_576 })) {
    hash.update(piece as Buffer);
    counter.add(piece as Buffer);
    bytes += (piece as Buffer).byteLength;
  }
  return bytes;
};

/** Opens the part behind what is there, which is read once for its sum. */
export const openPart = async (file: string, format: string): Promise<Part> => {
  const hash = createHash('sha256');
  const counter = makeRowCounter(format);
  let bytes = await readThrough(file, hash, counter);
  const handle: FileHandle = await open(partName(file), 'a');
  return {
    get bytes() {
      return bytes;
    },
    get rows() {
      return counter.rows();
    },
    get sha256() {
      return hash.copy().digest('hex');
    },
    async append(piece) {
      await handle.writeFile(piece);
      hash.update(piece);
      counter.add(piece);
      bytes += piece.byteLength;
    },
    async close() {
      await handle.sync();
      await handle.close();
    },
  };
};
