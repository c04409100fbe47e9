import { fitTwoWay, type Scores } from '../../../src/features/leaderboards/two-way.js';
import { t } from '../../help/tap.js';

/** Scores by forecaster (row) and question (column). Null if there is no forecast. */
type Table = readonly (readonly (number | null)[])[];

const scoresOf = (table: Table): Scores => {
  const rows = table[0]!.flatMap((_, question) =>
    table.flatMap((row, forecaster) => {
      const brier = row[question] ?? null;
      return brier === null ? [] : [{ forecaster, question, brier }];
    }),
  );
  return {
    forecasters: rows.map(({ forecaster }) => forecaster),
    questions: rows.map(({ question }) => question),
    briers: rows.map(({ brier }) => brier),
  };
};

const makeRandom = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
  return seed / 2 ** 31;
};

/** Solves A·x = y by Gaussian elimination with pivoting. */
const eliminate = (matrix: readonly (readonly number[])[], right: readonly number[]): number[] => {
  const rows = matrix.map((row, i) => [...row, right[i]!]);
  for (const [column] of rows.entries()) {
    const pivot = rows
      .slice(column)
      .reduce((best, row) => (Math.abs(row[column]!) > Math.abs(best[column]!) ? row : best));
    rows.splice(rows.indexOf(pivot), 1, rows[column]!);
    rows[column] = pivot;
    for (const row of rows) {
      if (row === pivot) continue;
      const factor = row[column]! / pivot[column]!;
      for (const [i, value] of pivot.entries()) row[i]! -= factor * value;
    }
  }
  return rows.map((row, i) => row.at(-1)! / row[i]!);
};

/** Computes values and effects from the full normal equations, plus the equation Σb = 0. */
const solveInFull = (table: Table) => {
  const forecasters = table.length;
  const size = forecasters + table[0]!.length;
  const matrix = Array.from({ length: size + 1 }, () => new Array<number>(size + 1).fill(0));
  const right = new Array<number>(size + 1).fill(0);
  for (const [f, row] of table.entries()) {
    for (const [column, brier] of row.entries()) {
      if (brier === null) continue;
      const q = forecasters + column;
      for (const [i, j] of [
        [f, f],
        [f, q],
        [q, f],
        [q, q],
      ] as const)
        matrix[i]![j]! += 1;
      right[f]! += brier;
      right[q]! += brier;
    }
  }
  for (let q = forecasters; q < size; q += 1) {
    matrix[q]![size] = 1;
    matrix[size]![q] = 1;
  }
  const solved = eliminate(matrix, right);
  return { values: solved.slice(0, forecasters), effects: solved.slice(forecasters, size) };
};

const all = { least_questions: 1, least_agents: 1, resamples: 0 };

t.test('a table solved by hand', async (t) => {
  // x = 0.1, 0.2, 0.3 and b = −0.05, 0.05, 0 fit exactly. With plain means (0.1, 0.15 and 0.325)
  // the second forecaster would gain by answering only the easy question.
  const fit = fitTwoWay(
    scoresOf([
      [0.05, 0.15, 0.1],
      [0.15, null, null],
      [null, 0.35, 0.3],
    ]),
    all,
  );
  const shown = fit.forecasters.map(({ value, rank, n }) => [value, rank, n]);
  t.same(shown, [
    [0.1, 1, 3],
    [0.2, 2, 1],
    [0.3, 3, 2],
  ]);
  const effects = [...fit.difficulty].map(([q, b]) => [q, Math.round(b * 1e9) / 1e9]);
  t.same(effects, [
    [0, -0.05],
    [1, 0.05],
    [2, 0],
  ]);
  // No effects fit these exactly. x1 − x2 is the mean difference on the two questions, −(0.1 +
  // 0.06) / 2, and x1 + x2 is twice the overall mean, 2 · 0.19.
  const off = fitTwoWay(
    scoresOf([
      [0.1, 0.2],
      [0.2, 0.26],
    ]),
    all,
  ).forecasters;
  t.same(
    off.map(({ value }) => value),
    [0.15, 0.23],
  );
});

