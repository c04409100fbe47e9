import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { makeKeys, prepareOnBed } from './env/bed.js';
import { runRound } from './env/load-rounds.js';
import { rssMb, startMeter } from './env/processes.js';
import { questionId, seed } from './env/seed.js';
import { seedPredictions } from './env/seed-predictions.js';
import { startService } from './env/service.js';
import {
  type Bench,
  type Formula,
  figureOf,
  ratioOf,
  type Sample,
  type Subject,
} from './frame/bench.js';

/**
 * A million predictions to each format, read by curl: rows per second, the memory of the api process
 * beyond that at rest, and what readers of the forum notice meanwhile. The peer is Postgres, which
 * copies the same rows and columns to a client that counts the lines. Every export is whole: the rows of its manifest and the bytes that
 * came are compared.
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

/** Consensus, and every fourth time a whole question. */
const read_paths = Array.from({ length: read_questions * 4 }, (_, n) => {
  const path = `/api/questions/${questionId(n % read_questions)}`;
  return n % 4 === 0 ? path : `${path}/consensus`;
});

const exported_rows = `
  select
    p.id, p.question_id, q.question, q.category, q.subcategory, q.question_type, q.options,
    case when r.kind = 'void' then 'voided' when r.kind = 'resolve' then 'resolved'
      when q.closed_at <= now() then 'closed' else 'open' end,
    r.revision, r.outcome, r.correct_options, r.created_at, p.agent_id, null, null, g.model,
    p.model_family, p.prediction, p.probability, p.confidence,
    q.options[p.selected_option + 1], p.probabilities, p.created_at,
    p.hidden_at is not null, p.citations, p.resolution_protocol, p.prior_probability,
    p.prior_basis, p.reasoning
  from predictions p
  join questions q on q.id = p.question_id
  join agents g on g.id = p.agent_id
  left join lateral (
    select d.revision, d.kind, d.outcome, d.correct_options, d.created_at
    from resolutions d
    where d.question_id = p.question_id
    order by d.revision desc
    limit 1
  ) r on true
  order by p.id`;

const line_end = 10;

interface Manifest {
  readonly rows: number;
  readonly file: { readonly bytes: number };
}

const startCurl = (url: string): ChildProcess =>
  spawn('curl', ['-sS', '-o', '/dev/null', '-w', '%{http_code} %{size_download}', url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });

/** Status and bytes of a whole answer. */
const curl = (url: string): Promise<readonly [status: number, bytes: number]> =>
  new Promise((resolve, reject) => {
    const child = startCurl(url);
    let output = '';
    child.stdout?.on('data', (piece: Buffer) => {
      output += piece;
    });
    child.once('error', reject);
    child.once('close', (code) => {
      const [status = 0, bytes = 0] = output.split(' ').map(Number);
      if (code === 0) resolve([status, bytes]);
      else reject(new Error(`curl ended with ${code}: ${output}`));
    });
  });

/** The largest of one formula for each format. */
const worst =
  (formulaOf: (format: Format) => Formula): Formula =>
  (of) => {
    const values = formats.map((format) => formulaOf(format)(of));
    return Math.max(...values.map((value) => value ?? Number.NaN));
  };

