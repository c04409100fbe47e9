import fc from 'fast-check';
import { cutLines, fitAnswer, max_bytes, type Shape } from '../../../src/features/mcp/answers.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';

const usual: Shape = {
  rows: 'rows',
  picks: 'row',
  fields: null,
  is_full: false,
  whole: 'full: true returns all',
};

// biome-ignore lint/suspicious/noExplicitAny: an answer is read by tests that know its shape.
const fit = (answer: unknown, shape: Partial<Shape> = {}): any => {
  const fitted = fitAnswer(answer, { ...usual, ...shape });
  return 'text' in fitted ? JSON.parse(fitted.text) : fitted;
};

const long = 'abcdefghij'.repeat(1_000);

t.test('a long text keeps its beginning and its end, and says what is left out', async (t) => {
  const { rows, terms } = fit({ rows: [{ reasoning: long, note: 'short' }], terms: long });
  const mark = '… [9000 more characters; full: true returns all] …';
  t.equal(rows[0].reasoning, `${long.slice(0, 750)}${mark}${long.slice(-250)}`);
  t.equal(rows[0].note, 'short');
  t.match(terms, /6000 more characters/, 'beside the rows it is longer');
  t.equal(fit({ rows: [{ reasoning: long.slice(0, 1_000) }] }).rows[0].reasoning.length, 1_000);
  t.equal(fit({ rows: [{ reasoning: long }] }, { is_full: true }).rows[0].reasoning, long);
});

t.test('no character is cut in two', async (t) => {
  for (const text of ['📈'.repeat(1_000), `a${'📈'.repeat(1_000)}`]) {
    const shown = fit({ rows: [text] }).rows[0];
    t.ok(shown.isWellFormed());
    t.match(shown, /more characters/);
  }
});

t.test('a long list says how much is left out', async (t) => {
  const { rows, cdf } = fit({ rows: [{ cdf: Array(1_000).fill(1) }], cdf: Array(251).fill(1) });
  t.equal(rows[0].cdf.length, 51);
  t.match(rows[0].cdf.at(-1), /950 more items; full: true returns all/);
  t.match(cdf.at(-1), /1 more items/);
  t.equal(fit({ cdf: Array(250).fill(1) }).cdf.length, 250);
});

t.test('fields name members of a row, or of the answer, at any depth', async (t) => {
  const answer = {
    total: 2,
    rows: [{ a: 1, b: { c: 2, d: 3 }, list: [{ e: 4, f: 5 }] }, { a: 6 }],
  };
  t.same(fit(answer, { fields: ['a', 'b.c', 'list.f'] }), {
    total: 2,
    rows: [{ a: 1, b: { c: 2 }, list: [{ f: 5 }] }, { a: 6 }],
  });
  const whole = { question: { id: 1, text: 'x' }, rows: [{ a: 1, b: 2 }], next_cursor: 'n' };
  t.same(fit(whole, { picks: 'answer', fields: ['question.id', 'rows.a'] }), {
    question: { id: 1 },
    rows: [{ a: 1 }],
    next_cursor: 'n',
  });
});

t.test('a page that is too large is asked for with the rows that fit', async (t) => {
  for (const characters of [1_000, 999, 500, 313]) {
    const rows = Array(200).fill('x'.repeat(characters));
    const { limit } = fit({ rows, next: 1 });
    const bytes = (count: number) =>
      Buffer.byteLength(JSON.stringify({ rows: rows.slice(0, count), next: 1 }));
    t.ok(bytes(limit) <= max_bytes && bytes(limit + 1) > max_bytes, `${limit} rows`);
  }
  const exact = { rows: Array(60).fill('x'.repeat(1_000)), filler: '' };
  const room = max_bytes - Buffer.byteLength(JSON.stringify(exact));
  t.match(fit({ ...exact, filler: 'x'.repeat(room) }), { filler: /x/ }, 'the most bytes');
  t.same(fit({ ...exact, filler: 'x'.repeat(room + 1) }), { limit: 59 });
});

t.test('one row is shortened further until it fits, and is whole if it is asked for', async (t) => {
  const row = Object.fromEntries([...Array(40).keys()].map((n) => [`m${n}`, '漢'.repeat(10_000)]));
  const answer = { rows: [row] };
  t.ok(Buffer.byteLength(JSON.stringify(fit(answer))) <= max_bytes);
  t.same(fit(answer, { is_full: true }), answer);
  t.same(fit({ rows: [row, row] }, { is_full: true }), { limit: 1 });
});

t.test('whatever the answer, it fits or fewer rows are asked for', async (t) => {
  const text = fc
    .tuple(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), fc.nat(3_000))
    .map(([one, count]) => one.repeat(count));
  const value = fc.letrec((tie) => ({
    any: fc.oneof({ depthSize: 'small' }, text, fc.double(), tie('list'), tie('object')),
    list: fc.array(tie('any'), { maxLength: 8 }),
    object: fc.dictionary(fc.string({ maxLength: 8 }), tie('any'), { maxKeys: 8 }),
  })).any;
  const answers = fc.record({ rows: fc.array(value, { maxLength: 30 }), rest: value });
  await holds(
    t,
    fc.property(answers, (answer) => {
      const fitted = fitAnswer(answer, usual);
      if ('text' in fitted) return Buffer.byteLength(fitted.text) <= max_bytes;
      return fitted.limit >= 1 && fitted.limit < answer.rows.length;
    }),
    { numRuns: 100 },
  );
});

t.test('Markdown ends with a whole line', async (t) => {
  const text = '漢字 and more\n'.repeat(10_000);
  const cut = cutLines(text, '… The rest is left out.');
  t.ok(Buffer.byteLength(cut) <= max_bytes);
  t.match(cut, /漢字 and more\n\n… The rest is left out\.\n$/);
  t.notMatch(cut, '\ufffd');
  t.equal(cutLines('short', 'x'), 'short');
});
