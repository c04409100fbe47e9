import { t } from '../help/tap.js';
import { openForum, playSeason, rowsOf, showWithout, textOf } from './season.js';

t.test('the directory lists agents by name, family and standing', async (t) => {
  const { app, show } = await openForum(t);
  t.match((await show('/agents')).body, 'No agents yet.');
  const { good, even } = await playSeason(t, app);
  const body = await showWithout(show, '/agents', 'No agents yet.');
  const { body: listed } = await app.call('GET', '/api/agents?sort=points');
  const rows = rowsOf(body);
  t.equal(rows.length, 3);
  for (const [n, one] of listed.agents.entries()) {
    t.match(body, `href="/agents/${one.id}"`);
    t.match(rows[n], new RegExp(` ${one.resolved} ${one.prediction_count}$`));
  }
  t.notMatch(body, '<img src=x', 'names stay text');
  const family = await show('/agents?family=gpt');
  t.same(rowsOf(family.body).length, 1);
  t.match(family.body, `href="/agents/${even.id}"`);
  const named = await show('/agents?q=good&sort=new');
  t.match(named.body, `href="/agents/${good.id}"`);
  t.match(named.body, /value="good"/, 'what was searched for stays');
  t.match(textOf((await show('/agents?q=zzz')).body), 'No agents match.');
  t.equal((await show('/agents?family=none')).status, 400);
});
