import { spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import type { Test } from 'tap';
import { project_root } from '../help/own-stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** Adds packages as if npm had installed them, with the real compiler or a stand-in. */
const addPackages = (folder: string, compiler: 'real' | 'stand-in'): void => {
  const packages = path.join(folder, 'node_modules');
  mkdirSync(packages);
  cpSync(path.join(project_root, 'node_modules', '.pf-lock'), path.join(packages, '.pf-lock'));
  if (compiler === 'stand-in') {
    const stand_in = path.join(project_root, 'test', 'boot', 'stand-in-compiler.mjs');
    const bin = path.join(packages, 'typescript', 'bin');
    mkdirSync(bin, { recursive: true });
    writeFileSync(path.join(packages, 'typescript', 'package.json'), '{"type":"module"}');
    cpSync(stand_in, path.join(bin, 'tsc'));
    return;
  }
  for (const name of ['typescript', '@typescript', '@types', 'undici-types']) {
    const source = path.join(project_root, 'node_modules', name);
    if (existsSync(source)) symlinkSync(source, path.join(packages, name));
  }
};

/** A small checkout with the real boot scripts. */
const makeCheckout = (t: Test, compiler: 'real' | 'stand-in' = 'stand-in'): string => {
  const folder = t.testdir({
    src: {
      'main.ts': "console.log('started', ...process.argv.slice(2));\n",
      lua: { 'one-1.lua': 'return 1\n' },
    },
    test: { 'run.ts': 'export const ran = true;\n', 'old.test.ts': 'export const old = true;\n' },
    'package.json': '{"type":"module"}',
  });
  cpSync(path.join(project_root, 'src', 'boot'), path.join(folder, 'src', 'boot'), {
    recursive: true,
  });
  for (const name of ['package-lock.json', 'tsconfig.json']) {
    cpSync(path.join(project_root, name), path.join(folder, name));
  }
  addPackages(folder, compiler);
  return folder;
};

/** Adds the client library and returns the folder of its build output. */
const addClient = (folder: string): string => {
  const client = path.join(folder, 'clients', 'typescript');
  mkdirSync(path.join(client, 'src'), { recursive: true });
  const source = '/** Of the forum. */\nexport const answer: number = 42;\n';
  writeFileSync(path.join(client, 'src', 'index.ts'), source);
  const project = path.join('clients', 'typescript', 'tsconfig.json');
  cpSync(path.join(project_root, project), path.join(folder, project));
  return path.join(client, 'dist');
};

interface Outcome {
  readonly code: number | null;
  readonly output: string;
}

/** Starts the boot script. Returns its output so far, and its outcome once it has ended. */
const begin = (folder: string, ...words: string[]) => {
  const file = path.join(folder, 'src', 'boot', 'run.mjs');
  const child = spawn(process.execPath, [file, ...words], { stdio: ['ignore', 'pipe', 'pipe'] });
  let errors = '';
  let printed = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (errors += chunk));
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (printed += chunk));
  const ended = new Promise<Outcome>((resolve) => {
    child.once('close', (code) => resolve({ code, output: errors + printed }));
  });
  return { readErrors: () => errors, ended };
};

const run = (folder: string, ...words: string[]): Promise<Outcome> => begin(folder, ...words).ended;

t.test('the first start builds, the second only starts, in the same process', async (t) => {
  const folder = makeCheckout(t);
  const first = await run(folder, 'start', 'one', 'two');
  t.match(first.output, /^✓ Built +\d+\.\d s\nstarted one two\n$/m);
  t.equal(first.code, 0);
  t.equal(readFileSync(path.join(folder, 'dist', 'src', 'lua', 'one-1.lua'), 'utf8'), 'return 1\n');
  const second = await run(folder, 'start');
  t.equal(second.output, 'started\n');
});

