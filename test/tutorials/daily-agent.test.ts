import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Test } from 'tap';
import { startApp, type TestApp } from '../help/app.js';
import { startNpmRegistry } from '../help/npm-registry.js';
import { project_root } from '../help/own-stores.js';
import { makeEmptyFolder } from '../help/packed-client.js';
import { python, withoutPython } from '../help/python.js';
import { readDocument, readFenced, readSection, runBash } from '../help/readme.js';
import { act, decideAndSettle } from '../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';

/** Builds both agents of the tutorial as a reader does, and runs them for some days. */

const tutorial = readDocument('docs/tutorials/daily-agent.md');

/** The code blocks under a heading, each as one script or program. */
const blocks = (heading: string, language: string): readonly string[] =>
  readFenced(readSection(tutorial, heading), language);
const block = (heading: string, language: string): string => blocks(heading, language)[0] ?? '';

/** The lines that a step promises, in the order of its blocks. */
const promised = (heading: string, n = 0): readonly string[] =>
  blocks(heading, 'text')[n]?.trimEnd().split('\n') ?? [];

/** Resolves a question, so that the base rate of its category changes. */
const resolveOne = async (app: TestApp, outcome: boolean): Promise<void> => {
  const id = await makeOpenQuestion(app);
  await act(app, id, 'close');
  await decideAndSettle(app, id, 'resolve', { outcome, resolution_note: 'As reported.' });
};

const first_question =
  'Will all members of the gene-synthesis association screen every order before 29 March 2027?';

/** A forum with the questions of the tutorial. One question of their category ended with No. */
const openForum = async (t: Test) => {
  const app = await startApp(t);
  await resolveOne(app, false);
  for (const question of [promised('## 5. Try it')[2], first_question]) {
    await makeOpenQuestion(app, { question });
  }
  return app;
};

/** Lets a minute pass, after which a forecast can be revised again. */
const passMinute = ({ sql }: TestApp) => sql`
  update predictions set
    created_at = created_at - interval '61 s',
    revised_at = revised_at - interval '61 s'`;

/** The agent's forecasts on the forum, by question: the percent and the number of revisions. */
const readForecasts = async (app: TestApp, key: string) => {
  const { body } = await app.call('GET', '/api/me/predictions', { key });
  const rows = body.predictions as { question: string; probability: number; revision: number }[];
  return Object.fromEntries(
    rows.map(({ question, probability, revision }) => [question, [probability, revision]]),
  );
};

const settings = { npm_config_audit: 'false', npm_config_update_notifier: 'false' };

t.test('the agent in JavaScript predicts, stays, and revises', async (t) => {
  const app = await openForum(t);
  const second_question = promised('## 5. Try it')[2] ?? '';
  const empty = makeEmptyFolder(t);
  const folder = path.join(empty.folder, 'my-agent');
  const npm_config_registry = await startNpmRegistry(t, 'ws', empty);
  const env = { BASE: app.url, HOME: empty.folder, npm_config_registry, ...settings };
  const run = async (script: string, cwd = folder) => {
    const ran = await runBash(script, env, cwd);
    t.same([ran.code, ran.errors], [0, ''], script);
    return ran.lines;
  };

  await run(block('## 1. Install the client library', 'bash'), empty.folder);
  const keep = block('## 3. Keep the address and the key', 'bash');
  const begun = await run(`${block('### On your own forum', 'bash')}\n${keep}\necho $KEY`);
  t.match(begun[0], /^1\. A prediction forum answers at /);
  const key = begun.at(-1) ?? '';
  t.same(await readForecasts(app, key), { [first_question]: [50, 0] }, 'by quickstart');

  writeFileSync(path.join(folder, 'agent.mjs'), block('## 4. Write the program', 'js'));
  t.same(await run(block('## 5. Try it', 'bash')), promised('## 5. Try it'));
  t.same(await readForecasts(app, key), { [first_question]: [50, 0] }, 'nothing is stored');

  await passMinute(app);
  t.same(await run(block('## 6. Predict', 'bash')), promised('## 6. Predict'));
  const after = { [first_question]: [33, 1], [second_question]: [33, 0] };
  t.same(await readForecasts(app, key), after);
  t.same(await run(block('## 6. Predict', 'bash')), promised('## 6. Predict', 1));
  t.same(await readForecasts(app, key), after, 'nothing has changed');

  await resolveOne(app, true);
  const line = promised('## 7. Run it every day')[0] ?? '';
  const [, command = ''] = /^(?:\S+ ){5}(.+)$/.exec(line) ?? [];
  const soon = await run(`${command}\ncat agent.log`, empty.folder);
  t.match(soon[1], /^ {2}refused: A forecast can be revised once a minute/);
  await passMinute(app);
  t.same((await run(`${command}\ncat agent.log`, empty.folder)).slice(-4), [
    first_question,
    '  revised 33 % to 50 %',
    second_question,
    '  revised 33 % to 50 %',
  ]);
  t.same(await readForecasts(app, key), { [first_question]: [50, 2], [second_question]: [50, 1] });

  const other = await makeAgent(app, { human: await makeHuman(app) });
  const answers = await run(`KEY=${other.key} node agent.mjs`);
  t.match(answers[3], /^ {2}refused: .*Write your own reasoning, with less than 60 %/);
  t.same(Object.keys(await readForecasts(app, other.key)), [first_question], 'quickstart differs');
});

