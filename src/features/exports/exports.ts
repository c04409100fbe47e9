import { pipeline, Readable } from 'node:stream';
import { createGzip } from 'node:zlib';
import { openSql } from '../../db/client.js';
import { openReader } from '../../db/replica.js';
import type { Deps } from '../../http/deps.js';
import { makeCache } from '../../kit/cache.js';
import { makePause } from '../../kit/loop.js';
import { type Fit, fitAt } from '../consensus/correlation.js';
import { readFits } from '../consensus/index.js';
import { givenByCdf, showFan } from '../consensus/numbers.js';
import { givenBy } from '../consensus/rules.js';
import { makeRun, type Run, type TimedForecast } from '../consensus/run.js';
import type { QuestionType } from '../questions/schema.js';
import { type FileKind, makeContent, type Result, rowsOf } from './content.js';
import { copyLines, countRows, type Lines } from './copy-store.js';
import { fillPseudonyms } from './pseudonym-store.js';
import type { ExportScope } from './select-store.js';
import { connection_name } from './snapshot-store.js';

/**
 * Runs the exports of an api process: a limited number at a time, each at the pace of its reader.
 */

export interface Job extends FileKind {
  readonly scope: ExportScope;
}

interface RunOptions {
  readonly gzip: boolean;
  /** The reader already has this many bytes of the file. */
  readonly skip_bytes: number;
  /** Aborts the export at any point. */
  readonly signal: AbortSignal;
}

const max_sums = 1_000;
const sums_ms = 3_600_000;

interface StatedRow extends Omit<TimedForecast, 'given' | 'replaced'> {
  readonly question_id: string;
  readonly question_type: QuestionType;
  readonly options: readonly string[];
  readonly range_min: number | null;
  readonly range_max: number | null;
  readonly cdf: readonly number[] | null;
  /** The distribution that this forecast replaces. */
  readonly replaced_cdf: readonly number[] | null;
  readonly prediction_id: string;
  readonly revision: number;
  readonly probabilities: readonly number[] | null;
}

/** Adds a forecast to the run of its question; returns the consensus at that time. */
const addTo = (run: Run, row: StatedRow, fits: readonly Fit[]) => {
  const { question_id, question_type, options, prediction_id, revision, probabilities } = row;
  const { at, side, value, agent, owner, family, cdf, replaced_cdf } = row;
  const option = question_type === 'binary' ? null : side;
  const given = givenBy({ option, value, cdf }, probabilities, options.length) ?? [];
  const replaced = replaced_cdf && givenByCdf(replaced_cdf);
  // The run remembers this object, so it must not contain the rest of the row.
  run.add({ at, side, value, agent, owner, family, given, replaced });
  const found = run.read(fitAt(fits, at));
  const { option_forecasts, option_probabilities, option_percents, fan, ...moment } = found;
  const byOption = (figures: readonly number[]) =>
    options.length === 0 ? null : options.map((_, n) => figures[n] ?? 0);
  return {
    question_id,
    options: options.length === 0 ? null : options,
    prediction_id,
    revision,
    created_at: new Date(at).toISOString(),
    ...moment,
    ...(fan && { forecast: null }),
    quantiles: fan === undefined ? null : showFan(row, fan),
    option_forecasts: byOption(option_forecasts),
    option_probabilities: byOption(option_probabilities),
    option_percents: byOption(option_percents),
  };
};

/**
 * Computing the consensus once takes 0.03 ms, or 0.12 ms for a numeric question whose forecasts
 * have 201 points and replace others. `npm run bench -- slices` measures the turns.
 */
export const moments_a_turn = 50;

/** Returns the consensus after each forecast, computed from the lines of `selectStated`. */
export async function* consensusLines(
  fits: readonly Fit[],
  stated: AsyncIterable<Lines>,
): AsyncGenerator<Lines> {
  const pause = makePause(moments_a_turn);
  let run: Run | null = null;
  let question_id = '';
  for await (const page of stated) {
    const lines: string[] = [];
    for (const row of rowsOf<StatedRow>(page)) {
      if (run === null || row.question_id !== question_id) run = makeRun(row);
      question_id = row.question_id;
      lines.push(`${JSON.stringify(addTo(run, row, fits))}\n`);
      await pause();
    }
    yield { rows: page.rows, text: Buffer.from(lines.join('')) };
  }
}

