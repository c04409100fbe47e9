import fc from 'fast-check';
import { example_bodies } from '../../src/features/docs/examples.js';
import { event_names } from '../../src/features/events/catalogue.js';
import { encodeCursor, listMark } from '../../src/http/page.js';
import type { Auth, Route } from '../../src/http/route.js';
import { compileQuery } from '../../src/http/validation.js';
import { type Known, oddText, shapedValue, weighted } from '../help/arbitrary.js';
import { makeReasoning } from '../help/story.js';

/** Random requests for one route. Any part of a request may be valid, nonsensical or in between. */

export interface FuzzRequest {
  readonly method: string;
  /** Path and query as sent: printable characters, but otherwise invalid in any way. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
  /** The caller whose credentials are sent. */
  readonly as: string;
}

/** Existing objects, for requests that pass the first checks. */
export interface FuzzWorld {
  /** By the path segment before the id: `questions`, `webhooks`. */
  readonly ids: Readonly<Record<string, readonly string[]>>;
  readonly keys: readonly string[];
  readonly tags: readonly string[];
  readonly callers: readonly string[];
  /** Callers that may use a route with this kind of authorization. */
  readonly admitted: (auth: Auth) => readonly string[];
}

const allIds = ({ ids }: FuzzWorld): readonly string[] => Object.values(ids).flat();

const plain_names = fc.stringMatching(/^[a-z]{2,12} [a-z0-9]{1,30}$/);

const small_picks = (...values: readonly unknown[]) => fc.constantFrom(...values);

const knownOf = (world: FuzzWorld, some_ids = allIds(world)): Known => ({
  id: small_picks(...some_ids),
  pid: small_picks(...some_ids),
  question_id: small_picks(...some_ids),
  api_key: small_picks(...world.keys, 'sk_', ''),
  agent_api_key: small_picks(...world.keys),
  category: small_picks('technology', 'industry', 'society', 'nothing'),
  subcategory: small_picks('hci', 'benefits_public_good', null, 'nothing'),
  tags: fc.array(small_picks(...world.tags.slice(0, 20), '#nothing'), { maxLength: 3 }),
  wait: small_picks(0, 0, -1, 51, '', 'x'),
  topic: fc.array(
    fc.oneof(
      small_picks('all', 'me', 'system', 'category:technology', 'subcategory:hci', 'nothing', ''),
      small_picks(...some_ids).map((id) => `question:${id}`),
    ),
    { maxLength: 3 },
  ),
  events: fc.array(small_picks(...event_names, 'nothing'), { minLength: 1, maxLength: 3 }),
  url: small_picks(
    ...['https://127.0.0.1:18443/hook', 'https://127.0.0.1:18443/%00?é', 'https://[::1]:18443/'],
    ...['http://127.0.0.1/', 'https://x', 'https://a:b@127.0.0.1:18443/', 'file:///etc/passwd', ''],
  ),
  reasoning: oddText(0, 9_000).map((text) => `${makeReasoning()} ${text}`),
  confidence: small_picks(0, 1, 50, 85, 100, 0.85, 101, -1, 0.001),
  email: small_picks('fuzz@people.dev', 'a@b.co', 'A@B.CO', 'no address', 'é@ü.de', '"a b"@c.de'),
  password: small_picks('correct horse battery', 'x'.repeat(1_000), '\u0958'.repeat(20)),
  options: fc.array(oddText(1, 100), { minLength: 2, maxLength: 4 }),
  name: fc.oneof(plain_names, oddText(2, 50)),
  model: small_picks('claude-sonnet-4', 'openai/gpt-5', ' ', '\u0958'.repeat(90)),
  cursor: fc
    .array(
      fc.oneof(
        small_picks(...some_ids, null, 0, -1, 2 ** 31, 1e300, '', 'x', '\u0000', [], {}),
        small_picks('2026-03-01T00:00:00.000Z', '0001-01-01T00:00:00Z', '9999-12-31T23:59:59.9Z'),
      ),
      { maxLength: 3 },
    )
    .map((parts) => encodeCursor('', parts as string[])),
});

/** Path characters that the client itself does not reject. */
const printable = fc.string({
  unit: fc.constantFrom(...'abAB09%./?&=;:@!$\'()*+,-_~#[]|^`{}"<>\\\u00e9\u00ff'),
  maxLength: 30,
});

