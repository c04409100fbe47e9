import { queueMail } from '../../src/features/mail/index.js';
import { secret_key, startApp } from '../help/app.js';
import { openRaw } from '../help/raw-http.js';
import { openCalls } from '../help/socket-calls.js';
import { t } from '../help/tap.js';

const forum = await startApp(t, { roles: ['api'] });

/** The status of the outbox for a request with this Host header. */
const statusFor = async (port: number, host: string): Promise<number> => {
  const connection = openRaw(port);
  connection.write(`GET /dev/outbox HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  const answer = await connection.next();
  connection.reset();
  return answer?.status ?? 0;
};

t.test('the outbox lists the newest 100 mails', async (t) => {
  const by = { config: { SECRET_KEY: secret_key }, at: new Date() };
  await forum.sql.begin(async (tx) => {
    for (let n = 1; n <= 101; n += 1) {
      const mail = { to: 'many@example.org', subject: `No ${n}`, text: '<b>&</b>', links: [] };
      await queueMail(tx, mail, by);
    }
  });
  const { status, body, headers } = await forum.call('GET', '/dev/outbox');
  t.equal(status, 200);
  t.equal(body.length, 100);
  t.equal(headers.get('cache-control'), 'no-store');
  t.match(body[0], { to: String, subject: String, text: String, links: [], created_at: /Z$/ });
});

t.test('a page of another site, or under another name, cannot read the outbox', async (t) => {
  for (const [site, status] of [
    ['cross-site', 404],
    ['same-site', 404],
    ['same-origin', 200],
  ] as const) {
    const headers = { 'sec-fetch-site': site };
    t.equal((await forum.call('GET', '/dev/outbox', { headers })).status, status, site);
  }
  const port = String(forum.port);
  for (const host of ['localhost', '127.0.0.1', '[::1]', `LOCALHOST:${port}`, `[::1]:${port}`]) {
    t.equal(await statusFor(forum.port, host), 200, host);
  }
  const foreign = ['evil.example', `evil.example:${port}`, 'localhost.evil.example', '10.0.0.1'];
  for (const host of foreign) t.equal(await statusFor(forum.port, host), 404, host);
});

t.test('the outbox knows the name of PUBLIC_URL, and no socket reads it', async (t) => {
  const env = { PUBLIC_URL: 'http://forum.example:8080' };
  const named = await startApp(t, { roles: ['api'], env });
  t.equal(await statusFor(named.port, 'forum.example:8080'), 200);
  const socket = await openCalls(t, named.port, { host: 'evil.example' });
  for (const headers of [{}, { host: 'localhost' }]) {
    t.equal((await socket.call('GET', '/dev/outbox', { headers })).status, 404);
  }
});

t.test('production has no outbox', async (t) => {
  const live = await startApp(t, { roles: ['api'], env: { NODE_ENV: 'production' } });
  t.match(await live.call('GET', '/dev/outbox'), { status: 404, body: { code: 'NOT_FOUND' } });
});

t.test('for a browser it is a page, and what mails say stays text', async (t) => {
  const by = { config: { SECRET_KEY: secret_key }, at: new Date() };
  const link = `${forum.url}/auth/verify?token=hv_x`;
  const mail = { to: 'x@example.org', subject: '<b>Hi</b>', text: '<script>1</script>' };
  await forum.sql.begin((tx) => queueMail(tx, { ...mail, links: [link] }, by));
  const { headers, body } = await forum.call('GET', '/dev/outbox', {
    headers: { accept: 'text/html,*/*' },
  });
  t.match(headers.get('content-type'), /^text\/html/);
  t.equal(headers.get('cache-control'), 'no-store');
  t.match(body, /href="\/auth\/verify\?token=hv_x"/);
  t.notMatch(body, /<b>Hi|<script>1/);
});
