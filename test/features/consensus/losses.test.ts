import { first_fit } from '../../../src/features/consensus/correlation.js';
import {
  type Losses,
  makeLossSums,
  type ResolvedShape,
  replayLosses,
} from '../../../src/features/consensus/losses.js';
import { equal_weights, weightsOf } from '../../../src/features/consensus/mixture.js';
import { givenByCdf } from '../../../src/features/consensus/numbers.js';
import type { TimedForecast } from '../../../src/features/consensus/run.js';
import { no_range } from '../../help/number.js';
import { t } from '../../help/tap.js';

/** The losses of the headline's candidates, and the weights that follow from them. */

const second_ms = 1_000;
const life = { opens_ms: 0, closes_ms: 100 * second_ms, ends_ms: 100 * second_ms };
const undecided = { outcome: null, correct_options: null, outcome_value: null };
const yes_no = {
  ...no_range,
  ...undecided,
  ...life,
  question_type: 'binary',
  options: [],
} as const;

interface Stated {
  readonly agent: string;
  /** In seconds. */
  readonly at: number;
  readonly percents: readonly number[];
}

const stated = (agent: string, at: number, ...percents: number[]): Stated => ({
  agent,
  at,
  percents,
});

/** Three resolved questions. Agents a and b are of one family, and each agent has its own owner. */
const example: readonly { readonly question: ResolvedShape; readonly said: readonly Stated[] }[] = [
  {
    question: { ...yes_no, outcome: true, ends_ms: 80 * second_ms },
    said: [stated('a', 10, 70), stated('b', 20, 60), stated('c', 40, 95), stated('c', 90, 1)],
  },
  {
    question: { ...yes_no, outcome: false },
    said: [stated('a', 0, 20), stated('b', 0, 30), stated('c', 50, 45), stated('a', 60, 0)],
  },
  {
    question: {
      ...yes_no,
      question_type: 'multi',
      options: ['A', 'B', 'C'],
      correct_options: ['A', 'B'],
    },
    said: [stated('a', 10, 50, 30, 20), stated('b', 30, 20, 60, 20), stated('c', 70, 10, 10, 80)],
  },
];

const familyOf = (agent: string): string => (agent === 'c' ? 'claude' : 'gpt');

const forecastsOf = (said: readonly Stated[]): readonly TimedForecast[] =>
  said.map(({ agent, at, percents }) => ({
    agent,
    owner: agent,
    family: familyOf(agent),
    at: at * second_ms,
    side: 0,
    value: percents[0]! * 100,
    given: percents.length === 1 ? [] : percents.map((one) => one * 100 * (percents.length - 1)),
  }));

/** The arithmetic of the example, second by second, from the formulas. */
const candidatesByHand = (standing: ReadonlyMap<string, Stated>, n: number): number[] => {
  const all = [...standing.values()];
  const x = ({ percents }: Stated) => {
    const p = Math.min(99, Math.max(1, percents[n]!));
    return Math.log(p / (100 - p));
  };
  const sorted = all.map(({ percents }) => percents[n]!).sort((a, b) => a - b);
  const half = sorted.length / 2;
  const median = (sorted[Math.ceil(half) - 1]! + sorted[Math.floor(half)]!) / 2;
  let mean = 0;
  for (const one of all) mean += x(one) / all.length;
  let [l, whole, squares] = [0, 0, 0];
  const parts: number[] = [];
  for (const family of ['gpt', 'claude']) {
    const own = all.filter(({ agent }) => familyOf(agent) === family);
    if (own.length === 0) continue;
    const v = own.length / (1 + 0.25 * (own.length - 1));
    whole += v;
    for (const one of own) {
      l += (v * x(one)) / own.length;
      parts.push(v / own.length);
    }
  }
  for (const part of parts) squares += (part / whole) ** 2;
  l /= whole;
  const independent = 1 / (0.6 + 0.4 * squares);
  const d = (3 * independent) / (Math.sqrt(3 * independent ** 2 - 3 * independent + 1) + 2);
  const logistic = (odds: number) => 100 / (1 + Math.exp(-odds));
  return [median, logistic(mean), logistic(d * l), logistic(((1 + d) / 2) * l)];
};

