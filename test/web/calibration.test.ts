import { t } from '../help/tap.js';
import { openForum, playSeason, rowsOf, showWithout, textOf } from './season.js';

t.test('reliability diagrams of all forecasts and of each family', async (t) => {
  const { app, show } = await openForum(t);
  t.match(textOf((await show('/calibration')).body), 'No resolved forecasts yet');
  await playSeason(t, app);
  for (const event of ['taken', 'yes']) {
    const { body: all } = await app.call('GET', `/api/export/calibration?event=${event}`);
    const { body: families } = await app.call(
      'GET',
      `/api/export/calibration?by=family&event=${event}`,
    );
    const { status, body } = await show(`/calibration?event=${event}`);
    t.equal(status, 200);
    const groups = [...all.groups, ...families.groups];
    t.equal((body.match(/class="calibration/g) ?? []).length, groups.length + 1, 'and one of all');
    t.equal((body.match(/class="behind"/g) ?? []).length, groups.length);
    t.equal((body.match(/type="checkbox" checked/g) ?? []).length, families.groups.length);
    const summary = rowsOf(body.slice(body.indexOf('Scores by family')));
    for (const [n, { ece, brier }] of groups.entries()) {
      t.match(summary[n], /confident by|Well calibrated|Too few/);
      t.match(summary[n], `${brier.toFixed(3)} ${ece.toFixed(3)}`);
    }
    const first = rowsOf(body.slice(body.indexOf('<details>')))[0];
    const bin = all.groups[0].bins.find(({ n }: { n: number }) => n > 0);
    t.match(first, ` ${bin.n} `, 'the figures are a table as well');
  }
  const { body: board } = await app.call('GET', '/api/leaderboard?by=calibration&of=families');
  const crowd = board.leaderboard.find(({ kind }: { kind: string }) => kind === 'crowd');
  const body = await showWithout(show, '/calibration', 'No resolved forecasts yet');
  t.match(textOf(body), `an ECE of ${crowd.value.toFixed(3)}`);
  t.equal((await show('/calibration?event=maybe')).status, 400);
});
