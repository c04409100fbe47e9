import fc from 'fast-check';
import { t } from 'tap';
import { findJsonProblem, parseJson } from '../../src/http/validation.js';
import { holds } from '../help/property.js';

const parse = (text: string) => parseJson(Buffer.from(text));

/** A value inside `levels` arrays and objects in turn. */
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
  for (const text of ['{', '{"a":1,}', "{'a':1}", 'NaN', 'undefined', '{"a":1}{', '\ufeff{}']) {
    t.match(parse(text), { ok: false, problem: /not valid JSON/ }, text);
  }
  const not_utf8 = [
    [0xff],
    [0xc3, 0x28],
    [0xed, 0xa0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xc0, 0x80],
  ];
  for (const bytes of not_utf8) {
    const raw = Buffer.concat([Buffer.from('{"a":"'), Buffer.from(bytes), Buffer.from('"}')]);
    t.match(parseJson(raw), { ok: false, problem: /UTF-8/ }, bytes.join(' '));
  }
});

t.test('a NUL is refused in a text, in a key and deep inside, written out or raw', async (t) => {
  for (const text of ['"\\u0000"', '{"a\\u0000":1}', '[[{"a":["x\\u0000y"]}]]']) {
    t.match(parse(text), { ok: false, problem: /NUL/ }, text);
  }
  t.match(parse('{"a":"\0"}'), { ok: false }, 'raw');
  t.match(parse('{"a":"\\\\u0000"}'), { ok: true }, 'an escaped backslash is no NUL');
});

t.test('a lone surrogate is refused, a pair is not', async (t) => {
  for (const text of [
    '"\\ud83d"',
    '"\\ude00"',
    '"\\ude00\\ud83d"',
    '{"\\ud83dx":1}',
    '["a\\udfff"]',
  ]) {
    t.match(parse(text), { ok: false, problem: /surrogate/ }, text);
  }
  t.match(parse('"\\ud83d\\ude00"'), { ok: true, value: '😀' });
});

t.test('a number that is not finite is refused, the largest that is one is not', async (t) => {
  for (const text of ['1e999', '-1e999', '{"a":[1e309]}', `1${'0'.repeat(400)}`]) {
    t.match(parse(text), { ok: false, problem: /number is too large/ }, text.slice(0, 12));
  }
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
      // CPU time: other processes do not count.
      const start = process.cpuUsage();
      findJsonProblem(value);
      best = Math.min(best, process.cpuUsage(start).user / 1000);
    }
    return best;
  };
  measure(2_000);
  t.ok(measure(80_000) < 100 * Math.max(measure(4_000), 0.1));
});
