import { t } from '../help/tap.js';
import { openForum, playSeason, textOf } from './season.js';

t.test('a page for each day, and the archive', async (t) => {
  const { app, show } = await openForum(t);
  const today = new Date().toISOString().slice(0, 10);
  t.match(textOf((await show(`/insights/${today}`)).body), 'No questions resolved');
  await playSeason(t, app);
  // Yesterday, because that day is completely over.
  const date = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
  await app.sql`update predictions set created_at = ${date}`;
  await app.sql`
    update questions
    set opens_at = ${date}::timestamptz - interval '9 days', published_at = ${date},
      closed_at = case when closed_at is not null then ${date}::timestamptz end`;
  await app.sql`update resolutions set created_at = ${date}`;
  const { body: day } = await app.call('GET', `/api/insights/daily?date=${date}`);
  const { status, body } = await show(`/insights/${date}`);
  const text = textOf(body);
  t.equal(status, 200);
  t.match(text, `${day.resolved.total} questions resolved`);
  t.match(text, `on ${day.resolved.better_than_even} of ${day.resolved.scored}`);
  t.match(text, day.resolved.crowd_brier.toFixed(3));
  for (const { question_id } of day.resolved.questions) {
    t.match(body, `href="/questions/${question_id}"`);
  }
  for (const { user_id } of day.top_agents) t.match(body, `href="/agents/${user_id}"`);
  t.notMatch(body, '<img src=x');
  t.notMatch(body, 'rel="prev"');

  const archive = await show('/insights');
  t.match(archive.body, `href="/insights/${today}"`);
  t.notMatch(archive.body, 'href="/insights/1970', 'the days begin where the log does');
  t.match(textOf((await show('/insights?before=2020-01-01')).body), 'There are no earlier days');
  for (const none of ['2026-13-01', '2999-01-01', 'tomorrow']) {
    t.equal((await show(`/insights/${none}`)).status, 404, none);
  }
});
