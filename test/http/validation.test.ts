import { Type } from '@sinclair/typebox';
import fc from 'fast-check';
import { t } from 'tap';
import { nullable, textEnum, time_schema, uuid_schema } from '../../src/http/openapi.js';
import { compileCheck, compileQuery, parseTime } from '../../src/http/validation.js';
import { makeId } from '../../src/kit/ids.js';
import { holds } from '../help/property.js';

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
    [{ count: -1 }, 'must be at least 0'],
    [{ count: 11 }, 'must be at most 10'],
    [{ at: 7 }, 'must be a string or null'],
    [{ at: 'now' }, 'must be a time with its zone, such as 2026-03-01T12:00:00Z'],
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
  for (const name of ['ab', 'abcde']) t.equal(check({ ...good, name }), null, name);
  for (const name of ['', 'a', 'abcdef']) t.same(pathsOf({ ...good, name }), ['body.name'], name);
  for (const count of [0, 10]) t.equal(check({ ...good, count }), null, String(count));
  for (const count of [-1, 11, 1.5]) t.same(pathsOf({ ...good, count }), ['body.count']);
  t.equal(check({ ...good, tags: Array(30).fill('x') }), null);
  t.same(pathsOf({ ...good, tags: Array(31).fill('x') }), ['body.tags']);
});

t.test('a list of what is wrong ends after twenty', async (t) => {
  t.equal(check({ ...good, tags: Array(30).fill(7) })?.length, 20);
});

t.test('one of a few texts is just one of them', async (t) => {
  for (const kind of ['blue', 'RED', 'red\n', ' red', 'red|green', '', 'redgreen']) {
    t.same(pathsOf({ ...good, kind }), ['body.kind'], JSON.stringify(kind));
  }
});

t.test('ids are UUIDs in any case', async (t) => {
  t.equal(check({ ...good, id: good.id.toUpperCase() }), null);
  t.same(pathsOf({ ...good, id: 'abc' }), ['body.id']);
});

t.test('a time needs a date, a clock and a zone', async (t) => {
  t.equal(parseTime('2026-03-01T12:00:00Z')?.toISOString(), '2026-03-01T12:00:00.000Z');
  t.equal(
    parseTime('2026-03-01T12:00:00.123456789+02:00')?.toISOString(),
    '2026-03-01T10:00:00.123Z',
  );
  t.equal(parseTime('2026-03-01T12:00-0530')?.toISOString(), '2026-03-01T17:30:00.000Z');
  const bad = [
    ['', '2026', '2026-03-01', '2026-03-01T12:00:00', '2026-03-01 12:00:00Z', 'tomorrow'],
    ['2026-13-01T00:00:00Z', '2026-03-01T25:00:00Z', '2026-03-01T12:00:00+99:00'],
    ['2026-03-01T12:00:00Z\n', '+002026-03-01T12:00:00Z', '1772366400000', '12026-03-01T00:00Z'],
  ].flat();
  for (const text of bad) t.equal(parseTime(text), null, JSON.stringify(text));
});

t.test('times lie between the years 1970 and 9999', async (t) => {
  t.equal(parseTime('1970-01-01T00:00:00Z')?.getTime(), 0);
  t.equal(parseTime('1969-12-31T23:59:59.999Z'), null);
  t.equal(parseTime('9999-12-31T23:59:59.999Z')?.getTime(), 253_402_300_799_999);
  t.equal(parseTime('9999-12-31T23:59:59.999-00:01'), null);
});

t.test('every time that is written as ISO 8601 is read back', async (t) => {
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

t.test('query values take the type of their schema, defaults included', async (t) => {
  t.same(readValue(''), { limit: 20 });
  t.same(readValue('limit=5&ratio=-0.5&deep=true&q=7'), {
    limit: 5,
    ratio: -0.5,
    deep: true,
    q: '7',
  });
  t.same(readValue('deep=1'), { limit: 20, deep: true });
  t.same(readValue('deep=0'), { limit: 20, deep: false });
  t.same(readValue('q=a+b%20c'), { limit: 20, q: 'a b c' });
});

t.test('unknown keys are ignored, and an empty value counts as absent', async (t) => {
  t.same(readValue('page=3&__proto__=x&constructor=y&&&=&limit='), { limit: 20 });
  t.equal(({} as { x?: unknown }).x, undefined);
  t.same(readValue('limit=3&limit=900'), { limit: 3 }, 'the first of several counts');
});

t.test('what does not fit is named', async (t) => {
  for (const limit of ['0', '-1', 'ten', '1e1', '0x10', '5.5', '100.5', ' 5', 'NaN']) {
    t.same(readValue(`limit=${encodeURIComponent(limit)}`), ['query.limit'], limit.slice(0, 9));
  }
  t.same(readValue('limit=1'), { limit: 1 });
  t.same(readValue('deep=yes'), ['query.deep']);
  t.same(readValue('q=abcde'), { limit: 20, q: 'abcde' });
  t.same(readValue('q=abcdef'), ['query.q']);
  t.same(readValue(`ratio=${'9'.repeat(400)}`), ['query.ratio'], 'no number that is not finite');
});

t.test('a limit above its most is the most', async (t) => {
  for (const limit of ['100', '101', '100000', '9'.repeat(400)]) {
    t.same(readValue(`limit=${limit}`), { limit: 100 }, limit.slice(0, 9));
  }
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
