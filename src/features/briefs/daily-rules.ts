import { groupBy } from '../../kit/group-by.js';
import { chanceIn, shown } from '../consensus/reading.js';
import type { Consensus } from '../consensus/rules.js';
import { brier_convention } from '../points/score-rules.js';
import type { QuestionRow } from '../questions/index.js';
import { type Decided, outcomeText, positionOf, type Shape, thousandth } from './rules.js';
import type { Contested, Mover, Resolved } from './schema.js';

/** Rules for the daily insights: reading the requested day and building lists from its rows. */

const day_ms = 86_400_000;
const minute_ms = 60_000;

export const daily_limits = {
  listed: 10,
  top: 5,
  /** Number of questions whose headlines are compared to find the movers. */
  compared: 50,
  resolved: 1_000,
  min_before: 3,
  min_points: 1,
  min_predictions: 5,
  closing_days: 3,
} as const;

/** A day from `from` (inclusive) to `to` (exclusive). */
export interface Day {
  readonly date: string;
  readonly from: Date;
  readonly to: Date;
  readonly is_partial: boolean;
}

const dayAt = (ms: number, now: Date): Day => {
  const end = ms + day_ms;
  const is_partial = end > now.getTime();
  const to = is_partial ? Math.floor(now.getTime() / minute_ms) * minute_ms : end;
  const from = new Date(ms);
  return { date: from.toISOString().slice(0, 10), from, to: new Date(to), is_partial };
};

/** Reads the day of a request. Null if the day does not exist or has not started yet. */
export const readDay = (date: string | undefined, now: Date): Day | null => {
  const today = Math.floor(now.getTime() / day_ms) * day_ms;
  if (date === undefined) return dayAt(today - day_ms, now);
  if (!/^\d{4}-\d\d-\d\d$/.test(date)) return null;
  const ms = Date.parse(`${date}T00:00:00.000Z`);
  if (Number.isNaN(ms) || ms < 0 || ms > today) return null;
  const day = dayAt(ms, now);
  return day.date === date ? day : null;
};

/** A side and its number of predictions. `side` is 1 for YES, 0 for NO, or an option index. */
export interface SideRow extends Shape {
  readonly question_id: string;
  readonly question: string;
  readonly side: number;
  readonly count: number;
}

const showSide = (row: SideRow) => ({ position: positionOf(row, row.side), count: row.count });

/**
 * Returns the number of predictions to the power of runner-up ÷ leader, as in the list of contested
 * questions. Divided questions with many predictions come first, then divided ones with few
 * predictions, then questions on which many agents mostly agree.
 */
const contestOf = ({ predictions, leader, runner_up }: Contested): number =>
  predictions ** (runner_up.count / leader.count);

export const contestedOf = (rows: readonly SideRow[]): readonly Contested[] =>
  [...groupBy(rows, ({ question_id }) => question_id).values()]
    .flatMap((sides): Contested[] => {
      const [leader, runner_up] = [...sides].sort((a, b) => b.count - a.count || a.side - b.side);
      const predictions = sides.reduce((sum, { count }) => sum + count, 0);
      if (leader === undefined || runner_up === undefined) return [];
      if (predictions < daily_limits.min_predictions) return [];
      const { question_id, question } = leader;
      const both = { leader: showSide(leader), runner_up: showSide(runner_up) };
      return [{ question_id, question, predictions, ...both }];
    })
    .sort((a, b) => contestOf(b) - contestOf(a) || (a.question_id < b.question_id ? -1 : 1))
    .slice(0, daily_limits.top);

export interface MovedRow {
  readonly question_id: string;
  readonly question: string;
  readonly predictions_before: number;
  readonly predictions_after: number;
}

/** The consensus of a question at the start and at the end of a day. */
export interface Ends {
  readonly before: Consensus;
  readonly after: Consensus;
}

