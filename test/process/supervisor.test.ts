import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Config, readConfig } from '../../src/config.js';
import { readStatus } from '../../src/process/embedded/data-dir.js';
import { pickPort, signalProcess } from '../../src/process/embedded/processes.js';
import { banner } from '../../src/process/supervisor.js';
import { makeTestFolder, openAdmin, removeTestFolder } from '../help/own-stores.js';
import { findPids, launch as launchService, processesOf } from '../help/service.js';
import { openStores, type Teardown } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

const entry = fileURLToPath(new URL('./service.js', import.meta.url));

const launch = (folder: string, env: NodeJS.ProcessEnv = {}) => launchService(folder, env, entry);

const makeFolder = (t: Teardown): string => {
  const folder = makeTestFolder();
  t.teardown(async () => {
    for (const pid of processesOf(folder)) signalProcess(pid, 'SIGKILL');
    await until('all end', () => processesOf(folder).length === 0, 30_000, 100);
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

const readAnswer = async (url: string): Promise<Answer | null> => {
  try {
    return (await (await fetch(url)).json()) as Answer;
  } catch {
    return null;
  }
};

const waitForAnswer = async (url: string, holds: (answer: Answer) => boolean): Promise<Answer> => {
  let found: Answer | null = null;
  await until('the api answers', async () => {
    found = await readAnswer(url);
    return found !== null && holds(found);
  });
  return found as unknown as Answer;
};

/** The tests that start embedded stores use one folder, one after another. */
const folder = makeFolder(t);

t.test(
  'a start says what to do next, what is killed runs again, and Ctrl-C leaves nothing',
  async (t) => {
    const { child, output, url: running, code } = launch(folder);
    const url = await running;
    const first = await waitForAnswer(url, () => true);
    const file = path.join(folder, 'admin-key');
    const admin_key = readFileSync(file, 'utf8').trim();
    t.equal(first.ADMIN_KEY, admin_key);
    t.ok(admin_key.length >= 32);
    t.equal(statSync(file).mode & 0o777, 0o600);
    t.same(first.WEBHOOK_ALLOW_CIDRS, ['127.0.0.0/8', '::1/128']);
    t.equal(first.WEBHOOK_CA_FILE, path.join(folder, 'dev-ca.pem'));
    await until('it says what to do next', () => /admin-key.*npm run demo/s.test(output()));
    t.notMatch(output(), admin_key, 'the key itself is not printed');
    t.ok(processesOf(folder).length >= 7, 'four roles, two stores and their watchers');

    process.kill(first.pid, 'SIGKILL');
    const second = await waitForAnswer(url, ({ pid }) => pid !== first.pid);
    await readAnswer(`${url}/exit`);
    await waitForAnswer(url, ({ pid }) => pid !== second.pid);
    for (const store of ['Redis', 'Postgres'] as const) {
      const [pid = 0] = findPids(folder, store);
      process.kill(pid, 'SIGKILL');
      const isReplaced = () => findPids(folder, store).some((now) => now !== pid);
      await until(`${store} is replaced`, isReplaced);
    }
    await until('the database answers at its address', async () => {
      const sql = openAdmin(first.DATABASE_URL);
      return sql`select 1`.then(
        () => sql.end().then(() => true),
        () => sql.end().then(() => false),
      );
    });
    child.kill('SIGINT');
    t.equal(await code, 0);
    t.same(processesOf(folder), []);
    const steps = [
      '✓ Postgres and Redis started ',
      '✓ The database has the current schema ',
      '✓ \\d processes are ready ',
      'Prediction Forum is running at ',
      `Stopped\\. Data is in ${folder}`,
    ];
    t.match(output(), new RegExp(steps.join('[^]*')), 'each step is named');
  },
);

t.test('a role that ends again and again stops the start and says why', async (t) => {
  const { code, output } = launch(folder, { CRASHES: 'timer' });
  t.equal(await code, 1);
  t.match(output(), /The timer \d process ended 3 times .*: the disk of this role is gone/);
  t.same(processesOf(folder), []);
});

t.test(
  'the next start works after kill -9 of the supervisor, or of all; a second signal ends by force',
  async (t) => {
    const PORT = String(await pickPort());
    const first = launch(folder, { PORT });
    await first.url;
    process.kill(first.child.pid as number, 'SIGKILL');
    const second = launch(folder, { PORT });
    const { pid } = await waitForAnswer(await second.url, () => true);
    for (const each of [second.child.pid as number, ...processesOf(folder)]) {
      process.kill(each, 'SIGKILL');
    }
    const third = launch(folder, { PORT });
    const answer = await waitForAnswer(await third.url, () => true);
    t.not(answer.pid, pid);

    process.kill(answer.pid, 'SIGSTOP');
    third.child.kill('SIGTERM');
    await until('it is stopping', () => readStatus(folder).state === 'stopping');
    // Signals that arrive together count as one, so the signal is repeated until the process ends.
    await until('it ends', () => !third.child.kill('SIGTERM'));
    t.equal(await third.code, 1);
    t.same(processesOf(folder), []);
  },
);

t.test('after a rename and SIGUSR2 all processes log into a new file', async (t) => {
  const { child, url, code } = launch(folder, { LOG_LEVEL: 'info' });
  await waitForAnswer(await url, () => true);
  const log = path.join(folder, 'log', 'forum.log');
  renameSync(log, `${log}.old`);
  child.kill('SIGUSR2');
  await until('there is a new log', () => existsSync(log));
  t.match(readFileSync(`${log}.old`, 'utf8'), /"role":"api".*starts/);
  t.not(await readAnswer(await url), null, 'the service runs on');
  child.kill('SIGTERM');
  t.equal(await code, 0);
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
    `Port ${port} on 127.0.0.1 is in use. Stop the other program, or use another port: PORT=${port + 1} npm start\n`,
  );
  const taken = launch(folder, { ...given, API_PROCESSES: '1', METRICS_PORT: String(port - 2) });
  t.equal(await taken.code, 1);
  t.equal(
    taken.output(),
    `METRICS_PORT: port ${port} on 127.0.0.1 cannot be used (EADDRINUSE). The processes need the ports ${port - 2} to ${port + 2}.\n`,
  );
  const first = launch(folder, given);
  const url = await first.url;
  t.match(await waitForAnswer(url, () => true), given);
  t.same(
    readdirSync(folder).filter((name) => /postgres|redis/.test(name)),
    [],
  );
  const second = launch(folder, given);
  t.equal(await second.code, 1);
  t.match(second.output(), `The service is already running on ${folder} at ${url} (process`);
  t.equal(second.output().trim().split('\n').length, 1);
  first.child.kill('SIGTERM');
  t.equal(await first.code, 0);
});

t.test('a Redis that is not there is reported, and nothing waits for it', async (t) => {
  const folder = makeFolder(t);
  const { database_url } = await openStores(t);
  const port = await pickPort('127.0.0.1');
  const given = { DATABASE_URL: database_url, REDIS_URL: `redis://127.0.0.1:${port}` };
  const { child, url: running, output, code } = launch(folder, given);
  await running;
  const line = `Redis (REDIS_URL): connect ECONNREFUSED 127.0.0.1:${port}. Check again with: npm run doctor\n`;
  await until('it is reported', () => output().includes(line));
  child.kill('SIGTERM');
  t.equal(await code, 0);
});

const said = (changes: Partial<Config>): string => {
  const config = { ...readConfig({}), ...changes };
  return banner(config, 'http://127.0.0.1:8080', null).join('\n');
};

t.test('development mode that others can reach is warned about', async (t) => {
  for (const HOST of ['0.0.0.0', '::', '192.0.2.7', 'forum.example.org']) {
    t.match(said({ HOST }), /WARNING.*development mode/, HOST);
    t.notMatch(said({ HOST, NODE_ENV: 'production' }), /WARNING/, `${HOST} in production`);
  }
  for (const HOST of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) {
    t.notMatch(said({ HOST }), /WARNING/, HOST);
  }
});