/** Maximum number of concurrent exports, per process and per address. */
const max_exports = { process: 4, address: 2 } as const;

/**
 * Returns a function that takes a slot and returns a function to free it, or null if all are taken.
 */
const makeSlots = () => {
  const addresses: string[] = [];
  return (address: string): (() => void) | null => {
    const mine = addresses.filter((one) => one === address).length;
    if (addresses.length >= max_exports.process || mine >= max_exports.address) return null;
    addresses.push(address);
    let is_free = false;
    return () => {
      if (!is_free) addresses.splice(addresses.indexOf(address), 1);
      is_free = true;
    };
  };
};

const min_bytes_per_ms = 64;
const judged_ms = 60_000;

/**
 * Ends an export if its reader is too slow, because it holds a connection and a snapshot of
 * Postgres. The reader can resume after the bytes that it already has. Only the time that a piece
 * waits for the reader counts.
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
    if (bytes < min_bytes_per_ms * waited_ms) throw new Error('an export was read too slowly');
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

/** Level 3 takes half the time of the default level 6. Its output is about 8 % larger. */
const compress = (pieces: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> => {
  const gzip = createGzip({ level: 3, chunkSize: 65_536 });
  const read = Readable.from(pieces, { objectMode: true, highWaterMark: 1 });
  // If one of the two streams fails, both end, and the reader of `gzip` gets the error.
  pipeline(read, gzip, () => undefined);
  return gzip;
};

const selectOf = ({ subject, scope }: Job) => subject.select(scope);

export const createExports = (deps: Pick<Deps, 'config' | 'sql'>) => {
  const { config } = deps;
  /** Separate connections, because a slow reader holds one for a long time. */
  const { DATABASE_PREPARE: prepare } = config;
  const usual = { pool: max_exports.process, prepare, name: connection_name };
  const primary = openSql({ ...usual, url: config.DATABASE_URL ?? '' });
  const sql = openReader(primary, { ...usual, url: config.DATABASE_REPLICA_URL });

  async function* readLines(job: Job, signal: AbortSignal) {
    await fillPseudonyms(deps);
    const lines = copyLines(sql, selectOf(job), signal);
    const has_moments = job.subject.name === 'consensus-history';
    yield* has_moments ? consensusLines(await readFits(sql), lines) : lines;
  }

  /** Results of finished exports, so that their manifests do not need a second pass. */
  const sums = makeCache<Result>({ most: max_sums, ttl_ms: sums_ms });
  const keyOf = ({ subject, format, for_excel, scope }: Job) =>
    JSON.stringify([subject.schema, format, for_excel, scope]);

  async function* makeFile(job: Job, signal: AbortSignal): AsyncGenerator<Uint8Array, Result> {
    const result = yield* makeContent(job, readLines(job, signal));
    sums.forget(keyOf(job));
    return sums.get(keyOf(job), async () => result);
  }

  return {
    takeSlot: makeSlots(),
    /**
     * Returns the bytes of an export. The caller must read them to the end, return early, or abort.
     */
    run(job: Job, { gzip, skip_bytes, signal }: RunOptions): AsyncIterable<Uint8Array> {
      const pieces = skip(makeFile(job, signal), skip_bytes);
      return gzip ? compress(pieces) : pieces;
    },
    /**
     * Returns the rows, size and SHA-256 of a file. Uses the cached result of a finished export, or
     * makes the file.
     */
    async sumUp(job: Job, signal: AbortSignal): Promise<Result> {
      const known = sums.peek(keyOf(job));
      if (known !== undefined) return known;
      const pieces = makeFile(job, signal);
      for (;;) {
        const { done, value } = await pieces.next();
        if (done === true) return value;
      }
    },
    countRows: (job: Job) => countRows(sql, selectOf(job)),
    close: () => sql.end({ timeout: 0 }),
  };
};

export type Exports = ReturnType<typeof createExports>;
