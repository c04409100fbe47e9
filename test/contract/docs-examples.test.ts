import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { createClient } from '#client/node.js';
import { example_bodies, sampleBody } from '../../src/features/docs/examples.js';
import type { Route } from '../../src/http/route.js';
import { api_routes } from '../../src/routes.js';
import { no_limits, startApp } from '../help/app.js';
import { readHtmlText } from '../help/html.js';
import { runBash } from '../help/readme.js';
import { t } from '../help/tap.js';
import { prepareExamples, statusOf } from './example-calls.js';

/**
 * Sends every example of the reference, over HTTP and with the client library. Tries every read
 * operation with each of its media types and limits. Checks that each admin action writes its line
 * to the audit log.
 */

const app = await startApp(t, { env: { ...no_limits, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' } });
const prepare = await prepareExamples(app);
// biome-ignore lint/suspicious/noExplicitAny: a document of many shapes.
const document: any = (await app.call('GET', '/openapi.json')).body;
const routes = (api_routes as readonly Route[]).filter(({ documented }) => documented);

const operationOf = ({ path: where, method }: Route) => document.paths[where][method.toLowerCase()];

const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: true });
(addFormats as unknown as { default: (one: Ajv2020) => void }).default(ajv);
ajv.addSchema(document, 'document');

/** The validator of a route's JSON answer. Ajv compiles each validator only once. */
const checkOf = ({ path, method }: Route, status: number) => {
  const steps = ['paths', path, method.toLowerCase(), 'responses', status, 'content'];
  const pointer = [...steps, 'application/json', 'schema']
    .map((step) => encodeURIComponent(String(step).replaceAll('~', '~0').replaceAll('/', '~1')))
    .join('/');
  const check = ajv.getSchema(`document#/${pointer}`);
  if (check === undefined) throw new Error(`The document has no schema at ${pointer}.`);
  return check;
};

/** The difference between an answer and the document. Null if there is no difference. */
const findProblem = (route: Route, status: number, type: string, body: unknown): string | null => {
  const wanted = statusOf(route);
  if (status !== wanted) return `${status} instead of ${wanted}: ${JSON.stringify(body)}`;
  const content = operationOf(route).responses[status]?.content ?? {};
  const types = Object.keys(content);
  const documented = types.find((one) => type.startsWith(one)) ?? types[0] ?? '';
  if (!type.startsWith(documented)) return `${type} instead of ${types.join(' or ')}`;
  if (documented !== 'application/json') return null;
  const check = checkOf(route, status);
  return check(body) ? findRefusedItem(body) : ajv.errorsText(check.errors);
};

/** If an answer lists items that are judged separately, returns the first refused item. */
const findRefusedItem = (body: unknown): string | null => {
  const { results = [] } = body as { results?: readonly { code?: string; error?: string }[] };
  const refused = results.find(({ code }) => code !== undefined);
  return refused === undefined ? null : JSON.stringify(refused);
};

/** Runs a few routes at a time and returns the problems by operation. */
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
  // Two at a time, because one address may have only two concurrent exports.
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
  const { key, token, admin, body, headers = {} } = send;
  const client = createClient({
    base_url: app.url,
    ...(key === undefined ? {} : { api_key: key }),
    ...(token === undefined ? {} : { token }),
    headers: { ...headers, ...(admin === true ? { 'x-admin-key': app.admin_key } : {}) },
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
    t.same(shown, route.body === undefined ? undefined : sampleBody(route.id), route.id);
  }
});

// Runs first, because a repeated action may write no line to the audit log.
const acting = routes.filter(
  ({ id, auth, method, stores_answer }) =>
    auth === 'admin' && method !== 'GET' && stores_answer !== 'never' && id !== 'previewResolution',
);

const countLines = async (): Promise<number> => {
  const [row] = await app.sql<{ n: number }[]>`select count(*)::int as n from audit_log`;
  return row?.n ?? 0;
};

for (const route of acting) {
  t.test(`${route.id} leaves a line`, async (t) => {
    const { path, send } = await prepare(route);
    const before = await countLines();
    const { status, body } = await app.call(route.method, path, send);
    t.ok(status >= 200 && status < 300, `${status} ${JSON.stringify(body)}`);
    t.ok((await countLines()) > before);
  });
}

t.test('each example is answered as it is documented', async (t) => {
  t.same(await runAll(routes, sendExample), []);
});

t.test('so is each by the client library', async (t) => {
  const called = routes.filter((one) => !one.is_endless);
  t.same(await runAll(called, sendWithClient), []);
});

/** The curl command of each operation as its page shows it, by operation. */
const readCommands = async (): Promise<ReadonlyMap<string, string>> => {
  const commands = new Map<string, string>();
  for (const group of new Set(routes.map(({ tag }) => tag))) {
    const html = String((await app.call('GET', `/docs/api/${group}`)).body);
    for (const [, id = '', code = ''] of html.matchAll(
      /<pre [^>]*id="(\w+)-example"><code>(.*?)<\/code>/gs,
    )) {
      commands.set(id, readHtmlText(code));
    }
  }
  return commands;
};

