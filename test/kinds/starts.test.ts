import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import type { Test } from 'tap';
import {
  clusterProblem,
  descriptorProblem,
  engineProblem,
  publicUrlProblem,
  startProblem,
} from '../../src/boot/machine.mjs';
import { openAdmin, project_root } from '../help/own-stores.js';
import { runTool } from '../help/run-tool.js';
import { endService, launch } from '../help/service.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';

/** If a start cannot work, it reports the reason in one sentence, before anything is built. */

const machine = { platform: 'linux', node: '20.19.2', glibc: '2.36', descriptors: 65_536 };
const embedded = '18.4.0-beta.17';

/** Checks that a text is one line that a person can read, without a stack trace. */
const checkSentence = (t: Test, said: string | null, what: string): void => {
  t.type(said, 'string', `${what}: it is a problem`);
  const text = said ?? '';
  t.notMatch(text, '\n', `${what}: one line`);
  t.ok(text.length < 600, `${what}: ${text.length} characters`);
  t.match(text, /\.$/, `${what}: a sentence: ${text.slice(0, 200)}`);
  t.notMatch(text, /[\u0000-\u001f\u007f]/, `${what}: nothing that moves the cursor`);
};

/** A data folder whose embedded Postgres has this in its PG_VERSION. */
const makeData = (t: Test, version: string): string => {
  const folder = t.testdir({});
  const cluster = path.join(folder, 'postgres');
  mkdirSync(cluster, { recursive: true });
  writeFileSync(path.join(cluster, 'PG_VERSION'), version);
  return folder;
};

t.test('pairs of Node and glibc at the edge of what has a binary', async (t) => {
  const say = (node: string, glibc: string | undefined, platform = 'linux') =>
    engineProblem({ ...machine, node, glibc, platform });
  for (const [what, node, glibc] of [
    ['Debian 12 with its Node', '20.11.0', '2.36'],
    ['Node 20 on the oldest glibc', '20.99.1', '2.27'],
    ['Ubuntu 24.04', '22.22.3', '2.39'],
    ['a glibc with three numbers', '24.0.0', '2.40.9'],
    ['a minor of three digits', '22.1.0', '2.100'],
    ['a glibc of another major', '24.1.0', '3.0'],
  ] as const) {
    t.equal(say(node, glibc), null, what);
  }
  for (const [what, node, glibc, pattern] of [
    ['Debian 12 with Node 22', '22.22.3', '2.36', /glibc 2\.38/],
    ['Debian 12 with Node 24', '24.0.0', '2.36', /use Node 20/],
    ['one below', '22.0.0', '2.37', /glibc 2\.38/],
    ['a minor of one digit is less than 27', '20.11.0', '2.5', /too old/],
    ['one below the oldest', '20.19.2', '2.26', /too old/],
    ['Alpine', '22.22.3', undefined, /no glibc/],
    ['an early Node 20', '20.9.0', '2.41', /20\.11/],
    ['an odd Node', '21.0.0', '2.41', /Node 20, 22 or 24/],
    ['a nightly of tomorrow', '27.0.0-nightly20261101', '2.41', /Node 20, 22 or 24/],
  ] as const) {
    const said = say(node, glibc);
    checkSentence(t, said, what);
    t.match(said, pattern, what);
  }
});

t.test('a PUBLIC_URL that is more than where the service is', async (t) => {
  for (const fine of [
    'https://forum.example',
    'https://forum.example/',
    'https://forum.example:8443',
    'http://[::1]:8080',
    'http://localhost:8080/',
    'https://xn--bcher-kva.example',
    'https://forum.example//',
  ]) {
    t.equal(publicUrlProblem(fine), null, fine);
    t.equal(startProblem({ DATA_DIR: t.testdir({}), PUBLIC_URL: fine }, embedded, machine), null);
  }
  for (const [what, url] of [
    ['a folder', 'https://forum.example/forum'],
    ['an encoded slash', 'https://forum.example/%2F'],
    ['a query', 'https://forum.example?utm=mail'],
    ['a query after a slash', 'https://forum.example/?lang=de'],
    ['a fragment', 'https://forum.example/#top'],
    ['a user', 'https://admin@forum.example/'],
    ['a password that must not be shown', 'https://:hunter2@forum.example'],
  ] as const) {
    const said = startProblem({ DATA_DIR: t.testdir({}), PUBLIC_URL: url }, embedded, machine);
    checkSentence(t, said, what);
    t.match(said, 'PUBLIC_URL', what);
    t.notMatch(said ?? '', 'hunter2', what);
  }
});