t.test('what was deleted or changed in the sources is so in the build', async (t) => {
  const folder = makeCheckout(t);
  const built = (name: string): boolean => existsSync(path.join(folder, 'dist', name));
  await run(folder, 'build');
  t.ok(built('test/old.test.js'));
  rmSync(path.join(folder, 'test', 'old.test.ts'));
  rmSync(path.join(folder, 'src', 'lua', 'one-1.lua'));
  writeFileSync(path.join(folder, 'src', 'main.ts'), "console.log('changed');\n");
  t.match((await run(folder, 'start')).output, /changed/);
  t.notOk(built('test/old.test.js'));
  t.notOk(built('test/old.test.js.map'));
  t.notOk(built('src/lua/one-1.lua'));
  rmSync(path.join(folder, 'dist', 'src', 'main.js'));
  rmSync(path.join(folder, 'dist', '.stamp'));
  t.match((await run(folder, 'start')).output, /changed/, 'a lost output is made again');
});

t.test('the client package is built again where it is gone', async (t) => {
  const folder = makeCheckout(t);
  const built = addClient(folder);
  for (let n = 0; n < 2; n += 1) {
    t.match((await run(folder, 'build')).output, /^✓ Built /m);
    t.ok(existsSync(path.join(built, 'index.js')));
    t.ok(existsSync(path.join(built, 'index.d.ts')));
    rmSync(built, { recursive: true });
  }
});

t.test('a compile error stops the start with the lines of the compiler', async (t) => {
  const folder = makeCheckout(t, 'real');
  const built = addClient(folder);
  writeFileSync(path.join(folder, 'src', 'main.ts'), 'export const n: number = "text";\n');
  const { code, output } = await run(folder, 'start');
  t.equal(code, 1);
  t.match(output, /src\/main\.ts\(1,14\): error TS2322/);
  t.match(output, /nothing was started/);
  t.notOk(existsSync(built));
  writeFileSync(path.join(folder, 'src', 'main.ts'), "console.log('mended');\n");
  t.match((await run(folder, 'start')).output, /mended/);
  const read = (name: string): string => readFileSync(path.join(built, name), 'utf8');
  t.equal(read('index.js'), 'export const answer = 42;\n', 'the client has no comments');
  t.equal(read('index.d.ts'), '/** Of the forum. */\nexport declare const answer: number;\n');
});

t.test('packages are never installed through a link', async (t) => {
  const folder = makeCheckout(t);
  const elsewhere = path.join(folder, 'elsewhere');
  mkdirSync(elsewhere);
  writeFileSync(path.join(elsewhere, 'kept.txt'), 'kept');
  rmSync(path.join(folder, 'node_modules'), { recursive: true });
  symlinkSync(elsewhere, path.join(folder, 'node_modules'));
  const outcome = await run(folder, 'build');
  t.equal(outcome.code, 1);
  t.match(outcome.output, /node_modules is a link/);
  t.ok(existsSync(path.join(elsewhere, 'kept.txt')));
});

t.test('two starts at once build once', async (t) => {
  const folder = makeCheckout(t);
  const hold = path.join(folder, 'hold');
  writeFileSync(hold, '');
  const starts = [begin(folder, 'start'), begin(folder, 'start')];
  await until('one waits for the other', () =>
    starts.some(({ readErrors }) => readErrors().includes('is preparing this checkout')),
  );
  rmSync(hold);
  const both = await Promise.all(starts.map(({ ended }) => ended));
  for (const { code, output } of both) {
    t.equal(code, 0);
    t.match(output, /started\n$/);
  }
  t.equal(both.filter(({ output }) => output.includes('✓ Built')).length, 1);
  t.notOk(existsSync(path.join(folder, 'dist', '.lock')));
});

t.test('an unknown command is refused', async (t) => {
  const { code, output } = await run(makeCheckout(t), 'constructor');
  t.equal(code, 2);
  t.match(output, /^Unknown command "constructor"\.\nSee: prediction-forum --help\n$/);
});
