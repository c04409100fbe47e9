import fc from 'fast-check';
import {
  closestWord,
  countErrors,
  familiesOf,
  matchSections,
  type Section,
  swappedWords,
  wordsOf,
} from '../../../src/features/search/rules.js';
import { holds } from '../../help/property.js';
import { t } from '../../help/tap.js';

t.test('words are small, without marks, and letters are apart from digits', async (t) => {
  t.same(wordsOf('OpenAI’s GPT-5.5, Müller & ＧＰＴ４!'), [
    ...['openai', 's', 'gpt', '5', '5', 'muller', 'gpt', '4'],
  ]);
  t.same(wordsOf(' … '), []);
});

t.test('families are named by themselves, a beginning, a maker or a model', async (t) => {
  for (const [text, family] of [
    ['claude', 'claude'],
    ['cla', 'claude'],
    ['Anthropic', 'claude'],
    ['gpt6', 'gpt'],
    ['gpt 5.5', 'gpt'],
    ['sonnet 4.5', 'claude'],
  ] as const) {
    t.same(familiesOf(text), [family], text);
  }
  t.same(familiesOf('g').length, 0, 'one letter is too little');
  t.same(familiesOf('gem'), ['gemini', 'gemma']);
  for (const text of ['', '???', 'waymo', 'other', 'will the next claude model be free']) {
    t.same(familiesOf(text), [], text);
  }
});

t.test('errors are letters that are wrong, missing, too many or swapped', async (t) => {
  const pairs = [
    ['nvidea', 'nvidia', 1],
    ['antropic', 'anthropic', 1],
    ['londn', 'london', 1],
    ['lodnon', 'london', 1],
    ['londdon', 'london', 1],
    ['same', 'same', 0],
    ['', 'abc', 3],
    ['абв', 'абг', 1],
  ] as const;
  for (const [given, wanted, errors] of pairs) t.equal(countErrors(given, wanted), errors, given);
  t.equal(countErrors('nvide', 'nvidia', true), 1, 'a beginning');
  const word = fc.string({ maxLength: 12 });
  const symmetric = fc.property(word, word, (a, b) => countErrors(a, b) === countErrors(b, a));
  await holds(t, symmetric);
});

t.test('one error is tolerated, two in a long word', async (t) => {
  t.equal(closestWord('nvidea', ['media', 'nvidia'], false), 'nvidia');
  t.equal(closestWord('nvidxx', ['nvidia'], false), null);
  t.equal(closestWord('antrhopc', ['anthropic'], false), null);
  t.equal(closestWord('antrhopicc', ['anthropic'], false), 'anthropic');
  t.equal(closestWord('nvide', ['nvidia'], true), 'nvidia', 'the last word may be unfinished');
  t.equal(closestWord('nvide', ['nvidia'], false), null);
  t.equal(closestWord('any', [], true), null);
  t.ok(swappedWords('lodnon').includes('london'));
});

t.test('sections match with all words, headings first', async (t) => {
  const section = (title: string, heading: string | null, text: string): Section => ({
    title,
    heading,
    path: '/x',
    heading_words: ` ${wordsOf(`${title} ${heading ?? ''}`).join(' ')} `,
    words: ` ${wordsOf(`${title} ${heading ?? ''} ${text}`).join(' ')} `,
  });
  const all = [
    section('Webhooks', null, 'Retries are delayed.'),
    section('Webhooks', 'Retries', 'After a failure.'),
    section('Scoring', null, 'The Brier score.'),
  ];
  const headings = (text: string) => matchSections(all, text).map(({ heading }) => heading);
  t.same(headings('webhook retr'), ['Retries', null]);
  t.same(headings('brier'), [null]);
  t.same(headings('brier retries'), []);
  t.same(headings(' '), []);
});
