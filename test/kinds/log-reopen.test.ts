import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
} from 'node:fs';
import path from 'node:path';
import { LogOutput, reopenLogs } from '../../src/kit/log.js';
import { admin_key, secret_key } from '../help/app.js';
import { makeTestFolder, project_root, removeTestFolder } from '../help/own-stores.js';
import { endService, findPids, launch, type Part } from '../help/service.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/**
 * After a rotation, the log of a whole service with two api processes continues in a new file. Each
 * case was written from the documentation alone.
 */

const stores = await openStores(t);
const env = {
  DATABASE_URL: stores.database_url,
  REDIS_URL: stores.redis_url,
  REDIS_PREFIX: stores.redis_prefix,
  ADMIN_KEY: admin_key,
  SECRET_KEY: secret_key,
  LOG_LEVEL: 'info',
  LIMIT_IP: '100000000',
};
const folder = makeTestFolder();
const service = launch(folder, { ...env, API_PROCESSES: '2' });
t.teardown(async () => {
  await endService(service.child, folder);
  removeTestFolder(folder);
});
const url = await service.url;
const log = path.join(folder, 'log', 'forum.log');
const parts: readonly Part[] = ['api', 'relay', 'signer', 'timer'];
const pidsOf = (): readonly number[] => parts.flatMap((part) => findPids(folder, part));
const reopen = (): void => void service.child.kill('SIGUSR2');

const read = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');
const sizeOf = (file: string): number => (existsSync(file) ? statSync(file).size : -1);

let sent = 0;
/** Sends `count` requests, each with its own id, and returns the ids. */
const send = async (count: number, to = url): Promise<readonly string[]> => {
  const from = sent;
  sent += count;
  const ids = Array.from({ length: count }, (_, n) => `r-${String(from + n).padStart(6, '0')}`);
  const statuses = await Promise.all(
    ids.map(async (id) => {
      const answer = await fetch(`${to}/api/taxonomy?secret=in-the-query`, {
        headers: { 'x-request-id': id, 'cache-control': 'no-cache', cookie: 'a=b' },
      });
      await answer.arrayBuffer();
      return answer.status;
    }),
  );
  const wrong = statuses.find((status) => status !== 200);
  if (wrong !== undefined) throw new Error(`answered ${wrong}`);
  return ids;
};

/** The ids of requests in the text, in order. */
const idsIn = (text: string): readonly string[] => text.match(/\br-\d{6}\b/g) ?? [];

/** Waits until every id is in the files. Returns the ids that occur more than once. */
const findTwice = async (
  ids: readonly string[],
  files: () => readonly string[],
): Promise<readonly string[]> => {
  const found = await until('all lines are there', () => {
    const all = idsIn(files().map(read).join(''));
    const have = new Set(all);
    return ids.every((id) => have.has(id)) && all;
  });
  return ids.filter((id) => found.filter((one) => one === id).length > 1);
};

/** Sends rounds of requests until a whole round is in this file, so every process writes to it. */
const untilGoesTo = async (what: string, file: string): Promise<unknown> => {
  let last = await send(10);
  const goesThere = async (): Promise<boolean> => {
    const [before, text] = [last, read(file)];
    last = await send(10);
    return before.every((id) => text.includes(id));
  };
  return until(what, goesThere, 10_000, 250);
};

let rotations = 0;
/** The name that the log is moved to. */
const nextName = (): string => {
  rotations += 1;
  return `${log}.${rotations}`;
};

const isWhole = (text: string): boolean =>
  text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .every((line) => {
      try {
        return typeof JSON.parse(line) === 'object';
      } catch {
        return false;
      }
    }) && text.endsWith('\n');

t.test('a rename is enough, and no line is lost or there twice', async (t) => {
  const moved = nextName();
  const ids = [...(await send(50))];
  renameSync(log, moved);
  ids.push(...(await send(50)));
  await until('a new file', async () => {
    ids.push(...(await send(5)));
    return sizeOf(log) > 0;
  });
  await untilGoesTo('all processes write to it', log);
  const before = sizeOf(moved);
  ids.push(...(await send(50)));
  t.same(await findTwice(ids, () => [moved, log]), []);
  t.equal(sizeOf(moved), before, 'the old file does not grow');
  t.equal(statSync(log).mode & 0o777, 0o600);
  for (const file of [moved, log]) t.ok(isWhole(read(file)), file);
});

t.test('after SIGUSR2 to the supervisor the next line is in the new file', async (t) => {
  const moved = nextName();
  await send(1);
  renameSync(log, moved);
  reopen();
  await until('the new file', () => sizeOf(log) >= 0);
  await untilGoesTo('it is used', log);
  const ids = await send(20);
  t.same(await findTwice(ids, () => [log]), []);
});