t.test('data of whatever other Postgres, also where the version is not readable', async (t) => {
  for (const [what, version] of [
    ['of this one', '18\n'],
    ['without a line end', '18'],
    ['saved on Windows', '18\r\n'],
    ['with blanks', ' 18 \n'],
  ] as const) {
    const folder = makeData(t, version);
    t.equal(startProblem({ DATA_DIR: folder }, embedded, machine), null, what);
  }
  for (const [what, version, shown] of [
    ['before ten', '9.6\n', /Postgres 9\.6/],
    ['the one before', '17\n', /Postgres 17/],
    ['the one after', '19\n', /Postgres 19/],
    ['a number that begins alike', '180\n', /Postgres 180/],
    ['a number that ends alike', '118\n', /Postgres 118/],
    ['with a minor', '17.2\n', /Postgres 17/],
  ] as const) {
    const folder = makeData(t, version);
    const said = startProblem({ DATA_DIR: folder }, embedded, machine);
    t.type(said, 'string', what);
    t.match(said, shown, what);
    t.match(said, /18/, `${what}: and which one this program has`);
    t.match(said, /backup.*restore/, `${what}: the way out`);
    t.notMatch(said ?? '', '\n', what);
  }
  for (const [what, version] of [
    ['empty', ''],
    ['huge', '9'.repeat(2_000_000)],
    ['no number', 'seventeen\n'],
    ['bytes that clear a screen', '\u001b[2J\u0000\u0007 17'],
  ] as const) {
    const folder = makeData(t, version);
    const said = startProblem({ DATA_DIR: folder }, embedded, machine);
    const direct = clusterProblem(path.join(folder, 'postgres'), embedded);
    for (const one of [said, direct]) {
      // Postgres refuses such a folder later. This check must not crash or print the whole value.
      if (one !== null) checkSentence(t, one, what);
    }
  }
  const folder = t.testdir({});
  mkdirSync(path.join(folder, 'postgres', 'PG_VERSION'), { recursive: true });
  t.doesNotThrow(
    () => startProblem({ DATA_DIR: folder }, embedded, machine),
    'PG_VERSION a folder',
  );
});

t.test('settings count by whatever name or file they are given', async (t) => {
  const folder = makeData(t, '17\n');
  const empty = path.join(folder, 'empty');
  mkdirSync(empty);
  const write = (name: string, text: string): string => {
    const file = path.join(folder, name);
    writeFileSync(file, text);
    return file;
  };
  const say = (env: NodeJS.ProcessEnv) => startProblem(env, embedded, machine);
  const database = 'postgres://db.example/forum';
  for (const [what, env, pattern] of [
    ['DATA_DIR', { DATA_DIR: folder }, /Postgres 17/],
    ['PF_DATA_DIR', { PF_DATA_DIR: folder }, /Postgres 17/],
    ['DATA_DIR_FILE', { DATA_DIR_FILE: write('dir', `${folder}\n`) }, /Postgres 17/],
    ['PF_DATA_DIR_FILE', { PF_DATA_DIR_FILE: write('dir2', folder) }, /Postgres 17/],
    ['PF_PUBLIC_URL', { DATA_DIR: empty, PF_PUBLIC_URL: 'https://a.example/x' }, /PUBLIC_URL/],
    [
      'PUBLIC_URL_FILE',
      { DATA_DIR: empty, PUBLIC_URL_FILE: write('url', 'https://a.example/x\n') },
      /PUBLIC_URL/,
    ],
  ] as const) {
    t.match(say(env), pattern, what);
  }
  for (const [what, env] of [
    ['PF_DATABASE_URL', { DATA_DIR: folder, PF_DATABASE_URL: database }],
    ['DATABASE_URL_FILE', { DATA_DIR: folder, DATABASE_URL_FILE: write('db', `${database}\n`) }],
    [
      'a good address in a file',
      { DATA_DIR: empty, PUBLIC_URL_FILE: write('ok', 'https://a.example\n') },
    ],
    ['an empty PUBLIC_URL', { DATA_DIR: empty, PUBLIC_URL: '' }],
  ] as const) {
    t.equal(say(env), null, what);
  }
  t.match(
    say({ DATA_DIR: folder, DATABASE_URL: '' }),
    /Postgres 17/,
    'an empty DATABASE_URL is none: the data here are used',
  );
});

