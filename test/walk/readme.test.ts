import { createHmac } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Test } from 'tap';
import { Agent, fetch as fetchBy } from 'undici';
import { keepDevCa } from '../../src/process/embedded/dev-ca.js';
import { pickPort } from '../../src/process/embedded/processes.js';
import { startApp } from '../help/app.js';
import { project_root } from '../help/own-stores.js';
import {
  promisedOutput,
  readDocument,
  readFenced,
  readMarked,
  readSection,
  runBash,
  runModule,
  shapeOf,
} from '../help/readme.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

const first_prediction = readDocument('docs/tutorials/first-prediction.md');
const [set_up = ''] = readFenced(readMarked(first_prediction, 'first-prediction'), 'bash');

/** The folder where a program finds the client library by name. */
const client_package = path.join(project_root, 'clients', 'typescript');

const makeFolder = (t: Test): string => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pf-readme-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
};

const shapes = (lines: readonly string[]): readonly string[] => lines.map(shapeOf);

const app = await startApp(t);

t.test('the widget of the documents is as high as oEmbed says, with five families', async (t) => {
  const id = await makeOpenQuestion(app);
  const human = await makeHuman(app);
  for (const model of ['gpt-5', 'claude-sonnet-4', 'gemini-3', 'grok-4', 'qwen3']) {
    const { key } = await makeAgent(app, { human, model });
    const body = { prediction: true, confidence: 70, reasoning: makeReasoning() };
    const placed = await app.call('POST', `/api/questions/${id}/predict`, { key, body });
    t.equal(placed.status, 201);
  }
  const [snippet = ''] = readFenced(
    readSection(readDocument('docs/how-to/embedding.md'), '## Embedding a question'),
    'html',
  );
  const address = encodeURIComponent(`${app.url}/embed/${id}`);
  const body = await until('all are counted', async () => {
    const consensus = await app.call('GET', `/api/questions/${id}/consensus`);
    if (consensus.body.total_predictions < 5) return undefined;
    return (await app.call('GET', `/oembed?url=${address}`)).body;
  });
  const heightIn = (html: string): string | undefined => /height="(\d+)"/.exec(html)?.[1];
  t.equal(heightIn(snippet), String(body.height));
  t.equal(heightIn(body.html), String(body.height));
});

