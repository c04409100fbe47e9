import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { makeApiKey, makeToken } from '../../src/features/accounts/rules.js';
import { admin_key, makeCaller, secret_key } from '../help/app.js';
import { openRaw, writeRequest } from '../help/raw-http.js';
import { openCalls } from '../help/socket-calls.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';

/** If a client sends its key in the wrong place, the key appears nowhere. */

const key = makeApiKey();
const { token } = makeToken('session');
const secrets = [key, token];

const startChild = async (t: Test) => {
  const { database_url, redis_url, redis_prefix } = await openStores(t);
  const child = fork(fileURLToPath(new URL('./api-child.js', import.meta.url)), {
    env: {
      PATH: process.env['PATH'],
      PORT: '0',
      LOG_LEVEL: 'debug',
      METRICS_PORT: '0',
      DATABASE_URL: database_url,
      REDIS_URL: redis_url,
      REDIS_PREFIX: redis_prefix,
      ADMIN_KEY: admin_key,
      SECRET_KEY: secret_key,
      LIMIT_IP: '100000',
    },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let log = '';
  child.stdout?.on('data', (chunk) => {
    log += chunk;
  });
  const [port] = (await once(child, 'message')) as [number];
  return {
    port,
    /** Everything that the process has logged. */
    async endAndRead() {
      const ended = once(child.stdout as NodeJS.ReadableStream, 'end');
      child.send('stop');
      await ended;
      return log;
    },
  };
};

t.test('a credential in a path, a method or X-Request-Id is repeated nowhere', async (t) => {
  const { port, endAndRead } = await startChild(t);
  const call = makeCaller(`http://127.0.0.1:${port}`);
  const answers: unknown[] = [];
  for (const secret of secrets) {
    for (const path of [`/api/agents/${secret}`, `/${secret}`, `/${secret.replace('_', '%5F')}`]) {
      const { body, headers } = await call('GET', path);
      answers.push(body, [...headers]);
    }
    for (const id of [secret, `mine-${secret}`]) {
      const { body, headers } = await call('GET', '/api/nothing', {
        headers: { 'x-request-id': id },
      });
      t.match(headers.get('x-request-id'), /^[0-9a-f]{8}-/, 'an id of our own in its place');
      answers.push(body, [...headers]);
    }
    const socket = await openCalls(t, port);
    const parts = { headers: { 'x-request-id': secret } };
    answers.push(await socket.call('GET', `/api/questions/${secret}`, parts));
    // The fast path writes its own log lines.
    for (let ask = 0; ask < 40; ask += 1) {
      const headers = { 'x-request-id': secret };
      answers.push([...(await call('GET', '/api/questions', { headers })).headers]);
    }
    const raw = openRaw(port);
    raw.write(writeRequest(`${secret} /api/questions HTTP/1.1`));
    answers.push(await raw.next());
  }
  const { headers } = await call('GET', '/api/nothing', { headers: { 'x-request-id': 'mine' } });
  t.equal(headers.get('x-request-id'), 'mine');
  const log = await endAndRead();
  t.match(log, /"path":"\/api\/agents\/\[redacted\]"/);
  t.match(log, /"path":"\/api\/questions"/);
  for (const secret of secrets) {
    t.notOk(log.includes(secret.slice(3)), `${secret.slice(0, 3)} in the log`);
    t.notOk(JSON.stringify(answers).includes(secret.slice(3)), `${secret.slice(0, 3)} in answers`);
  }
});
