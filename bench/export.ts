import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { runRound } from './env/load-rounds.js';
import { rssMb, startMeter } from './env/processes.js';
import { questionId, seedPredictions } from './env/seed.js';
import { startForum } from './env/setup.js';
import { type Bench, figureOf, ratioOf, type Sample, type Subject } from './frame/bench.js';

/**
 * Exports a million predictions in each format, read by curl. Measures rows per second, the memory
 * of the api process above its idle level, and the latency of forum readers in the meantime. The
 * peer is Postgres, which copies the same rows to a client. Every export is checked for
 * completeness: the rows in its manifest and the bytes received are compared.
 */

const agents = 1_000;
const all_questions = 1_000;
const quick_questions = 50;
const formats = ['ndjson', 'csv', 'json', 'parquet'] as const;
type Format = (typeof formats)[number];

/** All readers read the same few questions. The first read of each is part of the warm-up. */
const read_questions = 40;
const rate = 400;
const in_flight = 32;

/** Three of four reads get the consensus. The fourth gets the whole question. */
const paths = Array.from({ length: read_questions * 4 }, (_, n) => {
  const path = `/api/questions/${questionId(n % read_questions)}`;
  return n % 4 === 0 ? path : `${path}/consensus`;
});

const exported_rows = `
  select
    p.*, q.question, q.category, q.subcategory, q.question_type, q.options, q.status, g.model,
    r.revision, r.kind, r.outcome, r.correct_options, r.created_at
  from predictions p
  join questions q on q.id = p.question_id
  join agents g on g.id = p.agent_id
  left join lateral (
    select * from resolutions d where d.question_id = p.question_id order by revision desc limit 1
  ) r on true
  order by p.id`;

interface Manifest {
  readonly rows: number;
  readonly file: { readonly bytes: number };
}

/** Downloads the URL. Returns the status and size of the answer. */
const curl = async (url: string, signal?: AbortSignal): Promise<readonly number[]> => {
  const args = ['-sS', '-o', '/dev/null', '-w', '%{http_code} %{size_download}', url];
  const { stdout } = await promisify(execFile)('curl', args, { signal });
  return stdout.split(' ').map(Number);
};

export const bench: Bench = {
  question: 'How fast is an export of a million predictions, and how much does it slow others?',
  figures: {
    ndjson_over_copy: { of: ratioOf('ndjson', 'copy'), min: 0.5 },
    csv_over_copy: { of: ratioOf('csv', 'copy') },
    p99_beside_over_alone: { of: ratioOf('reader_beside', 'reader_alone', 'p99_ms'), max: 2 },
    over_idle_mb: { of: figureOf('parquet', 'over_idle_mb'), max: 200 },
  },
  async prepare(context) {
    const { quick, seconds } = context;
    const questions = quick ? quick_questions : all_questions;
    const rows = agents * questions;
    context.log(`Making ${rows} predictions …`);
    const from_ms = Date.now() - 10 * 86_400_000;
    const { setup, service: target } = await startForum(context, {
      agents,
      questions,
      fill: (sql) => seedPredictions(sql, { agents, questions, from_ms }),
    });
    // By then the api process has finished its first garbage collection.
    await delay(3_000);
    const idle_mb = rssMb(target.watched());
    const urlOf = (rest: string) => `http://127.0.0.1:${target.port}/api/export/predictions${rest}`;

    /** One complete export. The bench fails if a row or a byte is missing. */
    const makeExport = (format: Format): Subject => ({
      name: format,
      // Also opens the database connection for the first export.
      warmUp: () => curl(urlOf(`?format=${format}&question_id=${questionId(0)}`)),
      async round() {
        const snapshot = new Date(Date.now() - 5_000).toISOString();
        const query = `format=${format}&snapshot=${snapshot}`;
        const meter = startMeter(target.watched);
        const started_ms = performance.now();
        const [status, bytes = 0] = await curl(urlOf(`?${query}`));
        const took_s = (performance.now() - started_ms) / 1_000;
        const metered = meter.stop();
        const response = await fetch(urlOf(`/manifest?${query}`));
        const manifest = (await response.json()) as Manifest;
        if (status !== 200 || manifest.rows !== rows || manifest.file.bytes !== bytes) {
          const found = `status ${status}, ${bytes} bytes, ${JSON.stringify(manifest)}`;
          throw new Error(`${format}: ${found}`);
        }
        return {
          per_second: rows / took_s,
          mb_per_second: bytes / 1e6 / took_s,
          over_idle_mb: Math.max(0, (metered['rss_mb'] ?? 0) - idle_mb),
          ...metered,
        };
      },
    });

    const copy: Subject = {
      name: 'copy',
      async round() {
        const started_ms = performance.now();
        let bytes = 0;
        for await (const piece of target.sql.copyOut(`copy (${exported_rows}) to stdout`)) {
          bytes += piece.length;
        }
        const took_s = (performance.now() - started_ms) / 1_000;
        return { per_second: rows / took_s, mb_per_second: bytes / 1e6 / took_s };
      },
    };

    /** Exports to Parquet repeatedly for this long. The last export is cut off. */
    const keepExporting = async (for_seconds: number): Promise<Sample> => {
      const signal = AbortSignal.timeout(for_seconds * 1_000);
      let exports = 0;
      for (; !signal.aborted; exports += 1) {
        await curl(urlOf('?format=parquet'), signal).catch((error) => {
          if (!signal.aborted) throw error;
        });
      }
      return { exports };
    };

    const makeReader = (
      name: string,
      during: (for_seconds: number) => Promise<Sample>,
    ): Subject => {
      const read = async (for_seconds: number): Promise<Sample> => {
        const count = Math.ceil(rate * for_seconds * 1.05) + in_flight;
        const { sample } = await runRound(setup, {
          target,
          job: {
            requests: { kind: 'read', paths, count },
            in_flight,
            seconds: for_seconds,
            rate,
            wanted_status: 200,
          },
          during: () => during(for_seconds),
        });
        return sample;
      };
      return { name, warmUp: () => read(2), round: () => read(seconds) };
    };

    return [
      () => [copy, ...formats.map(makeExport)],
      () => [
        makeReader('reader_alone', async () => ({})),
        makeReader('reader_beside', keepExporting),
      ],
    ];
  },
};