t.test('the listener of the documents prints what happens', async (t) => {
  const app = await startApp(t);
  const [code = ''] = readFenced(
    readSection(readDocument('docs/how-to/follow-events.md'), '## Listening on the socket'),
    'js',
  );
  const listener = runModule(code, { BASE: app.url });
  t.teardown(() => listener.stop());
  await until('the subscription', () => /^subscribed$/m.test(listener.output()));
  const question_id = await makeOpenQuestion(app);
  const line = await until('the event', () => /^event 1 .*$/m.exec(listener.output())?.[0]);
  t.match(line, /^event 1 question\.created/);
  await until('its data', () => listener.output().includes(question_id));

  const wrong = runModule(code.replace("'all'", "'nothing'"), { BASE: app.url });
  t.teardown(() => wrong.stop());
  t.equal(await wrong.ended, 1);
  t.match(wrong.output(), /Error: \{"op":"error".*topic/i);
});

t.test('the client library as documented comments, and follows the question', async (t) => {
  const app = await startApp(t);
  const [code = ''] = readFenced(readDocument('docs/how-to/clients.md'), 'js');
  t.equal(code.trimEnd().split('\n').length, 15);
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  const question_id = await makeOpenQuestion(app);
  const program = runModule(code, { BASE: app.url, KEY: agent.key }, client_package);
  t.teardown(() => program.stop());
  await until('its comment', () => / comment\.created$/m.test(program.output()));
  t.match(
    program.output(),
    /^Will the reading room .* commented\n1 question\.created\n2 comment\.created\n$/,
  );
  const rows = await app.sql`select question_id, agent_id from comments`;
  t.same([...rows], [{ question_id, agent_id: agent.id }]);
});

t.test('the documented client continues after a restart, without a repeat', async (t) => {
  const app = await startApp(t);
  const [, code = ''] = readFenced(readDocument('docs/how-to/clients.md'), 'js');
  const folder = makeFolder(t);
  mkdirSync(path.join(folder, 'node_modules'));
  symlinkSync(client_package, path.join(folder, 'node_modules', 'prediction-forum-client'));
  writeFileSync(path.join(folder, 'package.json'), '{}');
  const run = async (last: string): Promise<string> => {
    const program = runModule(code, { BASE: app.url }, folder);
    t.teardown(() => program.stop());
    await until('the event is stored', () => {
      const file = path.join(folder, 'state.json');
      return existsSync(file) && readFileSync(file, 'utf8') === `{"after":${last}}`;
    });
    program.stop();
    await program.ended;
    return program.output();
  };
  const first = await makeOpenQuestion(app);
  t.equal(await run('1'), `1 question.created ${first}\n`);
  const second = await makeOpenQuestion(app);
  t.equal(await run('2'), `2 question.created ${second}\n`, 'the first one is not handled again');
});

t.test('the documented client ends with what was refused', async (t) => {
  const [code = ''] = readFenced(readDocument('docs/how-to/clients.md'), 'js');
  const agent = await makeAgent(app);
  await makeOpenQuestion(app);
  const program = runModule(code, { BASE: app.url, KEY: agent.key }, client_package);
  t.teardown(() => program.stop());
  t.equal(await program.ended, 1);
  t.match(program.output(), /Refused: [\s\S]*AGENT_NOT_LINKED/);
  t.notMatch(program.output(), 'commented\n');
});

const posted = '{"event":"prediction.placed"}';

interface Post {
  readonly port: number;
  readonly ca_file: string;
  readonly headers: Readonly<Record<string, string>>;
}

const post = async ({ port, ca_file, headers }: Post): Promise<number> => {
  const dispatcher = new Agent({ connect: { ca: readFileSync(ca_file, 'utf8') } });
  const options = { method: 'POST', headers, body: posted, dispatcher };
  const { status } = await fetchBy(`https://127.0.0.1:${port}/hook`, options);
  await dispatcher.destroy();
  return status;
};

t.test('the documented receiver takes what is genuine and nothing else', async (t) => {
  const folder = makeFolder(t);
  const { ca_file } = await keepDevCa(folder);
  const app = await startApp(t, {
    env: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8,::1/128', WEBHOOK_CA_FILE: ca_file },
  });
  const port = await pickPort();
  const section = readSection(
    readDocument('docs/how-to/webhooks.md'),
    '## Receiving webhooks',
  ).replaceAll('10443', String(port));
  const [create = '', test = ''] = readFenced(section, 'bash');
  const [code = ''] = readFenced(section, 'js');
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  const env = { BASE: app.url, KEY: agent.key };

  const made = await runBash(`${set_up}\n${create}\nprintf '%s\\n' "$SECRET" "$HOOK"`, env);
  t.equal(made.errors, '');
  const [SECRET = '', HOOK = ''] = made.lines;
  t.match(SECRET, /^[0-9a-f]{64}$/);
  const receiver = runModule(code, { DATA_DIR: folder, SECRET });
  t.teardown(() => receiver.stop());
  await until('the receiver', () => receiver.output().includes('ready'));

  const tested = await runBash(`${set_up}\n${test}`, { ...env, HOOK });
  t.equal(tested.errors, '');
  t.same(shapes(tested.lines), shapes(promisedOutput(test)));
  const question_id = await makeOpenQuestion(app);
  await until('the delivery', () =>
    new RegExp(`^genuine .*question\\.created.*${question_id}`, 'm').test(receiver.output()),
  );

  const headersOf = (signature: string, age_s = 0) => {
    const time = Math.floor(Date.now() / 1_000) - age_s;
    const hmac = createHmac('sha256', SECRET).update(`e1.${time}.${posted}`).digest('base64');
    const made = signature.replace('RIGHT', `v1,${hmac}`);
    return { 'webhook-id': 'e1', 'webhook-timestamp': `${time}`, 'webhook-signature': made };
  };
  t.equal(await post({ port, ca_file, headers: headersOf('RIGHT') }), 204);
  t.equal(await post({ port, ca_file, headers: headersOf('v1,other RIGHT') }), 204, 'two of them');
  for (const signature of [`v1,${'A'.repeat(43)}=`, 'v1,', 'nonsense']) {
    t.equal(await post({ port, ca_file, headers: headersOf(signature) }), 401);
  }
  t.equal(await post({ port, ca_file, headers: headersOf('RIGHT', 400) }), 401, 'an old one');
  t.equal(await post({ port, ca_file, headers: {} }), 401, 'no signature at all');
  await until('all five are reported', () => receiver.output().match(/^forged /gm)?.length === 5);
});
