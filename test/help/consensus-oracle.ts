import type { Sql } from '../../src/db/client.js';
import { groupBy } from '../../src/kit/group-by.js';

/**
 * Recomputes the consensus of every question from its stored predictions: in one pass over
 * integers, without tallies. The result has the members and the order of the wire format.
 */

interface Fit {
  readonly number: number;
  readonly rho: number;
  /** The weights of the headline's candidates; null for a fit from before the mixture. */
  readonly weights: { readonly chance: readonly number[] } | null;
}

const quarter = 1 / 4;
const first_fit: Fit = {
  number: 0,
  rho: 0.6,
  weights: { chance: [quarter, quarter, quarter, quarter] },
};

interface Question {
  readonly id: string;
  readonly question_type: 'binary' | 'multi';
  readonly options: readonly string[];
}

interface Stated {
  readonly question_id: string;
  readonly family: string;
  readonly owner: string;
  readonly prediction: boolean | null;
  readonly probability: number | null;
  readonly confidence: number;
  readonly selected_option: number | null;
  readonly probabilities: readonly number[] | null;
}

const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);

/** Divides two integers and rounds to two decimals; halves are rounded up. */
const round2 = (part: number, whole: number): number | null =>
  whole === 0 ? null : Math.floor((200 * part + whole) / (2 * whole)) / 100;

/** Converts basis points to percent. */
const mean = (values: readonly number[]) => round2(sum(values), 100 * values.length);
/** Rounds to nine places first, which removes floating-point noise before halves are rounded up. */
const shown = (value: number): number => Math.round(Math.round(value * 1e9) / 1e7) / 100;

const groups = <T>(all: readonly T[], keyOf: (one: T) => unknown): (readonly T[])[] => [
  ...groupBy(all, keyOf).values(),
];

const statedBy = ({ probability, confidence }: Stated): number => probability ?? confidence;

const quartile = (values: readonly number[], q: number): number | null => {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = (sorted.length - 1) * q;
  const [low = 0, high = 0] = [sorted[Math.floor(rank)], sorted[Math.ceil(rank)]];
  // The quartile in quarters of a basis point, which is an integer.
  const exact = 4 * low + (high - low) * 4 * (rank - Math.floor(rank));
  return sorted.length === 0 ? null : round2(exact, 400);
};

const logistic = (x: number): number => 100 / (1 + Math.exp(-x));

interface Asked {
  readonly is_binary: boolean;
  readonly rho: number;
  /** For YES or for each option, the stated chance in basis points. */
  readonly chances: readonly ((one: Stated) => number)[];
}

/** Figures that cap the weight of owners and families, by the formulas of `capped-log-odds-2`. */
const poolOf = (all: readonly Stated[], { is_binary, rho, chances }: Asked) => {
  const owners = groups(all, ({ owner }) => owner);
  const weights = new Map(owners.flatMap((own) => own.map((one) => [one, 1 / own.length])));
  const weightOf = (some: readonly Stated[]) => sum(some.map((one) => weights.get(one) ?? 0));
  const families = groups(all, ({ family }) => family).map((own) => {
    const w = weightOf(own);
    return { own, w, v: w / (1 + 0.25 * Math.max(0, w - 1)) };
  });
  const v = sum(families.map((one) => one.v));
  const shares = owners.map((mine) =>
    sum(
      families.map(
        (one) => ((one.v / v) * weightOf(mine.filter((p) => one.own.includes(p)))) / one.w,
      ),
    ),
  );
  const n = all.length === 0 ? 0 : 1 / (rho + (1 - rho) * sum(shares.map((a) => a ** 2)));
  const factor = (3 * n) / (Math.sqrt(3 * n ** 2 - 3 * n + 1) + 2);
  const lists = chances.map((chanceIn) => {
    const x = (one: Stated) => {
      const p = Math.min(9_900, Math.max(100, chanceIn(one)));
      return Number(Math.log(p / (10_000 - p)).toFixed(9));
    };
    const weighted = (some: readonly Stated[]) =>
      sum(some.map((one) => (weights.get(one) ?? 0) * x(one)));
    const pooled = sum(families.map(({ own, w, v: capped }) => (capped * weighted(own)) / w)) / v;
    const mean = sum(owners.map((own) => sum(own.map(x)) / own.length)) / owners.length;
    return [
      quartile(all.map(chanceIn), 0.5) ?? 0,
      logistic(mean),
      logistic(factor * pooled),
      logistic(((1 + factor) / 2) * pooled),
    ];
  });
  const candidates = [0, 1, 2, 3].map((i) => {
    const list = lists.map((one) => one[i] as number);
    return is_binary ? list : list.map((one) => (100 * one) / sum(list));
  });
  const means = owners.map((own) => sum(own.map(statedBy)) / own.length);
  const [leader = 0, second = Number.NaN] = groups(
    all,
    (one) => one.selected_option ?? one.prediction,
  )
    .map((side) => Math.round(weightOf(side) * 1e9) / 1e9)
    .sort((a, b) => b - a);
  const has_pool = is_binary && all.length > 0;
  const figures = {
    by_owner_mean: has_pool ? shown(sum(means) / means.length / 100) : null,
    effective_forecasters: shown(n),
    extremizing: has_pool ? shown(factor) : null,
    pooled: has_pool ? shown(candidates[2]?.[0] as number) : null,
    contested: owners.length >= 5 && second * 2 >= leader,
  };
  return { candidates, figures };
};