t.test('the program itself ends with 2 and one line, and has built nothing', async (t) => {
  const folder = t.testdir({});
  for (const name of ['package.json', 'sql', 'src/boot', 'tsconfig.json']) {
    cpSync(path.join(project_root, name), path.join(folder, name), { recursive: true });
  }
  const data = path.join(folder, 'data');
  mkdirSync(path.join(data, 'postgres'), { recursive: true });
  writeFileSync(path.join(data, 'postgres', 'PG_VERSION'), '9.6\n');
  const start = (limit: string, env: NodeJS.ProcessEnv) =>
    spawnSync('sh', ['-c', `${limit} exec "$0" src/boot/run.mjs start`, process.execPath], {
      cwd: folder,
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
      timeout: 60_000,
    });
  t.equal(descriptorProblem({ descriptors: 1_024 }), null);
  t.equal(descriptorProblem({ descriptors: Number.POSITIVE_INFINITY }), null, 'unlimited');
  for (const [what, limit, env, pattern] of [
    ['one descriptor too few', 'ulimit -n 1023;', {}, /1023 files/],
    ['data of Postgres 9.6', '', { DATA_DIR: data }, /Postgres 9\.6/],
    ['the same by its other name', '', { PF_DATA_DIR: data }, /Postgres 9\.6/],
    ['a query', '', { PF_PUBLIC_URL: 'https://forum.example/?a=b' }, /PUBLIC_URL/],
    [
      'two things at once',
      'ulimit -n 256;',
      { DATA_DIR: data, PUBLIC_URL: 'https://forum.example/x' },
      /256 files|PUBLIC_URL|9\.6/,
    ],
  ] as const) {
    const { status, stderr, stdout } = start(limit, env);
    t.equal(status, 2, `${what}: ${stderr.slice(0, 300)}`);
    t.match(stderr, pattern, what);
    t.match(stderr, /^[^\n]+\n$/, `${what}: one line`);
    t.equal(stdout, '', `${what}: and nothing else`);
    t.notMatch(stderr, /compile/, what);
    for (const made of ['node_modules', 'dist', '.data']) {
      t.notOk(existsSync(path.join(folder, made)), `${what}: no ${made}`);
    }
  }
});

t.test('doctor says the same, as JSON too, with the way out', async (t) => {
  const { redis_url, redis_prefix } = await openStores(t);
  for (const version of ['17', '9.6', '19']) {
    const env = {
      PORT: '0',
      DATA_DIR: makeData(t, `${version}\n`),
      REDIS_URL: redis_url,
      REDIS_PREFIX: redis_prefix,
    };
    const plain = await runTool('doctor', env);
    t.equal(plain.code, 2, `${version}: ${plain.output.slice(-400)}`);
    t.match(plain.output, `Postgres ${version}`, version);
    t.match(plain.output, /backup[\s\S]*restore/, `${version}: the way out`);
    const json = await runTool('doctor', env, '--json');
    t.equal(json.code, 2, `${version} as JSON`);
    const document = JSON.parse(json.output.split('\n')[0] ?? '');
    t.match(document, { ok: false, exit_code: 2 }, `${version}: the document`);
    t.match(JSON.stringify(document), `Postgres ${version}`, `${version}: in the document`);
    t.match(JSON.stringify(document), /restore/, `${version}: the way out in the document`);
  }
});

/** Returns how a start ends, or that it does not end. */
const startHere = async (t: Test, folder: string, env: NodeJS.ProcessEnv) => {
  const launched = launch(folder, { API_PROCESSES: '1', ...env });
  t.teardown(async () => {
    if (launched.child.exitCode === null) await endService(launched.child, folder);
  });
  const code = await Promise.race([
    launched.code,
    launched.url.then(
      () => 'it runs' as const,
      () => launched.child.exitCode ?? ('it hangs' as const),
    ),
  ]);
  const output = launched.output();
  return { code, output };
};

const storesEnv = async (t: Test) => {
  const stores = await openStores(t);
  const env = {
    DATABASE_URL: stores.database_url,
    REDIS_URL: stores.redis_url,
    REDIS_PREFIX: stores.redis_prefix,
  };
  return { ...stores, env };
};

t.test(
  'a port that somebody else has stops the start, with the port in its last words',
  async (t) => {
    const { env } = await storesEnv(t);
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    t.teardown(() => other.close());
    const port = String((other.address() as AddressInfo).port);
    for (const [what, more] of [
      ['the port of the service', { PORT: port }],
      ['the port of the service, of two processes', { PORT: port, API_PROCESSES: '2' }],
      ['the port of the metrics, which a role needs', { METRICS_PORT: port }],
    ] as const) {
      const { code, output } = await startHere(t, t.testdir({}), { ...env, ...more });
      t.ok(code === 1 || code === 2, `${what}: ${code}: ${output.slice(-600)}`);
      t.match(output, port, `${what}: names it`);
      t.notMatch(output, /compile/, what);
    }
  },
);

