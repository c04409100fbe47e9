import { meanDetail, percent, percents } from '../leaderboards/rules.js';
import { wilson } from '../points/calibration.js';
import type { OpenDifference } from './schema.js';

/** Computes the figures of a comparison. Pure. */

/** Sums of a mean over scores, in billionths, as on the boards. */
export interface MeanSums {
  readonly n: number;
  readonly sum: number;
  readonly squares: number;
}

/** The mean Brier score with its interval, or null without scores. */
export const meanBrier = (sums: MeanSums) => (sums.n === 0 ? null : meanDetail('brier', sums));

/** The mean of differences of Brier scores. They are from −1 to 1, like the skill. */
export const meanDifference = (sums: MeanSums) => (sums.n === 0 ? null : meanDetail('skill', sums));

/** The share of wins in percent. A tie counts half. */
export const winRate = ({ n, wins, ties }: { n: number; wins: number; ties: number }) => {
  if (n === 0) return null;
  const won = wins + ties / 2;
  return { value: percent(won / n), interval: percents(wilson(won, n)) };
};

export interface OpenQuestion {
  readonly id: string;
  readonly question: string;
  readonly options: readonly string[];
}

/** The chances that a forecaster states, in percent: one for yes/no, else one for each option. */
export type Chances = ReadonlyMap<string, readonly number[]>;

const gapOf = ({ a, b }: Pick<OpenDifference, 'a' | 'b'>): number => Math.abs(a - b);

/** For each question with chances of both: the outcome on which they differ most. */
export const findDifferences = (
  questions: readonly OpenQuestion[],
  { a, b }: { readonly a: Chances; readonly b: Chances },
): readonly OpenDifference[] =>
  questions
    .flatMap(({ id, question, options }) => {
      const [mine, theirs] = [a.get(id), b.get(id)];
      if (mine === undefined || theirs === undefined) return [];
      const found = mine.map((chance, n) => ({
        question_id: id,
        question,
        option: options[n] ?? null,
        a: chance,
        b: theirs[n] ?? 0,
      }));
      return found.sort((one, other) => gapOf(other) - gapOf(one)).slice(0, 1);
    })
    .sort((one, other) => gapOf(other) - gapOf(one));
