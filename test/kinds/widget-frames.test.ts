import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { no_limits, startApp } from '../help/app.js';
import { type BrowserPage, findBarriers, openBrowser, without_chromium } from '../help/browser.js';
import { act } from '../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { placeOrThrow } from './world.js';

/**
 * Widgets in frames on another site, in a browser. Each case was written from the documentation
 * alone.
 */

if (without_chromium) {
  t.plan(0, without_chromium);
  process.exit(0);
}

const app = await startApp(t, { roles: ['api', 'relay'], env: no_limits });
const human = await makeHuman(app);
const browser = await openBrowser(t);
const forecast = async (id: string, confidence: number, model = 'gpt-5') =>
  placeOrThrow(app, await makeAgent(app, { human, model }), id, { prediction: true, confidence });
const makeForecast = async (): Promise<string> => {
  const id = await makeOpenQuestion(app);
  await forecast(id, 80);
  return id;
};

const frameOf = (address: string, attributes = 'width="600"'): string =>
  `<iframe sandbox="allow-scripts" src="${app.url}${address}" ${attributes}></iframe>`;

/** Opens a page of another site with these frames. The page records their messages. */
const openHost = async (body: string): Promise<BrowserPage> => {
  const script = `<script>
    const heard = [];
    addEventListener('message', ({ origin, source, data }) => {
      const frames = [...document.querySelectorAll('iframe')];
      heard.push({ origin, frame: frames.findIndex((one) => one.contentWindow === source), ...data });
    });
  </script>`;
  const host = createServer((_, answer) => {
    answer.setHeader('content-type', 'text/html').end(`<!doctype html><body>${script}${body}`);
  }).listen(0, '127.0.0.1');
  t.teardown(() => {
    host.close();
    host.closeAllConnections();
  });
  await until('the host page', () => host.listening);
  const { port } = host.address() as AddressInfo;
  return browser.open(`http://127.0.0.1:${port}/`, { width: 1_000, height: 900 });
};

interface Heard {
  readonly origin: string;
  readonly frame: number;
  readonly type: string;
  readonly question_id?: string;
  readonly height: number;
}

const heardOf = async (page: BrowserPage, frame = 0): Promise<readonly Heard[]> =>
  (await page.evaluate<readonly Heard[]>('heard')).filter((one) => one.frame === frame);
const heightOf = async (page: BrowserPage, frame = 0): Promise<number> =>
  (await heardOf(page, frame)).at(-1)?.height ?? 0;
const untilHeard = (page: BrowserPage, frame = 0): Promise<number> =>
  until('a height', () => heightOf(page, frame));
const setWidth = (page: BrowserPage, width: number) =>
  page.evaluate(`document.querySelector('iframe').width = ${width}`);

t.test('a frame without an origin tells its height, and nothing fails in it', async (t) => {
  const id = await makeForecast();
  const page = await openHost(frameOf(`/embed/${id}`));
  await untilHeard(page);
  const [first] = await heardOf(page);
  t.match(first, { origin: 'null', type: 'prediction-forum:height', question_id: id });
  t.ok(Number.isInteger(first?.height) && Number(first?.height) > 100);
  t.same(page.mistakes, []);
});

t.test('the height is that of the content at every width', async (t) => {
  const id = await makeForecast();
  const page = await openHost(frameOf(`/embed/${id}`));
  await untilHeard(page);
  const [frame] = page.page.frames().slice(1);
  for (const width of [250, 320, 480, 600, 900]) {
    await setWidth(page, width);
    await until(`the height at ${width}`, async () => {
      const content = await frame?.evaluate('document.body.getBoundingClientRect().height');
      const inner = await frame?.evaluate('innerWidth');
      return inner === width && Math.abs((await heightOf(page)) - Number(content)) <= 1;
    });
  }
  t.ok((await heightOf(page)) > 100);
});

t.test('it shrinks as well as it grows', async (t) => {
  const page = await openHost(frameOf(`/embed/${await makeForecast()}`));
  const wide = await untilHeard(page);
  await setWidth(page, 280);
  await until('it is higher', async () => (await heightOf(page)) > wide);
  await setWidth(page, 600);
  await until('it is as before', async () => (await heightOf(page)) === wide);
  t.pass();
});

