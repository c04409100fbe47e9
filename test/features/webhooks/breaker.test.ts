import fc from 'fast-check';
import { test } from 'tap';
import { createBreakers, pauseOf } from '../../../src/features/webhooks/rules.js';

const a_minute = 60_000;

const tries = (
  breakers: ReturnType<typeof createBreakers>,
  pattern: string,
  now_ms = 0,
  webhook_id = 'a',
) => [...pattern].map((one) => breakers({ webhook_id, trips: 0, is_success: one === '+' }, now_ms));
const opened = { trips: 1, pause_ms: 30_000 };

test('ten failures open the breaker for 30 seconds, nine do not', (t) => {
  const answers = tries(createBreakers(), '----------');
  t.same(answers, [...Array(9).fill(null), opened]);
  t.end();
});

test('70 % of ten open it, 60 % do not, and the next failure counts too', (t) => {
  t.same(tries(createBreakers(), '+++-------').at(-1), opened);
  t.same(tries(createBreakers(), '++++------').at(-1), null);
  // 8 of 12 are less than 70 %, 10 of 14 are more.
  t.same(tries(createBreakers(), '++++----------').slice(-3), [null, null, opened]);
  t.end();
});

test('only tries of the last five minutes count, of each webhook by itself', (t) => {
  const breakers = createBreakers();
  tries(breakers, '---------');
  t.same(tries(breakers, '-', 0, 'b'), [null]);
  t.same(tries(breakers, '-', 6 * a_minute), [null], 'the nine are forgotten');
  t.same(tries(breakers, '--------', 6 * a_minute), Array(8).fill(null));
  t.same(tries(breakers, '-', 10 * a_minute), [opened]);
  t.end();
});

test('a probe closes the breaker or opens it for twice as long, up to an hour', (t) => {
  const breakers = createBreakers();
  const probe = (trips: number, is_success: boolean) =>
    breakers({ webhook_id: 'a', trips, is_success }, 0);
  t.same(probe(1, true), { trips: 0, pause_ms: 0 });
  t.same(probe(1, false), { trips: 2, pause_ms: 60_000 });
  t.same(probe(2, false), { trips: 3, pause_ms: 120_000 });
  t.same(
    [6, 7, 8, 9, 1_000].map((trips) => pauseOf(trips)),
    [960_000, 1_920_000, 3_600_000, 3_600_000, 3_600_000],
  );
  t.end();
});

test('it opens exactly when a share of failures is reached within the window', (t) => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 60 }), (outcomes) => {
      const breakers = createBreakers();
      let [count, failed] = [0, 0];
      return outcomes.every((is_success) => {
        count += 1;
        failed += is_success ? 0 : 1;
        const is_due = count >= 10 && failed >= 0.7 * count;
        const change = breakers({ webhook_id: 'a', trips: 0, is_success }, 1);
        if (is_due) [count, failed] = [0, 0];
        return (change !== null) === is_due;
      });
    }),
  );
  t.end();
});
