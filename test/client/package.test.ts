import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { publint } from 'publint';
import type { Test } from 'tap';
import { keepDevCa } from '../../src/process/embedded/dev-ca.js';
import { startApp } from '../help/app.js';
import { project_root } from '../help/own-stores.js';
import { installClient } from '../help/packed-client.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';

/** The library as other programs get it: packed, and installed in an empty folder. */

const run = promisify(execFile);
const folder = await installClient(t);
const installed = path.join(folder, 'node_modules', 'prediction-forum-client', 'dist');

const compilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
  target: 'es2022',
  lib: ['es2023', 'dom'],
  types: [],
  module: 'nodenext',
};

/** Compiles these files next to their sources and returns the compiler's messages. */
const compileFiles = async (
  files: Readonly<Record<string, string>>,
  more: Readonly<Record<string, unknown>> = {},
): Promise<string> => {
  const tsconfig = { compilerOptions: { ...compilerOptions, ...more }, files: Object.keys(files) };
  const all = { ...files, 'tsconfig.json': JSON.stringify(tsconfig) };
  for (const [name, text] of Object.entries(all)) writeFileSync(path.join(folder, name), text);
  const tsc = path.join(project_root, 'node_modules', 'typescript', 'bin', 'tsc');
  const { stdout } = await run(process.execPath, [tsc, '-p', '.'], { cwd: folder }).catch(
    (error: { stdout: string }) => error,
  );
  return stdout;
};

/** Compiles each text as a module of a third-party browser program. Returns errors by module. */
const compile = async (t: Test, texts: readonly string[]): Promise<readonly string[][]> => {
  const said = await compileFiles(
    Object.fromEntries(texts.map((text, n) => [`module-${n}.ts`, text])),
    { noEmit: true },
  );
  const errors = said.split('\n').filter((line) => /error TS/.test(line));
  const known = texts.map((_, n) => errors.filter((line) => line.startsWith(`module-${n}.ts(`)));
  t.equal(known.flat().length, errors.length, said);
  return known;
};

t.test('publint finds nothing wrong with its package.json, and a wrong export', async (t) => {
  const own = path.join(installed, '..');
  const look = async (folder: string) =>
    (await publint({ pkgDir: folder, pack: false, strict: true })).messages;
  t.same(await look(own), []);
  const manifest = readFileSync(path.join(own, 'package.json'), 'utf8');
  const broken = t.testdir({ 'package.json': manifest.replaceAll('./dist/node.js', './gone.js') });
  t.ok((await look(broken)).some(({ code }) => code === 'FILE_DOES_NOT_EXIST'));
});

t.test('its command has the name of the service, and that of the package', async (t) => {
  const helpOf = async (name: string): Promise<string> =>
    (await run('npx', ['--no-install', name, '--help'], { cwd: folder })).stdout;
  const help = await helpOf('prediction-forum');
  t.match(help, 'prediction-forum quickstart');
  t.equal(await helpOf('prediction-forum-client'), help);
});

const head = `import { createClient, Refused } from 'prediction-forum-client';
const client = createClient({ base_url: 'http://127.0.0.1:8080', api_key: 'sk_' });
const params = { id: 'x' };
`;

t.test('right calls compile, and their answers have types', async (t) => {
  const right = `${head}
    const { questions, next_cursor } = await client.call('listQuestions', { query: { limit: 5 } });
    const text: string = questions[0]!.question;
    const cursor: string | null = next_cursor;
    await client.call('predict', { params, body: { confidence: 80, prediction: true, reasoning: '' } });
    const outcome = await client.attempt('fileDispute', { params, body: { reason: 'x' } });
    if (!outcome.ok && outcome.fault.code === 'DUPLICATE_DISPUTE') throw new Refused(outcome.fault);
    await client.call('me');
    for await (const event of client.stream({ topics: ['all', 'question:x'], after: 3 })) {
      if (event.event === 'prediction.placed') { const n: number = event.data.confidence; }
    }
    for await (const item of client.stream({ topics: ['all', 'consensus:x'] })) {
      if (item.op === 'state') { const n: number = item.version; } else { const n: number = item.offset; }
    }
    console.log(text, cursor);`;
  t.same(await compile(t, [right]), [[]]);
});

