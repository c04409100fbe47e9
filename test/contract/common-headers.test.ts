import { startApp } from '../help/app.js';
import { openRaw, type RawAnswer, writeRequest } from '../help/raw-http.js';
import { makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';

/** Headers that every answer has, no matter which part of the service sends it. */

const app = await startApp(t, { roles: ['api'] });
const question_id = await makeOpenQuestion(app);

const ask = async (first: string, lines: readonly string[] = [], body = ''): Promise<RawAnswer> => {
  const connection = openRaw(app.port);
  connection.write(writeRequest(first, [...lines, `Content-Length: ${body.length}`]) + body);
  const answer = await connection.next({ head: first.startsWith('HEAD') });
  connection.reset();
  if (answer === null) throw new Error(`no answer to ${first}`);
  return answer;
};

const get = (path: string, lines: readonly string[] = []) => ask(`GET ${path} HTTP/1.1`, lines);

t.test('no browser guesses the type of any answer', async (t) => {
  const json = ['Content-Type: application/json'];
  const consensus = `/api/questions/${question_id}/consensus`;
  const usual: Readonly<Record<string, () => Promise<RawAnswer>>> = {
    'a list 200': () => get('/api/questions'),
    'a page 200': () => get('/account/login'),
    'a way on 303': () => get('/link'),
    'the widget 200': () => get(`/embed/${question_id}`),
    'a picture 200': () => get(`/api/questions/${question_id}/chart.svg`),
    'the document 200': () => get('/openapi.json'),
    'health 200': () => get('/health'),
    'HEAD 200': () => ask('HEAD /api/questions HTTP/1.1'),
    'nothing 404': () => get('/nothing'),
    'an admin path 404': () => get('/api/admin/questions'),
    'no key 401': () => get('/api/me'),
    'a bad query 400': () => get('/api/questions?sort=9'),
    'a method 405': () => ask('DELETE /api/questions HTTP/1.1'),
    'OPTIONS 204': () => ask('OPTIONS /api/questions HTTP/1.1'),
    'no JSON 415': () => ask('POST /api/register HTTP/1.1', [], 'x'),
    'broken JSON 400': () => ask('POST /api/register HTTP/1.1', json, '{'),
    'too much 413': () => ask('POST /api/register HTTP/1.1', [...json, 'X: y'], 'x'.repeat(65_537)),
    'headers 431': () =>
      get(
        '/',
        Array.from({ length: 70 }, (_, n) => `X-${n}: 1`),
      ),
  };
  for (const [name, send] of Object.entries(usual)) {
    const { status, headers } = await send();
    t.equal(status, Number(name.slice(-3)), name);
    t.equal(headers['x-content-type-options'], 'nosniff', name);
    t.equal(headers['strict-transport-security'], undefined, name);
  }
  for (let n = 0; n < 40; n += 1) {
    const { headers } = await get(consensus);
    t.equal(headers['x-content-type-options'], 'nosniff', `hot ${n}`);
    const again = await get(consensus, [`If-None-Match: ${headers['etag']}`]);
    t.equal(again.status, 304);
    t.equal(again.headers['x-content-type-options'], 'nosniff', `hot 304 ${n}`);
  }
});

t.test('who is not known learns how to say who it is', async (t) => {
  const { headers } = await get('/api/me');
  t.equal(headers['www-authenticate'], 'Bearer realm="prediction-forum"');
  t.equal((await get('/api/questions')).headers['www-authenticate'], undefined);
});

t.test('an answer that is sent piece by piece has them too', async (t) => {
  for (const path of ['/api/stream', '/api/export/predictions?format=ndjson']) {
    const stopped = new AbortController();
    const { status, headers, body } = await fetch(app.url + path, { signal: stopped.signal });
    t.equal(status, 200, path);
    t.equal(headers.get('x-content-type-options'), 'nosniff', path);
    await body?.cancel();
    stopped.abort();
  }
});

t.test('in production, behind TLS, browsers are told to stay there', async (t) => {
  const strictness = async (env: Record<string, string>) => {
    const one = await startApp(t, { roles: ['api'], env });
    const found = await Promise.all(
      ['/health', '/nothing', '/account/login'].map(async (path) =>
        (await one.call('GET', path)).headers.get('strict-transport-security'),
      ),
    );
    await one.stop();
    return found;
  };
  const PUBLIC_URL = 'https://forum.example';
  const NODE_ENV = 'production';
  const year = 'max-age=31536000';
  t.same(await strictness({ NODE_ENV, PUBLIC_URL }), [year, year, year]);
  const none = [null, null, null];
  t.same(await strictness({ NODE_ENV, PUBLIC_URL: 'http://forum.example' }), none);
  t.same(await strictness({ NODE_ENV }), none);
  t.same(await strictness({ PUBLIC_URL }), none);
});
