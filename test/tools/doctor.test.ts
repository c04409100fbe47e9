import { once } from 'node:events';
import { createServer } from 'node:net';
import path from 'node:path';
import { settings } from '../../src/config.js';
import { runTool } from '../help/run-tool.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';

const run = (env: Readonly<Record<string, string>>, ...args: string[]) =>
  runTool('doctor', { PORT: '0', ...env }, ...args);

t.test('every setting is listed with its source, and secrets are masked', async (t) => {
  const secret = 'a-secret-of-more-than-thirty-two-characters';
  const { database_url, redis_url } = await openStores(t);
  const url = new URL(database_url);
  url.password = 'not-to-be-shown';
  const env = {
    DATA_DIR: path.join(t.testdir(), 'new'),
    DATABASE_URL: url.href,
    REDIS_URL: redis_url,
    PF_ADMIN_KEY: secret,
  };
  const { code, output } = await run(env, '--all');
  t.equal(code, 0, output);
  for (const name of Object.keys(settings)) t.match(output, new RegExp(`^  ${name} `, 'm'));
  t.match(output, /ADMIN_KEY +\*\*\* +PF_ADMIN_KEY/);
  t.match(output, /HOST +127\.0\.0\.1 +default/);
  t.match(output, /✓ Postgres +18\.\d+ answers; jit is off/);
  t.match(output, /✓ Redis +\d+\.\d+\.\d+ answers/);
  t.notMatch(output, secret);
  t.notMatch(output, url.password);
  const short = await run(env);
  t.equal(short.code, 0);
  t.match(short.output, /^Checks\n {2}✓ Machine /, 'the checks come first');
  const listed = [...short.output.matchAll(/^ {2}([A-Z_]+) .* (\S+)$/gm)].map(([, name]) => name);
  const changed = ['ADMIN_KEY', 'DATABASE_URL', 'DATA_DIR', 'PORT', 'REDIS_URL'];
  t.same(listed.toSorted(), changed, 'only settings that are not the defaults');
});

t.test('with --json secrets are masked too, whatever stands in an address', async (t) => {
  const hidden = 'not-to-be-shown';
  const { output } = await runTool(
    'doctor',
    {
      PORT: '0',
      DATA_DIR: path.join(t.testdir(), 'new'),
      DATABASE_URL: `postgres://ada:${hidden}/x:@${hidden}@127.0.0.1:1/none`,
      DATABASE_REPLICA_URL: `postgres://127.0.0.1:1/none?user=ada&password=${hidden}`,
      REDIS_URL: `redis://:${hidden}@127.0.0.1:1,127.0.0.1:2/?cluster`,
      SMTP_URL: `smtp://ada:${hidden}@127.0.0.1:1`,
      ADMIN_KEY: `${hidden}-0123456789-0123456789-0123456789`,
      SECRET_KEY: `${hidden}-9876543210-9876543210-9876543210`,
    },
    '--json',
  );
  t.notMatch(output, hidden);
  const { settings: shown, checks } = JSON.parse(output.split('\n')[0] ?? '');
  const findValue = (name: string) =>
    shown.find((one: { name: string }) => one.name === name)?.value ?? null;
  t.equal(shown.length, Object.keys(settings).length);
  t.equal(checks.length, 6);
  t.match(output, /Mail +connect ECONNREFUSED 127\.0\.0\.1:1/);
  t.match(output, /Postgres +The address of Postgres is invalid: .*percent-encoded/);
  t.match(findValue('DATABASE_URL'), /^postgres:\/\/ada:\*\*\*@127\.0\.0\.1:1\/none$/);
  t.match(findValue('DATABASE_REPLICA_URL'), /user=ada&password=\*\*\*$/);
  t.equal(findValue('REDIS_URL'), 'redis://:***@127.0.0.1:1,127.0.0.1:2/?cluster');
  t.equal(findValue('SMTP_URL'), 'smtp://ada:***@127.0.0.1:1');
  t.same([findValue('ADMIN_KEY'), findValue('SECRET_KEY')], ['***', '***']);
});

t.test('in production a missing mail server and a taken metrics port are wrong', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const { code, output } = await run({ NODE_ENV: 'production', METRICS_PORT: String(port) });
  t.equal(code, 1);
  t.match(output, '✗ Mail       SMTP_URL is not set, so nobody can verify an e-mail address');
  t.match(
    output,
    `✗ PORT       METRICS_PORT: port ${port} on 127.0.0.1 cannot be used (EADDRINUSE)`,
  );
});

t.test('what is wrong is said in one line each, and the code is 1', async (t) => {
  const { code, output } = await run({
    DATA_DIR: '/proc/nowhere',
    DATABASE_URL: 'postgres://someone:hidden@127.0.0.1:1/none',
    REDIS_URL: 'redis://127.0.0.1:1',
  });
  t.equal(code, 1);
  t.match(output, /✗ DATA_DIR/);
  t.match(output, /✗ Postgres +.*ECONNREFUSED/);
  t.match(output, /✗ Redis +.*ECONNREFUSED/);
  t.match(output, /3 of 6 failed/);
  t.notMatch(output, /hidden/);
});

t.test('wrong settings are listed together', async (t) => {
  const { code, output } = await run({ PORT: 'x', PF_NOTHING: '1' }, '--all');
  t.equal(code, 1);
  t.match(output, /PF_NOTHING is not a setting/);
  t.match(output, /PORT: /);
  t.match(output, /^ {2}PORT +WRONG +PORT$/m);
  t.match(output, /^ {2}HOST +127\.0\.0\.1 +default$/m, 'all others are shown as they are');
  t.match(output, /^ {2}LIMIT_KEY +6000 +default$/m);
  t.match(output, /^ {2}SMTP_URL +- +default$/m);
});
