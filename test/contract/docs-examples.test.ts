import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { t } from 'tap';
import { createClient } from '../../src/client/node.js';
import { example_bodies } from '../../src/features/docs/examples.js';
import type { Route } from '../../src/http/route.js';
import { all_routes } from '../../src/routes.js';
import { no_limits, startApp } from '../help/app.js';
import { bodyOf, makeDocsWorld, statusOf } from './docs-world.js';

/** Every example of the reference is sent, over HTTP and by the client library, and answered. */

const app = await startApp(t, { env: { ...no_limits, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' } });
const prepare = await makeDocsWorld(app);
// biome-ignore lint/suspicious/noExplicitAny: a document of many shapes.
const document: any = (await app.call('GET', '/openapi.json')).body;
const routes = (all_routes as readonly Route[]).filter(({ documented }) => documented);

const operationOf = ({ path: where, method }: Route) => document.paths[where][method.toLowerCase()];

const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true });
(addFormats as unknown as { default: (one: Ajv2020) => void }).default(ajv);

/** The difference between an answer and the document; null when there is none. */
const findProblem = (route: Route, status: number, type: string, body: unknown): string | null => {
  const wanted = statusOf(route);
  if (status !== wanted) return `${status} instead of ${wanted}: ${JSON.stringify(body)}`;
  const content = operationOf(route).responses[status]?.content ?? {};
  const documented = Object.keys(content)[0] ?? '';
  if (!type.startsWith(documented)) return `${type} instead of ${documented}`;
  if (documented !== 'application/json') return null;
  const check = ajv.compile(content[documented].schema);
  return check(body) ? findRefusedItem(body) : ajv.errorsText(check.errors);
};

/** Of a list whose items are judged one by one: the first that is refused. */
const findRefusedItem = (body: unknown): string | null => {
  const { results = [] } = body as { results?: readonly { code?: string; error?: string }[] };
  const refused = results.find(({ code }) => code !== undefined);
  return refused === undefined ? null : JSON.stringify(refused);
};

/** A few at a time; what is wrong, by operation. */
const runAll = async (
  asked: readonly Route[],
  run: (route: Route) => Promise<string | null>,
): Promise<readonly string[]> => {
  const waiting = [...asked];
  const problems: string[] = [];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const problem = await run(next).catch((error: unknown) => String(error));
      if (problem !== null) problems.push(`${next.id}: ${problem}`);
    }
  };
  // No more exports at once than one address may have.
  await Promise.all([work(), work()]);
  return problems;
};

const sendExample = async (route: Route): Promise<string | null> => {
  const { target, send } = await prepare(route);
  const { status, headers, body } = await app.call(route.method, target, send);
  return findProblem(route, status, headers.get('content-type') ?? '', body);
};

const sendWithClient = async (route: Route): Promise<string | null> => {
  const { params, query, send } = await prepare(route);
  const { key, token, admin, body } = send;
  const client = createClient({
    base_url: app.url,
    ...(key === undefined ? {} : { api_key: key }),
    ...(token === undefined ? {} : { token }),
    ...(admin === true ? { headers: { 'x-admin-key': app.admin_key } } : {}),
  });
  const input = { params, query, ...(body === undefined ? {} : { body }) };
  const outcome = await client.attempt(route.id as never, input as never);
  if (!outcome.ok) return JSON.stringify(outcome.fault);
  const { status } = outcome;
  const documented = Object.keys(operationOf(route).responses[status]?.content ?? {})[0] ?? '';
  return findProblem(route, status, documented, outcome.body);
};

t.test('every example body belongs to an operation, and is shown there', async (t) => {
  const ids = routes.map(({ id }) => id);
  t.same(
    Object.keys(example_bodies).filter((id) => !ids.includes(id)),
    [],
  );
  for (const route of routes) {
    const shown = operationOf(route).requestBody?.content['application/json'].example;
    t.same(shown, bodyOf(route), route.id);
  }
});

t.test('each example is answered as it is documented', async (t) => {
  t.same(await runAll(routes, sendExample), []);
});

t.test('so is each by the client library', async (t) => {
  const called = routes.filter((one) => !one.is_endless);
  t.same(await runAll(called, sendWithClient), []);
});

t.test('an example that is wrong is found', async (t) => {
  const route = routes.find(({ id }) => id === 'getQuestion') as Route;
  t.match(findProblem(route, 404, 'application/json', {}), /^404 instead of 200/);
  t.match(findProblem(route, 200, 'application/json', {}), /required/);
  t.match(findProblem(route, 200, 'text/html', ''), /instead of application\/json/);
});
