import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Test } from 'tap';
import { startApp, type TestApp } from '../help/app.js';
import { makeTestFolder, removeTestFolder } from '../help/own-stores.js';
import {
  promisedOutput,
  readDocument,
  readFenced,
  readMarked,
  runBash,
  shapeOf,
} from '../help/readme.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** Runs the commands of the tutorial as a newcomer pastes them. */

const tutorial = readDocument('docs/tutorials/first-prediction.md');
const [set_up = '', ...steps] = readFenced(readMarked(tutorial, 'first-prediction'), 'bash');

/** The environment of a newcomer's shell after `npm start`. */
const shellOf = (t: Test, app: TestApp): Record<string, string> => {
  const folder = makeTestFolder();
  t.teardown(() => removeTestFolder(folder));
  writeFileSync(path.join(folder, 'admin-key'), `${app.admin_key}\n`);
  return { BASE: app.url, DATA_DIR: folder };
};

const shapes = (lines: readonly string[]): readonly string[] => lines.map(shapeOf);

const app = await startApp(t);

t.test('the first prediction takes six curl commands', async (t) => {
  const commands = steps.map((code) => code.match(/(^|\$\()curl /gm)?.length ?? 0);
  t.same(commands, [1, 1, 1, 1, 1, 1]);
});

t.test('a step that is refused prints the refusal, and nothing after it runs', async (t) => {
  const env = shellOf(t, app);
  const breakings: readonly (readonly [string, string, RegExp])[] = [
    ['\\"model\\"', '\\"mode\\"', /MODEL_REQUIRED/],
    ['correct horse battery', 'short', /INVALID_REQUEST/],
    ['\\"token\\":\\"$CODE', '\\"token\\":\\"x$CODE', /status: 4\d\d/],
    ['Bearer $TOKEN', 'Bearer x$TOKEN', /status: 401/],
    ['"technology"', '"alchemy"', /status: 400/],
    ['EVIDENCE:', 'GUESS:', /REASONING_MISSING_SECTIONS/],
  ];
  const script = [set_up, ...steps, 'echo the end'].join('\n');
  for (const [right, wrong, refusal] of breakings) {
    t.ok(script.includes(right), right);
    const ran = await runBash(script.replace(right, wrong), env);
    t.equal(ran.code, 1, wrong);
    t.match(ran.errors, refusal, wrong);
    t.notMatch(ran.lines, ['the end']);
    t.notMatch(ran.lines, [/points/]);
  }
  t.equal((await app.sql`select from predictions`).length, 0);
  const away = await runBash(script, { ...env, BASE: 'http://127.0.0.1:1' });
  t.equal(away.code, 1);
  t.match(away.errors, /curl: \(7\)[\s\S]*No answer came/);
});

t.test('the six commands work as they stand, and print what they promise', async (t) => {
  const env = shellOf(t, app);
  const script = [set_up, ...steps, 'echo "$QUESTION"'].join('\n');
  const ran = await runBash(script, env);
  t.equal(ran.errors, '');
  t.equal(ran.code, 0);
  const question_id = ran.lines.at(-1) ?? '';
  t.same(shapes(ran.lines.slice(0, -1)), shapes(steps.flatMap(promisedOutput)));

  const rows = await app.sql`select question_id, confidence from predictions`;
  t.same([...rows], [{ question_id, confidence: 8_000 }]);

  await until('the consensus', async () => {
    const { body } = await app.call('GET', `/api/questions/${question_id}/consensus`);
    return body.total_predictions === 1;
  });
  const [look = ''] = readFenced(readMarked(tutorial, 'look'), 'bash');
  const looked = await runBash(`${set_up}\n${look}`, { ...env, QUESTION: question_id });
  t.equal(looked.errors, '');
  t.same(looked.lines, promisedOutput(look));
});

t.test('the mail is picked by its address', async (t) => {
  const other = `-d '{"email":"other@people.dev","password":"correct horse battery"}'`;
  const later = `--next -sS -w '\\n' ${app.url}/api/auth/signup -H "$JSON" ${other} --next`;
  const [register = '', sign_up = '', verify = '', link = ''] = steps;
  const script = [set_up, register, sign_up.replace('--next', later), verify, link].join('\n');
  t.match(script, 'other@people.dev');
  const ran = await runBash(script, shellOf(t, app));
  t.equal(ran.errors, '');
  t.match(ran.lines.at(-1), /is linked and can predict now/, 'the code was the right one');
});
