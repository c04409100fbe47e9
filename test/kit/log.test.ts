import { openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { LogOutput, makeLog } from '../../src/kit/log.js';
import { makeTestFolder, removeTestFolder } from '../help/own-stores.js';
import { mountSmallDisk, withoutSmallDisks } from '../help/small-disk.js';
import { startStopwatch } from '../help/stopwatch.js';
import type { Teardown } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** Stays open: what was not written is tried again until the process ends. */
const openFile = (file: string): number => openSync(file, 'a');

const skip = withoutSmallDisks();

const makeFolder = (t: Teardown): string => {
  const folder = makeTestFolder();
  t.teardown(() => removeTestFolder(folder));
  return folder;
};

const line = (n: number): string => `{"level":30,"n":${n},"text":"${'x'.repeat(400)}"}\n`;

t.test('lines are written soon, in order, and the rest at the end of the process', async (t) => {
  const file = path.join(makeFolder(t), 'a.log');
  const output = new LogOutput(openFile(file), () => undefined);
  const lines = Array.from({ length: 200 }, (_, n) => line(n));
  for (const one of lines) output.write(one);
  await until('all are there', () => readFileSync(file, 'utf8') === lines.join(''));
  output.write(line(200));
  output.flushSync();
  t.equal(readFileSync(file, 'utf8'), [...lines, line(200)].join(''));
  t.equal(output.dropped, 0);
});

t.test('a disk that takes nothing keeps nobody waiting, and lines are counted', async (t) => {
  const output = new LogOutput(openFile('/dev/full'), () => undefined);
  const readWatch = startStopwatch();
  for (let n = 0; n < 20_000; n += 1) output.write(line(n));
  output.flushSync();
  t.ok(readWatch() < 2_000, `${readWatch()} ms, the end of the process included`);
  t.ok(output.dropped > 15_000, `${output.dropped} lines were dropped`);
});

t.test('a disk that was full: what was kept is whole, the rest is told', { skip }, async (t) => {
  const folder = path.join(makeFolder(t), 'disk');
  const disk = mountSmallDisk({ folder, megabytes: 4 });
  const file = path.join(folder, 'b.log');
  const { log, dropped } = makeLog('info', { role: 'api-0' }, openFile(file));
  let n = 0;
  const write = (count: number): void => {
    for (let k = 0; k < count; k += 1, n += 1) log.info({ n, t: 'y'.repeat(200) });
  };
  write(50);
  await until('the first are there', () => readFileSync(file, 'utf8').includes('"n":49'));
  disk.fill();
  // The first of them are cut by the end of the disk.
  await until('lines are dropped', () => {
    write(500);
    return dropped() > 1_000;
  });
  disk.free();
  const again = await until('it is told', () =>
    readFileSync(file, 'utf8')
      .split('\n')
      .find((one) => one.includes('log: lines were dropped')),
  );
  t.match(JSON.parse(again), { level: 40, role: 'api-0', dropped: dropped(), code: 'ENOSPC' });
  const before = dropped();
  write(10);
  await until('the last are there', () => readFileSync(file, 'utf8').includes(`"n":${n - 1}`));
  t.equal(dropped(), before);
  const found = readFileSync(file, 'utf8').split('\n');
  const whole = found.filter((one) => one.endsWith('}')).map((one) => JSON.parse(one));
  t.ok(found.length - whole.length <= 3, 'at most one line was cut');
  const numbers = whole.flatMap((one) => (typeof one.n === 'number' ? [one.n as number] : []));
  t.equal(new Set(numbers).size, numbers.length, 'none twice');
  t.equal(numbers.length + dropped(), n, 'each is there or counted');
});
