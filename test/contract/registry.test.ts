import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { promisify } from 'node:util';
import { link_key_refused } from '../../src/features/accounts/schema.js';
import { faultsOf } from '../../src/http/openapi.js';
import type { Route } from '../../src/http/route.js';
import { compileCheck, compileQuery } from '../../src/http/validation.js';
import { common_faults, type FaultCategory, type FaultDef } from '../../src/kit/fault.js';
import { api_routes } from '../../src/routes.js';
import { t } from '../help/tap.js';

/** Rules that every route and every fault must follow, including new ones. */

const routes = api_routes as readonly Route[];

const sources = new URL('../../../src/', import.meta.url);
const compiled = new URL('../../src/', import.meta.url);
const layers = /^(?:kit|db|redis|http|socket|features|process)\/.*(?<!\.d)\.ts$/;
const modules = readdirSync(sources, { recursive: true, encoding: 'utf8' })
  .filter((name) => layers.test(name))
  .map((name) => new URL(name.replace(/ts$/, 'js'), compiled).href);

const isFault = (value: unknown): value is FaultDef =>
  typeof value === 'object' &&
  value !== null &&
  ['code', 'status', 'category', 'sentence', 'retryable'].every((member) => member in value);

const faultsIn = (value: unknown): readonly FaultDef[] => {
  if (isFault(value)) return [value];
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  const members = Object.values(value);
  return members.every(isFault) ? members : [];
};

/** Every fault that any module defines, without repeats. */
const faults = [
  ...new Set(
    (await Promise.all(modules.map((url) => import(url)))).flatMap((one) =>
      Object.values(one).flatMap(faultsIn),
    ),
  ),
];

const repeated = (values: readonly string[]): readonly string[] =>
  values.filter((value, index) => values.indexOf(value) !== index);

const segment = /^(?:\{[a-z][a-z_]*\}|\.well-known|SKILL\.md|[a-z][a-z0-9.-]*)$/;
const isPath = (path: string): boolean => {
  const [root, ...parts] = path.split('/');
  return root === '' && (path === '/' || parts.every((part) => segment.test(part)));
};
const paramsIn = (path: string) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
/**
 * These routes may declare failures as normal answers. A probe reports an outage, the widget is
 * shown to people, and the Model Context Protocol has its own errors.
 */
const may_return_failures = /^(?:health|readyz|embed|mcp)$/;

/** Each rule returns true for a route that breaks it. */
const route_rules: Readonly<Record<string, (route: Route) => boolean>> = {
  'a route has a name in the form of an operationId': ({ id }) =>
    !/^[a-z][a-zA-Z0-9]{1,40}$/.test(id),
  'paths are written in one way': ({ path }) => !isPath(path),
  'the parameters of a path are those of its schema': ({ path, params }) =>
    paramsIn(path).join() !== Object.keys(params?.properties ?? {}).join(),
  'everything below /api/admin is for admins, and nothing else is': ({ path, auth }) =>
    path.startsWith('/api/admin/') !== (auth === 'admin'),
  'GET and DELETE take no body': ({ method, body }) =>
    body !== undefined && ['GET', 'DELETE'].includes(method),
  'every route says what it does': ({ summary }) => !/^\S.{5,119}$/.test(summary),
  'every route has a tag': ({ tag }) => !/^[a-z][a-z-]*$/.test(tag),
  // Plain requests to the websocket's path only get a refusal.
  'every route says what it returns': ({ id, returns }) =>
    Object.keys(returns).length === 0 && id !== 'plainSocket',
  'a route returns no failures': ({ id, returns }) =>
    !may_return_failures.test(id) && Object.keys(returns).some((status) => !/^2\d\d$/.test(status)),
  'only public GETs are cacheable': ({ cacheable, method, auth }) =>
    cacheable === true && (method !== 'GET' || auth !== 'public'),
  'every fault that a route lists exists': ({ faults: listed }) =>
    listed.some((def) => !faults.includes(def)),
  'a route lists a fault once': ({ faults: listed }) => new Set(listed).size !== listed.length,
  'an absent subject is answered with 404': ({ absent }) =>
    absent !== undefined && absent.status !== 404,
  'within one route a code has one status': (route) =>
    repeated(faultsOf(route).map(({ code }) => code)).some(
      (code) => !(route.id === 'linkAgent' && code === 'INVALID_API_KEY'),
    ),
  'the key that a person links has its refusal on that call alone': ({ id, faults: listed }) =>
    listed.includes(link_key_refused) && id !== 'linkAgent',
};

