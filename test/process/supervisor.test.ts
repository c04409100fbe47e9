import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Test, t } from 'tap';
import { findProcesses, startTime } from '../../src/boot/processes.mjs';
import { readStatus } from '../../src/process/embedded/data-dir.js';
import { placeOutside } from '../../src/process/embedded/postgres-home.js';
import { pickPort } from '../../src/process/embedded/processes.js';
import { makeTestFolder, openAdmin, removeTestFolder } from '../help/own-stores.js';
import { openStores } from '../help/stores.js';
import { until } from '../help/until.js';

// Also when this file is run by hand: it starts a dozen services.
t.setTimeout(170_000);

const entry = fileURLToPath(new URL('./service.js', import.meta.url));

interface Started {
  readonly child: ChildProcess;
  readonly output: () => string;
  /** Fulfilled when it says that it runs; rejects when it ends before. */
  readonly running: Promise<string>;
  readonly code: Promise<number | null>;
}

const launch = (folder: string, more: NodeJS.ProcessEnv = {}): Started => {
  const env = {
    PATH: process.env['PATH'],
    DATA_DIR: folder,
    PORT: '0',
    // As from npm: it then stops when this process is gone, also when that is killed.
    npm_lifecycle_event: 'start',
    ...more,
  };
  const child = spawn(process.execPath, [entry], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  const code = once(child, 'close').then(([exit]) => exit as number | null);
  const running = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        text += chunk;
        const url = /runs at (\S+)\n/.exec(text)?.[1];
        if (url !== undefined) resolve(url);
      });
    }
    void code.then(() => reject(new Error(`it ended: ${text}`)));
  });
  running.catch(() => undefined);
  return { child, output: () => text, running, code };
};

const clusterOf = (folder: string): string => placeOutside(folder) || path.join(folder, 'postgres');

/** The roles, stores and keepers of a service: each names its folder or its cluster. */
const processesOf = (folder: string): readonly number[] => {
  const names = [folder, clusterOf(folder)];
  return findProcesses((command) =>
    command.some((word) => names.some((name) => word.includes(name))),
  );
};

const makeFolder = (t: Test): string => {
  const folder = makeTestFolder();
  t.teardown(async () => {
    for (const pid of processesOf(folder)) process.kill(pid, 'SIGKILL');
    await until('all end', () => processesOf(folder).length === 0);
    removeTestFolder(folder);
  });
  return folder;
};

interface Answer {
  readonly pid: number;
  readonly DATABASE_URL: string;
  readonly REDIS_URL: string;
  readonly ADMIN_KEY: string;
  readonly WEBHOOK_ALLOW_CIDRS: readonly string[];
  readonly WEBHOOK_CA_FILE: string;
}

const ask = async (url: string): Promise<Answer | null> => {
  try {
    return (await (await fetch(url)).json()) as Answer;
  } catch {
    return null;
  }
};

const askUntil = async (url: string, holds: (answer: Answer) => boolean): Promise<Answer> => {
  let found: Answer | null = null;
  await until('the api answers', async () => {
    found = await ask(url);
    return found !== null && holds(found);
  });
  return found as unknown as Answer;
};

t.test('a start says what to do next, and Ctrl-C leaves nothing behind', async (t) => {
  const folder = makeFolder(t);
  const { child, output, running, code } = launch(folder);
  const url = await running;
  const answer = await askUntil(url, () => true);
  const file = path.join(folder, 'admin-key');
  const admin_key = readFileSync(file, 'utf8').trim();
  t.equal(answer.ADMIN_KEY, admin_key);
  t.ok(admin_key.length >= 32);
  t.equal(statSync(file).mode & 0o777, 0o600);
  t.same(answer.WEBHOOK_ALLOW_CIDRS, ['127.0.0.0/8', '::1/128']);
  t.equal(answer.WEBHOOK_CA_FILE, path.join(folder, 'dev-ca.pem'));
  t.match(output(), /admin-key/);
  t.match(output(), /npm run demo/);
  t.notMatch(output(), admin_key, 'the key itself is not printed');
  t.ok(processesOf(folder).length >= 7, 'four roles, two stores and their keepers');
  child.kill('SIGINT');
  t.equal(await code, 0);
  t.same(processesOf(folder), []);
});