const lossesByHand = ({ question, said }: (typeof example)[number]): number[] => {
  const sides = question.options.length;
  const sums = [0, 0, 0, 0, 0];
  for (let second = 0; second * second_ms < question.ends_ms; second += 1) {
    const standing = new Map<string, Stated>();
    for (const one of said) if (one.at <= second) standing.set(one.agent, one);
    const chances: number[][] = [];
    for (let n = 0; n < Math.max(1, sides); n += 1) {
      chances.push(standing.size === 0 ? [] : candidatesByHand(standing, n));
    }
    const lists = [0, 1, 2, 3].map((i) => {
      const list = chances.map((one) => one[i]!);
      const whole = list.reduce((a, b) => a + b, 0);
      return sides === 0 ? [100 - list[0]!, list[0]!] : list.map((one) => (100 * one) / whole);
    });
    const headline = lists[0]!.map((_, n) => lists.reduce((sum, list) => sum + list[n]! / 4, 0));
    const right = sides === 0 ? [question.outcome ? 1 : 0] : [0, 1];
    for (const [i, list] of [headline, ...lists].entries()) {
      for (const n of right) {
        const p = Math.min(0.9999, Math.max(0.0001, list[n]! / 100));
        const loss = standing.size === 0 ? Math.log(sides || 2) : -Math.log(p);
        sums[i]! += loss / right.length / 100;
      }
    }
  }
  return sums;
};

const isNear = (found: readonly number[], wanted: readonly number[]): boolean =>
  found.length === wanted.length && found.every((one, n) => Math.abs(one - wanted[n]!) < 1e-9);

t.test('the weights of three questions are those that their formulas give', async (t) => {
  const sums = makeLossSums('chance');
  const by_hand = example.map(lossesByHand);
  for (const [n, { question, said }] of example.entries()) {
    const losses = await replayLosses(question, { all: forecastsOf(said), fits: [] });
    t.ok(isNear(losses, by_hand[n]!), `question ${n}: ${losses} is not ${by_hand[n]}`);
    sums.add(losses);
  }
  const raw = [1, 2, 3, 4].map((i) => {
    let loss = 0;
    for (const one of by_hand) loss += one[i]!;
    return Math.exp((-3 / 203) * loss);
  });
  const whole = raw.reduce((a, b) => a + b, 0);
  const found = sums.sumUp();
  t.ok(
    isNear(
      found.weights,
      raw.map((one) => one / whole),
    ),
  );
  const mean = (i: number) => (by_hand[0]![i]! + by_hand[1]![i]! + by_hand[2]![i]!) / 3;
  t.ok(isNear([found.headline_loss!], [mean(0)]));
  t.ok(isNear(found.losses!, [1, 2, 3, 4].map(mean)));
  t.equal(found.questions, 3);
});

t.test('a headline is scored with the fit that was in force', async (t) => {
  const { question, said } = example[1]!;
  const only = (n: number) => [0, 1, 2, 3].map((i) => (i === n ? 1 : 0));
  const fit = { number: 1, rho: 0.6, weights: { ...equal_weights, chance: only(0) } };
  const replay = (from_ms: number): Promise<Losses> =>
    replayLosses(question, { all: forecastsOf(said), fits: [{ ...fit, from_ms }] });
  const [always, later, never] = await Promise.all([0, 50_000, 100_001].map(replay));
  t.equal(always?.[0], always?.[1]);
  t.ok(isNear(never!, lossesByHand(example[1]!)));
  t.ok(later![0]! > Math.min(always![0]!, never![0]!));
  t.ok(later![0]! < Math.max(always![0]!, never![0]!));
  const pooled = { number: 1, rho: 0.6, weights: null, from_ms: 0 };
  const before = await replayLosses(question, { all: forecastsOf(said), fits: [pooled] });
  t.equal(before[0], before[3], 'an older fit shows the pool alone');
});

t.test('a number is scored by the CRPS on its range', async (t) => {
  const range = { range_min: 0, range_max: 100 };
  const question = { ...yes_no, ...range, question_type: 'numeric', outcome_value: 25 } as const;
  // Two forecasts that are uniform on [0, 50] and on [50, 100], so the pool is uniform on [0, 100].
  const all = [
    [0, 0, 50, 1, 100, 1],
    [0, 0, 50, 0, 100, 1],
  ].map((cdf, n): TimedForecast => {
    const who = { agent: String(n), owner: String(n), family: 'gpt' };
    return { ...who, at: 0, side: 0, value: 5_000, given: givenByCdf(cdf), replaced: null };
  });
  const fits = [{ ...first_fit, weights: { ...equal_weights, number: [0, 1] }, from_ms: 0 }];
  const [headline, average, pool] = await replayLosses(question, { all, fits });
  const uniform = (0.25 ** 3 + 0.75 ** 3) / 3;
  t.ok(isNear([pool!], [uniform]), `${pool}`);
  t.ok(isNear([headline!], [uniform]), `${headline}`);
  // The quantile average is uniform on [25, 75], except for 1 % on each side.
  t.ok(Math.abs(average! - 0.5 / 3) < 0.005, `${average}`);
});

t.test('without questions all weights are equal, and large losses do not underflow', (t) => {
  t.same(makeLossSums('chance').sumUp(), {
    questions: 0,
    headline_loss: null,
    losses: null,
    weights: [0.25, 0.25, 0.25, 0.25],
  });
  t.same(weightsOf([1e6, 1e6 + 1e6], 1e6), [1, 0]);
  t.end();
});