for (const [name, isBroken] of Object.entries(route_rules)) {
  t.test(name, async (t) => {
    const broken = routes.filter(isBroken).map(({ id }) => id);
    t.same(broken, []);
  });
}

t.test('every name, and every method and path, is that of one route', async (t) => {
  t.ok(routes.length >= 30, `${routes.length} routes`);
  const places = routes.map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, '{}')}`);
  t.same(repeated(routes.map(({ id }) => id)), []);
  t.same(repeated(places), []);
});

t.test('every schema compiles', async () => {
  for (const { params, query, body, returns } of routes) {
    if (query !== undefined) compileQuery(query);
    for (const schema of [params, body, ...Object.values(returns)]) {
      if (schema !== undefined && schema !== null) compileCheck(schema, 'value');
    }
  }
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

/** Each rule returns true for a fault that breaks it. */
const fault_rules: Readonly<Record<string, (def: FaultDef) => boolean>> = {
  'codes are written in one way': ({ code }) => !/^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$/.test(code),
  'status and category fit together': ({ category, status }) =>
    !statuses_of[category].includes(status),
  'a code that ends in NOT_FOUND is a 404': ({ code, status }) =>
    code.endsWith('NOT_FOUND') && status !== 404,
  'trying again is suggested where it can help': ({ status, retryable }) =>
    status >= 500 && !retryable,
  'trying again is suggested nowhere else': ({ code, retryable, status, category }) =>
    retryable &&
    status < 500 &&
    !['rate_limited', 'limit'].includes(category) &&
    code !== 'IDEMPOTENCY_IN_PROGRESS',
  'a fault is one sentence': ({ sentence }) => !/^[A-Z"].{10,118}\.$/s.test(sentence),
  'its sentence is for a person': ({ sentence, code }) =>
    /\b(?:null|undefined|object|exception|params?)\b/i.test(sentence) || sentence.includes(code),
};

for (const [name, isBroken] of Object.entries(fault_rules)) {
  t.test(name, async (t) => {
    const broken = faults.filter(isBroken).map(({ code, status }) => `${code} ${status}`);
    t.same(broken, []);
  });
}

t.test('one code has one status for ever, and one sentence', async (t) => {
  t.ok(faults.length > 40, `${faults.length} faults`);
  // The only exception: in the call that links an agent, the key is the subject, not a credential.
  const others = faults.filter((def) => def !== link_key_refused);
  t.same(repeated(others.map(({ code }) => code)), []);
  t.equal(link_key_refused.code, common_faults.INVALID_API_KEY.code);
  t.equal(link_key_refused.status, 400);
});

t.test('importing a module does nothing: no timer, no socket, no listener', async (t) => {
  t.ok(modules.length > 100, `${modules.length} modules`);
  const script = `
    const look = () => [...process.getActiveResourcesInfo(), ...process.eventNames()].sort();
    void [process.stdin, process.stdout, process.stderr];
    const before = look();
    for (const url of ${JSON.stringify(modules)}) await import(url);
    // A package asks which C library there is, and its pipe takes a turn to close.
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    const after = look();
    process.stdout.write(JSON.stringify({ before, after }), () => process.exit(0));`;
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--input-type=module',
    '-e',
    script,
  ]);
  const { before, after } = JSON.parse(stdout) as Record<'before' | 'after', string[]>;
  t.same(after, before);
});
