import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { Deps } from '../../kit/deps.js';
import { openSql } from '../../kit/pg/client.js';
import { consensusLines } from './consensus.js';
import { type ContentAsk, makeContent, type Result } from './content.js';
import { copyLines, countRows, type Lines, type Selected } from './copy-store.js';
import { textFormat } from './formats.js';
import { fillPseudonyms } from './pseudonym-store.js';
import { type ExportAsk, selectPredictions, selectStated, settingsOf } from './select-store.js';
import { connection_name } from './snapshot-store.js';

/** Exports under way in an api process: so many at once, each at the pace of its reader. */

/** What is exported. */
export type Subject = 'predictions' | 'consensus-history';

export interface Job {
  readonly subject: Subject;
  readonly ask: ExportAsk;
  readonly content: ContentAsk;
  readonly gzip: boolean;
  /** So many bytes of the file are there already. */
  readonly skip_bytes: number;
}

type Leave = () => void;

export interface RunOptions {
  /** Ends the export, whatever it waits for. */
  readonly signal: AbortSignal;
  /** Called when everything was made, shortly before the end. */
  readonly onResult: (result: Result) => void;
}

export interface Exports {
  /** Takes a place, or null when there is none; it is left by calling what is returned. */
  enter(address: string): Leave | null;
  /** The bytes of an export, to be read to the end, returned from or aborted. */
  run(job: Job, options: RunOptions): AsyncIterable<Uint8Array>;
  countRows(job: Job): Promise<number>;
  close(): Promise<void>;
}

/** At once, of one process and of one address. */
const most_exports = { process: 4, address: 2 } as const;

const makePlaces = () => {
  const addresses: string[] = [];
  return (address: string): Leave | null => {
    const mine = addresses.filter((one) => one === address).length;
    if (addresses.length >= most_exports.process || mine >= most_exports.address) return null;
    addresses.push(address);
    let is_left = false;
    return () => {
      if (!is_left) addresses.splice(addresses.indexOf(address), 1);
      is_left = true;
    };
  };
};

/** A reader slower than this is cut, and may go on behind what it has. */
const least_bytes_per_ms = 64;
const judged_ms = 60_000;

/**
 * Ends an export whose reader is too slow, because it holds a connection and a snapshot of
 * Postgres. Only the time counts in which a piece waited for its reader.
 */
export async function* cutSlowReaders(
  pieces: AsyncIterable<Uint8Array>,
  now: () => number = () => performance.now(),
): AsyncGenerator<Uint8Array> {
  let waited_ms = 0;
  let bytes = 0;
  for await (const piece of pieces) {
    const given_ms = now();
    yield piece;
    waited_ms += now() - given_ms;
    bytes += piece.byteLength;
    if (waited_ms < judged_ms) continue;
    if (bytes < least_bytes_per_ms * waited_ms) throw new Error('an export was read too slowly');
    waited_ms = 0;
    bytes = 0;
  }
}

async function* skip(pieces: AsyncIterable<Uint8Array>, bytes: number) {
  let left = bytes;
  for await (const piece of pieces) {
    const skipped = Math.min(left, piece.byteLength);
    left -= skipped;
    if (skipped < piece.byteLength) yield piece.subarray(skipped);
  }
}

/** Level 3: half the time of the usual 6 for some 8 % more bytes of such texts. */
const compress = (pieces: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> => {
  const gzip = createGzip({ level: 3, chunkSize: 65_536 });
  const read = Readable.from(pieces, { objectMode: true, highWaterMark: 1 });
  // A failure of either ends both, and is thrown at the end that is read.
  pipeline(read, gzip, () => undefined);
  return gzip;
};

export const createExports = (deps: Pick<Deps, 'config' | 'sql'>): Exports => {
  const { config } = deps;
  const hides_open = config.HIDE_REASONING;
  /** Connections of their own: a slow reader holds one for long. */
  const sql = openSql({
    url: config.DATABASE_URL ?? '',
    pool: most_exports.process,
    prepare: config.DATABASE_PREPARE,
    name: connection_name,
  });

  const selectOf = ({ subject, ask, content }: Job): Selected => {
    const { line: kind } = textFormat(content.format);
    const is_history = subject === 'consensus-history';
    const select = is_history ? selectStated(ask) : selectPredictions({ ask, kind, hides_open });
    return { select, settings: settingsOf(ask) };
  };

  async function* readLines(job: Job, signal: AbortSignal): AsyncGenerator<Lines> {
    await fillPseudonyms(deps);
    const { line, separator } = textFormat(job.content.format);
    if (job.subject === 'predictions') yield* copyLines(sql, selectOf(job), { separator, signal });
    else {
      const stated = copyLines(sql, selectOf(job), { separator: '\n', signal });
      yield* consensusLines(stated, { line, separator });
    }
  }

  async function* makeFile(job: Job, { signal, onResult }: RunOptions): AsyncGenerator<Uint8Array> {
    onResult(yield* makeContent(job.content, readLines(job, signal)));
  }

  return {
    enter: makePlaces(),
    run(job, options) {
      const pieces = skip(makeFile(job, options), job.skip_bytes);
      return job.gzip ? compress(pieces) : pieces;
    },
    countRows: (job) => countRows(sql, selectOf(job)),
    close: () => sql.end({ timeout: 0 }),
  };
};
