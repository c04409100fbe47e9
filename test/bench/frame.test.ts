import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { readArguments } from '../../bench/frame/arguments.js';
import { runCommand } from '../../bench/frame/command.js';
import { checkFloor, checkFloors } from '../../bench/frame/floors.js';
import { isDisturbed, type Result } from '../../bench/frame/report.js';
import { compareRounds, median, orderOf, runStage, summarise } from '../../bench/frame/rounds.js';
import {
  type Bench,
  type BenchContext,
  figureOf,
  ratioOf,
  type Sample,
  type Subject,
} from '../../bench/frame/types.js';

t.test('the median is the middle value, or the mean of the two middle ones', async (t) => {
  t.equal(median([9, 1, 5]), 5);
  t.equal(median([4, 1, 3, 100]), 3.5);
  t.equal(median([7]), 7);
  t.throws(() => median([]));
});

t.test('odd rounds run the subjects backwards', async (t) => {
  t.same(orderOf(['a', 'b', 'c'], 0), ['a', 'b', 'c']);
  t.same(orderOf(['a', 'b', 'c'], 1), ['c', 'b', 'a']);
  t.same(orderOf(['a', 'b', 'c'], 2), ['a', 'b', 'c']);
});

t.test('rounds become medians, or what the bench says for a figure', async (t) => {
  const samples = [
    { per_second: 10, rss_mb: 90, only_once: 1 },
    { per_second: 30, rss_mb: 110 },
    { per_second: 20, rss_mb: 100 },
  ];
  t.same(summarise(samples, { rss_mb: 'max' }), { per_second: 20, rss_mb: 110 });
  t.same(summarise(samples, { rss_mb: 'min' }), { per_second: 20, rss_mb: 90 });
});

const makeSubject = (name: string, rates: readonly number[], calls: string[] = []): Subject => ({
  name,
  warmUp: async () => {
    calls.push(`${name} warm`);
  },
  round: async (index): Promise<Sample> => {
    calls.push(`${name} ${index}`);
    return { per_second: rates[index] ?? 0 };
  },
});

t.test('a stage warms everybody up first and then runs rounds in alternating order', async (t) => {
  const calls: string[] = [];
  const seen: string[] = [];
  const { summaries, rounds: given } = await runStage(
    { subjects: [makeSubject('a', [1, 2, 9], calls), makeSubject('b', [4, 5, 6], calls)] },
    {
      rounds: 3,
      reduce: {},
      onRound: ({ name }, index) => seen.push(`${name} ${index}`),
    },
  );
  const rounds = ['a 0', 'b 0', 'b 1', 'a 1', 'a 2', 'b 2'];
  t.same(calls, ['a warm', 'b warm', ...rounds]);
  t.same(seen, rounds);
  t.same(summaries, { a: { per_second: 2 }, b: { per_second: 5 } });
  t.same(given, [
    { a: { per_second: 1 }, b: { per_second: 4 } },
    { a: { per_second: 2 }, b: { per_second: 5 } },
    { a: { per_second: 9 }, b: { per_second: 6 } },
  ]);
});

t.test('subjects are compared within each round, and the median of that counts', async (t) => {
  const ratio = ratioOf('new', 'old');
  const round = (above: number, below: number) => ({
    new: { per_second: above },
    old: { per_second: below },
  });
  // Of the figures themselves the medians are 40 and 20.
  const rounds = [round(80, 20), round(20, 5), round(40, 20)];
  t.equal(compareRounds(ratio, rounds), 4);
  t.equal(compareRounds(ratio, [...rounds, { new: { per_second: 9 } }]), undefined);
  t.equal(compareRounds(ratio, []), undefined);
});

t.test('a run beside other work is called disturbed', async (t) => {
  t.equal(isDisturbed({ a: { others_cores: 0.25 }, b: {} }), false);
  t.equal(isDisturbed({ a: { others_cores: 0.1 }, b: { others_cores: 0.26 } }), true);
});

t.test('an interrupted run ends between two rounds', async (t) => {
  const stop = new AbortController();
  const calls: string[] = [];
  const run = runStage(
    { subjects: [makeSubject('a', [1, 2], calls)] },
    {
      rounds: 2,
      reduce: {},
      stop: stop.signal,
      onRound: () => stop.abort(new Error('Interrupted.')),
    },
  );
  await t.rejects(run, { message: 'Interrupted.' });
  t.same(calls, ['a warm', 'a 0']);
});

