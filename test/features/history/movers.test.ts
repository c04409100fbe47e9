import { t } from 'tap';
import { questionId } from '../../../bench/env/seed.js';
import { startApp } from '../../help/app.js';
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
  readonly option: string | null;
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
    const name = option === null ? null : (options[option] ?? null);
    return { question_id: questionId(question), option: name, before: low, after: high, change };
  });
  return moves.reduce((best, one) => (Math.abs(one.change) > Math.abs(best.change) ? one : best));
};

t.test('movers are those of brute force, for several windows and moments', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  await addQuestions(app.sql, { count: counts.binary });
  await addQuestions(app.sql, { count: counts.multi, options, first: counts.binary });
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
  await addPredictions(app.sql, placed);
  for (const [window, hours, back] of [
    ['6h', 6, 0],
    ['24h', 24, 0],
    ['1d', 24, 30],
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
    const until = new Date(to).toISOString();
    const { status, body } = await app.call(
      'GET',
      `/api/insights/drift?window=${window}&points=2&limit=100&until=${until}`,
    );
    t.equal(status, 200);
    t.equal(body.to, until);
    t.ok(wanted.length > 3, `${wanted.length} movers`);
    t.equal(body.total, wanted.length);
    const by_id = new Map(body.movers.map((one: Wanted) => [one.question_id, one]));
    for (const one of wanted) t.match(by_id.get(one.question_id), one);
    const sizes = body.movers.map(({ change }: Wanted) => Math.abs(change));
    t.same(
      sizes,
      [...sizes].sort((a, b) => b - a),
      'the farthest first',
    );
    for (const { families, change } of body.movers) {
      const sum = families.reduce(
        (total: number, { contribution }: { contribution: number }) => total + contribution,
        0,
      );
      t.ok(Math.abs(sum - change) <= 0.03, `${sum} of ${change}`);
    }
  }
  for (const query of ['window=32d', 'window=x', 'points=0', 'limit=0', 'until=now']) {
    t.equal((await app.call('GET', `/api/insights/drift?${query}`)).status, 400, query);
  }
  t.equal((await app.call('GET', '/api/insights/drift?window=31d')).status, 200);
  const earliest = await app.call('GET', '/api/insights/drift?until=1970-01-01T00:30:00Z');
  const start = new Date(0).toISOString();
  t.match(earliest, { status: 200, body: { from: start, to: start, total: 0 } }, 'no time is less');
});
