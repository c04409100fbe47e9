import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { SaxesParser } from 'saxes';
import { t } from 'tap';
import { calibration_columns } from '../../../src/features/exports/calibration-routes.js';
import { calibrate, type StatedCell } from '../../../src/features/exports/calibration-rules.js';
import { startApp } from '../../help/app.js';
import { predict } from '../../help/exports.js';
import { holds } from '../../help/property.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { until } from '../../help/until.js';

/** Calibration of what was resolved: the sums against their definitions, then the routes. */

const near = (a: number, b: number, within = 5e-9): boolean => Math.abs(a - b) <= within;

const cell = fc
  .record({ value: fc.integer({ min: 0, max: 100 }), n: fc.integer({ min: 1, max: 50 }) })
  .chain(({ value, n }) =>
    fc.integer({ min: 0, max: n }).map((hits): StatedCell => ({ value, n, hits })),
  );
const cells = fc.uniqueArray(cell, { selector: ({ value }) => value, minLength: 1 });

/** Each forecast by itself: f and o. */
const expand = (given: readonly StatedCell[]) =>
  given.flatMap(({ value, n, hits }) =>
    Array.from({ length: n }, (_, i) => ({ f: value / 100, o: i < hits ? 1 : 0 })),
  );

const meanOf = (values: readonly number[]): number =>
  values.reduce((sum, one) => sum + one, 0) / values.length;

t.test('Brier and log score are the means over single forecasts', async (t) => {
  await holds(
    t,
    fc.property(cells, (given) => {
      const single = expand(given);
      const made = calibrate(given, 10);
      if (made === null) return false;
      const clip = (p: number): number => Math.min(Math.max(p, 0.005), 0.995);
      const log = meanOf(single.map(({ f, o }) => Math.log(clip(o === 1 ? f : 1 - f))));
      return (
        near(made.brier, meanOf(single.map(({ f, o }) => (f - o) ** 2))) &&
        near(made.log_score, log) &&
        made.n === single.length
      );
    }),
  );
});

t.test('where a bin holds one forecast only, the parts add up to the Brier score', async (t) => {
  await holds(
    t,
    fc.property(cells, (given) => {
      const apart = given.filter(({ value }) => value % 10 === 5);
      const made = calibrate(apart, 10);
      if (made === null) return true;
      const { brier, reliability, resolution, uncertainty, bins } = made;
      return (
        near(brier, reliability - resolution + uncertainty) &&
        bins.reduce((sum, { n }) => sum + n, 0) === made.n
      );
    }),
  );
});

t.test('each part is what its definition says', async (t) => {
  await holds(
    t,
    fc.property(cells, fc.integer({ min: 1, max: 20 }), (given, count) => {
      const made = calibrate(given, count);
      if (made === null) return false;
      const single = expand(given);
      const base = meanOf(single.map(({ o }) => o));
      let [reliability, resolution, ece] = [0, 0, 0];
      for (const [k, { n, mean_forecast, frequency }] of made.bins.entries()) {
        const mine = single.filter(
          ({ f }) => Math.min(Math.floor((Math.round(f * 100) * count) / 100), count - 1) === k,
        );
        if (mine.length !== n) return false;
        if (n === 0) continue;
        const f_k = meanOf(mine.map(({ f }) => f));
        const o_k = meanOf(mine.map(({ o }) => o));
        if (!near(f_k, mean_forecast ?? -1) || !near(o_k, frequency ?? -1)) return false;
        reliability += (n * (f_k - o_k) ** 2) / single.length;
        resolution += (n * (o_k - base) ** 2) / single.length;
        ece += (n * Math.abs(f_k - o_k)) / single.length;
      }
      return (
        near(made.reliability, reliability) &&
        near(made.resolution, resolution) &&
        near(made.uncertainty, base * (1 - base)) &&
        near(made.ece, ece)
      );
    }),
  );
});

t.test('nothing has no calibration', async (t) => {
  t.equal(calibrate([], 10), null);
});

