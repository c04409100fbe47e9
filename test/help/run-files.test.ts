import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Test } from 'tap';
import { project_root } from './own-stores.js';
import { startFiles } from './run-files.js';
import { t } from './tap.js';

/** Tests the test runner on small test files. */

const head = "import { t } from '../help/tap.js';\n";
const passes = `${head}t.test('one', async (t) => { t.ok(true); t.ok(true); });\n`;

/** A checkout with these test files in one folder. */
const makeRoot = (t: Test, files: Readonly<Record<string, string>>): string => {
  const root = t.testdir();
  const folder = path.join(root, 'dist', 'test', 'a');
  mkdirSync(folder, { recursive: true });
  const help = path.join('dist', 'test', 'help');
  symlinkSync(path.join(project_root, help), path.join(root, help));
  writeFileSync(path.join(root, 'package.json'), '{"type":"module"}');
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(path.join(folder, `${name}.test.js`), text);
  }
  return root;
};

const start = (t: Test, files: Readonly<Record<string, string>>) => {
  const lines: string[] = [];
  const running = startFiles(
    Object.keys(files).map((name) => `dist/test/a/${name}.test.js`),
    {
      root: makeRoot(t, files),
      at_once: 1,
      env: {},
      file_ms: 20_000,
      shows_comments: false,
      say: (line) => lines.push(line.replace(/ +\d+\.\d s$/, '')),
    },
  );
  return { ...running, lines };
};

t.test('assertions are counted, and the failures of a file are shown', async (t) => {
  const { result, lines } = start(t, {
    a: passes,
    b: `${head}t.test('two', async (t) => { t.ok(true); t.ok(false, 'is so'); });\n`,
    c: `${head}t.test('three', { skip: 'no room' }, async () => {});\n`,
  });
  t.same(await result, { passed: 3, failed: 1, skipped: 1, not_run: [] });
  t.match(lines, ['  ok  test/a/a.test.ts', 'FAIL  test/a/b.test.ts', /not ok 2 - is so/]);
  t.match(lines.slice(-2), ['left out: three (no room)', '  ok  test/a/c.test.ts']);
});

t.test('files of a folder share a process, and what one registers ends with it', async (t) => {
  const shares = `${head}globalThis.count = (globalThis.count ?? 0) + 1;\n`;
  const { result } = start(t, {
    a: `${shares}t.beforeEach(() => { throw new Error('of another file'); });\nt.teardown(() => { globalThis.torn = true; });\n`,
    b: `${shares}t.test('it', async (t) => { t.equal(globalThis.count, 2); t.ok(globalThis.torn); });\n`,
  });
  t.match(await result, { passed: 3, failed: 0 });
});

t.test('a process that ends early fails its file, and the others are run', async (t) => {
  const { result, lines } = start(t, { a: passes, b: 'process.exit(3);\n', c: passes });
  t.match(await result, { passed: 4, failed: 1 });
  t.match(lines, ['  ok  test/a/a.test.ts', 'FAIL  test/a/b.test.ts']);
});

t.test('a process that is killed fails its file', async (t) => {
  const { result, lines } = start(t, { a: "process.kill(process.pid, 'SIGKILL');\n", b: passes });
  t.match(await result, { passed: 2, failed: 1 });
  t.ok(lines.includes('      Its process ended early (SIGKILL).'));
});

t.test('a file that does not load fails', async (t) => {
  const { result } = start(t, { a: "throw new Error('no');\n", b: passes });
  t.match(await result, { passed: 2, failed: 1 });
});

t.test('a run that is stopped says what had passed and what was not run', async (t) => {
  const { result, stop, lines } = start(t, {
    a: passes,
    b: `${head}t.test('long', () => new Promise(() => setInterval(() => {}, 1_000)));\n`,
    c: passes,
  });
  while (!lines.includes('  ok  test/a/a.test.ts')) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  stop();
  t.same(await result, {
    passed: 2,
    failed: 0,
    skipped: 0,
    not_run: ['dist/test/a/b.test.js', 'dist/test/a/c.test.js'],
  });
});