/** A value for the path parameter that follows the segment `before`. */
const segment = (world: FuzzWorld, before: string): fc.Arbitrary<string> =>
  weighted(
    [6, fc.constantFrom(...(world.ids[before] ?? allIds(world)))],
    [1, fc.constantFrom(...allIds(world))],
    [1, fc.uuid().map((id) => id.toUpperCase())],
    [1, oddText(0, 40).map((text) => encodeURIComponent(text.toWellFormed()))],
    [1, printable.map((text) => text.replaceAll(/[/?#]/g, ''))],
    [1, fc.constantFrom('%', '%zz', '%00', '%ff', '..', '%2e%2e%2f', '%c0%80', 'x'.repeat(3_000))],
  );

const queryOf = (route: Route, known: Known): fc.Arbitrary<string> => {
  const names = [...Object.keys(route.query?.properties ?? {}), 'page', '__proto__', ''];
  const shaped =
    route.query === undefined
      ? fc.constant({})
      : (shapedValue(route.query, known) as fc.Arbitrary<Record<string, unknown>>);
  const text = fc.oneof(
    oddText(0, 30),
    small_picks('true', '0', '-1', '1e9', '20', 'all', 'newest'),
  );
  return weighted(
    [3, fc.constant('')],
    [
      4,
      shaped.map((query) =>
        Object.entries(query)
          // No events occur here, so waiting longer for them is pointless.
          .map(([name, value]) => [name, name === 'wait' && Number(value) > 1 ? 1 : value] as const)
          .map(([name, value]) => `${name}=${encodeURIComponent(String(value).toWellFormed())}`)
          .join('&'),
      ),
    ],
    [
      2,
      fc
        .array(fc.tuple(fc.constantFrom(...names), text), { maxLength: 6 })
        .map((pairs) =>
          pairs.map(([n, v]) => `${n}=${encodeURIComponent(String(v).toWellFormed())}`).join('&'),
        ),
    ],
    [1, printable.map((raw) => raw.replaceAll('#', ''))],
  );
};

/** Turns a made-up cursor into a cursor of this list, so that its parts are checked too. */
const markCursor = (route: Route) => {
  const read = route.query === undefined ? null : compileQuery(route.query);
  return (path: string, query: string): string => {
    const cursor = new URLSearchParams(query).get('cursor');
    const asked = cursor === null ? undefined : read?.(query);
    if (cursor === null || asked === undefined || 'fields' in asked) return query;
    const text = Buffer.from(cursor, 'base64url').toString('utf8');
    if (!text.startsWith('["",')) return query;
    const marked = encodeCursor(listMark(path, asked.value), JSON.parse(text).slice(1));
    return query.replace(cursor, marked);
  };
};

const pathOf = (route: Route, world: FuzzWorld, known: Known): fc.Arbitrary<string> => {
  const parts = route.path
    .split('/')
    .map((part, at, all) =>
      part.startsWith('{') ? segment(world, all[at - 1] ?? '') : fc.constant(part),
    );
  const mark = markCursor(route);
  return fc
    .tuple(fc.tuple(...parts), fc.constantFrom('', '', '', '/', '//', '/x'), queryOf(route, known))
    .map(([segments, end, query]) => {
      const path = segments.join('/');
      return `${path}${end}${query === '' ? '' : `?${mark(path, query)}`}`;
    });
};

const wrong_values = fc.constantFrom<unknown>(
  ...[null, true, 0, -1, 1.5, '', 'x', [], {}, [[]], { a: 1 }, '\u0000', '9'.repeat(400), 1e308],
);

/** Makes one member invalid, removes it or adds one. */
const spoil = (value: unknown, name: number, wrong: unknown): unknown => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return wrong;
  const names = [...Object.keys(value), 'constructor', 'extra'];
  const chosen = names[name % names.length] as string;
  return wrong === undefined
    ? Object.fromEntries(Object.entries(value).filter(([other]) => other !== chosen))
    : { ...value, [chosen]: wrong };
};

const odd_bodies = fc.constantFrom(
  ...['', ' ', '{', '{}', '[]', 'null', '""', '{"a":}', '\ufeff{}', '1e999', '{"x":1e999}'],
  '{"x":"\\u0000"}',
  ...['{"__proto__":{"is_admin":true}}', '{"constructor":{"prototype":{}}}', '{"x":"\\ud800"}'],
  ...['['.repeat(20_000), `${'['.repeat(17)}${']'.repeat(17)}`, `{"a":${'{"a":'.repeat(60)}1`],
  ...[`"${'x'.repeat(65_000)}"`, `{"name":"${'x'.repeat(70_000)}"}`, `[${'0,'.repeat(30_000)}0]`],
);

/** The body that the reference shows, with ids of existing objects. */
const exampleOf = (route: Route, { ids }: FuzzWorld): object => {
  const text = JSON.stringify(example_bodies[route.id] ?? {});
  const values: Readonly<Record<string, string | undefined>> = {
    QUESTION_ID: ids['questions']?.at(-1),
    CLOSES_AT: new Date(Date.now() + 9 * 86_400_000).toISOString(),
    HOOK_URL: 'https://127.0.0.1:18443/hook',
    EMAIL: 'fuzz@people.dev',
  };
  return JSON.parse(text.replace(/\$([A-Z_]+)/g, (_, name: string) => values[name] ?? 'fuzzed'));
};

/** A body that is valid except for one or two members. */
const nearly = (example: object, shaped: fc.Arbitrary<unknown>) =>
  fc.tuple(shaped, fc.array(fc.nat(20), { maxLength: 2 })).map(([odd, members]) => {
    const entries = Object.entries(odd ?? {});
    const taken = members.flatMap((n) =>
      entries.slice(n % Math.max(1, entries.length)).slice(0, 1),
    );
    return { ...example, ...Object.fromEntries(taken) };
  });

const bodyOf = (route: Route, world: FuzzWorld, known: Known): fc.Arbitrary<Buffer | null> => {
  const free = route.body === undefined ? fc.jsonValue() : shapedValue(route.body, known);
  const shaped =
    route.body === undefined
      ? free
      : weighted([2, nearly(exampleOf(route, world), free)], [1, free]);
  const text = shaped.map((value) => JSON.stringify(value) ?? '');
  const spoilt = fc
    .tuple(shaped, fc.nat(20), fc.oneof(wrong_values, fc.constant(undefined)))
    .map(([value, name, wrong]) => JSON.stringify(spoil(value, name, wrong)) ?? '');
  const cut = fc
    .tuple(text, fc.nat(400), fc.uint8Array({ maxLength: 3 }))
    .map(([whole, at, bytes]) => {
      const raw = Buffer.from(whole);
      const place = at % (raw.length + 1);
      return Buffer.concat([raw.subarray(0, place), bytes, raw.subarray(place + (at % 3))]);
    });
  const random = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));
  return weighted(
    [8, text.map((some) => Buffer.from(some))],
    [4, spoilt.map((some) => Buffer.from(some))],
    [2, odd_bodies.map((some) => Buffer.from(some))],
    [1, cut],
    [1, random],
    [1, fc.constant(null)],
  );
};

/** A header value: latin1 without control characters. */
const headerText = fc.string({
  unit: fc.constantFrom(...'aZ09 ,;:="/*-_.()<>{}%\\\u00e9\u00ff\t'),
  maxLength: 40,
});

const content_type = weighted(
  [8, fc.constant('application/json')],
  [1, fc.constantFrom('text/plain', 'application/json; charset=utf-16', 'multipart/form-data', '')],
  [1, headerText],
);

const headersOf: fc.Arbitrary<Record<string, string>> = fc.record(
  {
    'x-request-id': headerText,
    'idempotency-key': fc.oneof(headerText, fc.constantFrom('1', '2', 'k'.repeat(300))),
    'if-none-match': fc.oneof(headerText, fc.constant('*')),
    accept: fc.oneof(headerText, fc.constantFrom('text/html', '*/*', 'text/markdown;q=x')),
    'accept-encoding': headerText,
    'x-forwarded-for': fc.oneof(
      headerText,
      fc.ipV4(),
      fc.ipV6(),
      fc.constant('1.1.1.1,'.repeat(90)),
    ),
    origin: headerText,
    'sec-fetch-site': fc.constantFrom('same-origin', 'cross-site', 'x'),
    cookie: headerText,
    expect: fc.constant('100-continue'),
    range: headerText,
    'x-http-method-override': fc.constantFrom('DELETE', 'x'),
    'x-very-long': fc.constantFrom('y'.repeat(3_000), 'y'.repeat(8_200)),
  },
  { requiredKeys: [] },
);

const methodOf = (route: Route): fc.Arbitrary<string> =>
  weighted(
    [12, fc.constant<string>(route.method)],
    [2, fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS')],
    [1, fc.constantFrom('TRACE', 'BREW', 'get', 'PROPFIND', 'QUERY', 'X'.repeat(40))],
  );

export const requestFor = (route: Route, world: FuzzWorld): fc.Arbitrary<FuzzRequest> => {
  const known = knownOf(world);
  return fc
    .record({
      method: methodOf(route),
      path: pathOf(route, world, known),
      type: content_type,
      // Usually none, because a request with random headers is nearly always refused.
      headers: weighted([3, fc.constant<Record<string, string>>({})], [1, headersOf]),
      body: bodyOf(route, world, known),
      as: weighted(
        [3, fc.constantFrom(...world.admitted(route.auth))],
        [2, fc.constantFrom(...world.callers)],
      ),
    })
    .map(({ type, headers, body, ...rest }) => ({
      ...rest,
      body,
      headers: body === null ? headers : { ...headers, 'content-type': type },
    }));
};
