import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { bench, brierOf, readResolvedFile } from '../../bench/pools.js';
import { t } from '../help/tap.js';

t.test('on generated forecasts the pool predicts better than simpler ones', async (t) => {
  const stages = await bench.prepare({
    rounds: 1,
    seconds: 1,
    quick: true,
    folder: '',
    stop: new AbortController().signal,
    log: () => undefined,
    onClose: () => undefined,
  });
  const subjects = stages.flatMap((makeStage) => makeStage({}));
  const round = Object.fromEntries(
    await Promise.all(subjects.map(async (one) => [one.name, await one.round()] as const)),
  );
  for (const [name, { of, max }] of Object.entries(bench.figures)) {
    if (max !== undefined) t.ok((of(round) ?? Infinity) < max, `${name}: ${of(round)}`);
  }
});

t.test('the scores of two questions are those worked out by hand', async (t) => {
  const all = [
    [7_000, 7_000],
    [2_000, 4_000, 4_000],
  ].map((values, n) => ({
    outcome: n === 0,
    forecasts: values.map((value, a) => ({ agent: `${a}`, owner: `${a}`, family: 'gpt', value })),
  }));
  // The median gives (0.3² + 0.4²) / 2, and the mean gives (0.3² + (1/3)²) / 2.
  t.equal(brierOf('median', all).toFixed(9), '0.125000000');
  t.equal(brierOf('mean', all).toFixed(9), (0.09 / 2 + 1 / 18).toFixed(9));
  // The mean of ln(1/4), ln(2/3) and ln(2/3) is −0.732408, which is 32.46665 %.
  t.equal(brierOf('not_extremized', all).toFixed(6), ((0.09 + 0.3246665 ** 2) / 2).toFixed(6));
});

t.test('a file gives its resolved questions and the last forecast of each agent', async (t) => {
  const question = (source_id: number) => ({ source: 'test', source_id: `${source_id}` });
  const lines = [1, 2].flatMap((n) => [
    { type: 'resolution', ...question(n), resolved_to: n % 2 },
    ...['a', 'b'].flatMap((agent, a) => [
      {
        type: 'forecast',
        ...question(n),
        agent,
        model: 'gpt-5',
        forecast_at: '2026-01-02',
        probability: 60 + a,
      },
      { type: 'forecast', ...question(n), agent, probability: 50, forecast_at: '2026-01-01' },
    ]),
    { type: 'forecast', ...question(n), agent: 'c', selected_option: 'x', confidence: 50 },
    { type: 'forecast', ...question(3), agent: 'a', probability: 50 },
  ]);
  const file = path.join(t.testdir(), 'import.ndjson');
  writeFileSync(file, lines.map((line) => JSON.stringify(line)).join('\n'));
  const forecasts = [
    { agent: 'a', owner: 'a', family: 'gpt', value: 6_000 },
    { agent: 'b', owner: 'b', family: 'gpt', value: 6_100 },
  ];
  t.same(await readResolvedFile(file), [
    { outcome: true, forecasts },
    { outcome: false, forecasts },
  ]);
});
