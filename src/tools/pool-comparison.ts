import { readConfig } from '../config.js';
import { openSql } from '../db/client.js';
import { checkAge } from '../db/migrate.js';
import {
  createPool,
  errorsOf,
  measureCorrelation,
  type ResolvedQuestion,
  readResolved,
} from '../features/consensus/index.js';
import { readStated } from '../features/predictions/index.js';
import { modelFamily } from '../features/taxonomy/index.js';
import { embeddedPostgresUrl } from '../process/embedded/postgres.js';
import { type Call, runCommand, Stopped, startCommand, writeLine } from './command.js';
import { makeItem, readRecords, typeOf } from './import/records.js';

/** `prediction-forum pool-comparison`: does the pool predict better than simpler ones, on what resolved? */

const help = `Usage: prediction-forum pool-comparison [FILE]

Compares four ways to make one forecast of many, by their Brier scores on resolved yes/no questions
with two owners or more: the pool of the consensus, the same without extremising, the median and the
mean. The pool is computed with the ρ of the other half of the questions. Changes nothing.

FILE is what prediction-forum import takes, with forecasts and resolutions, each agent an owner of its own;
without it the questions are those of the service in this folder.`;

const yes_no = {
  ...({ question_type: 'binary', options: [] } as const),
  range_min: null,
  range_max: null,
  open_min: false,
  open_max: false,
};

const median = (sorted: readonly number[]): number => {
  const at = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(at)] as number) + (sorted[Math.ceil(at)] as number)) / 2;
};

const mean = (values: readonly number[]): number =>
  values.reduce((sum, one) => sum + one, 0) / values.length;

/** By (p − outcome)². A ρ of 1 extremises nothing. */
const scoresOf = ({ outcome, forecasts }: ResolvedQuestion, rho: number) => {
  const pool = createPool(0);
  for (const one of forecasts) pool.put({ ...one, given: [] });
  const values = forecasts.map(({ value }) => value / 100).sort((a, b) => a - b);
  const scoreOf = (percent = 0): number => (percent / 100 - Number(outcome)) ** 2;
  return {
    pooled: scoreOf(pool.read(rho)?.[0]),
    not_extremized: scoreOf(pool.read(1)?.[0]),
    median: scoreOf(median(values)),
    mean: scoreOf(mean(values)),
  };
};

/** Mean Brier scores, where ρ is that of the other half; and ρ of all of them. */
export const comparePools = (all: readonly ResolvedQuestion[]) => {
  const several = all.filter((one) => errorsOf(one).owners > 1);
  const halves = [0, 1].map((half) => several.filter((_, n) => n % 2 === half));
  const scores = halves.flatMap((half, n) => {
    const { rho } = measureCorrelation((halves[1 - n] ?? []).map(errorsOf));
    return half.map((one) => scoresOf(one, rho));
  });
  const brierOf = (name: keyof (typeof scores)[number]) => mean(scores.map((one) => one[name]));
  return {
    ...measureCorrelation(several.map(errorsOf)),
    brier: {
      pooled: brierOf('pooled'),
      not_extremized: brierOf('not_extremized'),
      median: brierOf('median'),
      mean: brierOf('mean'),
    },
  };
};

/** The last forecast of each agent; what the service would not take is left out. */
const readFile = async (file: string): Promise<readonly ResolvedQuestion[]> => {
  const outcomes = new Map<string, boolean>();
  const models = new Map<string, string>();
  const forecasts = new Map<string, Map<string, { at: string; value: number }>>();
  for await (const entry of readRecords(file)) {
    const type = 'record' in entry ? typeOf(entry.record) : null;
    if (!('record' in entry) || typeof type !== 'string') continue;
    const { item } = makeItem(type, entry.record, { pillars: new Map(), publish: false });
    const question = JSON.stringify([item['source'], item['source_id']]);
    const agent = String(type === 'agent' ? item['name'] : item['agent']);
    const model = entry.record['model'];
    if (typeof model === 'string') models.set(agent, model);
    if (type === 'resolution' && typeof item['outcome'] === 'boolean') {
      outcomes.set(question, item['outcome']);
    }
    if (type !== 'forecast') continue;
    const stated = readStated(item, yes_no);
    if ('failures' in stated || stated.probability === null) continue;
    const own = forecasts.get(question) ?? new Map();
    forecasts.set(question, own);
    const at = String(item['forecast_at'] ?? '');
    if (at >= (own.get(agent)?.at ?? '')) own.set(agent, { at, value: stated.probability });
  }
  return [...outcomes].map(([question, outcome]) => ({
    outcome,
    forecasts: [...(forecasts.get(question) ?? [])].map(([agent, { value }]) => {
      return { agent, owner: agent, family: modelFamily(models.get(agent) ?? ''), value };
    }),
  }));
};

const readService = async (): Promise<readonly ResolvedQuestion[]> => {
  const { DATABASE_URL, DATABASE_PREPARE: prepare, DATA_DIR } = readConfig();
  const url = DATABASE_URL ?? embeddedPostgresUrl(DATA_DIR);
  if (url === null) {
    throw new Stopped(`There is no service in ${DATA_DIR}: start it, or name a file.`);
  }
  const sql = openSql({ url, pool: 1, prepare, name: 'pool-comparison' });
  try {
    await checkAge(sql);
    const all: ResolvedQuestion[] = [];
    await sql.begin({ mode: 'read only', statement_ms: 300_000 }, async (tx) => {
      for await (const page of readResolved(tx)) all.push(...page);
    });
    return all;
  } finally {
    await sql.end({ timeout: 1 });
  }
};

export const runPoolComparison = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    takes: [0, 1],
    options: {},
    async work(_, [file = ''], { screen }) {
      const found = comparePools(file === '' ? await readService() : await readFile(file));
      const { questions, measured, rho, brier } = found;
      if (questions < 2) throw new Stopped('Fewer than two such questions are resolved.');
      const figures = { ...brier, ρ̂: measured ?? 0, ρ: rho };
      for (const [name, figure] of Object.entries(figures)) {
        writeLine(screen, `${name.replace('_', ' ').padEnd(16)}${figure.toFixed(4)}`);
      }
      writeLine(screen, `questions       ${questions}`);
      return { code: 0, result: { questions, measured, rho, brier } };
    },
  });

await startCommand(import.meta.filename, runPoolComparison);