t.test('the routes tell of what is resolved, by group, as JSON, CSV and a picture', async (t) => {
  const app = await startApp(t, { env: { LIMIT_EXPORTS: '100000' } });
  const path = '/api/export/calibration';
  t.match((await app.call('GET', path)).body, { total_groups: 0, groups: [] });
  t.match((await app.call('GET', `${path}.svg`)).body, 'No prediction has been resolved.');
  const human = await makeHuman(app);
  const claude = await makeAgent(app, { human, name: '=Claude "one"' });
  const gpt = await makeAgent(app, { human, model: 'gpt-5' });
  const said = [
    { outcome: true, claude: 90, gpt: 40 },
    { outcome: false, claude: 30, gpt: 70 },
    { outcome: true, claude: 60, gpt: 80 },
  ];
  const before = new Date().toISOString();
  for (const { outcome, ...chances } of said) {
    const question_id = await makeOpenQuestion(app);
    const body = (probability: number) => ({ probability });
    await predict(app, { question_id, agent: claude, body: body(chances.claude) });
    await predict(app, { question_id, agent: gpt, body: body(chances.gpt) });
    const where = `/api/admin/questions/${question_id}`;
    await app.call('POST', `${where}/close`, { admin: true, body: {} });
    const decision = { outcome, resolution_note: 'As announced.' };
    t.equal(
      (await app.call('POST', `${where}/resolve`, { admin: true, body: decision })).status,
      202,
    );
  }
  const by_family = (await app.call('GET', `${path}?by=family&event=yes`)).body;
  t.equal(by_family.total_groups, 2);
  t.match(by_family.groups[0], { key: 'claude', n: 3, brier: 0.086666667 });
  t.match(by_family.groups[1], { key: 'gpt', n: 3, brier: 0.296666667 });
  t.match(by_family.groups[0].bins[9], { from: 0.9, to: 1, n: 1, frequency: 1 });
  const taken = (await app.call('GET', path)).body.groups[0];
  const all = (await app.call('GET', `${path}?event=yes`)).body.groups[0];
  t.equal(taken.brier, all.brier, 'the side does not matter to the Brier score');
  t.equal(taken.log_score, all.log_score);
  const stored = await until('the scores', async () => {
    const [row] = await app.sql<{ n: number; brier: number; log: number }[]>`
      select count(*)::integer as n, avg(brier) as brier, avg(log_score) as log from scores`;
    return row?.n === 6 ? row : undefined;
  });
  t.ok(near(all.brier, stored.brier), 'as in the scores of the service');
  t.ok(near(all.log_score, stored.log));
  t.equal((await app.call('GET', `${path}?as_of=${before}`)).body.total_groups, 0);
  t.match((await app.call('GET', `${path}?by=category`)).body.groups, [{ key: 'society', n: 6 }]);
  t.equal((await app.call('GET', `${path}?by=agent`)).body.total_groups, 0, 'too few to tell');
  const named = (await app.call('GET', `${path}?by=agent&min_n=1&names=true`)).body.groups;
  t.match(
    named.find(({ key }: { key: string }) => key === claude.id),
    { name: claude.name },
  );
  const csv = (await app.call('GET', `${path}?by=agent&min_n=1&names=true&format=csv`)).body;
  const rows = parse(csv, { columns: true, record_delimiter: '\r\n' }) as Record<string, string>[];
  t.strictSame(
    Object.keys(rows[0] ?? {}),
    calibration_columns.map(({ name }) => name),
  );
  t.equal(rows.length, 20);
  t.equal(rows.find(({ key }) => key === claude.id)?.['name'], `'${claude.name}`);
  const picture = await app.call('GET', `${path}.svg?by=family&theme=dark`);
  t.match(picture.headers.get('content-type'), 'image/svg+xml');
  new SaxesParser().write(picture.body).close();
  t.match(picture.body, 'claude (ECE');
  t.equal((await app.call('GET', `${path}?as_of=2999-01-01T00:00:00Z`)).status, 400);
});
