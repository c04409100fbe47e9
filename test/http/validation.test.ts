import { Type } from '@sinclair/typebox';
import fc from 'fast-check';
import { nullable, textEnum, time_schema, uuid_schema } from '../../src/http/schemas.js';
import {
  compileCheck,
  compileQuery,
  findJsonProblem,
  parseJson,
} from '../../src/http/validation.js';
import { makeId } from '../../src/kit/ids.js';
import { parseTime } from '../../src/kit/time.js';
import { holds } from '../help/property.js';
import { t } from '../help/tap.js';

const thing = Type.Object({
  id: uuid_schema,
  name: Type.String({ minLength: 2, maxLength: 5 }),
  kind: textEnum(['red', 'green'] as const),
  count: Type.Optional(Type.Integer({ minimum: 0, maximum: 10 })),
  at: Type.Optional(nullable(time_schema)),
  tags: Type.Optional(Type.Array(Type.String(), { maxItems: 30 })),
});
const check = compileCheck(thing, 'body');
const good = { id: makeId(), name: 'abc', kind: 'red' };
const pathsOf = (value: unknown) => check(value)?.map((field) => field.path);

t.test('a good value passes, with members that nobody asked for too', async (t) => {
  t.equal(check(good), null);
  t.equal(check({ ...good, count: 10, at: null, tags: [], unknown: { deep: [1] } }), null);
});

t.test('every wrong member is named by its path', async (t) => {
  t.same(pathsOf({ ...good, name: 'a', count: -1 }), ['body.name', 'body.count']);
  t.same(pathsOf({ ...good, tags: ['a', 1] }), ['body.tags.1']);
  t.same(pathsOf({ id: good.id, kind: 'red' }), ['body.name']);
  for (const value of [null, 1, 'text', [], undefined]) {
    t.ok((pathsOf(value) ?? []).length > 0, JSON.stringify(value));
  }
});

t.test('what is wrong is said in plain words', async (t) => {
  const says = (value: object) => check({ ...good, ...value })?.map(({ message }) => message);
  const of_two = Type.Union([Type.Integer({ minimum: 0 }), Type.Array(Type.String())]);
  const checkTwo = compileCheck(Type.Object({ of_two }, { additionalProperties: false }), 'frame');
  const cases: readonly (readonly [object, string])[] = [
    [{ id: 'abc' }, 'must be an id (a UUID)'],
    [{ id: 7 }, 'must be a string'],
    [{ name: 'a' }, 'must have at least 2 characters'],
    [{ name: 'abcdef' }, 'must have at most 5 characters'],
    [{ kind: 'blue' }, 'must be one of red, green'],
    [{ count: 1.5 }, 'must be a whole number'],
    [{ count: -1 }, 'must be from 0 to 10'],
    [{ count: 11 }, 'must be from 0 to 10'],
    [{ at: 7 }, 'must be a string or null'],
    [{ at: 'now' }, 'must be a time with a zone, such as 2026-03-01T12:00:00Z'],
    [{ tags: 'x' }, 'must be an array'],
    [{ tags: Array(31).fill('x') }, 'must have at most 30 items'],
  ];
  for (const [value, message] of cases) t.same(says(value), [message], JSON.stringify(value));
  t.match(check({ id: good.id, kind: 'red' }), [{ path: 'body.name', message: 'is required' }]);
  t.same(check([]), [{ path: 'body', message: 'must be an object' }]);
  t.same(checkTwo({ of_two: true }), [
    { path: 'frame.of_two', message: 'must be a whole number or an array' },
  ]);
  t.same(checkTwo({ of_two: ['a', 1] }), [{ path: 'frame.of_two.1', message: 'must be a string' }]);
  t.same(checkTwo({ of_two: -1 }), [{ path: 'frame.of_two', message: 'must be at least 0' }]);
  t.same(checkTwo({ of_two: 1, three: 3 }), [
    { path: 'frame.three', message: 'is not known here' },
  ]);
});

t.test('every limit holds at its edge and one beyond', async (t) => {
  const tags = Array(30).fill('x');
  const taken = [{ name: 'ab' }, { name: 'abcde' }, { count: 0 }, { count: 10 }, { tags }];
  for (const value of [...taken, { id: good.id.toUpperCase() }]) {
    t.equal(check({ ...good, ...value }), null, JSON.stringify(value));
  }
  for (const name of ['', 'a', 'abcdef']) t.same(pathsOf({ ...good, name }), ['body.name'], name);
  for (const count of [-1, 11, 1.5]) t.same(pathsOf({ ...good, count }), ['body.count']);
  for (const kind of ['blue', 'RED', 'red\n', ' red', 'red|green', '', 'redgreen']) {
    t.same(pathsOf({ ...good, kind }), ['body.kind'], JSON.stringify(kind));
  }
  t.same(pathsOf({ ...good, tags: [...tags, 'x'] }), ['body.tags']);
  t.equal(check({ ...good, tags: tags.map(() => 7) })?.length, 20, 'the list ends after twenty');
});