t.test('several frames each tell their own', async (t) => {
  const [one, other] = [await makeForecast(), await makeForecast()];
  const frames = [`/embed/${one}`, `/embed/${other}`, `/embed/${one}?view=compact`];
  const page = await openHost(frames.map((path) => frameOf(path)).join(''));
  for (const [n, id] of [one, other, one].entries()) {
    await untilHeard(page, n);
    for (const { question_id } of await heardOf(page, n)) t.equal(question_id, id);
  }
  t.ok((await heightOf(page, 2)) < (await heightOf(page, 0)));
});

t.test('it follows forecasts and the outcome, and is as high as they need', async (t) => {
  const id = await makeForecast();
  const page = await openHost(frameOf(`/embed/${id}`));
  const before = await untilHeard(page);
  await forecast(id, 60, 'claude-opus-4');
  await until('families are listed', async () => (await heightOf(page)) > before);
  const open = await heightOf(page);
  await act(app, id, 'close');
  await act(app, id, 'resolve', { outcome: true, resolution_note: 'As reported.' });
  const [frame] = page.page.frames().slice(1);
  const figure = `document.querySelector('.figure')?.textContent`;
  await until('the outcome', async () => (await frame?.evaluate(figure)) === 'Yes');
  await until('another height', async () => (await heightOf(page)) !== open);
  t.same(page.mistakes, []);
});

t.test('messages of the other page change nothing', async (t) => {
  const id = await makeForecast();
  const page = await openHost(frameOf(`/embed/${id}`));
  await untilHeard(page);
  await page.evaluate(`
    for (const text of [{ type: 'prediction-forum:height', height: 1 }, null, 'x'.repeat(1e6)]) {
      document.querySelector('iframe').contentWindow.postMessage(text, '*');
    }`);
  await forecast(id, 60);
  const [frame] = page.page.frames().slice(1);
  const figure = `document.querySelector('.figure')?.textContent`;
  await until('it still follows', async () => (await frame?.evaluate(figure)) === '71%');
  t.same(page.mistakes, []);
});

t.test('without scripts it shows the same, and says nothing', async (t) => {
  const id = await makeForecast();
  const page = await openHost(`<iframe sandbox="" src="${app.url}/embed/${id}"></iframe>`);
  const [frame] = page.page.frames().slice(1);
  const figure = await frame?.locator('.figure').textContent();
  t.equal(figure, '80%');
  t.same(await page.evaluate('heard'), []);
});

t.test('what is hidden tells its height when it is shown', async (t) => {
  const frame = frameOf(`/embed/${await makeForecast()}`);
  const page = await openHost(`<div id="tab" style="display:none">${frame}</div>`);
  await page.evaluate(`document.getElementById('tab').style.display = ''`);
  await until('a real height', async () => (await heightOf(page)) >= 100);
  t.ok((await heightOf(page)) >= 100);
});

t.test('what is not there is a small page in the frame', async (t) => {
  const draft = await makeOpenQuestion(app, { publish: false });
  for (const id of ['00000000-0000-7000-8000-000000000000', draft]) {
    const page = await openHost(frameOf(`/embed/${id}`));
    const [frame] = page.page.frames().slice(1);
    t.equal(await frame?.locator('h1').textContent(), 'Question not found');
    t.same(
      page.mistakes.filter((text) => !text.includes('404')),
      [],
    );
  }
});

t.test('a leaderboard tells its height too', async (t) => {
  const page = await openHost(frameOf('/embed/leaderboard'));
  await untilHeard(page);
  const [first] = await heardOf(page);
  t.match(first, { origin: 'null', type: 'prediction-forum:height' });
  t.equal(first?.question_id, undefined);
});

t.test('colours follow the reader, and are readable in both themes', async (t) => {
  const id = await makeForecast();
  const backgrounds = new Set<string>();
  for (const colorScheme of ['dark', 'light'] as const) {
    const page = await browser.visit({ colorScheme });
    await page.page.goto(`${app.url}/embed/${id}?theme=auto`);
    t.same(await findBarriers(page, 'colours'), [], colorScheme);
    backgrounds.add(await page.evaluate('getComputedStyle(document.body).color'));
  }
  t.equal(backgrounds.size, 2);
});

t.test('it asks no other host for anything', async (t) => {
  const page = await browser.open(`${app.url}/embed/${await makeForecast()}`);
  await until('it is live', () =>
    page.evaluate(`document.documentElement.classList.contains('live')`),
  );
  const hosts = new Set(page.requests.map((address) => new URL(address).host));
  t.same([...hosts], [new URL(app.url).host]);
});
