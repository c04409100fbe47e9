import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { t } from 'tap';
import { link_key_refused } from '../../src/features/accounts/schema.js';
import { faultsOf } from '../../src/http/openapi.js';
import type { Route } from '../../src/http/route.js';
import { compileCheck, compileQuery } from '../../src/http/validation.js';
import { common_faults, type FaultCategory, type FaultDef } from '../../src/kit/fault.js';
import { all_routes } from '../../src/routes.js';
import { collectFaults, listModules } from '../help/modules.js';

/** What holds for every route and every fault there is, whoever adds the next one. */

const routes = all_routes as readonly Route[];
const faults = await collectFaults();
const run = promisify(execFile);

const repeated = (values: readonly string[]): readonly string[] =>
  values.filter((value, index) => values.indexOf(value) !== index);
const where = (wrong: (route: Route) => boolean): readonly string[] =>
  routes.filter(wrong).map(({ id }) => id);
const faultsWhere = (wrong: (def: FaultDef) => boolean): readonly string[] =>
  faults.filter(wrong).map(({ code, status }) => `${code} ${status}`);

t.test('every route has a name of its own, in the form of an operationId', async (t) => {
  t.ok(routes.length >= 30, `${routes.length} routes`);
  t.same(repeated(routes.map(({ id }) => id)), []);
  t.same(
    where(({ id }) => !/^[a-z][a-zA-Z0-9]{1,40}$/.test(id)),
    [],
  );
});

