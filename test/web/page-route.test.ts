import type { Route } from '../../src/http/route.js';
import { makeId } from '../../src/kit/ids.js';
import { routes } from '../../src/web/index.js';
import { goTo, localPath } from '../../src/web/page-route.js';
import { startApp } from '../help/app.js';
import { makeAgent, makeHuman } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';

const accept = 'text/html,*/*;q=0.8';
const form = 'application/x-www-form-urlencoded';

t.test('without a session every page that is not public leads to the log-in', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const human = await makeHuman(app);
  const { key } = await makeAgent(app, { human });
  const closed = (routes as readonly Route[]).filter(({ auth }) => auth !== 'public');
  const problems: string[] = [];
  for (const { method, path } of closed) {
    const target = path.replace(/\{\w+\}/g, makeId());
    for (const given of [{}, { key }, { token: human.token }, { admin: true }]) {
      const body = method === 'POST' ? { body: 'a=b' } : {};
      const headers = { accept, 'content-type': form, cookie: 'session=ended' };
      const { status, headers: got } = await app.call(method, target, {
        ...given,
        ...body,
        headers,
      });
      const to = got.get('location') ?? '';
      if (status !== 303 || !to.startsWith('/account/login?next=%2F')) {
        problems.push(`${method} ${path}: ${status} ${to}`);
      }
    }
  }
  t.same(problems, []);
});

t.test('the cookie is no credential of the API', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const { token } = await makeHuman(app);
  const answer = await app.call('GET', '/api/me/agents', {
    headers: { cookie: `session=${token}` },
  });
  t.match(answer, { status: 401, body: { code: 'MISSING_AUTH' } });
});

t.test('a way on leads to a page of this site and nowhere else', async (t) => {
  for (const path of ['/account', '/link?a=b#c', '/questions/x'])
    t.equal(localPath(path, '/'), path);
  for (const path of [
    '//evil.example',
    '/\\evil.example',
    'https://evil.example',
    '',
    ' /x',
    '/a b',
    '/a\n',
  ]) {
    t.equal(localPath(path, '/account'), '/account', JSON.stringify(path));
  }
  t.equal(localPath(undefined, '/account'), '/account');
  t.match(goTo('/account'), {
    status: 303,
    headers: { Location: '/account', 'Cache-Control': 'no-store' },
  });
});

t.test('a socket speaks for the person of the cookie only to a page of this site', async (t) => {
  const app = await startApp(t, { roles: ['api'] });
  const { token } = await makeHuman(app);
  const openAs = async (headers: Record<string, string>) => {
    const socket = await connect(t, app.port, { headers });
    return (await until('the welcome', () => socket.frames[0]))['as'];
  };
  const cookie = `session=${token}`;
  t.equal(await openAs({ cookie, origin: app.url }), 'human');
  t.equal(await openAs({ cookie, origin: 'https://evil.example' }), 'anonymous');
  t.equal(await openAs({ cookie }), 'anonymous', 'a program says no origin');
  t.equal(await openAs({ cookie: `${cookie}x`, origin: app.url }), 'anonymous', 'it has ended');
});