t.test('what was killed runs again: the api, Redis and Postgres', async (t) => {
  const folder = makeFolder(t);
  const { child, running, code } = launch(folder);
  const url = await running;
  const first = await askUntil(url, () => true);
  process.kill(first.pid, 'SIGKILL');
  const second = await askUntil(url, ({ pid }) => pid !== first.pid);
  await ask(`${url}/exit`);
  await askUntil(url, ({ pid }) => pid !== second.pid);
  const pid_files = [
    path.join(folder, 'redis', 'redis.pid'),
    path.join(clusterOf(folder), 'postmaster.pid'),
  ];
  for (const name of pid_files) {
    const pidOf = () => Number.parseInt(readFileSync(name, 'utf8'), 10);
    const pid = pidOf();
    process.kill(pid, 'SIGKILL');
    await until(`${name} names a new process`, () => {
      try {
        return pidOf() !== pid && startTime(pidOf()) !== null;
      } catch {
        return false;
      }
    });
  }
  await until('the database answers at its address', async () => {
    const sql = openAdmin(first.DATABASE_URL);
    return sql`select 1`.then(
      () => sql.end().then(() => true),
      () => sql.end().then(() => false),
    );
  });
  child.kill('SIGTERM');
  t.equal(await code, 0);
  t.same(processesOf(folder), []);
});

t.test('after kill -9 of the supervisor, or of everything, the next start works', async (t) => {
  const folder = makeFolder(t);
  const PORT = String(await pickPort());
  const first = launch(folder, { PORT });
  await first.running;
  process.kill(first.child.pid as number, 'SIGKILL');
  const second = launch(folder, { PORT });
  const { pid } = await askUntil(await second.running, () => true);
  for (const each of [second.child.pid as number, ...processesOf(folder)]) {
    process.kill(each, 'SIGKILL');
  }
  const third = launch(folder, { PORT });
  const answer = await askUntil(await third.running, () => true);
  t.not(answer.pid, pid);
  third.child.kill('SIGTERM');
  t.equal(await third.code, 0);
  t.same(processesOf(folder), []);
});

t.test('a second signal ends by force what does not stop, and leaves nothing', async (t) => {
  const folder = makeFolder(t);
  const { child, running, code } = launch(folder);
  const { pid } = await askUntil(await running, () => true);
  process.kill(pid, 'SIGSTOP');
  child.kill('SIGTERM');
  await until('it is stopping', () => readStatus(folder).state === 'stopping');
  // Signals that come together count as one, so it is told until it obeys.
  await until('it ends', () => !child.kill('SIGTERM'));
  t.equal(await code, 1);
  t.same(processesOf(folder), []);
});

t.test('with stores that are given nothing is embedded; refusals are one sentence', async (t) => {
  const folder = makeFolder(t);
  const { database_url, redis_url } = await openStores(t);
  const given = { DATABASE_URL: database_url, REDIS_URL: redis_url };
  const server = createServer().listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const refused = launch(folder, { ...given, PORT: String(port) });
  t.equal(await refused.code, 1);
  t.equal(
    refused.output(),
    `Port ${port} on 127.0.0.1 is in use: stop the other program or set PORT.\n`,
  );
  const first = launch(folder, given);
  const url = await first.running;
  t.match(await askUntil(url, () => true), given);
  t.same(
    readdirSync(folder).filter((name) => /postgres|redis/.test(name)),
    [],
  );
  const second = launch(folder, given);
  t.equal(await second.code, 1);
  t.match(second.output(), `The service already runs on ${folder} at ${url} (process`);
  t.equal(second.output().trim().split('\n').length, 1);
  first.child.kill('SIGTERM');
  t.equal(await first.code, 0);
});

t.test('a Redis that is not there is told of, and nothing waits for it', async (t) => {
  const folder = makeFolder(t);
  const { database_url } = await openStores(t);
  const port = await pickPort('127.0.0.1');
  const given = { DATABASE_URL: database_url, REDIS_URL: `redis://127.0.0.1:${port}` };
  const { child, running, output, code } = launch(folder, given);
  await running;
  const line = `Redis (REDIS_URL): connect ECONNREFUSED 127.0.0.1:${port}. Look again with: npm run doctor\n`;
  await until('it is told', () => output().includes(line));
  child.kill('SIGTERM');
  t.equal(await code, 0);
});
