import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makeHistogram } from '../load/histogram.js';
import { makeReasoning } from '../load/predict-texts.js';

/** pgbench as a subject: finds the program, fills the script in, runs a round, reads its log. */

/** The program itself: Debian's /usr/bin/pgbench is a wrapper that starts Perl first. */
export const findPgbench = (): string | undefined => {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => +b - +a) : [];
  const folders = [
    ...versions.map((version) => path.join(debian, version, 'bin')),
    ...(process.env.PATH ?? '').split(':'),
  ];
  return folders.map((folder) => path.join(folder, 'pgbench')).find((file) => existsSync(file));
};

export const pgbench_missing =
  'pgbench is not installed; it comes with the package postgresql-contrib or postgresql (Debian: ' +
  'apt install postgresql-15).';

const template = path.resolve(import.meta.dirname, '../../../bench/peers/pgbench-predict.sql');

const event_body = JSON.stringify({
  event: 'prediction.placed',
  data: {
    question_id: '01900000-0000-7000-8003-000000000001',
    prediction_id: '01900000-0000-7000-8004-000000000001',
    user_id: '01900000-0000-7000-8002-000000000001',
    user_name: 'Bench agent 1',
    model_family: 'claude',
    confidence: 73,
    prediction: true,
    probability: 73,
  },
  timestamp: '2026-01-02T03:04:05.000Z',
});

/** Writes the script for this server; a literal colon must not look like a variable. */
export const writeScript = (folder: string, server_version: number): string => {
  const uuid = server_version >= 180_000 ? 'uuidv7()' : 'gen_random_uuid()';
  // pgbench reads `:name` as a variable even inside quotes; a space after the colon prevents it.
  const plain = (text: string): string =>
    text.replaceAll("'", "''").replace(/:(?=[A-Za-z_0-9])/g, ': ');
  const reasoning = makeReasoning(1).replaceAll('\n\n', ' ');
  const text = readFileSync(template, 'utf8')
    .replaceAll('{{uuid}}', uuid)
    .replaceAll('{{reasoning}}', plain(reasoning))
    .replaceAll('{{body}}', plain(event_body));
  const file = path.join(folder, 'pgbench-predict.sql');
  writeFileSync(file, text);
  return file;
};

export interface PgbenchRound {
  readonly program: string;
  readonly script: string;
  readonly database_url: string;
  readonly folder: string;
  readonly clients: number;
  readonly seconds: number;
  readonly agents: number;
  readonly questions: number;
  readonly first_question: number;
}

export interface PgbenchResult {
  readonly transactions: number;
  readonly per_second: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
}

const runProgram = (program: string, args: readonly string[], cwd: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let errors = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    child.stderr.on('data', (chunk) => {
      errors += chunk;
    });
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new Error(`pgbench ended with ${code}: ${errors.slice(-2000)}`));
    });
  });

/** Latencies from the per-transaction log: the third field is microseconds. */
const readLatencies = (folder: string, prefix: string) => {
  const latencies = makeHistogram();
  for (const name of readdirSync(folder).filter((file) => file.startsWith(`${prefix}.`))) {
    const file = path.join(folder, name);
    for (const line of readFileSync(file, 'latin1').split('\n')) {
      const us = Number(line.split(' ')[2]);
      if (line !== '') latencies.record(us);
    }
    rmSync(file);
  }
  return latencies;
};

export const runPgbench = async (round: PgbenchRound): Promise<PgbenchResult> => {
  const prefix = 'latency';
  const output = await runProgram(
    round.program,
    [
      ...['-n', '-M', 'prepared', '-f', round.script, '-T', String(round.seconds)],
      ...['-c', String(round.clients), '-j', '1', '-l', `--log-prefix=${prefix}`],
      ...['-D', 'n=0', '-D', `clients=${round.clients}`, '-D', `agents=${round.agents}`],
      ...['-D', `questions=${round.questions}`, '-D', `block=${round.first_question}`],
      round.database_url,
    ],
    round.folder,
  );
  const count = Number(/actually processed: (\d+)/.exec(output)?.[1]);
  const failed = Number(/failed transactions: (\d+)/.exec(output)?.[1] ?? 0);
  const per_second = Number(/tps = ([\d.]+) \(without/.exec(output)?.[1]);
  if (!(count > 0) || failed > 0) throw new Error(`pgbench did not run clean:\n${output}`);
  const latencies = readLatencies(round.folder, prefix);
  return {
    transactions: count,
    per_second,
    p50_ms: latencies.quantile(0.5) / 1000,
    p99_ms: latencies.quantile(0.99) / 1000,
  };
};
