import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { Sql } from '../../kit/pg/client.js';
import { type ContentAsk, type Lines, linesOf, makeContent, type Result } from './content.js';
import { makeRest, type Pace } from './pace.js';
import { readPredictionPages } from './prediction-pages.js';
import type { PredictionAsk, Privacy } from './predictions-store.js';

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

export interface JobParts {
  readonly sql: Sql;
  readonly privacy: Privacy;
  readonly pace: Pace;
}

/** The consensus brings much program with it, so it is loaded when it is asked for. */
async function* readPages(
  { sql, privacy, pace, rest }: JobParts & { readonly rest: () => Promise<void> },
  job: Job,
): AsyncGenerator<Lines> {
  const { line: kind, separator } = linesOf(job.content.format);
  const { ask } = job;
  if (job.subject === 'predictions') {
    yield* readPredictionPages(sql, { ask, privacy, kind, separator, pace, rest });
  } else {
    const { readConsensusPages } = await import('./consensus-pages.js');
    yield* readConsensusPages(sql, { ask, kind, separator });
  }
}

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
export const piece_bytes = 131_072;

/** Pieces of an export that are ready at most, so that neither side waits for the other. */
export const piece_places = 4;

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

export const runJob = (parts: JobParts, job: Job): RunningJob => {
  const rest = makeRest(parts.pace);
  const content = makeContent(job.content, { pages: readPages({ ...parts, rest }, job), rest });
  const { result } = content;
  if (job.only_sums) return { pieces: countOnly(content.pieces), result };
  const skipped = skip(content.pieces, job.skip_bytes);
  return { pieces: gather(job.gzip ? compress(skipped) : skipped), result };
};
