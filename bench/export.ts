import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { type Bed, makeKeys, prepareOnBed } from './env/bed.js';
import { runHttpRound } from './env/http-round.js';
import { rssMb, startMeter } from './env/processes.js';
import { questionId, seed } from './env/seed.js';
import { seedPredictions } from './env/seed-predictions.js';
import { openPool } from './env/stores.js';
import { type ServiceTarget, startServiceTarget } from './env/targets.js';
import { type Bench, figureOf, ratioOf, type Sample, type Subject } from './frame/types.js';
import { copyRows, findPsql, psql_missing } from './peers/psql-copy.js';

/**
 * A million predictions to each format, read by curl: rows per second, what the api process takes
 * beyond its memory at rest, and what readers of the forum notice meanwhile. The peer is psql,
 * which copies the same rows to CSV with nothing in between. Every export is whole: the rows of its
 * manifest and the bytes that came are compared.
 */

const agents = 1_000;
const all_questions = 1_000;
const quick_questions = 50;
const formats = ['ndjson', 'csv', 'json', 'parquet'] as const;
type Format = (typeof formats)[number];

/** Readers come back to few questions; the first look at each is part of the warm-up. */
const read_questions = 40;
const read_rate = 400;
const read_connections = 32;
const longest_ms = 600_000;

interface World {
  readonly bed: Bed;
  readonly target: ServiceTarget;
  readonly rows: number;
  /** MB of the api process before its first export. */
  readonly idle_mb: number;
}

const addressOf = ({ target }: World, what: string): string =>
  `http://127.0.0.1:${target.port}/api/export/predictions${what}`;

const startCurl = (url: string): ChildProcess =>
  spawn('curl', ['-sS', '-o', '/dev/null', '-w', '%{http_code} %{size_download}', url], {
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: longest_ms,
  });

/** Status and bytes of a whole answer. */
const curl = (url: string): Promise<{ status: number; bytes: number }> =>
  new Promise((resolve, reject) => {
    const child = startCurl(url);
    let said = '';
    child.stdout?.on('data', (piece: Buffer) => {
      said += piece;
    });
    child.once('error', reject);
    child.once('exit', (code) => {
      const [status = 0, bytes = 0] = said.split(' ').map(Number);
      if (code === 0) resolve({ status, bytes });
      else reject(new Error(`curl ended with ${code}: ${said}`));
    });
  });

interface Reported {
  readonly rows: number;
  readonly file: { readonly bytes: number };
}

/** One whole export; the bench fails when a row or a byte is missing. */
const exportOnce = async (world: World, format: Format): Promise<Sample> => {
  const { target, bed, rows, idle_mb } = world;
  const query = `format=${format}&snapshot=${new Date(Date.now() - 5_000).toISOString()}`;
  const groups = { ...target.groups, postgres: bed.stores.postgresPids };
  const meter = startMeter(groups, target.watched);
  const started_ms = performance.now();
  const { status, bytes } = await curl(addressOf(world, `?${query}`));
  const seconds = (performance.now() - started_ms) / 1_000;
  const metered = meter.stop();
  const reported = (await (await fetch(addressOf(world, `/manifest?${query}`))).json()) as Reported;
  if (status !== 200 || reported.rows !== rows || reported.file.bytes !== bytes) {
    throw new Error(`${format}: status ${status}, ${bytes} bytes, ${JSON.stringify(reported)}`);
  }
  return {
    per_second: rows / seconds,
    mb_per_second: bytes / 1e6 / seconds,
    over_idle_mb: Math.max(0, (metered['rss_mb'] ?? 0) - idle_mb),
    ...metered,
  };
};

const makeExport = (world: World, format: Format): Subject => ({
  name: format,
  async warmUp() {
    // The connection of the first export is made with it.
    await curl(addressOf(world, `?format=${format}&question_id=${questionId(0)}`));
  },
  round: () => exportOnce(world, format),
});

const makeCopy = ({ bed, rows }: World, program: string): Subject => ({
  name: 'psql_copy',
  async round() {
    const meter = startMeter({ postgres: bed.stores.postgresPids }, () => []);
    const started_ms = performance.now();
    const copied = await copyRows(program, bed.stores.urlOf('service'));
    const seconds = (performance.now() - started_ms) / 1_000;
    if (copied !== rows) throw new Error(`psql copied ${copied} of ${rows} rows.`);
    return { per_second: rows / seconds, ...meter.stop() };
  },
});

