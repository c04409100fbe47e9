import fc from 'fast-check';
import {
  checkText,
  countGraphemes,
  isCopyOf,
  placeReply,
} from '../../../src/features/comments/rules.js';
import { timeAtBest } from '../../help/stopwatch.js';
import { t } from '../../help/tap.js';

const codesOf = (text: string): readonly string[] => checkText(text).failures.map((f) => f.code);
const words = 'alpha bravo charlie delta echo';
/** A text of `length` characters with many words. */
const makeText = (length: number): string => {
  let text = '';
  for (let n = 0; text.length < length; n += 1)
    text += `word${String.fromCharCode(97 + (n % 26))}${n} `;
  return `${text.slice(0, length - 1)}x`;
};

t.test('a comment has 20 to 1,000 characters', async (t) => {
  t.same(codesOf('one two six ten seve'), ['COMMENT_LOW_QUALITY'].slice(1), '20');
  t.same(codesOf('one two six ten sev'), ['COMMENT_TOO_SHORT'], '19');
  t.same(codesOf(`   one two six ten sev ${' '.repeat(30)}`), ['COMMENT_TOO_SHORT'], 'trimmed');
  t.same(codesOf(makeText(1_000)), []);
  t.same(codesOf(makeText(1_001)), ['COMMENT_TOO_LONG']);
  t.same(codesOf(''), ['COMMENT_TOO_SHORT', 'COMMENT_LOW_QUALITY']);
});

t.test('characters are counted as people count them', async (t) => {
  const family = '👨‍👩‍👧‍👦';
  t.equal(countGraphemes(family), 1);
  const count = (text: string) => [...new Intl.Segmenter('und').segment(text)].length;
  const signs = fc.array(fc.constantFrom(...'ab \t\r\n©éʰ\u00ad’–\u0301\u200d\ufe0f\u2060각🇩🇪'));
  fc.assert(fc.property(signs, (all) => countGraphemes(all.join('')) === count(all.join(''))));
  const text = `${words} `;
  t.same(codesOf(text + `${family} `.repeat((1_000 - text.length) / 2).trim()), []);
  t.same(codesOf(`${text}${`${family} `.repeat((1_000 - text.length) / 2)}xy`), [
    'COMMENT_TOO_LONG',
  ]);
  t.same(codesOf('a\u0301 b\u0301 c\u0301 d\u0301 e\u0301 f\u0301 g\u0301 h\u0301 i\u0301 j'), [
    'COMMENT_TOO_SHORT',
    'COMMENT_LOW_QUALITY',
  ]);
  const zalgo = `${words} a${'\u0301'.repeat(20_000)}`;
  t.same(codesOf(zalgo), ['COMMENT_TOO_LONG'], 'few characters, but too many bytes for an event');
});

t.test('five different words of three letters, in any script', async (t) => {
  t.same(codesOf('alpha bravo charlie delta alpha Bravo'), ['COMMENT_LOW_QUALITY']);
  t.same(codesOf('alpha bravo charlie delta echo alpha'), []);
  t.same(codesOf('alpha bravo charlie delta to be or we'), ['COMMENT_LOW_QUALITY']);
  t.same(codesOf('alpha bravo charlie https://delta.org/echo/foxtrot'), ['COMMENT_LOW_QUALITY']);
  t.same(codesOf('Инфляция снизится ниже целевого уровня весной'), []);
  t.same(codesOf('التضخم سينخفض دون المستوى المستهدف قريبا جدا'), []);
  t.same(codesOf('我认为中央银行明年春季将会降低基准利率，因为通货膨胀已经明显下降。'), []);
  t.same(codesOf('日本銀行は来年の春に政策金利を引き上げると予想されています。'), []);
  t.same(codesOf('ธนาคารแห่งประเทศไทยจะปรับลดอัตราดอกเบี้ยนโยบายในปีหน้า'), []);
  t.same(codesOf('금리 인하 전망, 물가 안정 그리고 수출 증가'), []);
  t.same(codesOf('그 말 은 참 옳 다 고 나 도 생 각 한 다 정 말 로 요'), ['COMMENT_LOW_QUALITY']);
  t.same(codesOf('ไทย จีน ลาว พม่า มาเล ไทย จีน ลาว'), []);
  t.same(codesOf('的的的的的的的的的的的的的的的的的的的的'), [
    'COMMENT_LOW_QUALITY',
    'CONTENT_REJECTED',
  ]);
});

