import fc from 'fast-check';
import type { Test } from 'tap';
import { createPeers } from '../../../src/features/points/peers.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';

const near = (t: Test, found: number | null, wanted: number): void => {
  t.ok(found !== null && Math.abs(found - wanted) < 1e-9, `${found} is ${wanted}`);
};

interface Forecast {
  readonly who: number;
  readonly at: number;
  readonly p: number;
}

const play = (forecasts: readonly Forecast[], end: number) => {
  const peers = createPeers();
  const standing = new Map<number, number>();
  const changes = new Map<number, { index: number; log_score: number }[]>();
  const ordered = [...forecasts].sort((a, b) => a.at - b.at || a.who - b.who);
  for (const { who, at, p } of ordered) {
    const log_score = Math.log(p);
    const index = peers.add(at, standing.get(who) ?? null, log_score);
    changes.set(who, [...(changes.get(who) ?? []), { index, log_score }]);
    standing.set(who, log_score);
  }
  peers.end(end);
  return (who: number) => peers.relativeOf(changes.get(who) ?? []);
};

t.test('of forecasts that all stand all the time it is the spot peer score, by hand', async (t) => {
  const of = play(
    [0.1, 0.5, 0.9].map((p, who) => ({ who, at: 0, p })),
    10,
  );
  // 100 · (ln 0.1 − (ln 0.5 + ln 0.9)/2), and so on.
  near(t, of(0), -190.33312448852);
  near(t, of(1), 51.0825623766);
  near(t, of(2), 139.25056211192);
  const exact = play(
    [0.004, 0.9725].map((p, who) => ({ who, at: 3, p })),
    4,
  );
  near(t, exact(0), 100 * (Math.log(0.004) - Math.log(0.9725)));
});

t.test('it is the mean over the time in which others stood', async (t) => {
  const of = play(
    [
      { who: 0, at: 0, p: 0.6 },
      { who: 1, at: 10, p: 0.3 },
      { who: 0, at: 20, p: 0.8 },
      { who: 2, at: 30, p: 0.725 },
    ],
    50,
  );
  const ln = Math.log;
  // Against one agent from 10 to 30, with a new forecast at 20. Then against two agents for 20.
  const own =
    10 * (ln(0.6) - ln(0.3)) + 10 * (ln(0.8) - ln(0.3)) + 20 * (ln(0.8) - ln(0.3 * 0.725) / 2);
  near(t, of(0), (100 * own) / 40);
  near(t, of(2), 100 * (ln(0.725) - ln(0.8 * 0.3) / 2));
});

t.test('alone there is nothing to compare with, and at the end the moment decides', async (t) => {
  t.equal(play([{ who: 0, at: 0, p: 0.5 }], 9)(0), null);
  const last = [
    { who: 0, at: 9, p: 0.5 },
    { who: 0, at: 9, p: 0.25 },
  ];
  t.equal(play(last, 9)(0), null);
  const of = play([...last, { who: 1, at: 0, p: 0.75 }], 9);
  near(t, of(0), 100 * Math.log(1 / 3));
  t.equal(of(1), null, 'nobody else stood for any time');
});

/** Applies the definition at each moment. Times are integers: nothing changes between two. */
const plain = (forecasts: readonly Forecast[], end: number, who: number): number | null => {
  const standing = (other: number, at: number): number | undefined => {
    const stated = forecasts.filter((one) => one.who === other && one.at <= at);
    return stated.sort((a, b) => a.at - b.at).at(-1)?.p;
  };
  const all = [...new Set(forecasts.map((one) => one.who))];
  let sum = 0;
  let time = 0;
  for (let at = 0; at < end; at += 1) {
    const own = standing(who, at);
    const others = all.flatMap((other) => (other === who ? [] : (standing(other, at) ?? [])));
    if (own === undefined || others.length === 0) continue;
    const mean = others.reduce((total, p) => total + Math.log(p), 0) / others.length;
    sum += Math.log(own) - mean;
    time += 1;
  }
  return time === 0 ? null : (100 * sum) / time;
};

t.test('it is what a program that looks at each moment finds', async (t) => {
  const forecast = fc.record({
    who: fc.nat(5),
    at: fc.nat(39),
    p: fc.integer({ min: 1, max: 9_999 }).map((bp) => bp / 10_000),
  });
  // An agent makes at most one forecast per moment.
  const keyOf = ({ who, at }: Forecast) => `${who} ${at}`;
  const seasons = fc.uniqueArray(forecast, { selector: keyOf, minLength: 1, maxLength: 30 });
  await holds(
    t,
    fc.property(seasons, (forecasts) => {
      const of = play(forecasts, 40);
      return forecasts.every(({ who }) => {
        const [found, wanted] = [of(who), plain(forecasts, 40, who)];
        if (found === null || wanted === null) return found === wanted;
        return Math.abs(found - wanted) < 1e-9;
      });
    }),
  );
});
