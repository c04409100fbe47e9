import {
  errorsOf,
  measureCorrelation,
  type ResolvedQuestion,
} from '../src/features/consensus/correlation.js';
import { createPool } from '../src/features/consensus/pool.js';
import { readResolvedTo } from '../src/features/imports/resolved-to.js';
import { readForecastInput } from '../src/features/predictions/forecast-input.js';
import { modelFamily } from '../src/features/taxonomy/model-family.js';
import { readRecords } from '../src/tools/import/files.js';
import { makeItem, typeOf } from '../src/tools/import/records.js';
import { makeResolved } from '../test/features/consensus/generated.js';
import { type Bench, median, ratioOf, type Subject } from './frame/bench.js';
import { makeRandom } from './load/predict-texts.js';

/**
 * Compares the consensus pool with simpler ones: the same without extremizing, the median and the
 * mean. The measure is the Brier score on resolved yes/no questions with at least two owners. The
 * forecasts are generated, with errors that correlate by a known ρ. `POOLS_FILE` names a file in
 * the format of `prediction-forum import`. Its questions are compared too, with each agent as an
 * owner.
 */

const generated = { rho_15: 0.15, rho_40: 0.4 } as const;
const questions = 2_000;
const owners = 9;

type Forecasts = ResolvedQuestion['forecasts'];

/** Each pool computes one probability of Yes, from 0 to 1. Only the first pool uses ρ. */
const pools = {
  pooled: (forecasts: Forecasts, rho: number) => poolOf(forecasts, rho),
  not_extremized: (forecasts: Forecasts) => poolOf(forecasts, 1),
  median: (forecasts: Forecasts) => median(forecasts.map(({ value }) => value)) / 10_000,
  mean: (forecasts: Forecasts) =>
    forecasts.reduce((sum, { value }) => sum + value, 0) / forecasts.length / 10_000,
} as const;
type PoolName = keyof typeof pools;
const pool_names = Object.keys(pools) as readonly PoolName[];

const poolOf = (forecasts: Forecasts, rho: number): number => {
  const pool = createPool(0);
  for (const one of forecasts) pool.put({ ...one, given: [] });
  return (pool.read({ rho, weights: null })?.headline[0] ?? 0) / 100;
};

/** The mean Brier score of a pool. Each half of the questions is pooled with the ρ of the other half. */
export const brierOf = (name: PoolName, all: readonly ResolvedQuestion[]): number => {
  const several = all.filter((one) => errorsOf(one).owners > 1);
  const halves = [0, 1].map((half) => several.filter((_, n) => n % 2 === half));
  const scores = halves.flatMap((half, n) => {
    const { rho } = measureCorrelation((halves[1 - n] ?? []).map(errorsOf));
    return half.map(
      ({ outcome, forecasts }) => (pools[name](forecasts, rho) - Number(outcome)) ** 2,
    );
  });
  return scores.reduce((sum, score) => sum + score, 0) / scores.length;
};

const yes_no = {
  question_type: 'binary',
  options: [],
  range_min: null,
  range_max: null,
  open_min: false,
  open_max: false,
} as const;

/** The resolved questions of a file, with each agent's last forecast. Skips invalid lines. */
export const readResolvedFile = async (file: string): Promise<readonly ResolvedQuestion[]> => {
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
    if (type === 'resolution') {
      const read = readResolvedTo(item['resolved_to'] ?? item['outcome'], yes_no);
      if ('outcome' in read) outcomes.set(question, read.outcome);
    }
    if (type !== 'forecast') continue;
    const stated = readForecastInput(item, yes_no);
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

/** One subject per pool. The unit is 0.001, because figures are printed with two decimals. */
const makeSubjects = (set: string, all: readonly ResolvedQuestion[]): readonly Subject[] =>
  pool_names.map((name) => ({
    name: `${name}_${set}`,
    round: async () => ({ brier_x1000: brierOf(name, all) * 1_000 }),
  }));

/** The consensus pool's score divided by a simpler pool's. A given file has no bound. */
const figuresOf = (set: string, bound: { readonly max?: number }) =>
  pool_names.slice(1).map((other) => {
    const of = ratioOf(`pooled_${set}`, `${other}_${set}`, 'brier_x1000');
    return [`pooled_over_${other}_${set}`, { of, ...bound }] as const;
  });

export const bench: Bench = {
  question: 'Does the pool of the consensus predict better than simpler pools?',
  figures: Object.fromEntries([
    ...Object.keys(generated).flatMap((set) => figuresOf(set, { max: 1 })),
    ...figuresOf('file', {}),
  ]),
  async prepare() {
    const file = process.env['POOLS_FILE'];
    const sets = Object.entries(generated).map(([name, rho]) =>
      makeSubjects(name, makeResolved(makeRandom(7), { questions, owners, rho })),
    );
    if (file !== undefined) {
      const all = await readResolvedFile(file);
      if (all.filter((one) => errorsOf(one).owners > 1).length < 2) {
        throw new Error(`${file} has fewer than two resolved questions with two owners.`);
      }
      sets.push(makeSubjects('file', all));
    }
    return sets.map((subjects) => () => subjects);
  },
};