t.test('profanity, advertising, link floods and repetition are refused', async (t) => {
  const spam = (text: string) => codesOf(text).includes('CONTENT_REJECTED');
  t.ok(spam('What a fucking ridiculous forecast about inflation this is'));
  t.ok(spam('Guaranteed profits for everybody: double your bitcoin with this strategy'));
  const links = (count: number) =>
    `Compare these different reports ${Array.from({ length: count }, (_, n) => `https://a.org/${n}`).join(' ')}`;
  t.notOk(spam(links(5)));
  t.ok(spam(links(6)));
  t.notOk(spam(`${words} ${'a'.repeat(15)}`));
  t.ok(spam(`${words} ${'a'.repeat(16)}`));
  t.ok(spam(`${words} ${words} ${words}`));
  t.notOk(spam(`${words} ${words}`));
  t.notOk(
    spam('Prices fell in March — see the table:\n|====================|\n| below five percent |'),
  );
});

t.test('near-copies are known by their words', async (t) => {
  const isCopy = (a: string, b: string) => isCopyOf(new Set(checkText(a).tokens), b);
  const one = 'The central bank will cut rates in March because inflation fell below two percent';
  t.ok(
    isCopy(
      one,
      'the CENTRAL bank, will cut rates in march; because inflation fell below two percent!!',
    ),
  );
  t.notOk(isCopy(one, 'Rates will stay where they are because wages grow'));
  t.notOk(isCopy('Comment number 1 about rates', 'Comment number 2 about rates'));
  const [with_link, with_other] = ['a', 'b'].map(
    (path) => `${one} https://example.org/${path}/x/y/z`,
  );
  t.ok(isCopy(with_link!, with_other!), 'links do not count');
});

t.test('a near-copy has nine tenths of all different words in common', async () => {
  const words = fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 40 });
  fc.assert(
    fc.property(words, words, fc.nat({ max: 4 }), (base, others, changed) => {
      const other = [...base.slice(changed), ...others.slice(0, changed)];
      const [a, b] = [new Set(base), new Set(other)];
      const shared = [...a].filter((word) => b.has(word)).length;
      const all = new Set([...a, ...b]).size;
      const tokens = new Set(base.map(String));
      return isCopyOf(tokens, other.join(' ')) === (all === 0 || shared / all >= 0.9);
    }),
  );
});

t.test('replies go down to depth 8 and stand side by side there', async (t) => {
  t.same(placeReply({ id: 'a', parent_id: null, depth: 0 }), { parent_id: 'a', depth: 1 });
  t.same(placeReply({ id: 'h', parent_id: 'g', depth: 7 }), { parent_id: 'h', depth: 8 });
  t.same(placeReply({ id: 'i', parent_id: 'h', depth: 8 }), { parent_id: 'h', depth: 8 });
});

t.test('no text of 1,000 characters takes longer than 5 ms', async (t) => {
  const unit = fc.oneof(
    fc.string({ maxLength: 40 }),
    fc.string({ unit: 'grapheme', maxLength: 40 }),
    fc.constantFrom(...['a', '1', 'sh1t', 'f u c k ', 'http://', 'https://a.b/(((', 'click ']),
    fc.constantFrom(
      ...['buy ', '\u0301', '👨‍👩‍👧', '的', 'ก', '-', '@$!', '\n', 'á', '\u200d', '\u200b'],
    ),
  );
  const texts = fc
    .array(fc.tuple(unit, fc.integer({ min: 1, max: 400 })), { minLength: 1, maxLength: 12 })
    .map((parts) =>
      [...parts.map(([text, n]) => text.repeat(n)).join('')].slice(0, 1_000).join(''),
    );
  for (const text of fc.sample(texts, { numRuns: 300, seed: 1 })) checkText(text);
  const slow: string[] = [];
  for (const text of fc.sample(texts, 1_000)) {
    // The best of several tries counts, because the machine may be busy.
    const took = timeAtBest(() => checkText(text), 5);
    if (took > 5) slow.push(`${took} ms: ${JSON.stringify(text.slice(0, 80))}`);
  }
  t.same(slow, []);
});
