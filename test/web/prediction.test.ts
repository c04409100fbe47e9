import { startApp, type TestApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

const headers = { accept: 'text/html,*/*;q=0.8' };
const read = async (app: TestApp, id: string): Promise<string> =>
  (await app.call('GET', `/predictions/${id}`, { headers })).body;

const start = async (app: TestApp, fields: object = {}, forecast: object = { probability: 70 }) => {
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  const question_id = await makeOpenQuestion(app, { ...fields });
  const body = { ...forecast, reasoning: makeReasoning() };
  const path = `/api/questions/${question_id}/predict`;
  const placed = await app.call('POST', path, { key: agent.key, body });
  t.equal(placed.status, 201);
  return { agent, question_id, id: placed.body.prediction.id as string };
};

t.test('a forecast has its reasons, its sources and what each outcome would pay', async (t) => {
  const app = await startApp(t);
  const { agent, question_id, id } = await start(app);
  const content = 'Your base rate is from older figures: why should it hold for this one?';
  const path = `/api/questions/${question_id}/predictions/${id}/reply`;
  const { key } = await makeAgent(app, { human: await makeHuman(app) });
  await app.call('POST', path, { key, body: { content } });
  await app.call('POST', `/api/predictions/${id}/upvote`, { key });
  const page = await read(app, id);
  t.match(page, /<h1 dir="auto">70% Yes<\/h1>/);
  t.match(page, `href="/questions/${question_id}"`);
  t.match(page, `href="/agents/${agent.id}"`);
  for (const title of ['Evidence', 'Analysis', 'Counter-evidence', 'Bottom line']) {
    t.match(page, `<h3>${title}</h3>`);
  }
  t.match(page, /<a class="chip" href="https:[^"]+" rel="nofollow noopener ugc"/);
  t.match(page, /<td dir="auto">Yes<\/td><td class="n">\+\d+ points<\/td>/);
  t.match(page, /<td dir="auto">No<\/td><td class="n">−\d+ points<\/td>/);
  t.match(page, '1 vote for, 0 against');
  t.match(page, 'why should it hold for this one?');
  t.notMatch(page, /style="|undefined|NaN|\[object/);
});

t.test('its receipt goes interval by interval once it is settled', async (t) => {
  const app = await startApp(t);
  const { agent, question_id, id } = await start(app);
  await app.sql`
    update predictions set created_at = created_at - interval '61 s' where id = ${id}`;
  const revised = await app.call('PATCH', `/api/predictions/${id}`, {
    key: agent.key,
    body: { probability: 82.5, reason: 'The operator confirmed the new date this morning.' },
  });
  t.equal(revised.status, 200);
  const open = await read(app, id);
  t.match(open, '>Revisions</h2>');
  t.match(open, 'The operator confirmed the new date');
  t.match(open, /<svg [^>]*class="time-chart" role="img"/);
  const act = `/api/admin/questions/${question_id}`;
  await app.call('POST', `${act}/close`, { admin: true });
  await app.call('POST', `${act}/resolve`, { admin: true, body: { outcome: true } });
  const page = await until('the receipt', async () => {
    const body = await read(app, id);
    return body.includes('booked') ? body : undefined;
  });
  // (1 − 0.7)² and (1 − 0.825)², where always saying 50 % has 0.25.
  t.match(page, /70% Yes<\/strong>.*counted for.*Brier score 0\.090/s);
  t.match(page, /83% Yes<\/strong>.*counted for.*Brier score 0\.031/s);
  t.match(page, '(an even guess scores 0.250)');
  t.match(page, /\+\d+ points<\/strong>.*because the outcome was <bdi>Yes<\/bdi>/s);
});

t.test('numbers and options have their own words', async (t) => {
  const app = await startApp(t);
  const quantiles = [200, 400, 700].map((value, n) => ({ value, p: [10, 50, 90][n] }));
  const range = { min: 0, max: 1_000, unit: 'km' };
  const numeric = await start(app, { question_type: 'numeric', range }, { quantiles });
  t.match(
    await read(app, numeric.id),
    /<h1 dir="auto">400 km, 50% chance between 275 km and 587.5 km/,
  );
  const multi = await start(
    app,
    { question_type: 'multi', options: ['Ada', 'Bo', '<b>Cy'] },
    { probabilities: { Ada: 20, Bo: 70, '<b>Cy': 10 } },
  );
  const page = await read(app, multi.id);
  t.match(page, '<h1 dir="auto">70% Bo</h1>');
  t.match(page, /<td dir="auto">&lt;b>Cy<\/td>/);
});

t.test('revised numbers keep their decimals, and the text says when it was written', async (t) => {
  const app = await startApp(t);
  const range = { min: 0.5, max: 2.5, unit: '°C' };
  const quantilesAt = (middle: number) => [
    { value: 0.7, p: 10 },
    { value: middle, p: 50 },
    { value: 2.4, p: 90 },
  ];
  const forecast = { quantiles: quantilesAt(1.31) };
  const { agent, question_id, id } = await start(
    app,
    { question_type: 'numeric', range },
    forecast,
  );
  await app.sql`
    update predictions set created_at = created_at - interval '61 s' where id = ${id}`;
  const body = { quantiles: quantilesAt(1.64), reason: 'The latest bulletin of May shows more.' };
  t.equal(
    (await app.call('PATCH', `/api/predictions/${id}`, { key: agent.key, body })).status,
    200,
  );
  const page = await read(app, id);
  const table = /<details id="revision-table">.*?<\/details>/s.exec(page)?.[0] ?? '';
  t.match(table, '1.31');
  t.match(table, '1.64');
  t.match(page, /Written with the first forecast: <span dir="auto">1\.31 °C/);
  const question = await app.call('GET', `/questions/${question_id}?tab=data`, { headers });
  t.match(question.body, /&quot;value&quot;: 1\.1,|"value": 1\.1,/, '0.3 of the range');
});

t.test('a hidden forecast is not there, and hidden reasons stay hidden', async (t) => {
  const app = await startApp(t, { env: { HIDE_REASONING: 'true' } });
  const { id } = await start(app);
  const page = await read(app, id);
  t.match(page, 'The reasoning is shown once the question closes');
  t.notMatch(page, /class="chip"|<h3>Evidence/);
  const body = { reason: 'Advertising, reported by two readers.' };
  await app.call('POST', `/api/admin/predictions/${id}/hide`, { admin: true, body });
  for (const gone of [id, 'no-id']) {
    const answer = await app.call('GET', `/predictions/${gone}`, { headers });
    t.equal(answer.status, 404);
    t.match(answer.body, 'Page not found');
  }
});
