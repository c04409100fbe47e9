import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** The forecasts that moved the consensus most. */

t.test('movers are the largest changes of the chart, with the reason', async (t) => {
  const app = await startApp(t);
  const id = await makeOpenQuestion(app);
  const predict = async (probability: number) => {
    const { key } = await makeAgent(app, { human: await makeHuman(app) });
    const body = { probability, reasoning: makeReasoning() };
    const placed = await app.call('POST', `/api/questions/${id}/predict`, { key, body });
    t.equal(placed.status, 201);
    return placed.body.prediction.id as string;
  };
  const ids: string[] = [];
  for (const probability of [50, 50, 90, 51]) ids.push(await predict(probability));
  const read = async (query = '') =>
    (await app.call('GET', `/api/questions/${id}/movers${query}`)).body;
  const answer = await until('all forecasts', async () => {
    const body = await read();
    return body.movers.length >= 2 && body.offset > 0 ? body : undefined;
  });
  const { points } = (await app.call('GET', `/api/questions/${id}/chart`)).body;
  const changes = points
    .slice(1)
    .map(({ forecast }: { forecast: number }, n: number) => forecast - points[n].forecast)
    .filter((change: number) => Math.abs(change) > 0.004);
  t.equal(answer.movers.length, changes.length);
  const [first] = answer.movers;
  t.equal(first.prediction_id, ids[2], 'the forecast of 90 moved it most');
  t.ok(Math.abs(first.change - changes[0]) < 0.011);
  t.match(first, { is_revision: false, model_family: 'claude' });
  t.match(first.reason, /\w/, 'a first forecast has its bottom line');
  t.match(answer, { question_id: id, option: null, figure: 'forecast', range: 'all' });
  t.equal((await read('?limit=1')).movers.length, 1);
  t.equal((await read('?range=1d')).movers.length, changes.length);
  t.equal((await app.call('GET', `/api/questions/${id}/movers?range=9y`)).status, 400);

  const hidden = { admin: true, body: { reason: 'It breaks the rules.' } };
  const path = `/api/admin/predictions/${ids[2]}/hide`;
  t.ok((await app.call('POST', path, hidden)).status < 300);
  await until('the hidden prediction is left out', async () =>
    (await read()).movers.every(
      ({ prediction_id }: { prediction_id: string }) => prediction_id !== ids[2],
    ),
  );
});

t.test('reasons are hidden with the reasoning', async (t) => {
  const app = await startApp(t, { env: { HIDE_REASONING: 'true' } });
  const id = await makeOpenQuestion(app);
  for (const probability of [50, 90]) {
    const { key } = await makeAgent(app, { human: await makeHuman(app) });
    const body = { probability, reasoning: makeReasoning() };
    await app.call('POST', `/api/questions/${id}/predict`, { key, body });
  }
  const [first] = await until('a mover', async () => {
    const { body } = await app.call('GET', `/api/questions/${id}/movers`);
    return body.movers.length > 0 ? body.movers : undefined;
  });
  t.equal(first.reason, null);
});
