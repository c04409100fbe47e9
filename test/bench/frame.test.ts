import {
  type Bench,
  type BenchContext,
  figureOf,
  median,
  ratioOf,
  runBench,
  type Sample,
  type Subject,
} from '../../bench/frame/bench.js';
import {
  loadBench,
  names,
  printable,
  readArguments,
  replaceSection,
} from '../../bench/frame/command.js';
import { t } from '../help/tap.js';

t.test('the median is the middle value, or the mean of the two middle ones', async (t) => {
  t.equal(median([9, 1, 5]), 5);
  t.equal(median([4, 1, 3, 100]), 3.5);
  t.equal(median([7]), 7);
  t.ok(Number.isNaN(median([])));
});

t.test('a ratio needs both subjects and a divisor', async (t) => {
  const ratio = ratioOf('new', 'old');
  t.equal(ratio({ new: { per_second: 8 }, old: { per_second: 2 } }), 4);
  t.equal(ratio({ new: { per_second: 8 } }), undefined);
  t.equal(ratio({ new: { per_second: 8 }, old: { per_second: 0 } }), undefined);
  t.equal(figureOf('new', 'rss_mb')({ new: { rss_mb: 7 } }), 7);
  t.equal(figureOf('new', 'rss_mb')({}), undefined);
});

const makeSubject = (name: string, samples: readonly Sample[], calls: string[] = []): Subject => {
  let next = 0;
  return {
    name,
    warmUp: async () => calls.push(`${name} warm`),
    async round() {
      calls.push(`${name} ${next}`);
      return samples[next++]!;
    },
  };
};

/** Samples of one figure, with these values. */
const samplesOf = (...values: readonly number[]): readonly Sample[] =>
  values.map((per_second) => ({ per_second }));

interface Run extends Partial<BenchContext> {
  readonly figures?: Bench['figures'];
}

const run = (stages: readonly (readonly Subject[])[], { figures = {}, ...more }: Run = {}) =>
  runBench(
    {
      question: 'Is it fast?',
      figures,
      prepare: async () => stages.map((subjects) => () => subjects),
    },
    {
      rounds: 3,
      seconds: 1,
      quick: false,
      folder: '',
      stop: new AbortController().signal,
      log: () => undefined,
      onClose: () => undefined,
      ...more,
    },
  );

t.test('a stage warms up first and then runs rounds in alternating order', async (t) => {
  const calls: string[] = [];
  const log: string[] = [];
  const stage = [
    makeSubject('a', samplesOf(1, 2, 9), calls),
    makeSubject('b', samplesOf(4, 5, 6), calls),
  ];
  const result = await run([stage], { log: (line) => void log.push(line) });
  t.same(calls, ['a warm', 'b warm', 'a 0', 'b 0', 'b 1', 'a 1', 'a 2', 'b 2']);
  t.match(log[2], /^round 2 {2}b +per_second 5$/);
  t.same(result.subjects, { a: { per_second: 2 }, b: { per_second: 5 } });
});

t.test('rounds become the medians of what all of them have', async (t) => {
  const samples = [{ rate: 10, once: 1 }, { rate: 30 }, { rate: 20 }];
  t.same((await run([[makeSubject('a', samples)]])).subjects, { a: { rate: 20 } });
});

t.test('subjects are compared within each round, and the median of that counts', async (t) => {
  // The medians of the subjects' figures are 40 and 20.
  const subjects = [
    makeSubject('new', samplesOf(80, 20, 40)),
    makeSubject('old', samplesOf(20, 5, 20)),
  ];
  const figures = { ratio: { of: ratioOf('new', 'old') } };
  t.match((await run([subjects], { figures })).figures, [{ name: 'ratio', value: 4, met: true }]);
});

t.test('a later stage sees the medians of the earlier ones', async (t) => {
  const seen: unknown[] = [];
  const bench: Bench = {
    question: '',
    figures: {},
    prepare: async () => [
      () => [makeSubject('a', samplesOf(5))],
      (so_far) => {
        seen.push(so_far);
        return [];
      },
    ],
  };
  const { signal: stop } = new AbortController();
  const fixed = { rounds: 1, seconds: 1, quick: true, folder: '', stop };
  await runBench(bench, { ...fixed, log: () => undefined, onClose: () => undefined });
  t.same(seen, [{ a: { per_second: 5 } }]);
});

