import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { Redis } from 'ioredis';
import { checkout_commands, commands, nearestNames, sayUnknown } from '../../src/boot/commands.mjs';
import { tallyKey } from '../../src/features/consensus/index.js';
import { streamKey } from '../../src/features/events/log-entry.js';
import { embeddedPostgresUrl } from '../../src/process/embedded/postgres.js';
import { embeddedRedisUrl } from '../../src/process/embedded/redis.js';
import type { Answered } from '../help/app.js';
import { makeTestFolder, openAdmin, removeTestFolder } from '../help/own-stores.js';
import { runProgram, startProgram } from '../help/run-command.js';
import { endService } from '../help/service.js';
import { makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

t.test('what is mistyped is refused with the nearest names', async (t) => {
  const names = [...Object.keys(commands), ...Object.keys(checkout_commands)];
  t.same(nearestNames('migrat', names), ['migrate']);
  t.same(nearestNames('strat', names), ['start'], 'two letters are swapped');
  t.same(nearestNames('xxxxxxxx', names), []);
  t.equal(sayUnknown('command', 'strat', names), 'Unknown command "strat". Did you mean "start"?');
  t.equal(sayUnknown('command', 'xxxxxxxx', names), 'Unknown command "xxxxxxxx".');
  t.equal(sayUnknown('action', 'x', ['add', 'list']), 'Unknown action "x". Use one of: add, list.');
  t.equal(sayUnknown('action', '', ['add']), 'The action is missing. Use one of: add.');
  const [command, option, action, missing, bare] = await Promise.all([
    runProgram({}, 'verfy', '--json'),
    runProgram({}, 'verify', '--jsn'),
    runProgram({}, 'key', 'rotat', 'x', '--json'),
    runProgram({}, 'export'),
    runProgram({}),
  ]);
  t.match(command, {
    code: 2,
    errors: /^Unknown command "verfy"\. Did you mean "verify"\?/,
    document: { ok: false },
  });
  t.match(option, {
    code: 2,
    errors: /Unknown option "--jsn"\. Did you mean "--json"\?/,
    output: '',
  });
  t.match(action.document, { ok: false, exit_code: 2, error: /Did you mean "rotate"\?/ });
  t.match(missing, { code: 2, errors: /^An argument is missing\./ });
  t.match(bare, { code: 2, errors: /^Usage: prediction-forum COMMAND/ });
});

t.test('wrong settings are 2, and what is not there is 3', async (t) => {
  const nowhere = { DATA_DIR: t.testdir(), DATABASE_URL: 'postgres://127.0.0.1:1/none' };
  const runs = await Promise.all([
    runProgram({ PORT: 'abc', DATA_DIR: t.testdirName }, 'start', '--json'),
    runProgram({ PF_PRT: '1' }, 'migrate'),
    runProgram(nowhere, 'migrate', '--json'),
    runProgram({ DATA_DIR: path.join(t.testdirName, 'none') }, 'verify'),
    runProgram({}, 'import', 'none.ndjson', '--url', 'http://127.0.0.1:1', '--json'),
  ]);
  t.same(
    runs.map(({ code }) => code),
    [2, 2, 3, 3, 1],
  );
  t.match(runs[2].document, { ok: false, exit_code: 3, error: /^Postgres does not answer/ });
  t.match(runs[4].document.error, /there is no such file/);
});

t.test('the commands of an operator, with a service that runs', async (t) => {
  const folder = makeTestFolder();
  const env = { DATA_DIR: folder, PORT: '0', API_PROCESSES: '1', ADMIN_EMAILS: 'ada@example.org' };
  const run = (...args: string[]) => runProgram(env, ...args, '--json');
  const service = startProgram(env, 'start', '--json');
  t.teardown(async () => {
    await endService(service, folder);
    removeTestFolder(folder);
  });
  const [line] = (await once(service.stdout as NodeJS.EventEmitter, 'data')) as [Buffer];
  const { ok, url, data_dir } = JSON.parse(String(line));
  t.match({ ok, data_dir }, { ok: true, data_dir: folder });
  const call = async (method: string, at: string, key: object, body?: object) => {
    const answer = await fetch(`${url}${at}`, {
      method,
      headers: { 'content-type': 'application/json', ...key },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as Answered['body'] };
  };
  const sql = openAdmin(embeddedPostgresUrl(folder) ?? '');
  const redis = new Redis(embeddedRedisUrl(folder).replace(/^unix:/, ''));
  t.teardown(async () => {
    redis.disconnect();
    await sql.end();
  });

  const [doctor, migrated, planned] = await Promise.all([
    run('doctor'),
    run('migrate'),
    run('migrate', '--dry-run'),
  ]);
  t.match(doctor.document, {
    ok: true,
    checks: [
      { name: 'Machine', ok: true },
      { name: 'DATA_DIR', ok: true },
    ],
  });
  t.match(migrated.document, { ok: true, applied: [], to: Number });
  t.match(planned.document, { ok: true, dry_run: true, applied: [] });

  // An admin and one of her agents.
  const added = await run('admin', 'add', 'Ada@example.org', '--name', 'Ada');
  t.match(added.document, { ok: true, is_new: true, is_admin: true });
  const { password } = added.document;
  const login = await call('POST', '/api/auth/login', {}, { email: 'ada@example.org', password });
  const bearer = { authorization: `Bearer ${login.body.token}` };
  t.equal((await call('GET', '/api/admin/people', bearer)).status, 200, 'she is an admin');
  const [again, listed] = await Promise.all([
    run('admin', 'add', 'ada@example.org'),
    run('admin', 'list'),
  ]);
  t.match(again.document, { ok: true, is_new: false });
  t.match(listed.document, { people: [{ email: 'ada@example.org', state: 'admin' }] });

  const created = await run(
    'key',
    'create',
    'Tycho',
    '--model',
    'gpt-5',
    '--owner',
    'ada@example.org',
  );
  const first = { 'x-api-key': created.document.api_key };
  t.equal((await call('GET', '/api/me', first)).body.user.owner_linked, true);
  const [taken, rotated] = await Promise.all([
    run('key', 'create', 'Tycho', '--model', 'gpt-5'),
    run('key', 'rotate', 'tycho'),
  ]);
  t.equal(taken.code, 1, 'the name is taken');
  const key = { 'x-api-key': rotated.document.api_key };
  t.equal((await call('GET', '/api/me', key)).status, 200);
  await until('the first key stops', async () => {
    return (await call('GET', '/api/me', first)).status === 401;
  });

  // The data in Redis is rebuilt.
  const admin_key = readFileSync(path.join(folder, 'admin-key'), 'utf8').trim();
  const asked = await call(
    'POST',
    '/api/admin/questions',
    { 'x-admin-key': admin_key },
    {
      question: 'Will the ferry to the outer islands run all winter?',
      category: 'society',
      closes_at: '2099-01-01T00:00:00Z',
      publish: true,
    },
  );
  const { id } = asked.body.question;
  const body = { prediction: true, confidence: 71, reasoning: makeReasoning() };
  t.equal((await call('POST', `/api/questions/${id}/predict`, key, body)).status, 201);
  const tally = tallyKey('pf', id);
  await until('it is tallied', async () => (await redis.exists(tally)) === 1);
  const right = await redis.hgetall(tally);
  await redis.hset(tally, 'o', 999, 'gpt|y|1|n', 7);
  await redis.xtrim(streamKey('pf'), 'MAXLEN', 0);
  await redis.hset('pf:{boards}:built', 'all:all', 'another');
  const [rebuilt, no_part] = await Promise.all([run('rebuild'), run('rebuild', 'tallies')]);
  t.match(rebuilt.document, { ok: true, rebuilt: { boards: /slices$/, stream: /entries$/ } });
  t.same(await redis.hgetall(tally), right);
  t.ok((await redis.xlen(streamKey('pf'))) > 0);
  t.match(no_part.document, { exit_code: 2 });

  // A webhook of the agent.
  const read = (name: string) => readFileSync(path.join(folder, name), 'utf8');
  let answers = 204;
  const tls = { cert: read('dev-cert.pem'), key: read('dev-key.pem') };
  const receiver = createServer(tls, (_, answer) => answer.writeHead(answers).end());
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  t.teardown(() => receiver.close());
  const { port } = receiver.address() as AddressInfo;
  const hook = await call('POST', '/api/webhooks', key, {
    url: `https://127.0.0.1:${port}/in`,
    events: ['prediction.placed'],
  });
  t.equal(hook.status, 201);
  const { id: hook_id } = hook.body;
  const [hooks, tested] = await Promise.all([
    run('webhook', 'list'),
    run('webhook', 'test', hook_id),
  ]);
  t.match(hooks.document, { webhooks: [{ id: hook_id, owner: 'Tycho', active: true }] });
  t.match(tested.document, { ok: true, status: 204 });
  answers = 500;
  t.match((await run('webhook', 'test', hook_id)).document, { exit_code: 1, status: 500 });
  t.match((await run('webhook', 'pause', hook_id)).document, { ok: true, active: false });
  t.equal((await call('GET', `/api/webhooks/${hook_id}`, key)).body.active, false);
  const since = ['--since', new Date(Date.now() - 60_000).toISOString()];
  t.equal((await run('webhook', 'replay', hook_id, ...since)).code, 1, 'it is off');
  t.match((await run('webhook', 'resume', hook_id)).document, { ok: true, active: true });
  const [replayed, ...refused] = await Promise.all([
    run('webhook', 'replay', hook_id, ...since),
    run('webhook', 'replay', hook_id),
    run('webhook', 'test', 'none'),
    run('webhook', 'list', hook_id),
  ]);
  t.match(replayed.document, { ok: true });
  t.same(
    refused.map(({ code }) => code),
    [2, 1, 2],
  );

  const acts = await sql<{ act: string }[]>`select act from audit_log order by id`;
  t.same(
    acts.map(({ act }) => act),
    [
      'person.verify',
      'agent.register',
      'agent.rotate_key',
      'question.create',
      'webhook.pause',
      'webhook.resume',
      'webhook.replay',
    ],
    'each act once, and none of what was refused',
  );
  t.match((await run('verify')).document, { ok: true, differences: [] });

  redis.disconnect();
  // While the service is stopped, a command starts Postgres itself.
  await endService(service, folder);
  t.equal(service.exitCode, 0);
  t.match((await run('rebuild')).document, { exit_code: 3, error: /Redis does not answer/ });
  t.match((await run('key', 'revoke', 'Tycho')).document, { ok: true, name: 'Tycho' });
  const before = read('admin-key');
  t.match((await run('admin', 'new-key')).document, { ok: true });
  t.not(read('admin-key'), before);
});
