import fc from 'fast-check';
import {
  codeSpan,
  escapeMarkdown,
  flatten,
  shorten,
  writeTable,
} from '../../../src/features/briefs/markdown.js';
import { hostile_markdown } from '../../help/hostile-markdown.js';
import { bareOf, blocksOf, findMarkup } from '../../help/markdown.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';

const blocks = /^- (?:#{1,6} |[-+*] |\d+[.)] |>|=|```|~~~)/;

t.test('nothing that strangers write means anything in Markdown', async (t) => {
  const problems = hostile_markdown.flatMap((text) => {
    const written = escapeMarkdown(text);
    const found = [...findMarkup(`> “${written}”`), ...findMarkup(`- ${written}`)];
    if (/[\r\n]/.test(written)) found.push('a line break');
    if (blocks.test(`- ${written}`)) found.push('a block in a list');
    return found.map((what) => ({ what, text, written }));
  });
  t.same(problems, []);
});

t.test('the rules find what is not escaped', async (t) => {
  const found = hostile_markdown.filter(
    (text) =>
      findMarkup(`> ${text}`).length > 0 ||
      blocks.test(`- ${text}`) ||
      Object.values(blocksOf(text)).some((lines) => lines.length > 0),
  );
  const harmless = hostile_markdown.filter((text) => !found.includes(text)).sort();
  t.same(harmless, ['\\', 'ends with a backslash \\', '`code` and ``co`de``'].sort());
});

t.test('a text can be read back from its escaped form', async (t) => {
  const plain = 'R&D grew 3 % (see note *1*), "as planned"; [sic] <b> costs $4_000 | ~5.';
  t.equal(bareOf('a\\*b'), 'axb');
  t.equal(escapeMarkdown(plain).replace(/\\([!-/:-@[-`{-~])/g, '$1'), plain);
  t.equal(escapeMarkdown('two\n\nparagraphs\tand  blanks '), 'two paragraphs and blanks');
});

t.test('code spans end where they shall', async (t) => {
  t.equal(codeSpan('https://a.example.org/x?y=`z`|w'), '`https://a.example.org/x?y=%60z%60%7Cw`');
  t.equal(codeSpan(''), '');
  t.equal(codeSpan('a\n`b'), '`a %60b`');
  t.equal(escapeMarkdown('\\@\\'), '`%5C@%5C`');
});

t.test('what cannot be seen is taken out', async (t) => {
  t.equal(flatten('a\u202eb\u2066c\u200bd\ufeffe\u0000f\u00adg\u{e0041}h'), 'abcdefgh');
  t.equal(flatten('naïve – “ok” 中文 🙂'), 'naïve – “ok” 中文 🙂');
});

t.test('texts are cut at the end of a sentence or a word', async (t) => {
  t.equal(shorten('short', 5), 'short');
  t.equal(shorten('One sentence is here. Another follows it.', 30), 'One sentence is here. …');
  t.equal(shorten('several words without an end of sentence', 20), 'several words…');
  t.equal(shorten('x'.repeat(30), 10), `${'x'.repeat(9)}…`);
  t.equal([...shorten('🙂'.repeat(30), 10)].length, 10, 'no half characters');
});

t.test('a table has its head, its rule and its rows', async (t) => {
  t.same(writeTable(['A', 'B'], [['1', '2']]), ['| A | B |', '| --- | ---: |', '| 1 | 2 |']);
});

t.test('whatever the text, it stays inert and on one line', async (t) => {
  const sign = fc.constantFrom(...'\\`*_[]()<>|~$#&!@:/-+=.1) \n\twhtps://ww"\'{}^%é\u202e\u200b');
  await holds(
    t,
    fc.property(fc.array(sign, { maxLength: 60 }), (signs) => {
      const written = escapeMarkdown(signs.join(''));
      return findMarkup(`> “${written}”`).length === 0 && !/[\r\n]/.test(written);
    }),
  );
});
