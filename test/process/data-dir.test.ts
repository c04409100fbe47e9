import { closeSync, readFileSync, statSync, writeSync } from 'node:fs';
import path from 'node:path';
import { claimDataDir, openLog, rotateLog } from '../../src/process/embedded/data-dir.js';
import { makeTestFolder, removeTestFolder } from '../help/own-stores.js';
import { mountSmallDisk, withoutSmallDisks } from '../help/small-disk.js';
import type { Teardown } from '../help/stores.js';
import { t } from '../help/tap.js';

const openOne = (t: Teardown, file: string): number => {
  const log = openLog(file);
  t.teardown(() => closeSync(log));
  return log;
};

const skip = withoutSmallDisks();

const makeFolder = (t: Teardown): string => {
  const folder = makeTestFolder();
  t.teardown(() => removeTestFolder(folder));
  return folder;
};

t.test('a log that grows large is rotated under those who have it open', async (t) => {
  const said: string[] = [];
  const say = (one: string): void => void said.push(one);
  const file = path.join(makeFolder(t), 'log', 'a.log');
  const logs = [openOne(t, file), openOne(t, file)];
  const lines = (from: number): string[] => Array.from({ length: 1_000 }, (_, n) => `${from + n}`);
  const write = (from: number): string =>
    lines(from)
      .map((line, n) => {
        writeSync(logs[n % 2] as number, `${line}\n`);
        return `${line}\n`;
      })
      .join('');
  const first = write(1_000);
  rotateLog(file, say, first.length);
  t.equal(readFileSync(file, 'utf8'), first, 'not before it is too large');
  const second = write(2_000);
  rotateLog(file, say, first.length);
  t.equal(readFileSync(`${file}.1`, 'utf8'), first + second);
  t.equal(statSync(file).size, 0);
  const third = write(3_000) + write(4_000);
  t.equal(readFileSync(file, 'utf8'), third, 'both go on where it begins anew');
  rotateLog(file, say, first.length);
  t.equal(readFileSync(`${file}.1`, 'utf8'), third, 'one earlier log is kept');
  rotateLog(path.join(path.dirname(file), 'none.log'), say);
  t.same(said, []);
});

t.test('on a full disk a large log is emptied all the same, which is said', { skip }, async (t) => {
  const folder = path.join(makeFolder(t), 'disk');
  const disk = mountSmallDisk({ folder, megabytes: 1 });
  const said: string[] = [];
  const file = path.join(folder, 'a.log');
  const log = openOne(t, file);
  writeSync(log, 'x'.repeat(600_000));
  disk.fill();
  rotateLog(file, (one) => said.push(one), 500_000);
  t.same(said, [`The log ${file} was emptied, because its disk has no room for ${file}.1.`]);
  t.equal(statSync(file).size, 0);
});

t.test('a folder that cannot be used is refused at once, with the way out', async (t) => {
  const refused = { name: 'CannotStart', message: /^DATA_DIR .* cannot be used .*\. Set another/ };
  for (const folder of ['/proc/forum', '/dev/null/forum']) {
    await t.rejects(claimDataDir(folder), refused, folder);
  }
});
