import fc from 'fast-check';
import type { Method } from '../../src/http/route.js';
import { makeRouter } from '../../src/http/route.js';
import { holds } from '../help/property.js';
import { t } from '../help/tap.js';

const routerOf = (...routes: readonly string[]) =>
  makeRouter(
    routes.map((entry) => {
      const [method, path] = entry.split(' ') as [Method, string];
      return { route: { method, path }, entry };
    }),
  );

const router = routerOf(
  'GET /api/things',
  'POST /api/things',
  'GET /api/things/{id}',
  'DELETE /api/things/{id}',
  'GET /api/things/events',
  'GET /api/things/{id}/parts/{part}',
  'GET /api/things/events/latest',
  'POST /api/only/post',
);

t.test('a method and a path find their route and its parameters', async (t) => {
  const parts = 'GET /api/things/{id}/parts/{part}';
  for (const [method, path, entry, params] of [
    ['GET', '/api/things', 'GET /api/things', {}],
    ['GET', '/api/things/7/parts/a-b', parts, { id: '7', part: 'a-b' }],
    // A static segment takes precedence over a parameter, and the parameter is tried next.
    ['GET', '/api/things/events', 'GET /api/things/events', {}],
    ['GET', '/api/things/events/parts/1', parts, { id: 'events', part: '1' }],
    // One trailing slash is ignored.
    ['GET', '/api/things/', 'GET /api/things', {}],
    ['GET', '/api/things/7/', 'GET /api/things/{id}', { id: '7' }],
    ['HEAD', '/api/things/7', 'GET /api/things/{id}', { id: '7' }],
    // Parameters are percent-decoded.
    ['GET', '/api/things/a%20b%2Fc%C3%A9', 'GET /api/things/{id}', { id: 'a b/cé' }],
    ['GET', '/api/things/a+b', 'GET /api/things/{id}', { id: 'a+b' }],
  ] as const) {
    t.same(router.find(method, path), { kind: 'route', entry, params }, `${method} ${path}`);
  }
});

t.test('a parameter is never empty, and an unknown path finds nothing', async (t) => {
  const nothing = ['/api/things//', '//api/things', '/api//things', '/api/things//parts/1'];
  const short = ['', '/', '/api', '/api/thing', '/api/things/1/parts', '/__proto__/x', 'api'];
  for (const path of [...nothing, ...short, '/api/things/1/parts/', '/api/thing%73']) {
    t.equal(router.find('GET', path).kind, 'nothing', path);
  }
});

t.test('another method on a known path tells which ones there are', async (t) => {
  for (const [method, path, allow] of [
    ['PATCH', '/api/things', ['GET', 'POST', 'HEAD', 'OPTIONS']],
    ['HEAD', '/api/only/post', ['POST', 'OPTIONS']],
  ] as const) {
    t.same(router.find(method, path), { kind: 'wrong_method', allow }, path);
  }
  for (const method of ['get', 'BREW', '', '__proto__', 'OPTIONS']) {
    t.equal(router.find(method, '/api/things').kind, 'wrong_method', method);
  }
});

t.test('escapes that are broken, not UTF-8 or a NUL find nothing', async (t) => {
  for (const bad of ['%', '%4', '%zz', '%ff', '%C3', '%ED%A0%80', '%00', 'a%00b']) {
    t.equal(router.find('GET', `/api/things/${bad}`).kind, 'nothing', bad);
  }
});

t.test('any parameter comes back as it was encoded', async (t) => {
  const text = fc
    .string({ unit: 'grapheme', minLength: 1 })
    .filter((s) => s.isWellFormed() && !s.includes('\0') && s !== 'events');
  await holds(
    t,
    fc.property(text, (id) => {
      const found = router.find('GET', `/api/things/${encodeURIComponent(id)}`);
      return found.kind === 'route' && found.params['id'] === id;
    }),
    { numRuns: 500 },
  );
});

t.test('no path and no method makes it throw', async (t) => {
  const path = fc.string({ unit: fc.constantFrom(...'/%0aFz.{}?#é\0 apithngs'), maxLength: 60 });
  await holds(
    t,
    fc.property(fc.string(), path, (method, raw) => {
      const { kind } = router.find(method, `/api/things/${raw}`);
      return ['route', 'wrong_method', 'nothing'].includes(kind);
    }),
    { numRuns: 1_000 },
  );
});

t.test('two routes for one method and path are refused at the start', async (t) => {
  t.throws(() => routerOf('GET /a/{id}', 'GET /a/{other}'), /two routes/);
});

t.test('routes with the same path may name its parameter each in its own way', async (t) => {
  const mixed = routerOf('GET /a/{id}', 'POST /a/{name}');
  t.match(mixed.find('GET', '/a/1'), { params: { id: '1' } });
  t.match(mixed.find('POST', '/a/1'), { params: { name: '1' } });
});
