import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { comparePools } from '../../src/tools/pool-comparison.js';
import { makeResolved } from '../features/consensus/generated.js';
import { makeRandom } from '../help/long-run.js';
import { runTool } from '../help/run-tool.js';
import { t } from '../help/tap.js';

/** Pools compared on generated forecasts, whose correlation is known, and on files. */

t.test('out of sample the pool beats its own without extremising, median and mean', async (t) => {
  for (const rho of [0.15, 0.4]) {
    const all = makeResolved(makeRandom(7), { questions: 2_000, owners: 9, rho });
    const { brier, measured } = comparePools(all);
    t.ok(Math.abs((measured ?? 0) - rho) < 0.03, `ρ̂ is ${measured} where it is ${rho}`);
    const { pooled, not_extremized, median, mean } = brier;
    for (const other of [not_extremized, median, mean]) {
      t.ok(pooled < other, `${pooled} is less than ${other}`);
    }
  }
});

t.test('the scores of two questions are those worked out by hand', async (t) => {
  const stated = [
    [7_000, 7_000],
    [2_000, 4_000, 4_000],
  ];
  const { brier, questions } = comparePools(
    stated.map((values, n) => ({
      outcome: n === 0,
      forecasts: values.map((value, a) => ({ agent: `${a}`, owner: `${a}`, family: 'gpt', value })),
    })),
  );
  t.equal(questions, 2);
  // (0.3² + 0.4²) / 2, and (0.3² + (1/3)²) / 2.
  t.equal(brier.median.toFixed(9), '0.125000000');
  t.equal(brier.mean.toFixed(9), (0.09 / 2 + 1 / 18).toFixed(9));
  // The mean of ln(1/4), ln(2/3) and ln(2/3) is −0.732408, and that is 32.46665 %.
  t.equal(brier.not_extremized.toFixed(6), ((0.09 + 0.3246665 ** 2) / 2).toFixed(6));
});

t.test('a file as the import takes it is compared, each last forecast of an agent', async (t) => {
  const question = (source_id: number) => ({ source: 'test', source_id: `${source_id}` });
  const lines = [1, 2, 3, 4].flatMap((n) => [
    { type: 'resolution', ...question(n), resolved_to: n % 2 },
    ...['a', 'b'].flatMap((agent, a) => [
      {
        type: 'forecast',
        ...question(n),
        agent,
        model: 'gpt-5',
        forecast_at: '2026-01-02',
        probability: n % 2 === 1 ? 60 + a : 40 - a,
      },
      { type: 'forecast', ...question(n), agent, probability: 50, forecast_at: '2026-01-01' },
    ]),
    { type: 'forecast', ...question(n), agent: 'c', selected_option: 'x', confidence: 50 },
  ]);
  const file = path.join(t.testdir(), 'import.ndjson');
  writeFileSync(file, lines.map((line) => JSON.stringify(line)).join('\n'));
  const { code, output } = await runTool('pool-comparison', {}, file);
  t.equal(code, 0, output);
  t.match(output, /^pooled +0\.1\d{3}\n/);
  t.match(output, /\nmean +0\.1560\n/, '(0.395² = 0.156025)');
  t.match(output, /\nquestions +4\n$/);
  t.match(await runTool('pool-comparison', { DATA_DIR: t.testdirName }), {
    code: 1,
    output: /There is no service in /,
  });
});
