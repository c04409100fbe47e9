import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Test } from 'tap';
import { agentId, seed } from '../../bench/env/seed.js';
import type { Sql } from '../../src/db/client.js';
import { applyMigrations, type Migration, readMigrations } from '../../src/db/migrate.js';
import { makeApiKey } from '../../src/features/accounts/rules.js';
import { makeId } from '../../src/kit/ids.js';
import { embeddedPostgresUrl } from '../../src/process/embedded/postgres.js';
import { dropSchema, readTables } from '../../src/tools/backup/tables-store.js';
import { dumpDatabase, runBackup } from '../../src/tools/backup.js';
import type { Call } from '../../src/tools/command.js';
import { startReceiver } from '../../src/tools/demo/counters.js';
import { runDemo } from '../../src/tools/demo.js';
import { checkBackup, loadDatabase, runRestore } from '../../src/tools/restore.js';
import { findDifferences, runVerify } from '../../src/tools/verify.js';
import { makeCaller, startApp, type TestApp } from '../help/app.js';
import { loadOldSchema } from '../help/old-schema.js';
import { makeTestFolder, openAdmin, removeTestFolder } from '../help/own-stores.js';
import { openParts } from '../help/parts.js';
import { runTool } from '../help/run-tool.js';
import { endService, launch, startService } from '../help/service.js';
import { openStores, startPrivateStores } from '../help/stores.js';
import { makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

const makeFolder = (t: Test): string => {
  const folder = makeTestFolder();
  t.teardown(() => removeTestFolder(folder));
  return folder;
};

/** Runs the tool in this process, with only these settings. */
const run = async (
  tool: (call: Call) => Promise<number>,
  env: Readonly<Record<string, string>>,
  ...argv: readonly string[]
) => {
  const before = process.env;
  process.env = { PATH: before['PATH'], ...env };
  let output = '';
  const screen = { write: (text: string) => (output += text) };
  try {
    return { code: await tool({ argv, screen }), output };
  } finally {
    process.env = before;
  }
};

/**
 * Exports wait until every transaction of a server is over, and a restore takes a long time. So
 * this test has its own server.
 */
const stores = await startPrivateStores(t, { durable: false });

const damage = (whole: Buffer): readonly (readonly [string, Buffer, RegExp])[] => {
  const plain = gunzipSync(whole);
  const edited = Buffer.from(plain);
  edited.write('Bench Agent', edited.indexOf('Bench agent'));
  const flipped = Buffer.from(whole);
  flipped.writeUInt8(flipped.readUInt8(whole.length >> 1) ^ 1, whole.length >> 1);
  return [
    ['cut', whole.subarray(0, whole.length - 100), /cut off, damaged/],
    ['cut at its last byte', whole.subarray(0, whole.length - 1), /cut off, damaged/],
    ['one bit', flipped, /cut off, damaged|was changed/],
    ['edited', gzipSync(edited), /was changed after it was made/],
    ['without its end', gzipSync(plain.subarray(0, plain.length - 2_048)), /cut off, damaged/],
    ['empty', Buffer.alloc(0), /ends too early|cut off/],
    ['another tar', gzipSync(Buffer.alloc(2_048)), /not a backup of this program/],
    ['no gzip', Buffer.from('select 1;'), /cut off, damaged/],
  ];
};

t.test('a database of somebody else’s: what is refused, and how it goes back', async (t) => {
  const app = await startApp(t, { stores });
  const keys = [makeApiKey(), makeApiKey(), makeApiKey()];
  await seed(app.sql, { keys, questions: 1 });
  const [question] = await app.sql<{ id: string }[]>`select id from questions`;
  const predict = async (of: TestApp, n: number) => {
    const { status } = await of.call('POST', `/api/questions/${question?.id}/predict`, {
      key: keys[n] as string,
      body: { prediction: true, confidence: 71, reasoning: makeReasoning(`season ${n}`) },
    });
    t.equal(status, 201);
  };
  const hasEvents = (of: TestApp, count: number) =>
    until('the events', async () => (await of.sql`select from events`).length === count);
  const env = {
    DATA_DIR: makeFolder(t),
    DATABASE_URL: stores.database_url,
    REDIS_URL: stores.redis_url,
    REDIS_PREFIX: stores.redis_prefix,
    SECRET_KEY: 'test-secret-key-0123456789abcdefghij',
  };
  const file = path.join(env.DATA_DIR, 'kept.tar.gz');
  await predict(app, 0);
  await hasEvents(app, 1);
  t.match(await run(runBackup, env, file), { code: 0 });
  t.match(await run(runBackup, env, file), { code: 1, output: /already exists/ });
  await predict(app, 1);
  await predict(app, 2);
  await hasEvents(app, 3);
  const running = await run(runRestore, env, file, '--replace');
  t.match(running, { code: 1, output: /still uses this database.*prediction-forum/ });
  await app.stop();
  const full = await run(runRestore, env, file);
  t.match(full, { code: 1, output: /not empty.*--replace.*The database is unchanged/ });
  const other_key = { ...env, SECRET_KEY: 'another-secret-key-0123456789abcdef' };
  const sealed = await run(runRestore, other_key, file, '--replace');
  t.match(sealed, { code: 1, output: /This is a different SECRET_KEY.*--without-key/ });
  for (const [what, bytes, said] of damage(readFileSync(file))) {
    const bad = path.join(env.DATA_DIR, 'bad.tar.gz');
    writeFileSync(bad, bytes);
    const ran = await run(runRestore, env, bad, '--replace');
    t.match(ran, { code: 1, output: said }, what);
    t.match(ran.output, /The database is unchanged\.\n$/);
  }
  const none = await run(runRestore, env, path.join(env.DATA_DIR, 'none'));
  t.match(none, { code: 1, output: /none: there is no such file/ });
  const sql = openAdmin(env.DATABASE_URL);
  t.equal((await sql`select from predictions`).length, 3, 'nothing was changed');
  await sql.end();

  t.match(await run(runRestore, env, file, '--replace'), { code: 0 });
  const again = await startApp(t, { stores });
  const rows = await again.sql<{ id: string }[]>`select agent_id as id from predictions`;
  t.same([...rows], [{ id: agentId(0) }]);
  // Redis has no data from before the restore.
  await predict(again, 2);
  await hasEvents(again, 2);
  const { deps } = await openParts(t, { stores });
  const compared = { sql: deps.sql, redis: deps.redis, prefix: stores.redis_prefix };
  const agree = async () => (await findDifferences(compared)).length === 0;
  await until('nothing differs', agree, 30_000, 200);
});

t.test('a backup of an older schema is brought to the present one', async (t) => {
  const sql = openAdmin(stores.database_url);
  t.teardown(() => sql.end());
  const file = path.join(makeFolder(t), 'old.tar.gz');
  const [first] = readMigrations() as readonly [Migration];
  const second = { number: 2, name: '0002_nick.sql', text: 'alter table humans add nick text' };
  const id = makeId();
  await sql.begin(async (tx) => {
    await dropSchema(tx, [first]);
    await applyMigrations(tx, [first]);
    await tx`
      insert into humans (id, email, email_key, name, password_hash)
      values (${id}, 'a@b.dev', 'a@b.dev', ${'tab\t, line\n, \\N and ☂'}, 'x')`;
    await tx`insert into leases (name, holder, fence, expires_at) values ('a', ${id}, 7, now())`;
  });
  const say = (): void => undefined;
  await dumpDatabase(sql, { file, secret_key_check: null, say });
  const [before] = await sql`select * from humans`;
  const manifest = await checkBackup(file);
  t.same(manifest.migrations, [first.name]);
  const options = { file, manifest, say, emptyRedis: async () => undefined };
  const load = (migrations: readonly Migration[]) =>
    loadDatabase(sql, { ...options, migrations, replace: true });
  await t.rejects(load([]), /is at migration 1 and this program knows 0/);
  await t.rejects(load([second]), /a different migration 0001_schema\.sql/);
  await load([first, second]);
  t.same((await sql`select number from migrations`).length, 2);
  t.match((await sql`select * from humans`)[0], { ...before, nick: null });
  t.match([...(await sql`select fence from leases`)], [{ fence: 7 }]);
  await sql`alter table humans drop nick`;
  await sql`delete from migrations where number = 2`;
});

t.test('a backup of the earlier migrations is restored, if all of them had run', async (t) => {
  const { database_url } = await openStores(t);
  await loadOldSchema(database_url);
  const old = openAdmin(database_url);
  const folder = makeFolder(t);
  const dump = async (name: string): Promise<string> => {
    const file = path.join(folder, name);
    await dumpDatabase(old, { file, secret_key_check: null, say: () => undefined });
    return file;
  };
  const whole = await dump('whole.tar.gz');
  await old`delete from migrations where number = 45`;
  const older = await dump('older.tar.gz');
  const env = {
    DATA_DIR: folder,
    DATABASE_URL: stores.database_url,
    REDIS_URL: stores.redis_url,
    REDIS_PREFIX: stores.redis_prefix,
  };
  const refused = await run(runRestore, env, older, '--replace');
  t.match(refused, { code: 2, output: /has 44 of the 45 migrations .* Check out commit dd20781e/ });
  t.match(await run(runRestore, env, whole, '--replace'), { code: 0 });
  const sql = openAdmin(stores.database_url);
  t.same(
    [...(await sql`select number, name from migrations order by number`)],
    readMigrations().map(({ number, name }) => ({ number, name })),
  );
  const read = (db: Sql) => db`select * from predictions order by id`;
  t.same([...(await read(sql))], [...(await read(old))]);
  t.equal((await sql`select to_regclass('shard_head') as table`)[0]?.['table'], null);

  await old.end();
  await sql.end();
  const onto = { ...env, DATABASE_URL: database_url };
  t.match(await run(runRestore, onto, whole, '--replace'), { code: 2, output: /dd20781e/ });
  await loadOldSchema(database_url);
  t.match(await run(runRestore, onto, whole, '--replace'), { code: 0 });
  const again = openAdmin(database_url);
  t.same(
    [
      ...(await again`select to_regclass('agents')::text, to_regclass('shard_head')::text as other`),
    ],
    [{ to_regclass: 'agents', other: null }],
  );
  await again.end();
});

t.test('a backup holds all that the schema can hold', async (t) => {
  const sql = openAdmin((await openStores(t)).database_url);
  t.teardown(() => sql.end());
  // Views contain no data, and migrations create them.
  const others = await sql`
    select relname from pg_class
    where relnamespace = current_schema()::regnamespace
      and relkind not in ('r', 'p', 'i', 'I', 't', 'v')`;
  t.same([...others], [], 'sequences and materialized views would have to be in it as well');
});

/** Row counts of all tables that do not change while a service is idle. */
const countRows = async (sql: Sql): Promise<Readonly<Record<string, number>>> => {
  const { tables } = await sql.begin((tx) => readTables(tx));
  const restless = [
    'leases',
    'signers',
    'idempotency',
    'consensus_snapshots',
    'human_tokens',
    // The timer makes these from scores soon after the start.
    'adjusted_boards',
    'consensus_fits',
  ];
  const found: Record<string, number> = {};
  for (const { name } of tables.filter((table) => !restless.includes(table.name))) {
    const [row] = await sql.unsafe<{ n: number }[]>(`select count(*)::int as n from ${name}`);
    found[name] = row?.n ?? -1;
  }
  return found;
};

t.test('what the demo made moves to an empty folder and goes on there', async (t) => {
  const first = await startService(t, { agents: 2, questions: 2 });
  const played = await runDemo({
    argv: ['--url', first.url, '--data', first.folder, '--agents', '8'],
    screen: { write: () => undefined },
  });
  t.equal(played, 0);
  const read = (name: string): string => readFileSync(path.join(first.folder, name), 'utf8');
  const tls = { cert: read('dev-cert.pem'), key: read('dev-key.pem') };
  const receiver = await startReceiver(tls, () => true);
  t.teardown(receiver.close);
  const [{ key = '' } = {}, other] = first.agents;
  const [question = { id: '' }] = first.questions;
  const url = `https://127.0.0.1:${receiver.port}/hook`;
  const hook = await makeCaller(first.url)('POST', '/api/webhooks', {
    key,
    body: { url, events: ['prediction.placed'] },
  });
  t.equal(hook.status, 201);
  receiver.secret = hook.body.secret;
  const predict = (at: string, by = '') =>
    makeCaller(at)('POST', `/api/questions/${question.id}/predict`, {
      key: by,
      body: { prediction: true, confidence: 71, reasoning: makeReasoning(by) },
    });
  const before = await predict(first.url, key);
  await until('its delivery', () => receiver.verified.has(before.body.event_id));
  const last = await makeCaller(first.url)('GET', '/api/events?limit=1');
  const file = path.join(makeFolder(t), 'kept.tar.gz');
  // The demo deleted its webhook. Soon after, its deliveries are gone and the boards are built.
  await until('one delivery is left, and the boards are made', async () => {
    const [row] = await first.sql`
      select
        (select count(*)::int from deliveries) as deliveries,
        exists (select from standing_changes union all select from debater_changes) as waiting`;
    return row?.['deliveries'] === 1 && row['waiting'] === false;
  });
  const counts = await countRows(first.sql);
  const predictions = new RegExp(`predictions +${counts['predictions']}\\n`);
  const kept = await runTool('backup', { DATA_DIR: first.folder }, file);
  t.match(kept, { code: 0, output: /kept\.tar\.gz is written/ });
  t.match(kept.output, predictions);
  t.match(kept.output, /Keep .*\/secret-key too/);
  t.equal(statSync(file).mode & 0o777, 0o600);
  await first.stop();
  const at_rest = await run(runBackup, { DATA_DIR: first.folder }, `${file}.rest`);
  t.match(at_rest, { code: 0, output: predictions });

  const folder = makeFolder(t);
  const env = { DATA_DIR: folder };
  const no_key = await run(runRestore, env, file);
  t.match(no_key, { code: 1, output: /There is no SECRET_KEY/ });
  t.equal(embeddedPostgresUrl(folder), null, 'nothing was changed');
  copyFileSync(path.join(first.folder, 'secret-key'), path.join(folder, 'secret-key'));
  const restored = await runTool('restore', env, file);
  t.match(restored, { code: 0, output: /Everything is restored/ });
  t.match(restored.output, predictions);

  const second = launch(folder, {
    API_PROCESSES: '1',
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    WEBHOOK_CA_FILE: path.join(first.folder, 'dev-ca.pem'),
  });
  t.teardown(() => endService(second.child, folder));
  const at = await second.url;
  const sql = openAdmin(embeddedPostgresUrl(folder) ?? '');
  t.teardown(() => sql.end());
  t.same(await countRows(sql), counts);
  t.match(await run(runVerify, env), { code: 0, output: /Nothing differs/ });

  const after = await predict(at, other?.key);
  t.equal(after.status, 201, 'keys work');
  await until('a delivery signed with the old secret', () =>
    receiver.verified.has(after.body.event_id),
  );
  t.equal(receiver.rejected, 0);
  const events = await makeCaller(at)('GET', `/api/events?after=${last.body.head}`);
  t.match(events.body.events, [{ offset: last.body.head + 1, id: after.body.event_id }]);
  t.same(events.body.events.length, 1);
  t.match(await run(runVerify, env), { code: 0, output: /Nothing differs/ });
  const running = await run(runRestore, env, file, '--replace');
  t.match(running, { code: 1, output: /The service is already running on/ });
});