t.test('a folder that is none, and an address of another kind of store', async (t) => {
  const { env } = await storesEnv(t);
  const folder = t.testdir({ file: 'not a folder' });
  const file = path.join(folder, 'file');
  for (const [what, data, more, pattern] of [
    ['a file in place of DATA_DIR', file, env, /file|DATA_DIR/],
    ['a folder below a file', path.join(file, 'data'), env, /file|DATA_DIR/],
    ['a folder where nobody may write', '/proc/forum', env, /\/proc\/forum|DATA_DIR/],
    [
      'MySQL',
      folder,
      { ...env, DATABASE_URL: 'mysql://a:pw-secret@db/forum' },
      /DATABASE_URL|Postgres/,
    ],
    [
      'an address without a scheme',
      folder,
      { ...env, DATABASE_URL: 'db:5432/forum' },
      /DATABASE_URL|Postgres/,
    ],
    ['Redis by HTTP', folder, { ...env, REDIS_URL: 'http://cache:6379' }, /REDIS_URL|Redis/],
    [
      'a PF_ name that is none',
      folder,
      { ...env, PF_DATA_DIRECTORY: '/data' },
      /PF_DATA_DIRECTORY/,
    ],
    [
      'a file of a setting that is not there',
      folder,
      { ...env, ADMIN_KEY_FILE: '/none' },
      /ADMIN_KEY/,
    ],
  ] as const) {
    const { code, output } = await startHere(t, data, more);
    t.equal(code, 2, `${what}: ${code}: ${output.slice(-400)}`);
    t.match(output, pattern, what);
    t.notMatch(output, /^\s+at .*:\d+:\d+\)?$/m, `${what}: no stack`);
    t.notMatch(output, 'pw-secret', what);
    t.notMatch(output, /compile/, what);
  }
});

t.test('a database that is ahead of the program is left as it is', async (t) => {
  const { env, database_url } = await storesEnv(t);
  const sql = openAdmin(database_url);
  t.teardown(() => sql.end({ timeout: 1 }));
  await sql`
    insert into migrations
    select (jsonb_populate_record(m, '{"number": 9999, "name": "9999_of_tomorrow.sql"}')).*
    from (select * from migrations order by number desc limit 1) last
    join migrations m using (number)`;
  const before = await sql`select count(*)::integer as tables from pg_class`;
  const { code, output } = await startHere(t, t.testdir({}), env);
  t.equal(code, 2, `${code}: ${output.slice(-400)}`);
  t.match(output, /ahead|newer|9999/i, 'it says which is older');
  t.notMatch(output, /^\s+at .*:\d+:\d+\)?$/m, 'no stack');
  t.same(await sql`select count(*)::integer as tables from pg_class`, before, 'nothing was made');
  const migrated = await runTool('migrate', { PORT: '0', DATA_DIR: t.testdir({}), ...env });
  t.equal(migrated.code, 2, `migrate: ${migrated.output}`);
  const doctor = await runTool('doctor', { PORT: '0', DATA_DIR: t.testdir({}), ...env }, '--json');
  t.not(doctor.code, 0, 'doctor does not call that all right');
});

t.test('only sources that do not compile are said not to compile', async (t) => {
  const makeCheckout = (compiler: string | null): string => {
    const folder = t.testdir({
      src: { 'main.ts': "console.log('started');\n" },
      test: { 'run.ts': 'export const ran = true;\n' },
      'package.json': '{"type":"module"}',
    });
    cpSync(path.join(project_root, 'src', 'boot'), path.join(folder, 'src', 'boot'), {
      recursive: true,
    });
    for (const name of ['package-lock.json', 'tsconfig.json']) {
      cpSync(path.join(project_root, name), path.join(folder, name));
    }
    const packages = path.join(folder, 'node_modules');
    const bin = path.join(packages, 'typescript', 'bin');
    mkdirSync(bin, { recursive: true });
    cpSync(path.join(project_root, 'node_modules', '.pf-lock'), path.join(packages, '.pf-lock'));
    writeFileSync(path.join(packages, 'typescript', 'package.json'), '{"type":"module"}');
    if (compiler !== null) writeFileSync(path.join(bin, 'tsc'), compiler);
    return folder;
  };
  const wrong = "console.log('src/main.ts(1,1): error TS2322: no.'); process.exitCode = 2;";
  for (const [what, compiler, is_wrong] of [
    ['a source with an error', wrong, true],
    ['a compiler that is killed for its memory', "process.kill(process.pid, 'SIGKILL');", false],
    ['a compiler that aborts', 'process.abort();', false],
    ['a compiler that is not there', null, false],
    ['a full disk', "throw new Error('ENOSPC: no space left on device, write');", false],
  ] as const) {
    const checkout = makeCheckout(compiler);
    const { status, stderr, stdout } = spawnSync(
      process.execPath,
      [path.join(checkout, 'src', 'boot', 'run.mjs'), 'start'],
      {
        encoding: 'utf8',
        timeout: 120_000,
        env: { ...process.env, DATA_DIR: path.join(checkout, 'data') },
      },
    );
    const output = stderr + stdout;
    t.not(status, 0, `${what}: ${output.slice(-300)}`);
    t.notMatch(output, /^started$/m, what);
    t.equal(/do not compile/.test(output), is_wrong, `${what}: ${output.slice(-300)}`);
  }
});