t.test('every method and path is served by one route', async (t) => {
  t.same(
    repeated(routes.map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, '{}')}`)),
    [],
  );
});

t.test('paths are written in one way', async (t) => {
  const segment = /^(?:\{[a-z][a-z_]*\}|[a-z][a-z0-9.-]*)$/;
  const isRight = (path: string): boolean => {
    const [root, ...parts] = path.split('/');
    return root === '' && (path === '/' || parts.every((part) => segment.test(part)));
  };
  t.same(
    where(({ path }) => !isRight(path)),
    [],
  );
});

t.test('the parameters of a path are those of its schema', async (t) => {
  const named = ({ path }: Route) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  t.same(
    where((route) => {
      const described = Object.keys(route.params?.properties ?? {});
      return JSON.stringify(named(route)) !== JSON.stringify(described);
    }),
    [],
  );
});

t.test('everything below /api/admin is for admins, and nothing else is', async (t) => {
  t.same(
    where(({ path, auth }) => path.startsWith('/api/admin/') !== (auth === 'admin')),
    [],
  );
});

t.test('GET and DELETE take no body, and every schema compiles', async (t) => {
  t.same(
    where(({ method, body }) => body !== undefined && ['GET', 'DELETE'].includes(method)),
    [],
  );
  for (const { params, query, body, returns } of routes) {
    if (query !== undefined) compileQuery(query);
    for (const schema of [params, body, ...Object.values(returns)]) {
      if (schema !== undefined && schema !== null) compileCheck(schema, 'value');
    }
  }
});

t.test('every route says what it does and what it returns', async (t) => {
  t.same(
    where(({ summary }) => !/^\S.{5,119}$/.test(summary)),
    [],
  );
  t.same(
    where(({ tag }) => !/^[a-z][a-z-]*$/.test(tag)),
    [],
  );
  t.same(
    where(({ returns }) => Object.keys(returns).length === 0),
    ['plainSocket'],
    'the address of the websocket has nothing but a refusal for requests',
  );
  // Only a probe may name a failure as what it returns, because its body says what is down; and the
  // widget, because people see what stands in its place.
  const is_probe = /^(?:health|readyz|embed)$/;
  t.same(
    where(({ id, returns }) =>
      Object.keys(returns).some((status) => !/^2\d\d$/.test(status) && !is_probe.test(id)),
    ),
    [],
  );
});

t.test('what only pages and probes need is not cacheable by mistake', async (t) => {
  t.same(
    where(({ cacheable, method }) => cacheable && method !== 'GET'),
    [],
  );
  t.same(
    where(({ cacheable, auth }) => cacheable && auth !== 'public'),
    [],
    'private answers',
  );
});

t.test('every fault that a route lists exists, and is listed once', async (t) => {
  t.same(
    where((route) => route.faults.some((def) => !faults.includes(def))),
    [],
  );
  t.same(
    where((route) => new Set(route.faults).size !== route.faults.length),
    [],
  );
  t.same(
    where(({ absent }) => absent !== undefined && absent.status !== 404),
    [],
  );
});

t.test('within one route a code has one status', async (t) => {
  const allowed = (route: Route) => (route.id === 'linkAgent' ? ['INVALID_API_KEY'] : []);
  t.same(
    routes
      .map((route) => [
        route.id,
        repeated(faultsOf(route).map(({ code }) => code)).filter(
          (code) => !allowed(route).includes(code),
        ),
      ])
      .filter(([, codes]) => (codes ?? []).length > 0),
    [],
  );
});

t.test('one code has one status for ever, and one sentence', async (t) => {
  t.ok(faults.length > 40, `${faults.length} faults`);
  // The one exception: the key that a person wants to link is the subject of that call.
  const others = faults.filter((def) => def !== link_key_refused);
  t.same(repeated(others.map(({ code }) => code)), []);
  t.equal(link_key_refused.code, common_faults.INVALID_API_KEY.code);
  t.equal(link_key_refused.status, 400);
  t.same(
    where(({ id, faults: listed }) => listed.includes(link_key_refused) && id !== 'linkAgent'),
    [],
  );
});

const statuses_of: Record<FaultCategory, readonly number[]> = {
  validation: [400, 405, 415, 422, 426],
  auth: [400, 401, 408],
  permission: [403],
  not_found: [404],
  conflict: [409],
  quality: [400, 409],
  limit: [400, 408, 409, 413, 429, 431],
  rate_limited: [429],
  unavailable: [503],
  internal: [500],
};

t.test('code, status and category fit together', async (t) => {
  t.same(
    faultsWhere(({ code }) => !/^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$/.test(code)),
    [],
  );
  t.same(
    faultsWhere(({ category, status }) => !statuses_of[category].includes(status)),
    [],
  );
  t.same(faultsWhere(({ code }) => code.endsWith('_NOT_FOUND')).length > 0, true);
  t.same(
    faultsWhere(({ code, status }) => code.endsWith('NOT_FOUND') && status !== 404),
    [],
  );
});

t.test('trying again is suggested where it can help, and nowhere else', async (t) => {
  t.same(
    faultsWhere(({ code, retryable, status, category }) => {
      const passes = code === 'IDEMPOTENCY_IN_PROGRESS';
      const helps = status >= 500 || category === 'rate_limited' || category === 'limit' || passes;
      return retryable && !helps;
    }),
    [],
  );
  t.same(
    faultsWhere(({ retryable, status }) => !retryable && status >= 500),
    [],
  );
});

t.test('every fault is one sentence that a person can act on', async (t) => {
  t.same(
    faultsWhere(({ sentence }) => !/^[A-Z"].{10,118}\.$/s.test(sentence)),
    [],
  );
  t.same(
    faultsWhere(({ sentence }) =>
      /\b(?:null|undefined|object|exception|params?)\b/i.test(sentence),
    ),
    [],
  );
  t.same(
    faultsWhere(({ sentence, code }) => sentence.includes(code)),
    [],
  );
});

t.test('importing a module does nothing: no timer, no socket, no listener', async (t) => {
  const modules = listModules(['kit', 'features', 'roles', 'embedded']);
  t.ok(modules.length > 100, `${modules.length} modules`);
  const urls = modules.map(({ url }) => url);
  const script = `
    const look = () => [...process.getActiveResourcesInfo(), ...process.eventNames()].sort();
    void [process.stdin, process.stdout, process.stderr];
    const before = look();
    for (const url of ${JSON.stringify(urls)}) await import(url);
    // A package asks which C library there is, and its pipe takes a turn to close.
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    const after = look();
    process.stdout.write(JSON.stringify({ before, after }), () => process.exit(0));`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script]);
  const { before, after } = JSON.parse(stdout) as Record<'before' | 'after', string[]>;
  t.same(after, before);
});
