import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import {
  childrenOf,
  commandOf,
  lockHolder,
  parentOf,
  startTime,
  takeLock,
} from '../../src/boot/processes.mjs';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

const module_url = new URL('../../src/boot/processes.mjs', import.meta.url).href;

/** A process that takes the lock repeatedly, and each time increments a number in a file. */
const contender = (lock: string, shared: string): string => `
  import { readFileSync, writeFileSync } from 'node:fs';
  const { takeLock } = await import(${JSON.stringify(module_url)});
  let taken = 0;
  while (taken < 50) {
    const { holder, release } = takeLock(${JSON.stringify(lock)});
    if (holder !== 0) { await new Promise(setImmediate); continue; }
    const n = Number(readFileSync(${JSON.stringify(shared)}, 'utf8'));
    await new Promise(setImmediate);
    writeFileSync(${JSON.stringify(shared)}, String(n + 1));
    taken += 1;
    release();
    await new Promise(setImmediate);
  }`;

const runCode = (code: string) =>
  spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });

t.test('a process is known by its pid, start, parent and command line', async (t) => {
  const child = runCode('console.log("up"); setInterval(() => undefined, 1000)');
  t.teardown(() => child.kill('SIGKILL'));
  const pid = child.pid as number;
  await once(createInterface({ input: child.stdout }), 'line');
  const born = startTime(pid);
  t.type(born, 'string');
  t.equal(startTime(pid), born);
  t.equal(parentOf(pid), process.pid);
  t.ok(childrenOf(process.pid).includes(pid));
  t.equal(commandOf(pid)[1], '--input-type=module');
  child.kill('SIGKILL');
  await once(child, 'exit');
  t.equal(startTime(pid), null);
  t.same(commandOf(pid), []);
  t.equal(startTime(0), null);
  t.equal(startTime(Number.NaN), null);
});

t.test('a lock has one holder, ends with it, and is taken over from the dead', async (t) => {
  const folder = t.testdir();
  const file = path.join(folder, 'lock');
  const first = takeLock(file);
  t.equal(first.holder, 0);
  t.equal(takeLock(file).holder, process.pid);
  t.equal(lockHolder(file), process.pid);
  first.release();
  t.notOk(existsSync(file));
  const child = runCode(`
    const { takeLock } = await import(${JSON.stringify(module_url)});
    takeLock(${JSON.stringify(file)});
    console.log('taken');
    setInterval(() => undefined, 1000);`);
  t.teardown(() => child.kill('SIGKILL'));
  await once(createInterface({ input: child.stdout }), 'line');
  t.equal(takeLock(file).holder, child.pid);
  child.kill('SIGKILL');
  await once(child, 'exit');
  t.ok(existsSync(file), 'the dead process left its lock');
  const second = takeLock(file);
  t.equal(second.holder, 0);
  second.release();
  t.same(readdirSync(folder), []);
});

t.test('a lock is free when its pid now is another process, or when it is rubbish', async (t) => {
  const file = path.join(t.testdir(), 'lock');
  for (const text of [`${process.pid} 1\n`, '', 'rubbish', '-1 0\n', `${process.pid}`]) {
    writeFileSync(file, text);
    const { holder, release } = takeLock(file);
    t.equal(holder, 0, JSON.stringify(text));
    release();
  }
});

t.test('of several that want the lock at once one at a time has it', async (t) => {
  const folder = t.testdir({ shared: '0' });
  const [lock, shared] = [path.join(folder, 'lock'), path.join(folder, 'shared')];
  writeFileSync(lock, '-1 0\n');
  const children = [1, 2, 3].map(() => runCode(contender(lock, shared)));
  t.teardown(() => {
    for (const child of children) child.kill('SIGKILL');
  });
  await until('all end', () => children.every((child) => child.exitCode !== null), 60_000);
  t.same(
    children.map((child) => child.exitCode),
    [0, 0, 0],
  );
  t.equal(readFileSync(shared, 'utf8'), '150');
});
