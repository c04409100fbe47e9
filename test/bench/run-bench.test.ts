import t from 'tap';
import {
  type Bench,
  type BenchContext,
  figureOf,
  ratioOf,
  type Sample,
  type Subject,
} from '../../bench/frame/bench.js';
import { loadBench, names, readArguments, readFloors } from '../../bench/frame/command.js';
import { printable } from '../../bench/frame/report.js';
import { judge, median, runBench, summarise } from '../../bench/frame/run-bench.js';

t.test('the median is the middle value, or the mean of the two middle ones', async (t) => {
  t.equal(median([9, 1, 5]), 5);
  t.equal(median([4, 1, 3, 100]), 3.5);
  t.equal(median([7]), 7);
});

t.test('rounds become medians; a figure that some round lacks is left out', async (t) => {
  const rounds = [
    { a: { per_second: 10, once: 1 } },
    { a: { per_second: 30 } },
    { a: { per_second: 20 } },
  ];
  t.same(summarise(rounds), { a: { per_second: 20 } });
});

t.test('a floor holds at its bound, and a figure that was not measured is not met', async (t) => {
  t.match(judge(2, 2), { met: true, min: 2, value: 2 });
  t.match(judge(2, 1.99), { met: false });
  t.match(judge({ max: 5 }, 5), { met: true, max: 5 });
  t.match(judge({ max: 5 }, 5.01), { met: false });
  t.match(judge({ min: 1, max: 3 }, 4), { met: false });
  t.match(judge(2, undefined), { met: false, value: null });
  t.match(judge({ max: 5 }, Number.NaN), { met: false, value: null });
  t.match(judge(undefined, 7), { met: true, value: 7 });
});

interface Fake {
  readonly fast?: readonly number[];
  readonly slow?: readonly number[];
  readonly fails?: boolean;
  readonly only?: readonly string[];
  readonly stop?: AbortSignal;
}

const runFake = async (options: Fake) => {
  const { fast = [1, 1, 1], slow = [1, 1, 1], fails = false, only, stop } = options;
  const calls: string[] = [];
  const logged: string[] = [];
  let closed = 0;
  const makeSubject = (name: string, rates: readonly number[]): Subject => ({
    name,
    warmUp: async () => calls.push(`${name} warm`),
    round: async (index): Promise<Sample> => {
      calls.push(`${name} ${index}`);
      if (fails) throw new Error('rows are missing');
      return { per_second: rates[index]!, p99_ms: 8 };
    },
  });
  const bench: Bench = {
    name: 'fake',
    question: 'How fast?',
    figures: { fast_over_slow: ratioOf('fast', 'slow'), fast_p99: figureOf('fast', 'p99_ms') },
    prepare: async () => ({
      stages: [
        () => [makeSubject('fast', fast), makeSubject('slow', slow)],
        (so_far) => [makeSubject(`after_${so_far['fast']?.['per_second']}`, [5, 5, 5])],
      ],
      close: async () => {
        closed += 1;
      },
    }),
  };
  const context: BenchContext = {
    ...{ rounds: 3, seconds: 1, quick: false, cpu_prof: false, folder: '/nowhere' },
    log: (line) => void logged.push(line),
    ...(only === undefined ? {} : { only }),
    ...(stop === undefined ? {} : { stop }),
  };
  const floors = { fast_over_slow: 3, fast_p99: { max: 10 } };
  const result = await runBench(bench, context, floors).catch((error: Error) => error);
  const printed = result instanceof Error ? '' : printable(result, context);
  return { result, printed, calls, logged, closed };
};

t.test('all warm up first, then rounds alternate, and a later stage knows the rates', async (t) => {
  const run = await runFake({ fast: [1, 2, 9], slow: [4, 5, 6] });
  const rounds = ['fast 0', 'slow 0', 'slow 1', 'fast 1', 'fast 2', 'slow 2'];
  const after = ['after_2 warm', 'after_2 0', 'after_2 1', 'after_2 2'];
  t.same(run.calls, ['fast warm', 'slow warm', ...rounds, ...after]);
  t.match(run.logged[0], /^round 1 {2}fast +per_second 1 {2}p99_ms 8\.00$/);
  t.equal(run.closed, 1);
});

t.test('subjects are compared within each round, and the median of that counts', async (t) => {
  // Of the rates themselves the medians are 40 and 20.
  const { result, printed } = await runFake({ fast: [80, 20, 40], slow: [20, 5, 20] });
  t.match(result, { met: true, figures: { fast_over_slow: { value: 4, met: true } } });
  t.match(printed, /fast_over_slow +4\.00 {2}met: at least 3/);
  t.match(printed, /fast_p99 +8\.00 {2}met: at most 10/);
  t.match(printed, /All floors are met\.$/);
});

t.test('a floor that is not met fails the bench', async (t) => {
  const { result, printed } = await runFake({ fast: [2, 2, 2] });
  t.match(result, { met: false });
  t.match(printed, /fast_over_slow +2\.00 {2}NOT MET: at least 3\n/);
  t.match(printed, /A floor is not met\.$/);
});

t.test('of some subjects only their figures have floors', async (t) => {
  const fast = await runFake({ only: ['fa'] });
  t.match(fast.result, { met: true });
  t.match(fast.printed, /fast_p99 +8\.00 {2}met/);
  t.notMatch(fast.printed, /fast_over_slow|\nslow /);
  const slow = await runFake({ only: ['slow'] });
  t.match(slow.printed, /No floor was measured\.$/);
  const none = await runFake({ only: ['quick', 'odd'] });
  t.match(none.result, { message: 'No subject of fake begins with quick or odd.' });
  t.equal(none.closed, 1);
});

t.test(
  'an invalid round fails the bench, and so does an interruption; both close it',
  async (t) => {
    const failed = await runFake({ fails: true });
    t.match(failed.result, { message: 'rows are missing' });
    t.equal(failed.closed, 1);
    const stopped = await runFake({ stop: AbortSignal.abort(new Error('Interrupted.')) });
    t.match(stopped.result, { message: 'Interrupted.' });
    t.same([stopped.calls.length, stopped.closed], [0, 1]);
  },
);

t.test('arguments have defaults, and wrong ones are answered with the usage', async (t) => {
  const defaults = { bench: 'predict', rounds: 5, seconds: 8, quick: false, cpu_prof: false };
  t.strictSame(readArguments(['predict']), defaults);
  t.match(readArguments(['reads', '--quick']), { rounds: 1, seconds: 2, quick: true });
  t.match(readArguments(['reads', '--rounds', '600', '--seconds', '1', '--only', 'a,b']), {
    ...{ rounds: 600, seconds: 1, only: ['a', 'b'] },
  });
  for (const wrong of [
    ...[[], ['nothing'], ['predict', 'reads'], ['predict', '--rounds', '0']],
    ...[
      ['predict', '--rounds', '601'],
      ['predict', '--seconds', '1.5'],
      ['predict', '--other'],
    ],
  ]) {
    t.throws(() => readArguments(wrong), wrong.join(' '));
  }
  t.throws(() => readArguments(['nothing']), /Benches: predict, reads/);
});

t.test('every bench exists and has the figures that the floors name', async (t) => {
  const floors = readFloors();
  t.same(Object.keys(floors).sort(), [...names].sort());
  for (const name of names) {
    const bench = await loadBench(name);
    t.equal(bench.name, name);
    for (const figure of Object.keys(floors[name]!)) t.type(bench.figures[figure], 'function');
  }
});