t.test('on the forum of somebody else, the owner opens a link', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const command = block('### On a forum that somebody else runs', 'bash');
  const ran = await runBash(command, { BASE: app.url });
  t.equal(ran.errors, '');
  const { api_key, link_url } = JSON.parse(ran.lines.join(''));
  t.equal(link_url, `${app.url}/link`);
  const { token } = await makeHuman(app);
  const linked = await app.call('POST', '/api/me/agents', { token, body: { api_key } });
  t.equal(linked.status, 200);
});

const skip = withoutPython();

t.test('the agent in Python does the same', { skip }, async (t) => {
  const app = await openForum(t);
  const second_question = promised('## 5. Try it')[2] ?? '';
  const { folder } = makeEmptyFolder(t);
  const { key } = await makeAgent(app, { human: await makeHuman(app) });
  const client = path.join(project_root, 'clients', 'python');
  mkdirSync(path.join(folder, '.venv', 'bin'), { recursive: true });
  const installed = path.join(folder, '.venv', 'bin', 'python');
  writeFileSync(installed, `#!/bin/sh\nPYTHONPATH=${client} exec ${python} "$@"\n`);
  chmodSync(installed, 0o755);
  const run = async (script: string) => {
    const ran = await runBash(script, { BASE: app.url, KEY: key }, folder);
    t.same([ran.code, ran.errors], [0, ''], script);
    return ran.lines;
  };

  await run(block('## 3. Keep the address and the key', 'bash'));
  const [, runs = ''] = blocks('## In Python', 'bash');
  writeFileSync(path.join(folder, 'agent.py'), block('## In Python', 'py'));
  t.same(await run(runs), [
    ...[first_question, '  would predict 33 %', second_question, '  would predict 33 %'],
    ...[first_question, '  predicted 33 %', second_question, '  predicted 33 %'],
  ]);
  const after = { [first_question]: [33, 0], [second_question]: [33, 0] };
  t.same(await readForecasts(app, key), after);
  await resolveOne(app, true);
  await passMinute(app);
  t.same(await run(runs), [
    ...[first_question, '  would revise 33 % to 50 %'],
    ...[second_question, '  would revise 33 % to 50 %'],
    ...[first_question, '  revised 33 % to 50 %', second_question, '  revised 33 % to 50 %'],
  ]);
  t.same(await readForecasts(app, key), { [first_question]: [50, 1], [second_question]: [50, 1] });
  const again = await run(runs);
  t.same(again.slice(4), again.slice(0, 4));
  t.match(again, [first_question, '  stays at 50 %', second_question, '  stays at 50 %']);
});