t.test('the curl command of each operation works, once its placeholders are set', async (t) => {
  const commands = await readCommands();
  const runCommand = async (route: Route): Promise<string | null> => {
    const { values } = await prepare(route);
    const command = commands.get(route.id);
    if (command === undefined) return 'no command';
    const unset = [...command.matchAll(/\$([A-Z_]+)/g)].filter(([, name = '']) => !values[name]);
    if (unset.length > 0) return `nothing stands for ${unset.join()}`;
    const options = `-o /dev/null -w '%{http_code}' ${route.is_endless ? '-m 1 ' : ''}`;
    const script = command.replace('curl -sS ', `curl -sS ${options}`);
    const { lines, errors } = await runBash(
      route.is_endless ? `${script} || true` : script,
      values,
    );
    const status = statusOf(route);
    return lines.join() === String(status) ? null : `${lines} instead of ${status} ${errors}`;
  };
  t.same(await runAll(routes, runCommand), []);
});

t.test('an example that is wrong is found', async (t) => {
  const route = routes.find(({ id }) => id === 'getQuestion') as Route;
  t.match(findProblem(route, 404, 'application/json', {}), /^404 instead of 200/);
  t.match(findProblem(route, 200, 'application/json', {}), /required/);
  t.match(findProblem(route, 200, 'text/html', ''), /instead of application\/json/);
});

const reads = routes.filter(({ method }) => method === 'GET');

/** Documented media types of the answers, by status. */
const documentedTypes = ({ path }: Route): ReadonlyMap<number, readonly string[]> =>
  new Map(
    Object.entries(document.paths[path].get.responses).map(([status, response]) => [
      Number(status),
      Object.keys((response as { content?: object }).content ?? {}),
    ]),
  );

/** Returns a function that calls the route as in its example, with another query or `Accept`. */
const makeAsker = async (route: Route) => {
  const { path, query, send } = await prepare(route);
  return (changed: Readonly<Record<string, string>>, accept: string, at = path) => {
    const search = new URLSearchParams({ ...query, ...changed });
    return app.call('GET', `${at}?${search}`, { ...send, headers: { accept } });
  };
};

const every_type = [
  ...new Set(reads.flatMap((route) => [...documentedTypes(route).values()].flat())),
  '*/*',
  'text/*',
  'application/rss+xml',
  'nonsense',
];

/** Every way to request a form of the answer. A few media types are enough for a single form. */
const formsOf = (route: Route): readonly (readonly [Record<string, string>, string])[] => {
  const properties = route.query?.properties ?? {};
  const formats: readonly string[] = properties['format']?.['enum'] ?? [];
  const has_one = documentedTypes(route).get(200)?.length === 1;
  const types = has_one ? ['*/*', 'text/html', 'application/json', 'nonsense'] : every_type;
  return [
    ...types.map((type) => [{}, type] as const),
    ...formats.map((format) => [{ format }, '*/*'] as const),
    ...(properties['gzip'] === undefined ? [] : [[{ gzip: 'true' }, '*/*'] as const]),
  ];
};

t.test(
  'each form of an answer has a media type that the document names, and no other',
  async (t) => {
    const problems: string[] = [];
    for (const route of reads) {
      const documented = documentedTypes(route);
      const ask = await makeAsker(route);
      const seen = new Set<string>();
      for (const [changed, accept] of formsOf(route)) {
        const { status, headers, body } = await ask(changed, accept);
        const type = headers.get('content-type')?.split(';')[0] ?? 'no type';
        const how = `${route.id} ${JSON.stringify(changed)} ${accept}: ${status} ${type}`;
        if (status !== 200) problems.push(`${how} ${JSON.stringify(body).slice(0, 200)}`);
        else if (documented.get(200)?.includes(type) !== true)
          problems.push(`${how} is not documented`);
        seen.add(type);
      }
      const unseen = documented.get(200)?.filter((type) => !seen.has(type)) ?? [];
      problems.push(...unseen.map((type) => `${route.id}: nothing is answered with ${type}`));
    }
    t.same(problems, []);
    t.ok(reads.length > 50, `${reads.length} operations`);
  },
);

t.test('a refusal of an absent subject has a media type that the document names', async (t) => {
  const problems: string[] = [];
  for (const route of reads.filter(({ path }) => path.includes('{'))) {
    const ask = await makeAsker(route);
    const nowhere = route.path.replace(/\{\w+\}/g, 'no-id');
    const { status, headers } = await ask({}, 'text/html', nowhere);
    const type = headers.get('content-type')?.split(';')[0] ?? 'no type';
    const is_documented = documentedTypes(route).get(status)?.includes(type) === true;
    if (status !== 404 || !is_documented) problems.push(`${route.id}: ${status} ${type}`);
  }
  t.same(problems, []);
  const embed = reads.find(({ id }) => id === 'embed') as Route;
  t.same(documentedTypes(embed).get(404), ['text/html'], 'a page for an iframe is one in any case');
});

t.test(
  'every list takes a limit above its most for the most, and refuses what is none',
  async (t) => {
    // A widget accepts any limit, so that a wrong limit never breaks an article.
    const lists = reads.filter(
      ({ query, produces }) => query?.properties['limit'] !== undefined && produces !== 'text/html',
    );
    const problems: string[] = [];
    for (const route of lists) {
      const ask = await makeAsker(route);
      for (const limit of ['100000', '9'.repeat(400)]) {
        const { status } = await ask({ limit }, '*/*');
        if (status !== 200) problems.push(`${route.id} ${limit.slice(0, 9)}: ${status}`);
      }
      for (const limit of ['0', '-1', '1.5', '100000.5', 'ten']) {
        const { status, body } = await ask({ limit }, '*/*');
        const [field] = body.fields ?? [];
        if (status !== 400 || field?.path !== 'query.limit') problems.push(`${route.id} ${limit}`);
      }
    }
    t.same(problems, []);
    t.ok(lists.length > 15, `${lists.length} lists`);
  },
);
