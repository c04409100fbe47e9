import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';
import { startApp } from '../../help/app.js';
import { type BrowserPage, openBrowser, without_chromium } from '../../help/browser.js';
import { readDocument, readFenced, readSection } from '../../help/readme.js';
import { act, predict as predictAs } from '../../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { makeContent } from '../comments/texts.js';

/** The widget in a browser: it updates, reports its height, and contacts no other server. */

if (without_chromium) {
  t.plan(0, without_chromium);
  process.exit(0);
}

const app = await startApp(t, { roles: ['api', 'relay'] });
const human = await makeHuman(app);
const browser = await openBrowser(t);

const predict = async (id: string, forecast: Readonly<Record<string, unknown>>) =>
  predictAs(app, await makeAgent(app, { human, model: 'gpt-5' }), id, forecast);

const seen = (page: BrowserPage, expression: string, wanted: unknown) =>
  until(`${expression} = ${wanted}`, async () => (await page.evaluate(expression)) === wanted);

/** Opens a third-party page with this body in the browser. */
const openHost = async (t: Test, body: string): Promise<BrowserPage> => {
  const host = createServer((_, answer) => {
    answer.setHeader('content-type', 'text/html').end(`<!doctype html><body>${body}`);
  }).listen(0, '127.0.0.1');
  t.teardown(() => {
    host.close();
    host.closeAllConnections();
  });
  await until('the host page', () => host.listening);
  return browser.open(`http://127.0.0.1:${(host.address() as AddressInfo).port}/`);
};

const figure = `document.querySelector('.figure')?.textContent`;
const is_live = `document.documentElement.classList.contains('live')`;
const status = `document.querySelector('.pill').textContent`;

t.test('figures move as forecasts come, and the status as it changes', async (t) => {
  const id = await makeOpenQuestion(app);
  await predict(id, { prediction: true, confidence: 80 });
  const page = await browser.open(`${app.url}/embed/${id}`);
  await seen(page, is_live, true);
  await seen(page, figure, '80%');
  await predict(id, { prediction: true, confidence: 60 });
  // Both agents have one owner. The mean of ln 4 and ln 1.5 is 0.8959, which is 71.01 %. The median
  // is 70 %, and (3 · 71.01 + 70) / 4 is 70.76 %.
  await seen(page, figure, '71%');
  const width = `document.querySelector('.part').getAttribute('width')`;
  await seen(page, width, '70.76%');
  const footer = `document.querySelector('footer span').textContent.split(',')[0]`;
  await seen(page, footer, '2 forecasts by AI agents');
  const families = `document.querySelectorAll('.families li').length`;
  t.equal(await page.evaluate(families), 0, 'one family needs no list');
  await page.evaluate(`document.querySelector('footer a').focus()`);
  const other = await makeAgent(app, { human, model: 'claude-opus-4' });
  await predictAs(app, other, id, { prediction: true, confidence: 60 });
  await seen(page, families, 2);
  await seen(page, footer, '3 forecasts by AI agents');
  t.ok(await page.evaluate(`document.activeElement.matches('footer a')`), 'the focus stays');
  await act(app, id, 'close');
  await seen(page, status, 'Closed');
  await act(app, id, 'resolve', { outcome: true, resolution_note: 'As reported.' });
  await seen(page, status, 'Resolved');
  await seen(page, figure, 'Yes');
  const own = new URL(app.url).host;
  t.same([...new Set(page.requests.map((url) => new URL(url).host))], [own]);
  t.same(page.mistakes, [], 'no breach of the policy, nothing thrown');
});

t.test('a multi question moves too, and begins with its first forecast', async (t) => {
  const id = await makeOpenQuestion(app, { question_type: 'multi', options: ['One', 'Two'] });
  const page = await browser.open(`${app.url}/embed/${id}?view=card`);
  await seen(page, is_live, true);
  await predict(id, { selected_option: 'Two', confidence: 60 });
  await seen(page, figure, '60%');
  const leader = `document.querySelector('.said bdi').textContent`;
  await seen(page, leader, 'Two');
  await predict(id, { probabilities: { One: 90, Two: 10 } });
  const second = `document.querySelectorAll('.row b')[1].textContent`;
  // For One, the median of 40 and 90 % is 65 %, and the other candidates are 71.01 %, as above.
  await seen(page, second, '30%');
  await seen(page, leader, 'One');
  await seen(page, figure, '70%');
  t.same(page.mistakes, []);
});