const names = ['median', 'mean_log_odds', 'pooled', 'half_extremized'];

const consensusOf = (question: Question, all: readonly Stated[], fit: Fit) => {
  const { id, question_type, options } = question;
  const is_binary = question_type === 'binary';
  const others = options.length - 1;
  const givenTo = (n: number) => (one: Stated) => {
    if (one.probabilities !== null) return (one.probabilities[n] ?? 0) * others;
    return one.selected_option === n ? one.confidence * others : 10_000 - one.confidence;
  };
  const meanOf = (some: readonly Stated[], n: number) =>
    round2(sum(some.map(givenTo(n))), 100 * others * some.length);
  const chances = is_binary
    ? [statedBy]
    : options.map((_, n) => (one: Stated) => Math.round(givenTo(n)(one) / others));
  const pool = poolOf(all, { is_binary, rho: fit.rho, chances });
  const means = options.map((_, n) => sum(all.map(givenTo(n))) / others / all.length / 100);
  const old = is_binary ? (pool.candidates[2] as readonly number[]) : means;
  const headline =
    fit.weights === null
      ? old
      : chances.map((_, n) =>
          sum(pool.candidates.map((list, i) => (fit.weights?.chance[i] ?? 0) * (list[n] ?? 0))),
        );
  const exact = headline.map((one) => Math.round(one * 1e9));
  const leading = all.length === 0 || is_binary ? -1 : exact.indexOf(Math.max(...exact));
  const at = Math.max(0, leading);
  const candidates =
    fit.weights === null
      ? [{ name: is_binary ? 'pooled' : 'mean', weight: 1, forecast: shown(old[at] ?? 0) }]
      : pool.candidates.map((list, i) => ({
          name: names[i],
          weight: fit.weights?.chance[i],
          forecast: shown(list[at] ?? 0),
        }));
  const isYes = (one: Stated) => one.prediction ?? one.selected_option === leading;
  const yes_count = all.filter(isYes).length;
  const percentOf = (count: number, of: readonly Stated[]) => round2(100 * count, of.length);
  const probability = (some: readonly Stated[]) => (is_binary ? mean(some.map(statedBy)) : null);
  const confidence = (some: readonly Stated[]) => mean(some.map((one) => one.confidence));
  const shown_options = options.map((option, n) => {
    const own = all.filter(({ selected_option }) => selected_option === n);
    return {
      option,
      count: own.length,
      percent: percentOf(own.length, all),
      forecast: all.length === 0 ? null : shown(headline[n] as number),
      mean_probability: meanOf(all, n),
      avg_confidence: confidence(own),
    };
  });
  const families = groups(all, ({ family }) => family).map((own) => ({
    model_family: own[0]?.family ?? '',
    count: own.length,
    yes_percent: percentOf(own.filter(isYes).length, own),
    avg_confidence: confidence(own),
    mean_probability: probability(own),
    ...(is_binary ? {} : { option_probabilities: options.map((_, n) => meanOf(own, n)) }),
  }));
  return {
    question_id: id,
    question_type,
    total_predictions: all.length,
    forecast: all.length === 0 ? null : shown(headline[at] as number),
    leading_option: options[leading] ?? null,
    yes_count,
    no_count: all.length - yes_count,
    yes_percent: percentOf(yes_count, all),
    no_percent: percentOf(all.length - yes_count, all),
    avg_confidence: confidence(all),
    mean_probability: probability(all),
    median_probability: is_binary ? quartile(all.map(statedBy), 0.5) : null,
    p25: is_binary ? quartile(all.map(statedBy), 0.25) : null,
    p75: is_binary ? quartile(all.map(statedBy), 0.75) : null,
    histogram: Array.from({ length: 10 }, (_, bin) => {
      return all.filter((one) => Math.min(9, Math.floor(statedBy(one) / 1_000)) === bin).length;
    }),
    ...(is_binary ? {} : { options: shown_options }),
    model_breakdown: families.sort((a, b) => (a.model_family < b.model_family ? -1 : 1)),
    ...pool.figures,
    method: fit.weights === null ? 'capped-log-odds-2' : 'mixture-1',
    candidates: all.length === 0 ? [] : candidates,
    rho: fit.rho,
    fit: fit.number,
  };
};

/**
 * Returns the consensus by question id, without `offset` and `updated_at`, as computed with this
 * fit. Uses each agent's latest forecast, or the latest up to `at`, even if its event is not in the
 * log yet.
 */
export const recomputeConsensus = async (
  sql: Sql,
  fit: Fit = first_fit,
  at: Date = new Date('9999-01-01'),
): Promise<ReadonlyMap<string, unknown>> => {
  const [questions, predictions] = await Promise.all([
    sql<Question[]>`select id, question_type, options from questions`,
    sql<Stated[]>`
      select
        question_id, model_family as family, coalesce(owner_id, agent_id) as owner, prediction,
        probability, confidence, selected_option, probabilities
      from (
        select *, max(revision) over (partition by question_id, agent_id) as latest
        from forecasts
        where forecast_at <= ${at}
      ) f
      where revision = latest`,
  ]);
  const by_question = new Map(
    groups(predictions, ({ question_id }) => question_id).map((own) => [own[0]?.question_id, own]),
  );
  return new Map(
    questions.map((one) => [one.id, consensusOf(one, by_question.get(one.id) ?? [], fit)]),
  );
};