export const bench: Bench = {
  name: 'export',
  question: 'How fast do a million predictions leave in each format, and what does it cost others?',
  figures: {
    ndjson_over_copy: ratioOf('ndjson', 'copy'),
    csv_over_copy: ratioOf('csv', 'copy'),
    p99_beside_over_alone: worst((one) =>
      ratioOf(`reader_beside_${one}`, 'reader_alone', 'p99_ms'),
    ),
    over_idle_mb: worst((format) => figureOf(format, 'over_idle_mb')),
  },
  prepare: prepareOnBed(async (bed) => {
    const { quick, seconds, log } = bed.context;
    const questions = quick ? quick_questions : all_questions;
    const rows = agents * questions;
    log(`Making ${rows} predictions …`);
    await bed.createDatabase('service', async (sql) => {
      await seed(sql, { keys: makeKeys(agents), questions });
      await seedPredictions(sql, { agents, questions, from_ms: Date.now() - 10 * 86_400_000 });
    });
    const target = await startService(bed);
    // The first garbage of a process is collected by then.
    await delay(3_000);
    const idle_mb = Math.max(...target.watched().map(rssMb));
    const urlOf = (rest: string) => `http://127.0.0.1:${target.port}/api/export/predictions${rest}`;

    /** One whole export; the bench fails when a row or a byte is missing. */
    const makeExport = (format: Format): Subject => ({
      name: format,
      // The connection of the first export is made with it.
      warmUp: () => curl(urlOf(`?format=${format}&question_id=${questionId(0)}`)),
      async round() {
        const snapshot = new Date(Date.now() - 5_000).toISOString();
        const query = `format=${format}&snapshot=${snapshot}`;
        const { postgres } = bed.groups;
        const meter = startMeter({ ...target.groups, postgres }, target.watched);
        const started_ms = performance.now();
        const [status, bytes] = await curl(urlOf(`?${query}`));
        const took_s = (performance.now() - started_ms) / 1_000;
        const metered = meter.stop();
        const response = await fetch(urlOf(`/manifest?${query}`));
        const manifest = (await response.json()) as Manifest;
        if (status !== 200 || manifest.rows !== rows || manifest.file.bytes !== bytes) {
          const found = `status ${status}, ${bytes} bytes, ${JSON.stringify(manifest)}`;
          throw new Error(`${format}: ${found}`);
        }
        return {
          ...{ per_second: rows / took_s, mb_per_second: bytes / 1e6 / took_s },
          over_idle_mb: Math.max(0, (metered['rss_mb'] ?? 0) - idle_mb),
          ...metered,
        };
      },
    });

    const copy: Subject = {
      name: 'copy',
      async round() {
        const meter = startMeter({ postgres: bed.groups.postgres });
        const started_ms = performance.now();
        let copied = 0;
        for await (const piece of target.sql.copyOut(`copy (${exported_rows}) to stdout`)) {
          for (const byte of piece as Buffer) if (byte === line_end) copied += 1;
        }
        const took_s = (performance.now() - started_ms) / 1_000;
        if (copied !== rows) throw new Error(`Postgres copied ${copied} of ${rows} rows.`);
        return { per_second: rows / took_s, ...meter.stop() };
      },
    };

    /** Exports one after the other for so long; the last one is cut. */
    const keepExporting = async (format: Format): Promise<Sample> => {
      const until_ms = performance.now() + seconds * 1_000;
      let exports = 0;
      for (; performance.now() < until_ms; exports += 1) {
        const child = startCurl(urlOf(`?format=${format}`));
        const gone = new Promise((resolve) => child.once('exit', resolve));
        await Promise.race([gone, delay(until_ms - performance.now())]);
        child.kill('SIGKILL');
        await gone;
      }
      return { exports };
    };

    const makeReader = (format: Format | null): Subject => {
      const read = async (for_seconds: number): Promise<Sample> => {
        const count = Math.ceil(read_rate * for_seconds * 1.05) + read_connections;
        const { sample } = await runRound(bed, {
          target,
          job: {
            requests: { kind: 'read', paths: read_paths, count },
            ...{ in_flight: read_connections, seconds: for_seconds, rate: read_rate },
            wanted_status: 200,
          },
          ...(format === null ? {} : { during: () => keepExporting(format) }),
        });
        return sample;
      };
      return {
        name: format === null ? 'reader_alone' : `reader_beside_${format}`,
        warmUp: () => read(2),
        round: () => read(seconds),
      };
    };

    return {
      stages: [
        () => [copy, ...formats.map(makeExport)],
        () => [makeReader(null), ...formats.map(makeReader)],
      ],
    };
  }),
};
