import { execFile } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect, createServer as listenTcp } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import type { Test } from 'tap';
import { makeTrialText } from '#client/quickstart-text.js';
import { checkReasoning } from '../../src/features/predictions/gates.js';
import { runQuickstart } from '../../src/tools/quickstart.js';
import { startApp } from '../help/app.js';
import { installTarballs, makeEmptyFolder, packClient } from '../help/packed-client.js';
import { makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';

/**
 * The command as a newcomer runs it: with npx from the packed library, in an empty folder. After
 * the first time, it is run from the path where npm installs it, because npx itself takes longer
 * than the command.
 */

const open = async (t: Test) => {
  const empty = makeEmptyFolder(t);
  const tarballs = await packClient(empty);
  const installed = await installTarballs(empty, tarballs);
  const { folder: cwd, env } = empty;
  const start = (program: string, words: readonly string[]) =>
    new Promise<{ code: number | null; said: string; errors: string }>((resolve) => {
      const child = execFile(program, words, { cwd, env }, (_, said, errors) => {
        resolve({ code: child.exitCode, said, errors });
      });
    });
  const packages = tarballs.map((file) => `--package=${file}`);
  const runByNpx = (...args: readonly string[]) =>
    start('npx', ['--yes', ...packages, '--', 'prediction-forum', ...args]);
  const run = (...args: readonly string[]) =>
    start(path.join(installed, 'node_modules', '.bin', 'prediction-forum'), args);
  const write = (name: string, text: string): string => {
    writeFileSync(path.join(cwd, name), text);
    return name;
  };
  const readKey = (name = 'prediction-forum-key.json') => {
    const file = path.join(cwd, name);
    return { ...JSON.parse(readFileSync(file, 'utf8')), mode: statSync(file).mode & 0o777 };
  };
  return { run, runByNpx, write, readKey };
};

const { run, runByNpx, write, readKey } = await open(t);
const app = await startApp(t, { env: { LIMIT_REGISTER: '100' } });
const agentCount = async () => (await app.sql`select from agents`).length;

t.test('from nothing to a stored prediction and its event', async (t) => {
  const admin_key = write('admin-key', `${app.admin_key}\n`);
  const given = ['--admin-key-file', admin_key];
  const { code, said, errors } = await runByNpx('quickstart', app.url, ...given);
  t.equal(errors, '');
  t.equal(code, 0);
  const kept = readKey();
  t.match(said, `version 0.1.0.\n2. The agent ${kept.name} is registered.`);
  t.equal(said.split(kept.api_key).length, 2, 'the key is shown once');
  t.match(said, 'prediction-forum-key.json, which only you can read');
  t.equal(kept.mode, 0o600);
  t.match(said, new RegExp(`^3\\. .*${kept.person.email} was signed up`, 'm'));
  const order = [
    '4. An open question: ',
    '5. A dry run',
    '6. The prediction is stored',
    '7. Its event',
  ];
  const places = order.map((text) => said.indexOf(text));
  t.ok(places[0] !== -1 && places.every((at, n) => n === 0 || at > (places[n - 1] ?? 0)), said);

  const [row] = await app.sql<{ id: string; confidence: number; reasoning: string }[]>`
    select id, agent_id, confidence, reasoning from predictions`;
  t.match(row, { agent_id: kept.agent_id, confidence: 5_000 });
  t.ok(said.includes(row?.id ?? '-'));
  t.ok(said.includes((row?.reasoning ?? '-').replace(/^/gm, '     ')), 'the text is shown');
  const [event] = await app.sql`select "offset" from events where event = 'prediction.placed'`;
  t.match(said, `prediction.placed, at offset ${event?.['offset']}.`);
  const login = await app.call('POST', '/api/auth/login', { body: kept.person });
  t.equal(login.status, 200, 'the kept person can log in');
});

t.test('run again it goes on with the same agent, and says when nothing is left', async (t) => {
  const before = await agentCount();
  const done = await run('quickstart', app.url);
  t.equal(done.code, 1);
  t.match(done.errors, /^The agent has predicted on every open yes\/no question .*\n$/);
  await makeOpenQuestion(app);
  const again = await run('quickstart', app.url);
  t.equal(again.errors, '');
  t.equal(again.code, 0);
  t.match(again.said, /^3\. The agent is linked to a person\.$/m);
  t.notMatch(again.said, 'sk_');
  t.equal(await agentCount(), before);
});

t.test('a forecast of one’s own goes in place of the text for trials', async (t) => {
  const reasoning = makeReasoning('my own');
  const own = ['--reasoning', write('mine.txt', reasoning), '--probability', '12.5'];
  const { code, said } = await run('quickstart', app.url, '--key-file', 'second', ...own);
  t.equal(code, 0, said);
  const rows = await app.sql`
    select reasoning, prediction, confidence from predictions where agent_id = ${readKey('second').agent_id}`;
  t.same([...rows], [{ reasoning, prediction: false, confidence: 8_750 }]);
});

t.test(
  'a chosen question is forecast, and a wrong one is refused before anything else',
  async (t) => {
    const chosen = await makeOpenQuestion(app);
    const multi = await makeOpenQuestion(app, { question_type: 'multi', options: ['One', 'Two'] });
    await makeOpenQuestion(app);
    const agents = await agentCount();
    for (const [id, problem] of [
      ['nothing', /^--question nothing: /],
      [multi, /^--question must be the id of an open yes\/no question\.\n$/],
    ] as const) {
      const { code, errors } = await run(
        'quickstart',
        app.url,
        '--question',
        id,
        '--key-file',
        'q.json',
      );
      t.equal(code, 2);
      t.match(errors, problem);
    }
    t.equal(await agentCount(), agents, 'no agent is registered');
    const given = ['--question', chosen, '--key-file', 'q.json'];
    const { code, errors } = await run('quickstart', app.url, ...given);
    t.same([code, errors], [0, '']);
    const rows =
      await app.sql`select question_id from predictions where agent_id = ${readKey('q.json').agent_id}`;
    t.same([...rows], [{ question_id: chosen }]);
  },
);

t.test('a reasoning that the gates refuse is not sent', async (t) => {
  const bad = ['--key-file', 'third', '--reasoning', write('bad.txt', 'Because I say so.')];
  const { code, errors } = await run('quickstart', app.url, ...bad);
  t.equal(code, 1);
  t.match(errors, /^The dry run refuses the prediction: .+\n$/);
  const { agent_id } = readKey('third');
  t.equal((await app.sql`select from predictions where agent_id = ${agent_id}`).length, 0);
});

t.test('mistakes end with one line and nothing done', async (t) => {
  const stranger = createServer((_, response) => response.end('{"version":1}'));
  await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
  t.teardown(() => stranger.close());
  const { port } = stranger.address() as AddressInfo;
  const moved = createServer((_, response) =>
    response.writeHead(308, { location: 'https://forum.example/health' }).end(),
  );
  await new Promise<void>((resolve) => moved.listen(0, '127.0.0.1', resolve));
  t.teardown(() => moved.close());
  const { port: moved_port } = moved.address() as AddressInfo;
  const before = await agentCount();
  const key = ['--key-file', 'none'];
  write('odd', 'sk_1');
  write('elsewhere', '{"address":"https://a.example","api_key":"sk_1"}');
  write(
    'unknown',
    JSON.stringify({
      address: app.url,
      agent_id: '',
      name: '',
      api_key: readKey().api_key.replace(/.$/, '!'),
    }),
  );
  const mistakes: readonly (readonly [number, RegExp, readonly string[]])[] = [
    [3, /Nothing answers at http:\S+ \(ECONNREFUSED\)/, ['http://127.0.0.1:2']],
    [3, /may not support https\. Try http:/, [app.url.replace('http:', 'https:')]],
    [3, /There is no host forum\.invalid\./, ['https://forum.invalid']],
    [1, /is not a prediction forum\. Check the address/, [`http://127.0.0.1:${port}`]],
    [1, /Use https:\/\/forum\.example as the address/, [`http://127.0.0.1:${moved_port}`]],
    [2, /Use https:\/\/forum\.example\./, ['http://forum.example']],
    [2, /Give the full address/, ['forum.example']],
    [2, /Unknown option '--nmae'/, [app.url, '--nmae', 'x']],
    [2, /--probability must be a percentage/, [app.url, ...key, '--probability', '101']],
    [2, /--probability must be a percentage/, [app.url, ...key, '--probability', '']],
    [2, /nothing\.txt cannot be read/, [app.url, ...key, '--reasoning', 'nothing.txt']],
    [2, /odd contains no key/, [app.url, '--key-file', 'odd']],
    [2, /has the key of an agent on https:\/\/a\.example\./, [app.url, '--key-file', 'elsewhere']],
    [1, /does not know the key in unknown/, [app.url, '--key-file', 'unknown']],
    [1, /name.*\(DUPLICATE_NAME\)/i, [app.url, ...key, '--name', readKey().name]],
  ];
  const runs = await Promise.all(
    mistakes.map(async (mistake) => [...mistake, await run('quickstart', ...mistake[2])] as const),
  );
  for (const [code, sentence, , ran] of runs) {
    t.equal(ran.code, code, ran.errors);
    t.match(ran.errors, sentence);
    t.equal(ran.errors.trimEnd().split('\n').length, 1, ran.errors);
  }
  t.equal((await runByNpx('quikstart')).code, 2);
  t.equal(await agentCount(), before);
});

t.test('a trial is posted on a service elsewhere only with a yes', async (t) => {
  // The same service under this machine's name, which the command does not treat as loopback.
  const relay = listenTcp((socket) => {
    const other = connect(Number(new URL(app.url).port), '127.0.0.1');
    socket.on('error', () => other.destroy()).pipe(other);
    other.on('error', () => socket.destroy()).pipe(socket);
  });
  await new Promise<void>((resolve) => relay.listen(0, resolve));
  t.teardown(() => relay.close());
  const [name = ''] = os.hostname().split('.');
  const url = `http://${name}:${(relay.address() as AddressInfo).port}`;
  const key = ['--key-file', 'elsewhere-2'];
  await makeOpenQuestion(app);
  const countOf = async (): Promise<number> =>
    (await app.sql`select from predictions where agent_id = ${readKey('elsewhere-2').agent_id}`)
      .length;

  t.equal((await run('quickstart', url, ...key)).code, 4);
  const { token } = await makeHuman(app);
  const body = { api_key: readKey('elsewhere-2').api_key };
  t.equal((await app.call('POST', '/api/me/agents', { token, body })).status, 200);

  const refused = await run('quickstart', url, ...key);
  t.equal(refused.code, 2, refused.errors);
  t.match(refused.said, /^5\. A dry run/m);
  t.match(refused.errors, /^Nothing was posted on .* --reasoning FILE .* --yes\.\n$/);
  t.equal(await countOf(), 0);

  const posted = await run('quickstart', url, ...key, '--yes');
  t.equal(posted.code, 0, posted.errors);
  t.equal(await countOf(), 1);

  await makeOpenQuestion(app);
  const own = ['--reasoning', write('own.txt', makeReasoning('elsewhere'))];
  t.equal((await run('quickstart', url, ...key, ...own)).code, 0, 'a forecast of one’s own');
  t.equal(await countOf(), 2);
});

t.test('outside development the person links the agent', async (t) => {
  const app = await startApp(t, { env: { NODE_ENV: 'production' } });
  await makeOpenQuestion(app);
  const key = ['--key-file', 'production'];
  const first = await run('quickstart', app.url, ...key);
  t.equal(first.code, 4);
  t.match(first.said, `${app.url}/link`);
  t.match(first.errors, /^Run the same command again when the agent is linked\.\n$/);
  t.equal((await app.sql`select from humans`).length, 0, 'nobody is signed up');
  const { api_key } = readKey('production');
  const { token } = await makeHuman(app);
  t.equal((await app.call('POST', '/api/me/agents', { token, body: { api_key } })).status, 200);
  const second = await run('quickstart', app.url, ...key);
  t.equal(second.code, 0, second.errors);
  t.equal((await app.sql`select from predictions`).length, 1);
});

t.test('the command of the service is the same', async (t) => {
  let said = '';
  const screen = { write: (text: string) => (said += text) };
  const errors = { write: () => undefined };
  const [base, file] = [app.url, `${t.testdir({})}/key`];
  await makeOpenQuestion(app);
  const code = await runQuickstart({ argv: [base, '--key-file', file, '--json'], screen, errors });
  t.equal(code, 0);
  t.match(JSON.parse(said), {
    ok: true,
    exit_code: 0,
    address: base,
    prediction_id: /^[0-9a-f-]{36}$/,
  });
  said = '';
  t.equal(await runQuickstart({ argv: ['http://forum.example'], screen }), 2);
  t.match(said, 'Use https://forum.example');
});

t.test('every text for trials passes the gates', async (t) => {
  const texts = Array.from({ length: 500 }, () => makeTrialText());
  const wordings = new Set(texts.map((text) => text.replace(/\?trial=\S+/g, '')));
  t.ok(wordings.size > 100, `${wordings.size} wordings`);
  for (const text of texts) t.same(checkReasoning(text).failures, [], text);
});