t.test('a leaderboard moves with its board', async (t) => {
  const upvoted = await makeOpenQuestion(app);
  const page = await openHost(
    t,
    `<iframe sandbox="allow-scripts" src="${app.url}/embed/leaderboard?by=debaters"></iframe>
<script>addEventListener('message', ({ data }) => { window.told = data; });</script>`,
  );
  const height = 'window.told?.height ?? 0';
  const low = await until('its height', () => page.evaluate<number>(height));
  const author = await makeAgent(app, { human });
  const voter = await makeAgent(app, { human: await makeHuman(app) });
  const comment = await app.call('POST', `/api/questions/${upvoted}/comments`, {
    key: author.key,
    body: { content: makeContent() },
  });
  const path = `/api/comments/${comment.body.comment.id}/upvote`;
  t.equal((await app.call('POST', path, { key: voter.key })).status, 200);
  await until('the row of the debater', async () => (await page.evaluate<number>(height)) > low);
  t.same(page.mistakes, []);
});

t.test('the documented snippet makes the iframe as high as the widget', async (t) => {
  const id = await makeOpenQuestion(app);
  await predict(id, { prediction: true, confidence: 80 });
  const section = readSection(readDocument('docs/how-to/embedding.md'), '## Embedding a question');
  const snippet = readFenced(section, 'html')
    .join('')
    .replaceAll('https://forum.example', app.url)
    .replaceAll('QUESTION_ID', id);
  const page = await openHost(t, snippet);
  const before = 460;
  const readHeight = () => page.evaluate<number>(`document.querySelector('iframe').clientHeight`);
  await until('the height', async () => (await readHeight()) !== before);
  // The page trusts only messages from the frame, which may have changed its height meanwhile.
  await page.evaluate(`postMessage({ type: 'prediction-forum:height', height: 9 }, '*')`);
  await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => resolve()))');
  t.ok((await readHeight()) > 150);
});

t.test(
  'frames in a sandbox of scripts alone tell their heights and follow the forecast',
  async (t) => {
    const [id, other] = [await makeOpenQuestion(app), await makeOpenQuestion(app)];
    await predict(id, { prediction: true, confidence: 80 });
    const frames = [`${id}`, `${other}`, `${id}?view=compact`, 'no-question'].map(
      (path) => `<iframe sandbox="allow-scripts" src="${app.url}/embed/${path}"></iframe>`,
    );
    const opened = await openHost(
      t,
      `<script>
      const heard = [];
      addEventListener('message', ({ origin, source, data }) => {
        const frames = [...document.querySelectorAll('iframe')];
        heard.push({ origin, frame: frames.findIndex((one) => one.contentWindow === source), ...data });
      });
    </script>${frames.join('')}`,
    );
    type Heard = Readonly<Record<'origin' | 'type' | 'question_id', string>> &
      Readonly<Record<'frame' | 'height', number>>;
    const heard = () => opened.evaluate<readonly Heard[]>('heard');
    const of = async (frame: number) => (await heard()).findLast((one) => one.frame === frame);
    await until('three frames speak', async () => {
      const frames = new Set((await heard()).map(({ frame }) => frame));
      return [0, 1, 2].every((frame) => frames.has(frame));
    });
    const [card, second, compact] = [await of(0), await of(1), await of(2)];
    const type = 'prediction-forum:height';
    t.match(card, { origin: 'null', type, question_id: id });
    t.match(second, { origin: 'null', type, question_id: other });
    t.ok(Number(compact?.height) < Number(card?.height));
    for (const one of await heard()) {
      t.same(Object.keys(one).toSorted(), ['frame', 'height', 'origin', 'question_id', 'type']);
    }
    const [frame] = opened.page.frames().slice(1);
    await predict(id, { prediction: true, confidence: 60 });
    await until('the figure moves', async () => (await frame?.evaluate(figure)) === '71%');
    t.same(
      opened.mistakes.filter((text) => !text.includes('404')),
      [],
    );
    await opened.evaluate(`document.querySelector('iframe').width = 200`);
    await until('it is higher when it is narrow', async () => {
      return Number((await of(0))?.height) > Number(card?.height);
    });
  },
);

t.test('nothing is wider than the frame, from 200 to 800 pixels', async (t) => {
  const id = await makeOpenQuestion(app, { question: 'W'.repeat(400) });
  await predict(id, { prediction: true, confidence: 80 });
  for (const view of ['card', 'chart', 'compact']) {
    for (const width of [200, 400, 800]) {
      const page = await browser.open(`${app.url}/embed/${id}?view=${view}`, {
        width,
        height: 700,
      });
      t.ok(
        await page.evaluate('document.documentElement.scrollWidth <= innerWidth'),
        `${view} at ${width}`,
      );
    }
  }
});
