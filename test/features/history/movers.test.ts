import { t } from 'tap';
import { questionId } from '../../../bench/env/seed.js';
import { readMovers } from '../../../src/features/history/index.js';
import { openParts } from '../../help/parts.js';
import { makeRandom } from '../../help/season.js';
import { addPredictions, addQuestions, type Placed } from './world.js';

/** Which questions moved most, as brute force over the very same predictions says. */

const options = ['Rises', 'Stays', 'Falls'];
const hour_ms = 3_600_000;
const counts = { binary: 30, multi: 10 };

const mean = (all: readonly number[], parts = 1): number =>
  Math.round((100 * all.reduce((sum, one) => sum + one, 0)) / (parts * all.length)) / 100;

interface Wanted {
  readonly question_id: string;
  readonly option: number | null;
  readonly before: number;
  readonly after: number;
  readonly change: number;
}

const moveOf = (all: readonly Placed[], to: number, window_ms: number): Wanted | undefined => {
  const known = all.filter(({ at }) => at.getTime() <= to);
  const before = known.filter(({ at }) => at.getTime() <= to - window_ms);
  if (before.length === 0 || before.length === known.length) return undefined;
  const { question } = known[0] as Placed;
  /** In halves of a percent, as with three options the rest is. */
  const halves = ({ value, option, percents }: Placed, wanted: number): number =>
    percents === undefined
      ? option === wanted
        ? 2 * value
        : 100 - value
      : 2 * (percents[wanted] as number);
  const of = (some: readonly Placed[], option: number | null): number =>
    option === null
      ? mean(some.map(({ value }) => value))
      : mean(
          some.map((one) => halves(one, option)),
          2,
        );
  const figures = question < counts.binary ? [null] : [0, 1, 2];
  const moves = figures.map((option) => {
    const [low, high] = [of(before, option), of(known, option)];
    const change = Math.round((high - low) * 100) / 100;
    return { question_id: questionId(question), option, before: low, after: high, change };
  });
  return moves.reduce((best, one) => (Math.abs(one.change) > Math.abs(best.change) ? one : best));
};

t.test('movers are those of brute force, for several windows and moments', async (t) => {
  const { sql } = (await openParts(t)).deps;
  await addQuestions(sql, { count: counts.binary });
  await addQuestions(sql, { count: counts.multi, options, first: counts.binary });
  const random = makeRandom(11);
  const now = Math.floor(Date.now() / hour_ms) * hour_ms;
  const placed: Placed[] = Array.from({ length: 1_200 }, (_, n) => {
    const question = n % (counts.binary + counts.multi);
    const [value, rest] = [Math.floor(random() * 101), random()];
    const option = Math.floor(random() * 3);
    const second = Math.floor(rest * (101 - value));
    // A third names one option alone.
    const percents = [value, second, 100 - value - second];
    percents.push(...percents.splice(0, 3 - option));
    return {
      ...{ question, agent: n, family: ['claude', 'gpt'][Math.floor(random() * 2)] as string },
      at: new Date(now - Math.floor(random() * 72 * hour_ms)),
      value,
      ...(question < counts.binary ? {} : { option }),
      ...(question < counts.binary || n % 3 === 0 ? {} : { percents }),
    };
  });
  await addPredictions(sql, placed);
  for (const [hours, back] of [
    [6, 0],
    [24, 0],
    [24, 30],
  ] as const) {
    const to = now - back * hour_ms;
    const wanted = Array.from({ length: counts.binary + counts.multi }, (_, question) =>
      moveOf(
        placed.filter((one) => one.question === question),
        to,
        hours * hour_ms,
      ),
    )
      .filter((one) => one !== undefined)
      .filter(({ change }) => Math.abs(change) >= 2);
    const stretch = { from: new Date(to - hours * hour_ms), to: new Date(to) };
    const movers = (await readMovers(sql, stretch)).filter(({ change }) => Math.abs(change) >= 2);
    t.ok(wanted.length > 3, `${wanted.length} movers`);
    t.equal(movers.length, wanted.length);
    const by_id = new Map(movers.map((one) => [one.question_id, one]));
    for (const one of wanted) t.match(by_id.get(one.question_id), one);
    const sizes = movers.map(({ change }) => Math.abs(change));
    t.same(
      sizes,
      [...sizes].sort((a, b) => b - a),
      'the farthest first',
    );
    for (const { families, change } of movers) {
      const sum = families.reduce((total, { contribution }) => total + (contribution ?? 0), 0);
      t.ok(Math.abs(sum - change) <= 0.03, `${sum} of ${change}`);
    }
  }
});
