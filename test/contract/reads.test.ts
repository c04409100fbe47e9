import { t } from 'tap';
import type { Route } from '../../src/http/route.js';
import { all_routes } from '../../src/routes.js';
import { no_limits, startApp } from '../help/app.js';
import { makeDocsWorld } from './docs-world.js';

/** Every operation that reads: in each media type that it knows, and with each limit of a list. */

const app = await startApp(t, { env: { ...no_limits, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' } });
const prepare = await makeDocsWorld(app);
// biome-ignore lint/suspicious/noExplicitAny: a document of many shapes.
const document: any = (await app.call('GET', '/openapi.json')).body;
const reads = (all_routes as readonly Route[]).filter(
  ({ documented, method }) => documented && method === 'GET',
);

/** Media types of the answers with each status, as the document has them. */
const documentedOf = ({ path }: Route): ReadonlyMap<number, readonly string[]> =>
  new Map(
    Object.entries(document.paths[path].get.responses).map(([status, response]) => [
      Number(status),
      Object.keys((response as { content?: object }).content ?? {}),
    ]),
  );

/** A call of the route as in its example, with another query or another `Accept`. */
const makeAsker = async (route: Route) => {
  const { path, query, send } = await prepare(route);
  return (changed: Readonly<Record<string, string>>, accept: string, at = path) => {
    const search = new URLSearchParams({ ...query, ...changed });
    return app.call('GET', `${at}?${search}`, { ...send, headers: { accept } });
  };
};

const every_type = [
  ...new Set(reads.flatMap((route) => [...documentedOf(route).values()].flat())),
  ...['*/*', 'text/*', 'application/rss+xml', 'nonsense'],
];

/** Each way to ask the route for another form of its answer. */
const formsOf = ({ query }: Route): readonly (readonly [Record<string, string>, string])[] => {
  const formats: readonly string[] = query?.properties['format']?.['enum'] ?? [];
  return [
    ...every_type.map((type) => [{}, type] as const),
    ...formats.map((format) => [{ format }, '*/*'] as const),
    ...(query?.properties['gzip'] === undefined ? [] : [[{ gzip: 'true' }, '*/*'] as const]),
  ];
};

t.test(
  'each form of an answer has a media type that the document names, and no other',
  async (t) => {
    const problems: string[] = [];
    for (const route of reads) {
      const documented = documentedOf(route);
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
    const is_documented = documentedOf(route).get(status)?.includes(type) === true;
    if (status !== 404 || !is_documented) problems.push(`${route.id}: ${status} ${type}`);
  }
  t.same(problems, []);
  const embed = reads.find(({ id }) => id === 'embed') as Route;
  t.same(documentedOf(embed).get(404), ['text/html'], 'a page for an iframe is one in any case');
});

t.test(
  'every list takes a limit above its most for the most, and refuses what is none',
  async (t) => {
    const lists = reads.filter(({ query }) => query?.properties['limit'] !== undefined);
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