t.test('a time needs a date, a clock and a zone', async (t) => {
  for (const [text, time] of [
    ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000Z'],
    ['2026-03-01T12:00:00.123456789+02:00', '2026-03-01T10:00:00.123Z'],
    ['2026-03-01T12:00-0530', '2026-03-01T17:30:00.000Z'],
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
  ] as const) {
    t.equal(parseTime(text)?.toISOString(), time);
  }
  const bad = [
    ['', '2026', '2026-03-01', '2026-03-01T12:00:00', '2026-03-01 12:00:00Z', 'tomorrow'],
    ['2026-13-01T00:00:00Z', '2026-03-01T25:00:00Z', '2026-03-01T12:00:00+99:00'],
    [
      '2026-02-30T00:00:00Z',
      '2027-02-29T00:00:00Z',
      '2026-04-31T00:00:00Z',
      '2026-01-00T00:00:00Z',
    ],
    ['2026-03-01T12:00:00Z\n', '+002026-03-01T12:00:00Z', '1772366400000', '12026-03-01T00:00Z'],
    // Before 1970 and after 9999.
    ['1969-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999-00:01'],
  ].flat();
  for (const text of bad) t.equal(parseTime(text), null, JSON.stringify(text));
  const date = fc.date({
    min: new Date(0),
    max: new Date(253_402_300_799_999),
    noInvalidDate: true,
  });
  await holds(
    t,
    fc.property(date, (time) => parseTime(time.toISOString())?.getTime() === time.getTime()),
  );
});

const readQuery = compileQuery(
  Type.Object({
    limit: Type.Integer({ minimum: 1, maximum: 100, default: 20 }),
    ratio: Type.Optional(Type.Number()),
    deep: Type.Optional(Type.Boolean()),
    q: Type.Optional(Type.String({ maxLength: 5 })),
  }),
);
const readValue = (raw: string) => {
  const read = readQuery(raw);
  return 'value' in read ? read.value : read.fields.map((field) => field.path);
};

t.test('a query is read by its schema: types, defaults, and what is wrong', async (t) => {
  const cases: readonly (readonly [query: string, read: object])[] = [
    ['', { limit: 20 }],
    ['limit=5&ratio=-0.5&deep=true&q=7', { limit: 5, ratio: -0.5, deep: true, q: '7' }],
    ['deep=1', { limit: 20, deep: true }],
    ['deep=0', { limit: 20, deep: false }],
    ['q=a+b%20c', { limit: 20, q: 'a b c' }],
    ['limit=1', { limit: 1 }],
    // Unknown keys are ignored. An empty value counts as absent. The first value of a key counts.
    ['page=3&__proto__=x&constructor=y&&&=&limit=', { limit: 20 }],
    ['limit=3&limit=900', { limit: 3 }],
    ['q=abcde', { limit: 20, q: 'abcde' }],
    ['q=abcdef', ['query.q']],
    ['deep=yes', ['query.deep']],
    [`ratio=${'9'.repeat(400)}`, ['query.ratio']],
    // A limit above the maximum is reduced to it.
    ...['100', '101', '100000', '9'.repeat(400)].map(
      (most) => [`limit=${most}`, { limit: 100 }] as const,
    ),
    ...['0', '-1', 'ten', '1e1', '0x10', '5.5', '100.5', ' 5', 'NaN'].map(
      (bad) => [`limit=${encodeURIComponent(bad)}`, ['query.limit']] as const,
    ),
  ];
  for (const [query, read] of cases) t.same(readValue(query), read, query.slice(0, 40));
  t.equal(({} as { x?: unknown }).x, undefined);
});

t.test('NUL and broken escapes in a query do no harm', async (t) => {
  t.same(readValue('q=%00'), ['query.q']);
  t.same(readValue('%00=1&other=%00'), { limit: 20 });
  t.same(readValue('q=%ff'), { limit: 20, q: '\ufffd' });
  await holds(
    t,
    fc.property(fc.string({ unit: fc.constantFrom(...'limtq=&%0aF+;é') }), (raw) => {
      const read = readQuery(raw);
      return 'value' in read || read.fields.length > 0;
    }),
    { numRuns: 1_000 },
  );
});

const parse = (text: string) => parseJson(Buffer.from(text));

/** A value nested in `levels` arrays and objects, which alternate. */
const nest = (levels: number): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < levels; level += 1) value = level % 2 ? [value] : { a: value };
  return value;
};

const refused_keys = ['__proto__', 'constructor', 'prototype'];