t.test('ten rotations under load keep each line once', async (t) => {
  const ids: string[] = [];
  const files: string[] = [log];
  for (let n = 0; n < 10; n += 1) {
    const moved = nextName();
    const sending = send(40);
    renameSync(log, moved);
    files.push(moved);
    reopen();
    ids.push(...(await sending));
    await until('the new file', () => sizeOf(log) >= 0);
  }
  t.same(await findTwice(ids, () => files), []);
  for (const file of files.filter((one) => sizeOf(one) > 0)) t.ok(isWhole(read(file)), file);
});

t.test('a rename while nothing happens is seen too', async (t) => {
  const moved = nextName();
  renameSync(log, moved);
  await until('a new file', () => sizeOf(log) >= 0);
  await untilGoesTo('the next line', log);
  const before = sizeOf(moved);
  await send(20);
  t.equal(sizeOf(moved), before);
});

t.test('a file that somebody else made is taken as it is', async (t) => {
  renameSync(log, nextName());
  appendFileSync(log, '{"first":"line"}\n');
  chmodSync(log, 0o640);
  await untilGoesTo('it is used', log);
  t.equal(statSync(log).mode & 0o777, 0o640);
  t.ok(read(log).startsWith('{"first":"line"}\n'));
});

t.test('a file that was removed is made again', async (t) => {
  rmSync(log);
  await untilGoesTo('a new file', log);
  t.equal(statSync(log).mode & 0o777, 0o600);
});

t.test('another file in its place is used', async (t) => {
  const copy = nextName();
  copyFileSync(log, copy);
  renameSync(copy, log);
  await untilGoesTo('the copy', log);
  t.ok(isWhole(read(log)));
});

t.test('a move to another file system is seen', async (t) => {
  const away = `/dev/shm/forum-${process.pid}.log`;
  copyFileSync(log, away);
  rmSync(log);
  t.teardown(() => rmSync(away, { force: true }));
  await untilGoesTo('a new file', log);
  t.ok(isWhole(read(log)));
});

t.test('two renames within a second lose nothing', async (t) => {
  const ids: string[] = [];
  const files: string[] = [log];
  for (let n = 0; n < 6; n += 1) {
    ids.push(...(await send(10)));
    if (!existsSync(log)) continue;
    const moved = nextName();
    renameSync(log, moved);
    files.push(moved);
    ids.push(...(await send(10)));
    if (n % 2 === 0) reopen();
  }
  t.same(await findTwice(ids, () => files), []);
  await untilGoesTo('in the end', log);
});

t.test('copying and truncating works too', async (t) => {
  for (let n = 0; n < 5; n += 1) {
    await send(20);
    copyFileSync(log, nextName());
    truncateSync(log);
    await send(20);
  }
  await untilGoesTo('the same file', log);
  t.notOk(read(log).includes('\0'));
  t.ok(isWhole(read(log)));
});

t.test('signals without a rename change nothing, to whomever they are sent', async (t) => {
  const pids = pidsOf();
  t.equal(pids.length, 6);
  const { ino } = statSync(log);
  const ids: string[] = [];
  for (let n = 0; n < 20; n += 1) {
    reopen();
    for (const pid of pids) process.kill(pid, 'SIGUSR2');
    ids.push(...(await send(5)));
  }
  t.same(await findTwice(ids, () => [log]), []);
  t.equal(statSync(log).ino, ino);
  t.same(pidsOf(), pids);
});

t.test('a process that is started again writes to the new file', async (t) => {
  const [victim = 0] = findPids(folder, 'api');
  const moved = nextName();
  await send(5);
  renameSync(log, moved);
  reopen();
  process.kill(victim, 'SIGKILL');
  await until('another one', () => {
    const now = findPids(folder, 'api');
    return now.length === 2 && !now.includes(victim);
  });
  await until('it answers', () => send(20).catch(() => false));
  await untilGoesTo('all', log);
  const before = sizeOf(moved);
  t.same(await findTwice(await send(40), () => [log]), []);
  t.equal(sizeOf(moved), before);
});

t.test('no file has a secret or what was asked for', async (t) => {
  const key = `sk_${'a1B2'.repeat(12)}`;
  const { status } = await fetch(`${url}/api/questions/${key}?q=${key}`, {
    headers: { 'x-request-id': key },
  });
  t.equal(status, 400);
  await untilGoesTo('its line is written', log);
  for (const name of readdirSync(path.dirname(log))) {
    const text = read(path.join(path.dirname(log), name));
    t.notMatch(text, /sk_a1B2|in-the-query/, name);
  }
});