t.test('the same values as the normal equations in full give', async (t) => {
  const random = makeRandom(3);
  for (let n = 0; n < 20; n += 1) {
    const table = Array.from({ length: 12 }, () =>
      Array.from({ length: 30 }, () => (random() < 0.3 ? random() : null)),
    );
    // No forecaster or question is isolated.
    for (let i = 0; i < 30; i += 1) table[i % 12]![i] = random();
    for (const row of table) row[0] = random();
    const wanted = solveInFull(table);
    const fit = fitTwoWay(scoresOf(table), all);
    const far = fit.forecasters.filter(
      ({ forecaster, value }) => Math.abs(value - wanted.values[forecaster]!) > 6e-7,
    );
    t.same([fit.forecasters.length, far], [12, []], `table ${n}`);
    const effects = wanted.effects.filter((b, q) => Math.abs(b - fit.difficulty.get(q)!) > 1e-9);
    t.same(effects, []);
  }
});

t.test('who has too little drops out, and who is left with too little then', async (t) => {
  const least = { least_questions: 2, least_agents: 2, resamples: 0 };
  const fit = fitTwoWay(
    scoresOf([
      [0.1, 0.2, null, null, null],
      [0.2, 0.3, 0.9, null, null],
      // This forecaster is alone on the fourth question, so it has only one question that counts.
      // Without this forecaster, the third question has only one.
      [null, null, 0.5, 0.6, null],
    ]),
    least,
  );
  t.same(
    fit.forecasters.map(({ forecaster, n }) => [forecaster, n]),
    [
      [0, 2],
      [1, 2],
    ],
  );
  t.same([...fit.difficulty.keys()], [0, 1]);
  t.equal(fit.covered_scores, 4);
  const none = fitTwoWay(scoresOf([[0.1]]), least);
  t.same([none.forecasters, none.covered_scores], [[], 0]);
});

t.test('of parts that nobody connects the largest is ranked', async (t) => {
  const fit = fitTwoWay(
    scoresOf([
      [0.1, 0.2, null, null, null],
      [0.2, 0.3, null, null, null],
      [null, null, 0.3, 0.4, 0.5],
      [null, null, 0.1, 0.2, 0.3],
    ]),
    all,
  );
  t.same(
    fit.forecasters.map(({ forecaster, rank }) => [forecaster, rank]),
    [
      [2, 2],
      [3, 1],
    ],
  );
  t.equal(fit.covered_scores, 6);
});

t.test(
  'intervals of ranks are wide where forecasters are alike and narrow where not',
  async (t) => {
    const random = makeRandom(11);
    const table = Array.from({ length: 6 }, (_, forecaster) =>
      Array.from({ length: 60 }, () => 0.1 * random() + (forecaster === 0 ? 0 : 0.2)),
    );
    const options = { ...all, resamples: 1_000 };
    const fit = fitTwoWay(scoresOf(table), options);
    const [best, ...others] = fit.forecasters;
    t.match(best, { rank: 1, rank_interval: { low: 1, high: 1 } });
    t.ok(others.every(({ rank_interval: { low, high }, rank }) => low <= rank && rank <= high));
    t.ok(others.some(({ rank_interval: { low, high } }) => high - low >= 2));
    t.same(fitTwoWay(scoresOf(table), options), fit, 'the same scores give the same board');
    // Scores are uniform within 0.1. A mean of 60 has the error 0.1 / √12 / √60, about 0.0037.
    for (const { deviation } of fit.forecasters) t.ok(Math.abs(deviation - 0.0037) < 0.0015);
    let left = 10;
    const cut = fitTwoWay(scoresOf(table), { ...options, isOver: () => left-- === 0 });
    t.equal(cut.resamples, 10);
    t.ok(cut.forecasters.every(({ rank_interval: { low, high } }) => low >= 1 && high <= 6));
  },
);
