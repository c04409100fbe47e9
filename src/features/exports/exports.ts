import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import type { Deps } from '../../kit/deps.js';
import type { Sql } from '../../kit/pg/client.js';
import { consensusLines } from './consensus.js';
import { type ContentAsk, makeContent, type Result } from './content.js';
import { copyLines, countRows, type Lines, openExportSql } from './copy-store.js';
import { textFormat } from './formats.js';
import { fillPseudonyms } from './pseudonym-store.js';
import { type ExportAsk, selectPredictions, selectStated, settingsOf } from './select-store.js';

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
  run(job: Job, options: RunOptions): AsyncGenerator<Uint8Array>;
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
  const open = new Set<Sql>();

  async function* withSql<T>(
    use: (sql: Sql) => AsyncIterable<T>,
    signal?: AbortSignal,
  ): AsyncGenerator<T> {
    await fillPseudonyms(deps);
    const sql = openExportSql({
      url: config.DATABASE_URL ?? '',
      prepare: config.DATABASE_PREPARE,
    });
    const end = (): Promise<void> => sql.end({ timeout: 0 });
    open.add(sql);
    signal?.addEventListener('abort', end);
    try {
      yield* use(sql);
    } finally {
      open.delete(sql);
      await end();
    }
  }

  const readLines = (sql: Sql, { subject, ask, content }: Job): AsyncGenerator<Lines> => {
    const { line, separator } = textFormat(content.format, { schema: '', columns: [], name: '' });
    const settings = settingsOf(ask);
    if (subject === 'predictions') {
      const select = selectPredictions({ ask, kind: line, hides_open });
      return copyLines(sql, { select, settings, separator });
    }
    const stated = copyLines(sql, { select: selectStated(ask), settings, separator: '\n' });
    return consensusLines(stated, { line, separator });
  };

  async function* makeAll(job: Job, options: RunOptions): AsyncGenerator<Uint8Array> {
    const lines = withSql((sql) => readLines(sql, job), options.signal);
    options.onResult(yield* makeContent(job.content, lines));
  }

  return {
    enter: makePlaces(),
    async *run(job, options) {
      const pieces = skip(makeAll(job, options), job.skip_bytes);
      yield* job.gzip ? compress(pieces) : pieces;
    },
    async countRows({ subject, ask }) {
      const select =
        subject === 'predictions'
          ? selectPredictions({ ask, kind: 'json', hides_open })
          : selectStated(ask);
      const counted = withSql(async function* (sql) {
        yield await countRows(sql, { select, settings: settingsOf(ask) });
      });
      for await (const count of counted) return count;
      return 0;
    },
    async close() {
      await Promise.all([...open].map((sql) => sql.end({ timeout: 0 })));
    },
  };
};
