import type { Mover } from '../history/index.js';
import type { Daily } from './schema.js';

/** A day: which one it is, and what follows from the rows of it. Pure. */

export interface SideRow {
  readonly question_id: string;
  readonly question: string;
  readonly question_type: 'binary' | 'multi';
  readonly options: readonly string[];
  readonly side: number;
  readonly count: number;
}

export interface ResolvedRow {
  readonly id: string;
  readonly question: string;
  readonly question_type: 'binary' | 'multi';
  readonly options: readonly string[];
  readonly outcome: boolean | null;
  readonly correct_options: readonly string[] | null;
  readonly revision: number;
  /** False while its predictions are still being settled. */
  readonly is_settled: boolean;
}

export interface MeanRow {
  readonly question_id: string;
  /** Number of the option, or 1 for YES. */
  readonly side: number;
  /** Mean percent that was put on it. */
  readonly mean: number;
  readonly count: number;
}

const day_ms = 86_400_000;
const minute_ms = 60_000;

export const daily_limits = {
  listed: 10,
  top: 5,
  resolved: 1_000,
  /** Before a move is told of: so many predictions before, and so many points. */
  least_before: 3,
  least_points: 1,
  /** Before a question is called contested. */
  least_predictions: 5,
  closing_days: 3,
} as const;

export interface DayAsk {
  readonly date: string;
  readonly from: Date;
  readonly to: Date;
  readonly is_partial: boolean;
}

const pattern = /^(\d{4})-(\d\d)-(\d\d)$/;

const dayAt = (ms: number, now: Date): DayAsk => {
  const end = ms + day_ms;
  const is_partial = end > now.getTime();
  const to = is_partial ? Math.floor(now.getTime() / minute_ms) * minute_ms : end;
  const from = new Date(ms);
  return { date: from.toISOString().slice(0, 10), from, to: new Date(to), is_partial };
};

/** The day that is meant; null where there is no such day, or it has not begun. */
export const readDay = (date: string | undefined, now: Date): DayAsk | null => {
  const today = Math.floor(now.getTime() / day_ms) * day_ms;
  if (date === undefined) return dayAt(today - day_ms, now);
  if (!pattern.test(date)) return null;
  const at = new Date(`${date}T00:00:00.000Z`);
  const ms = at.getTime();
  if (Number.isNaN(ms) || ms < 0 || ms > today) return null;
  return at.toISOString().slice(0, 10) === date ? dayAt(ms, now) : null;
};

export const telling = (movers: readonly Mover[]): readonly Mover[] =>
  movers
    .filter(({ count_before }) => count_before >= daily_limits.least_before)
    .filter(({ change }) => Math.abs(change) >= daily_limits.least_points)
    .slice(0, daily_limits.top);

/**
 * Total to the power of runner-up ÷ leader, as in the list of contested questions: many that are
 * split come before few that are, and these before many that mostly agree.
 */
const contestOf = (total: number, leader: number, runner_up: number): number =>
  runner_up === 0 ? 0 : total ** (runner_up / leader);

const positionOf = ({ question_type, options, side }: SideRow): string =>
  question_type === 'binary' ? (side === 1 ? 'YES' : 'NO') : (options[side] ?? '');

export const contestedOf = (rows: readonly SideRow[]): Daily['contested'] => {
  const by_question = new Map<string, SideRow[]>();
  for (const row of rows) {
    const known = by_question.get(row.question_id);
    if (known === undefined) by_question.set(row.question_id, [row]);
    else known.push(row);
  }
  return [...by_question.values()]
    .flatMap((sides) => {
      const [leader, runner_up] = [...sides].sort((a, b) => b.count - a.count || a.side - b.side);
      const predictions = sides.reduce((sum, { count }) => sum + count, 0);
      if (leader === undefined || runner_up === undefined) return [];
      if (predictions < daily_limits.least_predictions) return [];
      return [{ leader, runner_up, predictions }];
    })
    .map((one) => ({
      ...one,
      contest: contestOf(one.predictions, one.leader.count, one.runner_up.count),
    }))
    .sort((a, b) => b.contest - a.contest || (a.leader.question_id < b.leader.question_id ? -1 : 1))
    .slice(0, daily_limits.top)
    .map(({ leader, runner_up, predictions }) => ({
      question_id: leader.question_id,
      question: leader.question,
      predictions,
      leader: { position: positionOf(leader), count: leader.count },
      runner_up: { position: positionOf(runner_up), count: runner_up.count },
    }));
};

export interface CrowdScore {
  /** Percent that the mean forecast put on what happened. */
  readonly crowd: number;
  readonly brier: number;
  /** Brier score of the even forecast: 0.25 for yes/no. */
  readonly even: number;
}

/** What happened, as shares of 1: of YES alone, or of the options in their order. */
const outcomeOf = ({ question_type, options, outcome, correct_options }: ResolvedRow) => {
  if (question_type === 'binary') return [outcome === true ? 0 : 1, outcome === true ? 1 : 0];
  const correct = correct_options ?? [];
  return options.map((option) => (correct.includes(option) ? 1 / correct.length : 0));
};

/** Half the sum of squares over all options, which for yes/no is (p − o)². */
const brierOf = (shares: readonly number[], outcome: readonly number[]): number =>
  outcome.reduce((sum, o, n) => sum + ((shares[n] ?? 0) - o) ** 2, 0) / 2;

/** The mean forecast of a question against what happened; null without predictions. */
export const scoreCrowd = (row: ResolvedRow, means: readonly MeanRow[]): CrowdScore | null => {
  if (means.length === 0) return null;
  const outcome = outcomeOf(row);
  const yes = (means[0]?.mean ?? 0) / 100;
  const shares =
    row.question_type === 'binary'
      ? [1 - yes, yes]
      : outcome.map((_, side) => (means.find((one) => one.side === side)?.mean ?? 0) / 100);
  // Of means as the consensus shows them.
  const on = shares.reduce(
    (sum, share, n) => sum + ((outcome[n] ?? 0) > 0 ? hundredth(100 * share) : 0),
    0,
  );
  const even = outcome.map(() => 1 / outcome.length);
  return { crowd: hundredth(on), brier: brierOf(shares, outcome), even: brierOf(even, outcome) };
};

export const thousandth = (value: number): number => Math.round(value * 1e3) / 1e3;
/** As the consensus rounds: what floating point added is gone before a half goes up. */
export const hundredth = (value: number): number => Math.round(Math.round(value * 1e9) / 1e7) / 100;

export const meanOf = (values: readonly number[]): number | null =>
  values.length === 0
    ? null
    : thousandth(values.reduce((sum, value) => sum + value, 0) / values.length);

export const outcomeText = (row: ResolvedRow): string =>
  row.question_type === 'binary'
    ? row.outcome === true
      ? 'YES'
      : 'NO'
    : (row.correct_options ?? []).join(' | ');
