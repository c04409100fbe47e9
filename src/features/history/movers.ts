import { groupBy } from '../../kit/group-by.js';
import type { Sql } from '../../kit/pg/client.js';
import { shown } from '../consensus/index.js';
import { byContribution } from './drift.js';
import type { FamilyShare } from './schema.js';
import { type MovedRow, readMoved, type Stretch } from './store.js';

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

const total = (rows: readonly MovedRow[], read: (row: MovedRow) => number): number =>
  rows.reduce((sum, row) => sum + read(row), 0);

/** Of the rows of one question and one option. */
const moverOf = (question_id: string, rows: readonly MovedRow[]): Mover => {
  const count_before = total(rows, (row) => row.count_before);
  const sum_before = total(rows, (row) => row.sum_before);
  const count_after = count_before + total(rows, (row) => row.count_within);
  const sum_after = sum_before + total(rows, (row) => row.sum_within);
  const mean = sum_before / count_before;
  const [before, after] = [shown(mean), shown(sum_after / count_after)];
  const families = rows
    .filter(({ count_within }) => count_within > 0)
    .map(({ model_family, count_within, sum_within }) => ({
      model_family,
      predictions: count_within,
      contribution: shown((sum_within - count_within * mean) / count_after),
    }))
    .sort(byContribution);
  return {
    ...{ question_id, option: rows[0]?.option ?? null, before, after, count_before, count_after },
    ...{ change: shown(after - before), families },
  };
};

const byChange = (a: Mover, b: Mover): number => Math.abs(b.change) - Math.abs(a.change);

/**
 * The questions that had predictions before the stretch and got more within it, those that moved
 * most first. A change is that of the mean probability of YES, or of the option that moved most.
 */
export const readMovers = async (sql: Sql, stretch: Stretch): Promise<readonly Mover[]> =>
  [...groupBy(await readMoved(sql, stretch), ({ question_id }) => question_id)]
    .flatMap(([question_id, rows]) => {
      const by_option = [...groupBy(rows, ({ option }) => option).values()];
      return by_option
        .map((some) => moverOf(question_id, some))
        .filter(({ count_before }) => count_before > 0)
        .sort(byChange)
        .slice(0, 1);
    })
    .sort((a, b) => byChange(a, b) || (a.question_id < b.question_id ? -1 : 1));