t.test('what JSON.stringify makes of any sane value is read as that value', async (t) => {
  const text = fc.string({ unit: 'grapheme', maxLength: 12 }).filter((s) => !s.includes('\0'));
  const key = text.filter((name) => !refused_keys.includes(name));
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 12, withCrossShrink: true },
      fc.constant(null),
      fc.boolean(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.integer(),
      text,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(key, tie('value'), { maxKeys: 4, noNullPrototype: true }),
    ),
  }));
  await holds(
    t,
    fc.property(value, (sane) => {
      const sent = JSON.stringify(sane);
      const read = parse(sent);
      return read.ok && JSON.stringify(read.value) === sent;
    }),
    { numRuns: 500 },
  );
});

t.test('any bytes at all are read or refused with a sentence, and nothing is thrown', async (t) => {
  const bytes = fc.uint8Array({ maxLength: 200 });
  const near_json = fc.string({ unit: fc.constantFrom(...'{}[]",:\\u0dE-1.tfn'), maxLength: 40 });
  const body = fc.oneof(
    bytes.map((some) => Buffer.from(some)),
    near_json.map((text) => Buffer.from(text)),
  );
  await holds(
    t,
    fc.property(body, (raw) => {
      const read = parseJson(raw);
      return read.ok || /^[A-Z].*\.$/.test(read.problem);
    }),
    { numRuns: 2_000 },
  );
});

t.test('an empty body, broken JSON and bytes that are not UTF-8 are told apart', async (t) => {
  t.match(parseJson(Buffer.alloc(0)), { ok: false, problem: /empty/ });
  for (const text of ['{', '{"a":1,}', "{'a':1}", 'NaN', 'undefined', '{"a":1}{', '{}\ufeff']) {
    t.match(parse(text), { ok: false, problem: /not valid JSON/ }, text);
  }
  for (const hex of ['ff', 'c328', 'eda080', 'f4908080', 'c080']) {
    const raw = Buffer.concat([Buffer.from('{"a":"'), Buffer.from(hex, 'hex'), Buffer.from('"}')]);
    t.match(parseJson(raw), { ok: false, problem: /UTF-8/ }, hex);
  }
});

t.test('NUL, lone surrogates and numbers that are not finite are refused anywhere', async (t) => {
  for (const [problem, texts] of [
    [/NUL/, ['"\\u0000"', '{"a\\u0000":1}', '[[{"a":["x\\u0000y"]}]]']],
    [/surrogate/, ['"\\ud83d"', '"\\ude00\\ud83d"', '{"\\ud83dx":1}', '["a\\udfff"]']],
    [/too large/, ['1e999', '-1e999', '{"a":[1e309]}', `1${'0'.repeat(400)}`]],
    [/not valid JSON/, ['{"a":"\0"}']],
  ] as const) {
    for (const text of texts) t.match(parse(text), { ok: false, problem }, text.slice(0, 20));
  }
  t.match(parse('{"a":"\\\\u0000"}'), { ok: true }, 'an escaped backslash is no NUL');
  t.match(parse('"\\ud83d\\ude00"'), { ok: true, value: '😀' });
  t.match(parse(String(Number.MAX_VALUE)), { ok: true, value: Number.MAX_VALUE });
  t.match(parse('1e-999'), { ok: true, value: 0 });
});

t.test('sixteen levels are read and seventeen are refused', async (t) => {
  t.match(parse(JSON.stringify(nest(16))), { ok: true, value: nest(16) });
  t.match(parse(JSON.stringify(nest(17))), { ok: false, problem: /deeper than 16/ });
  t.match(parse('[{}]'), { ok: true });
  t.match(parse(`${'['.repeat(30_000)}${']'.repeat(30_000)}`), { ok: false, problem: /deeper/ });
  t.match(parse('['.repeat(65_000)), { ok: false, problem: /not valid JSON/ });
});

t.test('keys that reach for prototypes are refused wherever they stand', async (t) => {
  for (const key of refused_keys) {
    t.match(parse(`{"${key}":{}}`), { ok: false, problem: new RegExp(key) });
    t.match(parse(`[{"a":{"${key}":1}}]`), { ok: false, problem: new RegExp(key) });
    t.match(parse(`{"a":"${key}"}`), { ok: true }, 'as a text it is harmless');
  }
  t.match(parse('{"__\\u0070roto__":{"admin":true}}'), { ok: false }, 'escaped');
  t.equal(({} as { admin?: boolean }).admin, undefined);
});

t.test('the time to check grows with the size and no faster', async (t) => {
  const measure = (items: number): number => {
    const value = Array.from({ length: items }, (_, index) => ({ a: `text ${index}`, b: [index] }));
    let best = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 5; round += 1) {
      // CPU time, so that other processes do not count.
      const start = process.cpuUsage();
      findJsonProblem(value);
      best = Math.min(best, process.cpuUsage(start).user / 1000);
    }
    return best;
  };
  measure(2_000);
  t.ok(measure(80_000) < 100 * Math.max(measure(4_000), 0.1));
});