const wrong: Readonly<Record<string, string>> = {
  'a body with a wrong type':
    "await client.call('predict', { params, body: { reasoning: 'x', confidence: '80' } });",
  'a body without what it needs': "await client.call('predict', { params, body: {} });",
  'no body': "await client.call('predict', { params });",
  'a member that the body does not have':
    "await client.call('predict', { params, body: { reasoning: 'x', mood: 1 } });",
  'no params': "await client.call('getQuestion');",
  'a query with a wrong value':
    "await client.call('listQuestions', { query: { sort: 'oldest' } });",
  'an operation that is not': "await client.call('predictAll');",
  'a code that the operation does not have': `const o = await client.attempt('me');
    if (!o.ok && o.fault.code === 'DUPLICATE_PREDICTION') console.log(o);`,
  'a topic that is not': "client.stream({ topics: ['everything'] });",
  'an event that is not': `for await (const e of client.stream({ topics: ['all'] }))
    if (e.event === 'prediction.moved') console.log(e);`,
  'a member of an answer that is not': "console.log((await client.call('me')).nobody);",
};

t.test('wrong calls do not compile', async (t) => {
  const errors = await compile(
    t,
    Object.values(wrong).map((line) => head + line),
  );
  for (const [n, what] of Object.keys(wrong).entries()) {
    t.equal(errors[n]?.length, 1, `${what}: ${errors[n]?.join()}`);
  }
});