for (const { name, value, figure, met } of [
  { name: 'a floor is met at its value', value: 4, figure: { min: 4 }, met: true },
  { name: 'a floor is not met below it', value: 3.999, figure: { min: 4 }, met: false },
  { name: 'a ceiling is met at its value', value: 25, figure: { max: 25 }, met: true },
  { name: 'a ceiling is not met above it', value: 25.01, figure: { max: 25 }, met: false },
  { name: 'a figure without a value does not meet it', value: NaN, figure: { max: 4 }, met: false },
  { name: 'a figure without a bound only informs', value: 9, figure: {}, met: true },
]) {
  t.test(name, async (t) => {
    const figures = { speed: { of: figureOf('a', 'per_second'), ...figure } };
    const subjects = [makeSubject('a', samplesOf(value, value, value))];
    const result = await run([subjects], { figures });
    t.match(result.figures, [{ value: Number.isNaN(value) ? null : value, met }]);
    t.equal(result.met, met);
  });
}

const both = {
  ratio: { of: ratioOf('fast', 'slow'), min: 2 },
  alone: { of: figureOf('fast', 'per_second'), min: 2 },
};

t.test('a subject that is missing leaves its floor unmet', async (t) => {
  const result = await run([[makeSubject('fast', samplesOf(3, 3, 3))]], { figures: both });
  t.match(result, { met: false, figures: [{ value: null, met: false }, { met: true }] });
});

t.test('of some subjects only their own figures are held against a floor', async (t) => {
  const subjects = [makeSubject('fast', samplesOf(3, 3, 3)), makeSubject('slow', [])];
  const result = await run([subjects], { figures: both, only: ['fa'] });
  t.equal(result.met, true);
  t.match(result.figures, [{ name: 'alone' }]);
  t.equal(result.figures.length, 1);
  t.same(Object.keys(result.subjects), ['fast']);
  const none = run([[makeSubject('fast', [])]], { figures: both, only: ['quick', 'odd'] });
  await t.rejects(none, /No subject begins with quick,odd/);
});

t.test('an interrupted run ends between two rounds, and an invalid round ends it', async (t) => {
  const stop = new AbortController();
  const calls: string[] = [];
  const subject = makeSubject('a', samplesOf(1, 2, 3), calls);
  const log = () => stop.abort(new Error('Interrupted.'));
  await t.rejects(run([[subject]], { log, stop: stop.signal }), { message: 'Interrupted.' });
  t.same(calls, ['a warm', 'a 0']);
  const failing = { name: 'a', round: () => Promise.reject(new Error('rows are missing')) };
  await t.rejects(run([[failing]]), { message: 'rows are missing' });
});

t.test('arguments: defaults, the quick form, and refusals that say how to call it', async (t) => {
  t.same(readArguments(['predict', 'reads']), {
    wanted: ['predict', 'reads'],
    write: false,
    options: { rounds: 5, seconds: 8, quick: false },
  });
  t.match(readArguments(['predict', '--quick']).options, { rounds: 1, seconds: 2 });
  t.match(readArguments(['all', '--write']), { wanted: names, write: true });
  const full = ['--rounds', '600', '--seconds', '1', '--only', 'service,uws', 'reads'];
  t.match(readArguments(full).options, { rounds: 600, seconds: 1, only: ['service', 'uws'] });
  for (const wrong of [
    [],
    ['other'],
    ['predict', 'other'],
    ['predict', '--rounds', '0'],
    ['predict', '--rounds', '601'],
    ['predict', '--seconds', '1.5'],
  ]) {
    t.throws(() => readArguments(wrong), /Usage: .*\nBenches: all, predict/);
  }
});

t.test('the result as text: subjects, figures with their floors, a verdict', async (t) => {
  const subjects = [
    makeSubject('fast', samplesOf(3_000, 3_000, 3_000)),
    makeSubject('slow', [...[1, 2, 3].map(() => ({ per_second: 1_000, others_cores: 0.26 }))]),
  ];
  const result = await run([subjects], { figures: both });
  const text = printable(result, { rounds: 3, seconds: 1, quick: true });
  t.match(text, /medians of 3 rounds of 1 s \(quick\)\n\nfast +per_second 3,000\n/);
  t.match(text, /ratio +3 {2}met: at least 2\n/);
  t.match(text, /Other work used the machine during the run.*\nAll floors are met\.$/);
});

t.test('a section of the results takes the place of the one before', async (t) => {
  const text = replaceSection('# Results\n\nIntroduction.\n', 'reads', '## reads\n\nold');
  const both = replaceSection(text, 'calls', '## calls\n\nother');
  t.equal(
    replaceSection(both, 'reads', '## reads\n\nnew'),
    '# Results\n\nIntroduction.\n\n## calls\n\nother\n\n## reads\n\nnew\n',
  );
});

t.test('every bench can be loaded, and asks a question', async (t) => {
  for (const name of names) {
    const bench = await loadBench(name);
    t.match(bench.question, /\?$/, name);
    t.ok(Object.keys(bench.figures).length > 0, name);
  }
});