t.test('a link stays a link', async (t) => {
  const own = makeTestFolder();
  t.teardown(() => removeTestFolder(own));
  const target = path.join(own, 'real', 'forum.log');
  mkdirSync(path.dirname(target));
  const link = path.join(own, 'forum.log');
  symlinkSync(target, link);
  const output = new LogOutput(link, () => undefined);
  output.write('one\n');
  await until('the first line', () => read(target) === 'one\n');
  renameSync(target, `${target}.1`);
  reopenLogs();
  output.write('two\n');
  await until('the second line', () => read(target) === 'two\n');
  t.equal(readlinkSync(link), target);
  t.equal(read(`${target}.1`), 'one\n');
});

t.test('a folder that takes no new file loses no line', async (t) => {
  const own = makeTestFolder();
  t.teardown(() => removeTestFolder(own));
  const file = path.join(own, 'logs', 'forum.log');
  mkdirSync(path.dirname(file));
  const output = new LogOutput(file, () => undefined);
  output.write('one\n');
  await until('the first line', () => read(file) === 'one\n');
  // Root may write everywhere, so the whole folder is moved away.
  renameSync(path.dirname(file), `${own}/away`);
  reopenLogs();
  output.write('two\n');
  await until('the second line', () => read(`${own}/away/forum.log`) === 'one\ntwo\n');
  mkdirSync(path.dirname(file));
  await until('it goes on', () => {
    output.write('three\n');
    return read(file).startsWith('three\n');
  });
  t.equal(output.dropped, 0);
});

/* In production the log goes to standard output. */

const main = path.join(project_root, 'dist', 'src', 'main.js');

/** Starts the service with its output redirected to these files, as a shell does. */
const startRedirected = async (out: string, errors: string) => {
  const own = makeTestFolder();
  const fds = [out, errors].map((name) => openSync(path.join(own, name), 'a'));
  const [first = 1, second = 2] = fds;
  const child = spawn(process.execPath, [main], {
    cwd: project_root,
    env: {
      ...{ PATH: process.env['PATH'], HOME: process.env['HOME'], npm_lifecycle_event: 'test' },
      ...env,
      ...{ NODE_ENV: 'production', API_PROCESSES: '1', DATA_DIR: own, PORT: '0' },
    },
    stdio: ['ignore', first, second],
  });
  for (const fd of fds) closeSync(fd);
  t.teardown(async () => {
    await endService(child, own);
    removeTestFolder(own);
  });
  const file = path.join(own, out);
  // The test sends the signal as soon as the process handles it.
  const hears = (): boolean => {
    const [, mask = '0'] = /SigCgt:\s+(\w+)/.exec(read(`/proc/${child.pid}/status`)) ?? [];
    return (BigInt(`0x${mask}`) & 0x800n) !== 0n;
  };
  await until('it hears the signal', hears);
  const at = await until('it runs', () => {
    child.kill('SIGUSR2');
    return /is running at (http:\/\/[\d.]+:\d+)/.exec(read(file))?.[1];
  });
  return { child, own, file, at };
};

t.test(
  'in production the file of the output is opened again, and signals end no start or stop',
  async (t) => {
    const { child, own, file, at } = await startRedirected('out.log', 'err.log');
    for (const signal of [true, false]) {
      const moved = `${file}.${signal}`;
      const ids = [...(await send(10, at))];
      renameSync(file, moved);
      if (signal) child.kill('SIGUSR2');
      await until('a new file', async () => {
        ids.push(...(await send(2, at)));
        return sizeOf(file) > 0;
      });
      ids.push(...(await send(10, at)));
      t.same(await findTwice(ids, () => [moved, file]), []);
      t.ok(isWhole(read(file)) && isWhole(read(moved)));
    }
    t.same(idsIn(read(path.join(own, 'err.log'))), [], 'nothing went to the other file');
    const code = once(child, 'exit');
    child.kill('SIGTERM');
    await until('it has ended', () => !child.kill('SIGUSR2'));
    t.equal((await code)[0], 0);
  },
);

t.test('a pipe is written to as before', async (t) => {
  const own = makeTestFolder();
  const piped = launch(own, { ...env, NODE_ENV: 'production', API_PROCESSES: '1' });
  t.teardown(async () => {
    await endService(piped.child, own);
    removeTestFolder(own);
  });
  const at = await until(
    'it runs',
    () => /is running at (http:\/\/[\d.]+:\d+)/.exec(piped.output())?.[1],
  );
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) {
    piped.child.kill('SIGUSR2');
    ids.push(...(await send(5, at)));
  }
  await until('all lines came', () => ids.every((id) => piped.output().includes(id)));
  t.same(
    readdirSync(own).filter((name) => name.includes('pipe')),
    [],
  );
});