t.test('a floor is met at its value, and not met beyond it or without a value', async (t) => {
  t.same(checkFloor(4, 4), { min: 4, value: 4, met: true });
  t.same(checkFloor(4, 3.999), { min: 4, value: 3.999, met: false });
  t.same(checkFloor({ max: 25 }, 25), { max: 25, value: 25, met: true });
  t.same(checkFloor({ max: 25 }, 25.01), { max: 25, value: 25.01, met: false });
  t.same(checkFloor({ min: 1, max: 2 }, 3), { min: 1, max: 2, value: 3, met: false });
  t.same(checkFloor(4, undefined), { min: 4, value: null, met: false });
  t.same(checkFloor({ max: 4 }, Number.NaN), { max: 4, value: null, met: false });
  t.same(checkFloors({ speed: 2 }, { other: 9 }), { speed: { min: 2, value: null, met: false } });
});

t.test('a ratio needs both subjects and a divisor', async (t) => {
  const ratio = ratioOf('new', 'old');
  t.equal(ratio({ new: { per_second: 8 }, old: { per_second: 2 } }), 4);
  t.equal(ratio({ new: { per_second: 8 } }), undefined);
  t.equal(ratio({ new: { per_second: 8 }, old: { per_second: 0 } }), undefined);
  t.equal(figureOf('new', 'rss_mb')({ new: { rss_mb: 7 } }), 7);
  t.equal(figureOf('new', 'rss_mb')({}), undefined);
});

t.test('arguments: defaults, the quick form, and refusals that say how to call it', async (t) => {
  const plain = readArguments(['predict'], ['predict']);
  t.match(plain, { bench: 'predict', rounds: 5, seconds: 8, quick: false, cpu_prof: false });
  t.equal(plain.json, undefined);
  t.match(readArguments(['predict', '--quick'], ['predict']), { rounds: 1, seconds: 2 });
  const full = ['--json', 'x.json', '--rounds', '600', '--seconds', '1', '--cpu-prof', 'predict'];
  t.match(readArguments(full, ['predict']), {
    ...{ json: 'x.json', rounds: 600, seconds: 1, cpu_prof: true },
  });
  t.throws(() => readArguments([], ['predict']), /Usage: .*\nBenches: predict/);
  t.throws(() => readArguments(['other'], ['predict']), /Benches: predict/);
  t.throws(() => readArguments(['predict', 'predict'], ['predict']), /Usage/);
  t.throws(() => readArguments(['predict', '--rounds', '0'], ['predict']), /--rounds takes/);
  t.throws(() => readArguments(['predict', '--rounds', '601'], ['predict']), /--rounds takes/);
  t.throws(() => readArguments(['predict', '--seconds', 'x'], ['predict']), /--seconds takes/);
  t.throws(() => readArguments(['predict', '--fast'], ['predict']), /fast/);
});

interface FakeRun {
  readonly code: number;
  readonly printed: string;
  readonly heard: string;
  readonly result: Result | undefined;
  readonly contexts: readonly BenchContext[];
  readonly closed: number;
}

interface FakeOptions {
  readonly fast: readonly number[];
  readonly slow?: readonly number[];
  readonly fails?: boolean;
  readonly argv?: readonly string[];
}

/** Runs the command with a bench whose floor is "fast is at least twice as fast as slow". */
const runFake = async (t: Test, options: FakeOptions): Promise<FakeRun> => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pf-frame-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const floors_file = path.join(folder, 'floors.json');
  writeFileSync(floors_file, '{"fake":{"fast_over_slow":2,"fast_p99":{"max":9}}}');
  const json = path.join(folder, 'deep', 'result.json');
  const contexts: BenchContext[] = [];
  let closed = 0;
  const { slow } = options;
  const failing: Subject = {
    name: 'fast',
    round: () => Promise.reject(new Error('rows are missing')),
  };
  const fast: Subject = {
    name: 'fast',
    round: async (index) => ({ per_second: options.fast[index] ?? 0, p99_ms: 8 }),
  };
  const bench: Bench = {
    name: 'fake',
    question: 'Is it fast?',
    ratios: { fast_over_slow: ratioOf('fast', 'slow') },
    figures: { fast_p99: figureOf('fast', 'p99_ms') },
    prepare: async (context) => {
      contexts.push(context);
      return {
        stages: [
          () => ({ subjects: [options.fails ? failing : fast] }),
          (so_far) => {
            const is_missing = so_far['fast'] === undefined && context.only === undefined;
            if (is_missing) throw new Error('the first stage is missing');
            return { subjects: slow === undefined ? [] : [makeSubject('slow', slow)] };
          },
        ],
        missing: slow === undefined ? [{ name: 'slow', why: 'It is not installed.' }] : [],
        close: async () => {
          closed += 1;
        },
      };
    },
  };
  let printed = '';
  let heard = '';
  const code = await runCommand(options.argv ?? ['fake', '--rounds', '3', '--json', json], {
    benches: { fake: async () => bench },
    floors_file,
    print: (text) => {
      printed += text;
    },
    tell: (line) => {
      heard += `${line}\n`;
    },
  });
  let result: Result | undefined;
  try {
    result = JSON.parse(readFileSync(json, 'utf8')) as Result;
  } catch {
    result = undefined;
  }
  return { code, printed, heard, result, contexts, closed };
};

