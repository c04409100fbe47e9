import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Test } from 'tap';
import { pickPort } from '../../src/process/embedded/processes.js';
import { startApp } from '../help/app.js';
import { type BrowserPage, openBrowser, without_chromium } from '../help/browser.js';
import { startFaultyProxy } from '../help/faulty-proxy.js';
import { makeTestFolder, removeTestFolder } from '../help/own-stores.js';
import {
  promisedOutput,
  readDocument,
  readFenced,
  readSection,
  runBash,
  shapeOf,
} from '../help/readme.js';
import { predict } from '../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** Opens both pages of the tutorial in a browser, while its commands make forecasts. */

const tutorial = readDocument('docs/tutorials/live-question.md');

const blocks = (heading: string, language: string): readonly string[] =>
  readFenced(readSection(tutorial, heading), language);

const [choose = ''] = blocks('## 1. Choose a question', 'bash');
const [widget = ''] = blocks('## 2. Embed the widget', 'html');
const [serve = ''] = blocks('## 2. Embed the widget', 'bash');
const [first_forecast = ''] = blocks('## 3. See it change', 'bash');
const [own_page = ''] = blocks('## 4. Show the forecast yourself', 'html');
const [second_forecast = ''] = blocks('## 4. Show the forecast yourself', 'bash');

const has_python = spawnSync('python3', ['--version']).status === 0;
const skip = without_chromium || (!has_python && 'there is no python3');

/**
 * Saves a page of the tutorial with the two replacements that it asks for, and serves it as the
 * tutorial says. Returns its address.
 */
const servePage = async (t: Test, html: string, forum: string, question_id: string) => {
  const folder = makeTestFolder();
  const text = html
    .replaceAll('http://127.0.0.1:8080', forum)
    .replaceAll('QUESTION_ID', question_id);
  writeFileSync(path.join(folder, 'page.html'), text);
  // Browsers ask for it, and would report an error.
  writeFileSync(path.join(folder, 'favicon.ico'), '');
  const port = String(await pickPort());
  const server = spawn('bash', ['-c', `exec ${serve.replace('8081', port)}`], {
    cwd: folder,
    stdio: 'ignore',
  });
  const ended = once(server, 'close');
  t.teardown(async () => {
    server.kill('SIGKILL');
    await ended;
    removeTestFolder(folder);
  });
  const url = `http://127.0.0.1:${port}/page.html`;
  await until('the page', () => fetch(url).catch(() => null));
  return url;
};

const app = await startApp(t);
const human = await makeHuman(app);
const browser = skip === false ? await openBrowser(t) : null;
const visit = (url: string): Promise<BrowserPage> => {
  if (browser === null) throw new Error('there is no browser');
  return browser.open(url);
};

/** Runs a quickstart command of the tutorial. Each key file belongs to an agent of this run. */
const quickstart = async (t: Test, command: string, QUESTION: string): Promise<void> => {
  const [, key_file = ''] = /--key-file (\S+)/.exec(command) ?? [];
  const folder = makeTestFolder();
  t.teardown(() => removeTestFolder(folder));
  const ran = await runBash(command.replace(key_file, path.join(folder, key_file)), {
    BASE: app.url,
    QUESTION,
  });
  t.same([ran.code, ran.errors], [0, '']);
  const promised = readFenced(readSection(tutorial, '## 3. See it change'), 'text');
  t.ok(ran.lines.map(shapeOf).includes(shapeOf(promised[0]?.trim() ?? '')));
};

/** A question with one forecast of 80 %. */
const makeQuestion = async (): Promise<string> => {
  const id = await makeOpenQuestion(app);
  const agent = await makeAgent(app, { human });
  await predict(app, agent, id, { prediction: true, confidence: 80 });
  return id;
};

t.test('the id is the one of the newest open yes/no question', async (t) => {
  const id = await makeOpenQuestion(app);
  await makeOpenQuestion(app, { question_type: 'multi', options: ['One', 'Two'] });
  const ran = await runBash(choose, { BASE: app.url });
  t.same([ran.code, ran.errors, ran.lines], [0, '', [id]]);
  t.same(ran.lines.map(shapeOf), promisedOutput(choose).map(shapeOf));
});

t.test('the page with the widget changes when an agent forecasts', { skip }, async (t) => {
  const id = await makeQuestion();
  const { page, mistakes } = await visit(await servePage(t, widget, app.url, id));
  const frame = page.frameLocator('iframe.forecast');
  const figure = () => frame.locator('.figure').textContent();
  const footer = () => frame.locator('footer span').textContent();
  await until('the figure', async () => (await figure()) === '80%');
  t.match(await footer(), /^1 forecast/);
  const height = () => page.locator('iframe.forecast').getAttribute('height');
  await until('the frame is as high as its content', async () => (await height()) !== '480');
  await quickstart(t, first_forecast, id);
  await until('another figure', async () => /^8[1-9]%$/.test((await figure()) ?? ''));
  t.match(await footer(), /^2 forecasts/);
  t.same(mistakes, []);
});

const read = ({ page }: BrowserPage, id: string) => page.locator(`#${id}`).textContent();

t.test('the page of 24 lines changes when an agent forecasts', { skip }, async (t) => {
  const script = own_page.split(/<\/?script.*>\n/)[1] ?? '';
  t.equal(script.trimEnd().split('\n').length, 24);
  const id = await makeQuestion();
  const opened = await visit(await servePage(t, own_page, app.url, id));
  await until('the forecast', async () => (await read(opened, 'forecast')) === '80 %');
  t.equal(await read(opened, 'count'), '1');
  await quickstart(t, second_forecast, id);
  await until('another count', async () => (await read(opened, 'count')) === '2');
  const { body } = await app.call('GET', `/api/questions/${id}/consensus`);
  t.equal(await read(opened, 'forecast'), `${Math.round(body.forecast)} %`);
  t.not(body.forecast, 80);
  t.same(opened.mistakes, []);
});

t.test('it begins without a forecast, and goes on after a lost connection', { skip }, async (t) => {
  const id = await makeOpenQuestion(app);
  const proxy = await startFaultyProxy(t, app.url);
  const opened = await visit(await servePage(t, own_page, proxy.url.replace(/\/$/, ''), id));
  await until('no forecast', async () => (await read(opened, 'forecast')) === '–');
  t.equal(await read(opened, 'count'), '0');
  proxy.cut();
  const agent = await makeAgent(app, { human });
  await predict(app, agent, id, { prediction: true, confidence: 70 });
  await until('the forecast', async () => (await read(opened, 'forecast')) === '70 %');
});

t.test('a question that does not exist is an error in the console', { skip }, async (t) => {
  const opened = await visit(await servePage(t, own_page, app.url, 'nothing'));
  await until('the error', () => opened.mistakes.some((line) => /topic/.test(line)));
  t.equal(await read(opened, 'forecast'), '…');
});
