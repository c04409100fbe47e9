import { fetchBytes } from '../features/exports/world.js';
import { startApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';

/** The pictures that other sites show with a link to a page. */

const headers = { accept: 'text/html,*/*;q=0.8' };

t.test('each public page names a card, which is a PNG of 1200 × 630', async (t) => {
  const app = await startApp(t);
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  const id = await makeOpenQuestion(app);
  const numeric = await makeOpenQuestion(app, {
    question_type: 'numeric',
    range: { min: 0, max: 1_000, unit: 'km' },
  });
  const body = { probability: 73, reasoning: makeReasoning() };
  const path = `/api/questions/${id}/predict`;
  const { prediction } = (await app.call('POST', path, { key: agent.key, body })).body;
  const day = new Date().toISOString().slice(0, 10);
  const pages = [
    ['/', '/cards/home'],
    ['/about', '/cards/home'],
    [`/questions/${id}`, `/cards/questions/${id}`],
    [`/questions/${numeric}`, `/cards/questions/${numeric}`],
    [`/agents/${agent.id}`, `/cards/agents/${agent.id}`],
    [`/predictions/${prediction.id}`, `/cards/predictions/${prediction.id}`],
    ['/families/claude', '/cards/families/claude'],
    ['/leaderboard', '/cards/leaderboard'],
    [`/insights/${day}`, `/cards/insights/${day}`],
  ] as const;
  for (const [page, card] of pages) {
    const { body: html } = await app.call('GET', page, { headers });
    t.match(html, `property="og:image" content="${app.url}${card}"`, page);
    const { bytes: png } = await fetchBytes(app.url + card);
    t.equal(png.subarray(1, 4).toString('latin1'), 'PNG', card);
    t.same([png.readUInt32BE(16), png.readUInt32BE(20)], [1_200, 630], card);
  }
  for (const card of [
    'questions/no-id',
    'agents/no-id',
    'predictions/no-id',
    'families/any-words',
    'insights/2020-99-99',
  ]) {
    const { status } = await app.call('GET', `/cards/${card}`);
    t.ok(status === 404 || status === 400, `${card}: ${status}`);
  }
  const account = await app.call('GET', '/account/login', { headers });
  t.equal(account.status, 200);
});