/** Returns the largest changes of the headline: for YES, or for the option that changed most. */
export const moversOf = (
  rows: readonly MovedRow[],
  endsOf: (question_id: string) => Ends | undefined,
): readonly Mover[] =>
  rows
    .flatMap((row): Mover[] => {
      const ends = endsOf(row.question_id);
      if (ends === undefined) return [];
      const from = crowdOf(ends.before);
      const moves = crowdOf(ends.after).map((after, side) => {
        const before = from[side] ?? after;
        const option = ends.after.options?.[side]?.option ?? null;
        return { side, option, before, after, change: shown(after - before) };
      });
      const [first] = moves
        .filter(({ option, side }) => option !== null || side === 1)
        .sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
      if (first === undefined || Math.abs(first.change) < daily_limits.min_points) return [];
      const { side: _, ...move } = first;
      return [{ ...row, ...move }];
    })
    .sort(
      (a, b) => Math.abs(b.change) - Math.abs(a.change) || (a.question_id < b.question_id ? -1 : 1),
    )
    .slice(0, daily_limits.top);

export interface ResolvedRow extends Shape, Decided, Pick<QuestionRow, 'question' | 'revision'> {
  readonly question_id: string;
  readonly median_agent_brier: number | null;
  readonly best_agent_brier: number | null;
}

type Crowd = Pick<Consensus, 'forecast' | 'headline' | 'options' | 'total_predictions'>;

const sumOf = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0);

/** Returns the headline in percent for NO and YES, or for each option. Empty if there is none. */
const crowdOf = (crowd: Crowd): readonly number[] => {
  const { options } = crowd;
  const forecast = chanceIn(crowd);
  if (forecast === null) return [];
  return (
    options?.map((one) => one.forecast ?? one.mean_probability ?? 0) ?? [
      shown(100 - forecast),
      forecast,
    ]
  );
};

/**
 * Scores the headline: its percentage for the outcome, its Brier score, and the Brier score of an
 * even forecast. A Brier score is half the sum of squares over all sides. For yes/no that is (p −
 * o)².
 */
export const scoreCrowd = (
  { question_type, options, outcome, correct_options }: ResolvedRow,
  consensus: Crowd,
) => {
  const percents = crowdOf(consensus);
  if (percents.length === 0) return null;
  const correct = correct_options ?? [];
  const happened =
    question_type === 'binary'
      ? [outcome === true ? 0 : 1, outcome === true ? 1 : 0]
      : options.map((option) => (correct.includes(option) ? 1 / correct.length : 0));
  const brierOf = (shares: readonly number[]): number =>
    sumOf(happened.map((o, n) => ((shares[n] ?? 0) - o) ** 2)) / 2;
  return {
    crowd: shown(sumOf(percents.map((percent, n) => (happened[n] === 0 ? 0 : percent)))),
    crowd_brier: brierOf(percents.map((percent) => percent / 100)),
    even_brier: brierOf(happened.map(() => 1 / happened.length)),
  };
};

type ResolvedItem = Resolved['questions'][number];

const showResolved = (row: ResolvedRow, consensus: Crowd): ResolvedItem => {
  const { question_id, question, revision } = row;
  const { median_agent_brier, best_agent_brier } = row;
  const scored = scoreCrowd(row, consensus);
  return {
    question_id,
    question,
    outcome: outcomeText(row) ?? '',
    revision,
    predictions: consensus.total_predictions,
    crowd: scored?.crowd ?? null,
    crowd_brier: scored === null ? null : thousandth(scored.crowd_brier),
    even_brier: scored === null ? null : thousandth(scored.even_brier),
    median_agent_brier,
    best_agent_brier,
  };
};

/** Summarises the crowd's scores and lists the questions with the most predictions. */
export const resolvedOf = (rows: readonly (readonly [ResolvedRow, Crowd])[]): Resolved => {
  const items = rows.map(([row, consensus]) => showResolved(row, consensus));
  const scored = items.filter(({ crowd_brier }) => crowd_brier !== null);
  const meanOf = (of: (item: ResolvedItem) => number | null): number | null => {
    const known = scored.map(of).filter((value) => value !== null);
    return known.length === 0 ? null : thousandth(sumOf(known) / known.length);
  };
  return {
    total: items.length,
    scored: scored.length,
    better_than_even: scored.filter((one) => one.crowd_brier! < one.even_brier!).length,
    crowd_brier: meanOf((item) => item.crowd_brier),
    even_brier: meanOf((item) => item.even_brier),
    median_agent_brier: meanOf((item) => item.median_agent_brier),
    best_agent_brier: meanOf((item) => item.best_agent_brier),
    brier_convention,
    questions: items
      .sort((a, b) => b.predictions - a.predictions || (a.question_id < b.question_id ? -1 : 1))
      .slice(0, daily_limits.listed),
  };
};
