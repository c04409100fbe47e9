import type { FamilyShare } from './drift.js';
import type { MovedRow } from './movers-store.js';

/** How far each question moved between two moments, and who moved it; from sums alone. */

export interface Mover {
  readonly question_id: string;
  /** Number of the option whose mean moved most; null on a binary question. */
  readonly option: number | null;
  /** Mean probability of YES, or of the option, in per cent. */
  readonly before: number;
  readonly after: number;
  readonly count_before: number;
  readonly count_after: number;
  readonly change: number;
  readonly families: readonly FamilyShare[];
}

const hundredths = (value: number): number => Math.round(Math.round(value * 1e9) / 1e7) / 100;

interface Sums {
  count: number;
  sum: number;
}

const moverOf = (rows: readonly MovedRow[], option: number | null): Omit<Mover, 'question_id'> => {
  const before: Sums = { count: 0, sum: 0 };
  const within: Sums = { count: 0, sum: 0 };
  const by_family = new Map<string, Sums>();
  for (const row of rows) {
    before.count += row.count_before;
    before.sum += row.sum_before;
    within.count += row.count_within;
    within.sum += row.sum_within;
    const family = by_family.get(row.model_family) ?? { count: 0, sum: 0 };
    family.count += row.count_within;
    family.sum += row.sum_within;
    by_family.set(row.model_family, family);
  }
  const mean = before.sum / before.count;
  const count_after = before.count + within.count;
  const [from, to] = [hundredths(mean), hundredths((before.sum + within.sum) / count_after)];
  const families = [...by_family]
    .filter(([, { count }]) => count > 0)
    .map(([model_family, { count, sum }]) => ({
      model_family,
      predictions: count,
      contribution: hundredths((sum - count * mean) / count_after),
    }))
    .sort(
      (a, b) =>
        Math.abs(b.contribution) - Math.abs(a.contribution) ||
        (a.model_family < b.model_family ? -1 : 1),
    );
  return {
    ...{ option, before: from, after: to, count_before: before.count, count_after, families },
    change: hundredths(to - from),
  };
};

/** The figure of a question that moved most; of options that moved alike, the first. */
const strongest = (rows: readonly MovedRow[]): Omit<Mover, 'question_id'> | undefined => {
  const options = [...new Set(rows.map(({ option }) => option))].sort(
    (a, b) => (a ?? 0) - (b ?? 0),
  );
  const [first, ...rest] = options.map((option) =>
    moverOf(
      rows.filter((row) => row.option === option),
      option,
    ),
  );
  return first === undefined
    ? undefined
    : rest.reduce(
        (best, one) => (Math.abs(one.change) > Math.abs(best.change) ? one : best),
        first,
      );
};

/**
 * The questions that had predictions before the stretch and got more within it, those that moved
 * most first. A change is that of the mean probability of YES, or of one option.
 */
export const rankMovers = (rows: readonly MovedRow[]): readonly Mover[] => {
  const by_question = new Map<string, MovedRow[]>();
  for (const row of rows) {
    const known = by_question.get(row.question_id);
    if (known === undefined) by_question.set(row.question_id, [row]);
    else known.push(row);
  }
  return [...by_question]
    .flatMap(([question_id, all]): Mover[] => {
      const mover = strongest(all);
      return mover === undefined || mover.count_before === 0 ? [] : [{ question_id, ...mover }];
    })
    .sort(
      (a, b) => Math.abs(b.change) - Math.abs(a.change) || (a.question_id < b.question_id ? -1 : 1),
    );
};
