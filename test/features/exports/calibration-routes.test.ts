import { parse } from 'csv-parse/sync';
import { SaxesParser } from 'saxes';
import { calibration_columns } from '../../../src/features/exports/calibration-routes.js';
import { startApp } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import { act } from '../../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { predict } from './world.js';

const near = (a: number, b: number): boolean => Math.abs(a - b) <= 5e-9;

t.test('the routes tell of what is resolved, by group, as JSON, CSV and a picture', async (t) => {
  const app = await startApp(t, {
    roles: ['api', 'relay', 'timer'],
    env: { LIMIT_EXPORTS: '100000' },
  });
  const path = '/api/export/calibration';
  t.match((await app.call('GET', path)).body, { total_groups: 0, groups: [] });
  t.match((await app.call('GET', `${path}.svg`)).body, 'No prediction has been resolved.');
  const human = await makeHuman(app);
  const claude = await makeAgent(app, { human, name: '=Claude "one"' });
  const gpt = await makeAgent(app, { human, model: 'gpt-5' });
  const forecasts = [
    { outcome: true, claude: 90, gpt: 40 },
    { outcome: false, claude: 30, gpt: 70 },
    { outcome: true, claude: 60, gpt: 80 },
  ];
  const before = new Date().toISOString();
  for (const { outcome, ...chances } of forecasts) {
    const question_id = await makeOpenQuestion(app);
    const body = (probability: number) => ({ probability });
    await predict(app, { question_id, agent: claude, body: body(chances.claude) });
    await predict(app, { question_id, agent: gpt, body: body(chances.gpt) });
    await act(app, question_id, 'close');
    await act(app, question_id, 'resolve', { outcome, resolution_note: 'As announced.' });
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
  t.strictSame(Object.keys(rows[0] ?? {}), pluck(calibration_columns, 'name'));
  t.equal(rows.length, 20);
  t.equal(rows.find(({ key }) => key === claude.id)?.['name'], `'${claude.name}`);
  const picture = await app.call('GET', `${path}.svg?by=family&theme=dark`);
  t.match(picture.headers.get('content-type'), 'image/svg+xml');
  new SaxesParser().write(picture.body).close();
  t.match(picture.body, 'claude (ECE');
  t.equal((await app.call('GET', `${path}?as_of=2999-01-01T00:00:00Z`)).status, 400);
});
