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

/** Exports under way in an api process: so many at once, each at the pace of its reader. */

export interface Job extends FileKind {
  readonly scope: ExportScope;
}

interface RunOptions {
  readonly gzip: boolean;
  /** So many bytes of the file are there already. */
  readonly skip_bytes: number;
  /** Ends the export, whatever it waits for. */
  readonly signal: AbortSignal;
}

const most_sums = 1_000;
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

/** Adds a forecast on a question to its run: the consensus as it stood then. */
const addTo = (run: Run, row: StatedRow, fits: readonly Fit[]) => {
  const { question_id, question_type, options, prediction_id, revision, probabilities } = row;
  const { at, side, value, agent, owner, family, cdf, replaced_cdf } = row;
  const option = question_type === 'binary' ? null : side;
  const given = givenBy({ option, value, cdf }, probabilities, options.length) ?? [];
  const replaced = replaced_cdf && givenByCdf(replaced_cdf);
  // Without the rest of the row, because the run remembers it.
  run.add({ at, side, value, agent, owner, family, given, replaced });
  const rho = fitAt(fits, at).rho;
  const { option_probabilities, option_percents, fan, ...moment } = run.read(rho);
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
    option_probabilities: byOption(option_probabilities),
    option_percents: byOption(option_percents),
  };
};

/**
 * A moment takes 0.03 ms, and 0.12 ms with a number whose forecasts have 201 points and replace
 * others; `npm run bench -- slices` measures the turns.
 */
export const moments_a_turn = 50;

/** The consensus after each forecast, from lines of `selectStated`. */
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

/** At once, of one process and of one address. */
const most_exports = { process: 4, address: 2 } as const;

/** Takes one of the slots, or null when there is none; calling what is returned frees it. */
const makeSlots = () => {
  const addresses: string[] = [];
  return (address: string): (() => void) | null => {
    const mine = addresses.filter((one) => one === address).length;
    if (addresses.length >= most_exports.process || mine >= most_exports.address) return null;
    addresses.push(address);
    let is_free = false;
    return () => {
      if (!is_free) addresses.splice(addresses.indexOf(address), 1);
      is_free = true;
    };
  };
};

const least_bytes_per_ms = 64;
const judged_ms = 60_000;

/**
 * Ends an export whose reader is too slow, because it holds a connection and a snapshot of
 * Postgres; the reader may go on after what it has. Only the time counts in which a piece waited
 * for its reader.
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

const selectOf = ({ subject, scope }: Job) => subject.select(scope);

export const createExports = (deps: Pick<Deps, 'config' | 'sql'>) => {
  const { config } = deps;
  /** Connections of their own: a slow reader holds one for long. */
  const { DATABASE_PREPARE: prepare } = config;
  const usual = { pool: most_exports.process, prepare, name: connection_name };
  const primary = openSql({ ...usual, url: config.DATABASE_URL ?? '' });
  const sql = openReader(primary, { ...usual, url: config.DATABASE_REPLICA_URL });

  async function* readLines(job: Job, signal: AbortSignal) {
    await fillPseudonyms(deps);
    const lines = copyLines(sql, selectOf(job), signal);
    const has_moments = job.subject.name === 'consensus-history';
    yield* has_moments ? consensusLines(await readFits(sql), lines) : lines;
  }

  /** Sums of exports that went through, so that their manifests cost no second pass. */
  const sums = makeCache<Result>({ most: most_sums, ttl_ms: sums_ms });
  const keyOf = ({ subject, format, for_excel, scope }: Job) =>
    JSON.stringify([subject.schema, format, for_excel, scope]);

  async function* makeFile(job: Job, signal: AbortSignal): AsyncGenerator<Uint8Array, Result> {
    const result = yield* makeContent(job, readLines(job, signal));
    sums.forget(keyOf(job));
    return sums.get(keyOf(job), async () => result);
  }

  return {
    takeSlot: makeSlots(),
    /** The bytes of an export, to be read to the end, returned from or aborted. */
    run(job: Job, { gzip, skip_bytes, signal }: RunOptions): AsyncIterable<Uint8Array> {
      const pieces = skip(makeFile(job, signal), skip_bytes);
      return gzip ? compress(pieces) : pieces;
    },
    /** Rows, bytes and sum of a file: known from an export that went through, else by making it. */
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