t.test('floors met: exit 0, a table, and the JSON with every part', async (t) => {
  const run = await runFake(t, { fast: [30, 10, 20], slow: [15, 5, 10] });
  t.equal(run.code, 0);
  t.equal(run.closed, 1);
  t.match(run.printed, /subject +per second +p99 ms\nfast +20 +8\.00\nslow +10 +–/);
  t.match(run.printed, /fast_over_slow +2\.00 {2}met: at least 2/);
  t.match(run.printed, /fast_p99 +8\.00 {2}met: at most 9\n\nAll floors are met\.$/);
  t.match(run.heard, /round 1 {2}fast/);
  t.match(run.result, {
    bench: 'fake',
    question: 'Is it fast?',
    machine: { cores: Number, cpu: String, node: process.version, at: String },
    rounds: 3,
    seconds: 8,
    quick: false,
    subjects: { fast: { per_second: 20, p99_ms: 8 }, slow: { per_second: 10 } },
    missing: [],
    ratios: { fast_over_slow: 2 },
    floors: {
      fast_over_slow: { min: 2, value: 2, met: true },
      fast_p99: { max: 9, value: 8, met: true },
    },
    met: true,
  });
});

t.test('a floor that is not met: exit 1, and the JSON says which', async (t) => {
  const run = await runFake(t, { fast: [19, 19, 19], slow: [10, 10, 10] });
  t.equal(run.code, 1);
  t.match(run.printed, /fast_over_slow +1\.90 {2}NOT MET: at least 2/);
  t.match(run.result, { met: false, floors: { fast_over_slow: { met: false } } });
});

t.test('a subject that this machine cannot run leaves its floor unmet and says why', async (t) => {
  const run = await runFake(t, { fast: [20, 20, 20] });
  t.equal(run.code, 1);
  t.match(run.printed, /slow: not measured\. It is not installed\./);
  t.match(run.result, {
    met: false,
    missing: [{ name: 'slow', why: 'It is not installed.' }],
    ratios: { fast_over_slow: null },
    floors: { fast_over_slow: { min: 2, value: null, met: false }, fast_p99: { met: true } },
  });
});

t.test('of some subjects only what can be said of them is held against a floor', async (t) => {
  const argv = ['fake', '--rounds', '1', '--only', 'fa'];
  const run = await runFake(t, { fast: [20], slow: [100], argv });
  t.equal(run.code, 0);
  t.match(run.printed, /fast_p99 +8\.00 {2}met/);
  t.notMatch(run.printed, /\nslow /);
  t.notMatch(run.printed, /fast_over_slow.*NOT MET/);
});

t.test('subjects without a floor say that none was measured', async (t) => {
  const argv = ['fake', '--rounds', '1', '--only', 'slow'];
  const run = await runFake(t, { fast: [20], slow: [100], argv });
  t.equal(run.code, 0);
  t.match(run.printed, /No floor was measured\.$/);
});

t.test('where no subject has such a name, that is said', async (t) => {
  const run = await runFake(t, { fast: [20], slow: [10], argv: ['fake', '--only', 'quick,odd'] });
  t.equal(run.code, 1);
  t.equal(run.closed, 1);
  t.match(run.heard, /No subject of fake begins with quick or odd\./);
});

t.test('an invalid round fails the bench, which is closed all the same', async (t) => {
  const run = await runFake(t, { fast: [1], fails: true });
  t.equal(run.code, 1);
  t.equal(run.closed, 1);
  t.match(run.heard, /The bench failed: Error: rows are missing/);
  t.equal(run.result, undefined);
  t.throws(() => readFileSync(run.contexts[0]?.folder ?? ''), { code: 'ENOENT' });
});

t.test('a wrong command: exit 2, and nothing is started', async (t) => {
  const run = await runFake(t, { fast: [1], argv: ['nothing'] });
  t.equal(run.code, 2);
  t.match(run.heard, /Benches: fake/);
  t.equal(run.contexts.length, 0);
});

t.test(
  'every bench of the floors file exists, and every bench has the figures it names',
  async (t) => {
    const { benches } = await import('../../bench/benches.js');
    const file = path.resolve(import.meta.dirname, '../../../bench/floors.json');
    const floors = JSON.parse(readFileSync(file, 'utf8')) as Record<string, object>;
    for (const [name, shapes] of Object.entries(floors)) {
      const bench = await benches[name]?.();
      t.equal(bench?.name, name);
      const figures = { ...bench?.ratios, ...bench?.figures };
      for (const figure of Object.keys(shapes)) t.type(figures[figure], 'function', figure);
    }
  },
);
