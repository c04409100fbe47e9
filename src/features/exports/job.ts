import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { Sql } from '../../kit/pg/client.js';
import { readConsensusPages } from './consensus-pages.js';
import { type ContentAsk, type Lines, linesOf, makeContent, type Result } from './content.js';
import { type PredictionAsk, type Privacy, readBounds, readPage } from './predictions-store.js';

/** One export from its first page to its last byte, as it is made beside the api. */

/** What is exported. */
export type Subject = 'predictions' | 'consensus-history';

export interface Job {
  readonly subject: Subject;
  readonly ask: PredictionAsk;
  readonly content: ContentAsk;
  readonly gzip: boolean;
  /** So many bytes of the file are there already. */
  readonly skip_bytes: number;
  /** Only the sums are wanted. */
  readonly only_sums: boolean;
}

/** Below every id. */
const first_id = '00000000-0000-0000-0000-000000000000';

interface Range {
  readonly after: string;
  readonly last: string;
}

async function* readRanges(sql: Sql, ask: PredictionAsk): AsyncGenerator<Range> {
  let after = first_id;
  for (;;) {
    const bounds = await readBounds(sql, ask, after);
    for (const last of bounds) {
      yield { after, last };
      after = last;
    }
    if (bounds.length === 0) return;
  }
}

/** Pages under way at once: one is made by Postgres while another arrives. */
const most_ahead = 2;

async function* readPredictions(sql: Sql, job: Job, privacy: Privacy): AsyncGenerator<Lines> {
  const { ask } = job;
  const lines = linesOf(job.content.format);
  const kind = lines.line;
  const separator = Buffer.from(lines.separator);
  const scratch = Buffer.allocUnsafeSlow(scratch_bytes);
  const ahead: ReturnType<typeof readPage>[] = [];
  for await (const range of readRanges(sql, ask)) {
    const page = readPage(sql, { ask, privacy, kind, ...range });
    // Whoever stops between two pages does not wait for this one.
    page.catch(() => undefined);
    ahead.push(page);
    if (ahead.length > most_ahead) yield* linesIn((await ahead.shift()) ?? [], separator, scratch);
  }
  for (const page of ahead) yield* linesIn(await page, separator, scratch);
}

/** Bytes that lines are put together to; a longer line comes alone. */
const scratch_bytes = 131_072;

/**
 * Lines put together in memory that is used again: a piece is good until the next is asked for.
 */
function* linesIn(page: readonly Buffer[], separator: Buffer, scratch: Buffer): Generator<Lines> {
  let used = 0;
  let rows = 0;
  for (const line of page) {
    const more = line.byteLength + (rows === 0 ? 0 : separator.byteLength);
    if (rows > 0 && used + more > scratch.byteLength) {
      yield { rows, text: scratch.subarray(0, used) };
      used = 0;
      rows = 0;
    }
    if (line.byteLength > scratch.byteLength) {
      yield { rows: 1, text: line };
      continue;
    }
    if (rows > 0) used += separator.copy(scratch, used);
    used += line.copy(scratch, used);
    rows += 1;
  }
  if (rows > 0) yield { rows, text: scratch.subarray(0, used) };
}

const readPages = (sql: Sql, job: Job, privacy: Privacy): AsyncGenerator<Lines> => {
  if (job.subject === 'predictions') return readPredictions(sql, job, privacy);
  const { line: kind, separator } = linesOf(job.content.format);
  return readConsensusPages(sql, { ask: job.ask, kind, separator });
};

async function* skip(pieces: AsyncIterable<Uint8Array>, bytes: number) {
  let left = bytes;
  for await (const piece of pieces) {
    if (left >= piece.byteLength) left -= piece.byteLength;
    else {
      yield left === 0 ? piece : piece.subarray(left);
      left = 0;
    }
  }
}

/** Pieces that may be kept while the next is made. */
async function* copied(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) yield Buffer.from(piece);
}

/** Level 3: half the time of the usual 6 for some 8 % more bytes of such texts. */
const compress = (pieces: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> => {
  const gzip = createGzip({ level: 3, chunkSize: 131_072 });
  const read = Readable.from(copied(pieces), { objectMode: true, highWaterMark: 1 });
  // A failure of either ends both, and reaches whoever reads the end.
  pipeline(read, gzip, () => undefined);
  return gzip;
};

/** Larger pieces would hold up what else the api process sends. */
export const piece_bytes = 262_144;

/** Pieces of a size that is worth a message; each is good until the next is asked for. */
async function* gather(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const made = new Uint8Array(piece_bytes);
  let used = 0;
  for await (const piece of pieces) {
    for (let at = 0; at < piece.byteLength; ) {
      const part = piece.subarray(at, at + piece_bytes - used);
      made.set(part, used);
      used += part.byteLength;
      at += part.byteLength;
      if (used < piece_bytes) continue;
      yield made;
      used = 0;
    }
  }
  if (used > 0) yield made.subarray(0, used);
}

/** Makes everything and sends nothing but the sign that there is more to make. */
async function* countOnly(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const _ of pieces) yield new Uint8Array(0);
}

export interface RunningJob {
  readonly pieces: AsyncGenerator<Uint8Array>;
  result(): Result;
}

export const runJob = (sql: Sql, job: Job, privacy: Privacy): RunningJob => {
  const content = makeContent(job.content, readPages(sql, job, privacy));
  const { result } = content;
  if (job.only_sums) return { pieces: countOnly(content.pieces), result };
  const skipped = skip(content.pieces, job.skip_bytes);
  return { pieces: gather(job.gzip ? compress(skipped) : skipped), result };
};
