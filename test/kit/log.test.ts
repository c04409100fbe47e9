import {
  appendFileSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
} from 'node:fs';
import path from 'node:path';
import { LogOutput, makeLog, reopenLogs } from '../../src/kit/log.js';
import { makeTestFolder, removeTestFolder } from '../help/own-stores.js';
import { mountSmallDisk, withoutSmallDisks } from '../help/small-disk.js';
import { startStopwatch } from '../help/stopwatch.js';
import type { Teardown } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** The file stays open, because lines that failed are retried until the process ends. */
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
  // The first lines are cut because the disk is full.
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

t.test('a log that is moved away goes on in a new file, and no line is lost', async (t) => {
  const file = path.join(makeFolder(t), 'c.log');
  const output = new LogOutput(file, () => undefined);
  const read = (name: string): string => (existsSync(name) ? readFileSync(name, 'utf8') : '');
  const moves: readonly (readonly [string, () => void])[] = [
    ['a rename', () => undefined],
    ['a rename and a signal', () => reopenLogs()],
    ['a rename, and a new file that somebody else makes', () => appendFileSync(file, '')],
  ];
  let n = 0;
  const write = (count: number): void => {
    for (let k = 0; k < count; k += 1, n += 1) output.write(line(n));
  };
  write(100);
  for (const [turn, [name, then]] of moves.entries()) {
    await until('lines are there', () => read(file) !== '');
    renameSync(file, `${file}.${turn}`);
    then();
    write(100);
    await until(name, () => {
      write(1);
      return read(file).endsWith('}\n');
    });
  }
  rmSync(file);
  await until('the file that was removed is made again', () => {
    write(1);
    return read(file) !== '';
  });
  truncateSync(file);
  const first = n;
  write(20);
  await until('it goes on in a file that was emptied', () => read(file).includes(line(n - 1)));
  t.ok(read(file).endsWith(Array.from({ length: 20 }, (_, k) => line(first + k)).join('')));
  const kept = moves.map((_, turn) => read(`${file}.${turn}`)).join('');
  const lines = kept.split('\n').slice(0, -1);
  t.same(
    lines,
    lines.map((_, k) => line(k).trimEnd()),
    'each line once, in order',
  );
  t.equal(output.dropped, 0);
});