/** A module and all modules that it loads, directly or indirectly. */
const loadedBy = (name: string): ReadonlyMap<string, string> => {
  const texts = new Map<string, string>();
  const names = new Set([name]);
  for (const one of names) {
    const text = readFileSync(path.join(installed, one), 'utf8');
    texts.set(one, text);
    const pattern = /^(?:import|export) [^']*from '([^']+)';$|import\('([^']+)'\)/gm;
    for (const [, fixed, called] of text.matchAll(pattern)) {
      const to = fixed ?? called ?? '';
      if (!/^\.\/[a-z-]+\.js$/.test(to)) throw new Error(`${one} imports ${to}`);
      names.add(to.slice(2));
    }
  }
  return texts;
};

t.test('what browsers load has no Node in it, and is small', async (t) => {
  const texts = [...loadedBy('index.js').values()];
  t.ok(texts.length > 5);
  for (const text of texts) t.notMatch(text, /\b(?:process|Buffer|require)\b|node:/);
  t.throws(() => loadedBy('node.js'), /node\.js imports ws/, 'an import would be found');
  const size = texts.join('').replace(/^\s+/gm, '').length;
  t.comment(`${size} characters without indentation`);
  t.ok(size < 50_000, `${size}`);
});

const in_page = `
import { createClient } from './dist/index.js';
const { base_url, api_key, question_id, reasoning } = given;
const client = createClient({ base_url, api_key });
const stream = client.stream({ topics: ['question:' + question_id, 'me'], after: 0 });
const first = await stream.next();
const { event_id } = await client.call('predict', {
  params: { id: question_id },
  body: { prediction: true, confidence: 80, reasoning },
});
for await (const { event, id, data } of stream) {
  if (id !== event_id) continue;
  console.log(JSON.stringify([first.value.event, event, data.user_name]));
  break;
}
`;

t.test('a page follows and predicts with nothing but what pages have', async (t) => {
  const app = await startApp(t);
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  const question_id = await makeOpenQuestion(app);
  const given = { base_url: app.url, api_key: agent.key, question_id, reasoning: makeReasoning() };
  const child = path.join(project_root, 'dist', 'test', 'client', 'page-child.js');
  const address = pathToFileURL(path.join(installed, '..', 'page.js')).href;
  const words = ['--experimental-vm-modules', '--no-warnings', child];
  const ran = await run(process.execPath, [...words, in_page, JSON.stringify(given), address]);
  t.equal(ran.stderr, '');
  t.same(JSON.parse(ran.stdout), ['question.created', 'prediction.placed', agent.name]);
});

const program = `
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createClient, InvalidWebhook, verifyWebhook } from 'prediction-forum-client';

const { BASE, TOKEN, QUESTION, CERT, KEY, REASONING } = process.env as Record<string, string>;
const client = createClient({ base_url: BASE! });
const person = client.with({ token: TOKEN! });

const { api_key, linked, user } = await person.call('register', {
  body: { name: 'Outside Reader', model: 'claude-sonnet-4' },
});
const agent = client.with({ api_key });

let secret = '';
const answers: string[] = [];
const receiver = createServer({ cert: readFileSync(CERT!), key: readFileSync(KEY!) });
const delivered = new Promise<string>((resolve) => {
  receiver.on('request', async (request, response) => {
    const body = Buffer.concat(await request.toArray());
    const other = verifyWebhook(request.headers, body, 'another');
    answers.push(await other.then(() => 'accepted', (error: Error) => error.name));
    try {
      const { id, event } = await verifyWebhook(request.headers, body, secret);
      response.writeHead(204).end();
      if (event === 'prediction.placed') resolve(id);
    } catch (error) {
      if (!(error instanceof InvalidWebhook)) throw error;
      response.writeHead(401).end();
    }
  });
});
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
const { port } = receiver.address() as AddressInfo;
const hook = await person.call('createWebhook', {
  body: { url: \`https://127.0.0.1:\${port}/\`, events: ['prediction.placed'] },
});
secret = hook.signing_secret;

const stream = agent.stream({ topics: [\`question:\${QUESTION!}\`], after: 0 });
const first = await stream.next();
const placed = await agent.call('predict', {
  params: { id: QUESTION! },
  body: { prediction: true, confidence: 80, reasoning: REASONING! },
});
if (!('event_id' in placed)) throw new Error('nothing was placed');
let streamed = '';
for await (const event of stream) {
  if (event.event !== 'prediction.placed') continue;
  const confidence: number = event.data.confidence;
  streamed = \`\${event.id} \${confidence}\`;
  break;
}
const hooked = await delivered;
receiver.close();
receiver.closeAllConnections();
client.close();
console.log(JSON.stringify({
  linked,
  user_id: user.id,
  first: first.value?.op,
  event_id: placed.event_id,
  streamed,
  hooked,
  answers,
}));
`;

t.test('a program outside the checkout registers, predicts, follows and verifies', async (t) => {
  const { ca_file, cert_file, key_file } = await keepDevCa(t.testdir({}));
  const app = await startApp(t, {
    env: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: ca_file },
  });
  const { token } = await makeHuman(app);
  const question_id = await makeOpenQuestion(app);
  const said = await compileFiles(
    { 'program.ts': program },
    { types: ['node'], typeRoots: [path.join(project_root, 'node_modules', '@types')] },
  );
  t.equal(said, '', 'it compiles against the declarations in the package');
  const env = {
    PATH: process.env['PATH'],
    BASE: app.url,
    TOKEN: token,
    QUESTION: question_id,
    CERT: cert_file,
    KEY: key_file,
    REASONING: makeReasoning(),
  };
  const ran = await run(process.execPath, ['program.js'], { cwd: folder, env });
  t.equal(ran.stderr, '');
  const [row] = await app.sql<{ agent_id: string }[]>`select agent_id from predictions`;
  const { event_id, ...rest } = JSON.parse(ran.stdout);
  t.same(rest, {
    linked: true,
    user_id: row?.agent_id,
    first: 'event',
    streamed: `${event_id} 80`,
    hooked: event_id,
    answers: ['InvalidWebhook'],
  });
});
