import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { startApp } from '../help/app.js';
import { project_root } from '../help/own-stores.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';

/** The library as other programs get it: by the name of the package, with its declarations. */

const run = promisify(execFile);
const built = path.join(project_root, 'clients', 'typescript', 'dist');

const tsconfig = {
  compilerOptions: {
    ...{ noEmit: true, strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false },
    ...{ target: 'es2022', lib: ['es2023', 'dom'], types: [], module: 'nodenext' },
  },
};

/** Compiles each text as a module of somebody else's program for browsers; errors by its name. */
const compile = async (t: Test, texts: readonly string[]): Promise<readonly string[][]> => {
  const files = texts.map((text, n) => [`module-${n}.ts`, text]);
  const folder = t.testdir({
    ...Object.fromEntries(files),
    'package.json': '{"type":"module"}',
    'tsconfig.json': JSON.stringify(tsconfig),
    node_modules: {},
  });
  symlinkSync(
    path.join(project_root, 'clients', 'typescript'),
    path.join(folder, 'node_modules', 'prediction-forum-client'),
  );
  const tsc = path.join(project_root, 'node_modules', 'typescript', 'bin', 'tsc');
  const { stdout } = await run(process.execPath, [tsc, '-p', '.'], { cwd: folder }).catch(
    (error: { stdout: string }) => error,
  );
  const errors = stdout.split('\n').filter((line) => /error TS/.test(line));
  const known = texts.map((_, n) => errors.filter((line) => line.startsWith(`module-${n}.ts(`)));
  t.equal(known.flat().length, errors.length, stdout);
  return known;
};

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

t.test('what browsers load has no Node in it, and is small', async (t) => {
  const files = readdirSync(built).filter((name) => /(?<!^node)\.js$/.test(name));
  const texts = files.map((name) => readFileSync(path.join(built, name), 'utf8'));
  for (const text of texts) {
    const imported = [
      ...text.matchAll(/^(?:import|export) .*from '([^']+)';$|import\('([^']+)'\)/gm),
    ].map(([, fixed, called]) => fixed ?? called ?? '');
    const foreign = imported.filter((to) => !/^\.\/[a-z-]+\.js$/.test(to));
    t.same(foreign, []);
    t.notMatch(text, /\b(?:process|Buffer|require)\b/);
  }
  const size = texts.join('').replace(/^\s+/gm, '').length;
  t.comment(`${size} characters without indentation`);
  t.ok(size < 36_000, `${size}`);
});

const in_page = `
import { createClient } from './clients/typescript/dist/index.js';
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
  const address = pathToFileURL(path.join(project_root, 'page.js')).href;
  const words = ['--experimental-vm-modules', '--no-warnings', child];
  const ran = await run(process.execPath, [...words, in_page, JSON.stringify(given), address]);
  t.equal(ran.stderr, '');
  t.same(JSON.parse(ran.stdout), ['question.created', 'prediction.placed', agent.name]);
});
