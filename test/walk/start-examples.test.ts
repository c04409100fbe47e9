import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Test } from 'tap';
import { npm_package, pip_package } from '../../src/features/docs/downloads.js';
import { startApp, type TestApp } from '../help/app.js';
import { project_root } from '../help/own-stores.js';
import { python, withoutPython } from '../help/python.js';
import { runBash, runModule } from '../help/readme.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';

/** Runs the examples of `/docs`, as the page shows them. */

const examples = path.join(project_root, 'examples', 'start');

/** An example with the address of the forum, as the page shows it. */
const readExample = (file: string, { url }: TestApp): string =>
  readFileSync(path.join(examples, file), 'utf8').replaceAll('http://127.0.0.1:8080', url);

/** A forum with a question and a linked agent. */
const openForum = async (t: Test) => {
  const app = await startApp(t);
  const question_id = await makeOpenQuestion(app);
  const { key } = await makeAgent(app, { human: await makeHuman(app) });
  return { app, question_id, key };
};

const countAgents = async ({ sql }: TestApp): Promise<number> =>
  (await sql`select from agents where name like 'my-agent-%'`).length;

const checked = /"dry_run":true|'dry_run': True|dry_run: true/;

t.test('curl: registers, lists questions, and checks a forecast', async (t) => {
  const { app, question_id, key } = await openForum(t);
  const script = readExample('curl.sh', app)
    .replace('API_KEY=sk_…', `API_KEY=${key}; echo`)
    .replace('QUESTION_ID=…', `QUESTION_ID=${question_id}; echo`);
  const ran = await runBash(script, {});
  t.equal(ran.errors, '');
  const [registered = '', listed = '', forecast = ''] = ran.lines;
  t.match(registered, /"api_key":"sk_.*"link_url":"http/);
  t.match(listed, question_id);
  t.match(forecast, checked);
  t.equal(await countAgents(app), 1);
  t.equal((await app.sql`select from predictions`).length, 0, 'nothing is stored');
});

t.test('JavaScript: registers without a key, and checks forecasts with one', async (t) => {
  const { app, key } = await openForum(t);
  const code = readExample('agent.mjs', app);
  const client = path.join(project_root, 'clients', 'typescript');
  const first = runModule(code, {}, client);
  t.equal(await first.ended, 0);
  t.match(first.output(), /pastes the key: http.*\nThen run this program again with API_KEY=sk_/);
  t.equal(await countAgents(app), 1);
  const second = runModule(code, { API_KEY: key }, client);
  t.equal(await second.ended, 0);
  t.match(second.output(), /^Will the reading room /);
  t.match(second.output(), checked);
  t.equal((await app.sql`select from predictions`).length, 0, 'nothing is stored');
});

t.test('Python: the same', { skip: withoutPython() }, async (t) => {
  const { app, key } = await openForum(t);
  const code = readExample('agent.py', app);
  const PYTHONPATH = path.join(project_root, 'clients', 'python');
  const script = `${python} - <<'END'\n${code}\nEND`;
  const first = await runBash(script, { PYTHONPATH });
  t.equal(first.errors, '');
  t.match(first.lines, [/pastes the key: http/, /^Then run this program again with API_KEY=sk_/]);
  t.equal(await countAgents(app), 1);
  const second = await runBash(script, { PYTHONPATH, API_KEY: key });
  t.equal(second.errors, '');
  t.match(second.lines.join('\n'), /^Will the reading room /);
  t.match(second.lines.join('\n'), checked);
});

t.test('they name the packages that the forum serves', async (t) => {
  t.match(readFileSync(path.join(examples, 'agent.py'), 'utf8'), `8080${pip_package}`);
  t.match(readFileSync(path.join(examples, 'agent.mjs'), 'utf8'), `8080${npm_package}`);
  t.match(readFileSync(path.join(project_root, 'README.md'), 'utf8'), `$BASE${npm_package}`);
});
