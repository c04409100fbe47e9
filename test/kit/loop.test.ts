import { pino } from 'pino';
import { type LoopOptions, makeLoop } from '../../src/kit/loop.js';
import type { Teardown } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

const never_ms = 3_600_000;

interface Options extends Partial<Pick<LoopOptions, 'every_ms' | 'after_error_ms'>> {
  readonly turn?: (nth: number) => ReturnType<LoopOptions['turn']>;
}

const startLoop = async (t: Teardown, options: Options) => {
  const lines: { level: number; loop?: string; err?: string }[] = [];
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  const seen = { turns: 0, lines };
  const loop = makeLoop({
    name: 'test',
    log,
    every_ms: never_ms,
    ...options,
    turn: async () => {
      seen.turns += 1;
      return options.turn?.(seen.turns) ?? 'rest';
    },
  });
  await loop.start();
  t.teardown(() => loop.stop());
  return { loop, seen };
};

/** A gate that a test opens. */
const makeGate = () => {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
};

const untilTurns = (seen: { readonly turns: number }, turns: number) =>
  until(`${turns} turns`, () => seen.turns >= turns);

t.test('the first turn starts at once, the next after a rest that "again" skips', async (t) => {
  let left = 5;
  const { seen } = await startLoop(t, { turn: async () => (--left > 0 ? 'again' : 'rest') });
  await untilTurns(seen, 5);
  const paced = await startLoop(t, { every_ms: 1 });
  await untilTurns(paced.seen, 3);
  t.equal(seen.turns, 5);
});

t.test('a nudge cuts the rest short, and one during a turn is not lost', async (t) => {
  const gate = makeGate();
  const { loop, seen } = await startLoop(t, {
    turn: async (nth) => {
      if (nth === 1) await gate.opened;
      return 'rest';
    },
  });
  loop.nudge();
  loop.nudge();
  gate.open();
  await untilTurns(seen, 2);
  t.equal(seen.turns, 2, 'and only one more');
  loop.nudge();
  await untilTurns(seen, 3);
});

t.test('turns never overlap', async (t) => {
  let inside = 0;
  let most = 0;
  const { loop, seen } = await startLoop(t, {
    every_ms: 0,
    turn: async () => {
      inside += 1;
      most = Math.max(most, inside);
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
      return 'rest';
    },
  });
  await until('twenty turns', () => {
    loop.nudge();
    return seen.turns >= 20;
  });
  t.equal(most, 1);
});

t.test('a turn that throws is logged and tried again', async (t) => {
  const { seen } = await startLoop(t, {
    after_error_ms: 1,
    turn: async (nth) => {
      if (nth === 1) throw new Error('out of order');
      if (nth === 2) throw Object.assign(new Error('store away'), { code: 'ECONNREFUSED' });
      return 'rest';
    },
  });
  await untilTurns(seen, 3);
  t.match(seen.lines, [
    { level: 50, loop: 'test', err: 'out of order' },
    { level: 40, loop: 'test', err: 'store away' },
  ]);
  t.equal(seen.lines.length, 2);
});

t.test('after an error nudges do not shorten the rest, a stop does', async (t) => {
  const { loop, seen } = await startLoop(t, {
    after_error_ms: never_ms,
    turn: async () => {
      throw new Error('always');
    },
  });
  for (let n = 0; n < 10; n += 1) {
    loop.nudge();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await loop.stop();
  t.equal(seen.turns, 1, 'a broken turn does not spin');
});

t.test('stopping waits for the turn at hand and takes no other', async (t) => {
  const gate = makeGate();
  let stopped = false;
  const { loop, seen } = await startLoop(t, {
    turn: async () => {
      await gate.opened;
      return 'again';
    },
  });
  const stopping = loop.stop().then(() => {
    stopped = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  t.notOk(stopped, 'the turn is under way');
  gate.open();
  await stopping;
  t.equal(seen.turns, 1);
});
