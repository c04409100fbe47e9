import { pino } from 'pino';
import { t } from 'tap';
import { type LoopOptions, makeLoop } from '../../src/kit/loop.js';
import type { Teardown } from '../help/stores.js';
import { until } from '../help/until.js';

const never_ms = 3_600_000;

const startLoop = async (t: Teardown, options: Partial<LoopOptions>) => {
  const lines: { level: number; loop?: string; err?: string }[] = [];
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  const turn = options.turn ?? (async () => 'rest' as const);
  const loop = makeLoop({ name: 'test', log, every_ms: never_ms, ...options, turn });
  await loop.start();
  t.teardown(() => loop.stop());
  return { loop, lines };
};

/** Something that a test opens when it likes. */
const makeGate = () => {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
};

t.test(
  'the first turn starts at once, and "again" takes the next one without a rest',
  async (t) => {
    let turns = 0;
    await startLoop(t, {
      turn: async () => {
        turns += 1;
        return turns < 5 ? 'again' : 'rest';
      },
    });
    await until('five turns', () => turns === 5);
    t.equal(turns, 5);
  },
);

t.test('after a rest the next turn comes by itself', async (t) => {
  let turns = 0;
  await startLoop(t, {
    every_ms: 1,
    turn: async () => {
      turns += 1;
      return 'rest';
    },
  });
  await until('three turns', () => turns >= 3);
  t.ok(turns >= 3);
});

t.test('a nudge cuts the rest short', async (t) => {
  let turns = 0;
  const { loop } = await startLoop(t, {
    turn: async () => {
      turns += 1;
      return 'rest';
    },
  });
  await until('the first turn', () => turns === 1);
  loop.nudge();
  await until('the second turn', () => turns === 2);
  t.equal(turns, 2);
});

t.test('a nudge during a turn is not lost: another turn follows', async (t) => {
  const gate = makeGate();
  let turns = 0;
  const { loop } = await startLoop(t, {
    turn: async () => {
      turns += 1;
      if (turns === 1) await gate.opened;
      return 'rest';
    },
  });
  loop.nudge();
  loop.nudge();
  gate.open();
  await until('the second turn', () => turns === 2);
  t.equal(turns, 2, 'and only one');
});

t.test('turns never overlap', async (t) => {
  let inside = 0;
  let most = 0;
  let turns = 0;
  const { loop } = await startLoop(t, {
    every_ms: 0,
    turn: async () => {
      inside += 1;
      most = Math.max(most, inside);
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
      turns += 1;
      return 'rest';
    },
  });
  await until('twenty turns', () => {
    loop.nudge();
    return turns >= 20;
  });
  t.equal(most, 1);
});

t.test('a turn that throws is logged and tried again', async (t) => {
  let turns = 0;
  const { lines } = await startLoop(t, {
    after_error_ms: 1,
    turn: async () => {
      turns += 1;
      if (turns === 1) throw new Error('out of order');
      if (turns === 2) throw Object.assign(new Error('store away'), { code: 'ECONNREFUSED' });
      return 'rest';
    },
  });
  await until('the third turn', () => turns === 3);
  t.match(lines, [
    { level: 50, loop: 'test', err: 'out of order' },
    { level: 40, loop: 'test', err: 'store away' },
  ]);
  t.equal(lines.length, 2);
});

t.test('after an error nudges do not shorten the rest, a stop does', async (t) => {
  let turns = 0;
  const { loop } = await startLoop(t, {
    after_error_ms: never_ms,
    turn: async () => {
      turns += 1;
      throw new Error('always');
    },
  });
  await until('the first turn', () => turns === 1);
  for (let n = 0; n < 10; n += 1) {
    loop.nudge();
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.equal(turns, 1, 'a broken turn does not spin');
  await loop.stop();
  t.equal(turns, 1);
});

t.test('stopping waits for the turn at hand and takes no other', async (t) => {
  const gate = makeGate();
  let turns = 0;
  let stopped = false;
  const { loop } = await startLoop(t, {
    every_ms: 0,
    turn: async () => {
      turns += 1;
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
  t.equal(turns, 1);
});
