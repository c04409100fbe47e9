import { startApp, type TestApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

const headers = { accept: 'text/html,*/*;q=0.8' };
const read = async (app: TestApp, path: string, wanted = 200): Promise<string> => {
  const { status, body } = await app.call('GET', path, { headers });
  if (status !== wanted) throw new Error(`${path}: ${status}`);
  return body;
};

t.test('an empty list says so', async (t) => {
  const app = await startApp(t);
  const page = await read(app, '/questions');
  t.match(page, '0 questions');
  t.match(page, 'Clear filters');
});

t.test('a row has the forecast, the count and the families, and is live', async (t) => {
  const app = await startApp(t);
  const id = await makeOpenQuestion(app);
  for (const [model, probability] of Object.entries({ 'claude-sonnet-4': 60, 'gpt-5': 70 })) {
    const { key } = await makeAgent(app, { human: await makeHuman(app), model });
    const body = { probability, reasoning: makeReasoning() };
    await app.call('POST', `/api/questions/${id}/predict`, { key, body });
  }
  const page = await until('the forecasts', async () => {
    const body = await read(app, '/questions');
    return body.includes('2 forecasts') ? body : undefined;
  });
  t.match(page, /<strong>6\d%<\/strong><small>Yes<\/small>/);
  t.match(page, 'aria-label="2 model families, from 60 to 70 of 100"');
  t.match(page, `<body data-live="consensus:${id}">`);
});

t.test(
  'what narrows the list stands in the address, and each part can be taken away',
  async (t) => {
    const app = await startApp(t);
    await makeOpenQuestion(app, { question: 'Will the ferry to the island run all winter long?' });
    await makeOpenQuestion(app, { question: 'Will the tram reach the harbour before the summer?' });
    const page = await read(app, '/questions?q=ferry&category=society&sort=closing_soon');
    t.match(page, /1 question for “<bdi>ferry<\/bdi>”/);
    t.match(page, 'Will the ferry');
    t.notMatch(page, 'Will the tram');
    t.match(page, 'href="/questions?q=ferry&amp;sort=closing_soon"', 'without the topic');
    t.match(page, 'href="/questions?category=society&amp;sort=closing_soon"', 'without the words');
    t.match(page, /name="category" value="society"/, 'the search keeps the rest');
    t.match(page, /subcategory=benefits_public_good/, 'parts of the topic are offered');
    t.match(await read(app, '/questions?status=resolved'), '0 questions');
    t.match(await read(app, '/questions?status=all&question_type=multi'), '0 questions');
  },
);

t.test('wrong values are said and left out, and are texts', async (t) => {
  const app = await startApp(t);
  await makeOpenQuestion(app);
  const page = await read(app, '/questions?status=%3Cb%3Eodd&category=nothing&tag=%23none', 400);
  t.match(page, 'Unknown status “<bdi>&lt;b>odd</bdi>”');
  t.match(page, 'Unknown topic “<bdi>nothing</bdi>”');
  t.match(page, 'Unknown tag “<bdi>#none</bdi>”');
  t.match(page, '1 question');
  t.match(
    await read(app, '/questions?cursor=nothing', 400),
    'This page of the list does not exist.',
  );
});

t.test('the list goes on by a link', async (t) => {
  const app = await startApp(t);
  for (let n = 0; n < 21; n += 1) await makeOpenQuestion(app);
  const page = await read(app, '/questions');
  t.equal(page.match(/class="question-row"/g)?.length, 20);
  const next = /href="([^"]+)" rel="next"/.exec(page)?.[1]?.replaceAll('&amp;', '&') ?? '';
  const second = await read(app, next);
  t.equal(second.match(/class="question-row"/g)?.length, 1);
  t.match(second, 'First page');
});