/** Exports one after the other for so long; the last one is cut. */
const keepExporting = async (world: World, format: Format, seconds: number): Promise<Sample> => {
  const until_ms = performance.now() + seconds * 1_000;
  let exports = 0;
  while (performance.now() < until_ms) {
    const child = startCurl(addressOf(world, `?format=${format}`));
    const gone = new Promise((resolve) => child.once('exit', resolve));
    await Promise.race([gone, delay(until_ms - performance.now())]);
    child.kill('SIGKILL');
    await gone;
    exports += 1;
  }
  return { exports };
};

const makeReader = (world: World, format: Format | null): Subject => {
  const { bed, target } = world;
  const { seconds } = bed.context;
  const connections = bed.context.connections ?? read_connections;
  const read = async (for_seconds: number): Promise<Sample> => {
    const { sample } = await runHttpRound({
      ...{ target, stores: bed.stores, loader: bed.loader },
      job: {
        source: new URL('./load/forum-reads.js', import.meta.url).href,
        source_options: {
          questions: read_questions,
          count: Math.ceil(read_rate * for_seconds * 1.05) + connections,
        },
        ...{ connections, seconds: for_seconds, rate: read_rate, wanted_status: 200 },
      },
      ...(format === null ? {} : { during: () => keepExporting(world, format, for_seconds) }),
    });
    return sample;
  };
  return {
    name: format === null ? 'reader_alone' : `reader_beside_${format}`,
    async warmUp() {
      await read(2);
    },
    round: () => read(seconds),
  };
};

const prepareWorld = async (bed: Bed): Promise<World> => {
  const { context, stores } = bed;
  const questions = context.quick ? quick_questions : all_questions;
  const rows = agents * questions;
  await stores.createDatabase('service');
  const sql = openPool(stores.urlOf('service'), 'bench');
  await seed(sql, { keys: makeKeys(agents), questions });
  context.tell(`Making ${rows} predictions …`);
  await seedPredictions(sql, { agents, questions, from_ms: Date.now() - 10 * 86_400_000 });
  await sql.end({ timeout: 5 });
  const target = await startServiceTarget(bed, { LIMIT_EXPORTS: '100000000' });
  // What follows the start of a process, such as its first garbage, is over by then.
  await delay(3_000);
  const idle_mb = Math.max(...target.watched().map(rssMb));
  return { bed, target, rows, idle_mb };
};

const worst = (figure: string) => (of: Readonly<Record<string, Sample | undefined>>) =>
  Math.max(...formats.map((format) => of[format]?.[figure] ?? 0));

const worstBeside = (of: Readonly<Record<string, Sample | undefined>>): number | undefined => {
  const ratios = formats.map((format) =>
    ratioOf(`reader_beside_${format}`, 'reader_alone', 'p99_ms')(of),
  );
  const known = ratios.filter((ratio) => ratio !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
};

export const exporting: Bench = {
  name: 'export',
  question: 'How fast do a million predictions leave in each format, and what does it cost others?',
  reduce: { rss_mb: 'max', over_idle_mb: 'max' },
  ratios: {
    ndjson_over_copy: ratioOf('ndjson', 'psql_copy'),
    csv_over_copy: ratioOf('csv', 'psql_copy'),
    p99_beside_over_alone: worstBeside,
  },
  figures: {
    over_idle_mb: worst('over_idle_mb'),
    ndjson_per_second: figureOf('ndjson', 'per_second'),
    parquet_per_second: figureOf('parquet', 'per_second'),
  },
  prepare: prepareOnBed(async (bed) => {
    const world = await prepareWorld(bed);
    const program = findPsql();
    const copy = program === undefined ? [] : [makeCopy(world, program)];
    return {
      stages: [
        () => ({ subjects: [...copy, ...formats.map((format) => makeExport(world, format))] }),
        () => ({
          subjects: [makeReader(world, null), ...formats.map((one) => makeReader(world, one))],
        }),
      ],
      missing: program === undefined ? [{ name: 'psql', why: psql_missing }] : [],
    };
  }),
};
