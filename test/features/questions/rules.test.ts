import { makeQuestion, timeframeOf, whyNotOpen } from '../../../src/features/questions/rules.js';
import type { QuestionDraft } from '../../../src/features/questions/schema.js';
import { t } from '../../help/tap.js';

const now = new Date('2026-03-01T12:00:00.000Z');
const draft: QuestionDraft & { readonly closes_at: string } = {
  question: 'Will the ferry run through the winter?',
  category: 'society',
  closes_at: '2026-04-01T00:00:00.000Z',
};
const make = (fields: Partial<QuestionDraft> = {}) => makeQuestion({ ...draft, ...fields }, now);
/** A character whose NFC form is two characters, so the text doubles in length. */
const growing = '\u0958';

t.test('a member that is not stated has its default', async (t) => {
  t.match(make(), {
    question: draft.question,
    description: '',
    subcategory: null,
    tags: [],
    options: [],
    question_type: 'binary',
    weight: 1,
    timeframe: 'long',
    source: null,
    source_id: null,
    opens_at: now,
    closes_at: new Date(draft.closes_at),
    resolution_date: new Date(draft.closes_at),
  });
});

t.test('texts are trimmed and normalised, and tags named once', async (t) => {
  t.match(make({ question: '  Will cafe\u0301s open again?  ', tags: ['#a', '#b', '#a'] }), {
    question: 'Will caf\u00e9s open again?',
    tags: ['#a', '#b'],
  });
});

t.test('a text has its limits after tidying, where its normal form may be longer', async (t) => {
  const cases = [
    ['question', 10, 500],
    ['description', 0, 10_000],
  ] as const;
  for (const [name, min, max] of cases) {
    const pathOf = (text: string) => {
      const made = make({ [name]: text });
      return 'kind' in made ? [made.def.code, made.fields?.[0]?.path] : 'taken';
    };
    const refused = ['INVALID_REQUEST', `body.${name}`];
    t.equal(pathOf('x'.repeat(max)), 'taken');
    t.equal(pathOf('\u{1f600}'.repeat(max)), 'taken', 'characters, not code units');
    t.same(pathOf('x'.repeat(max + 1)), refused);
    t.equal(pathOf(growing.repeat(max / 2)), 'taken');
    t.same(pathOf(growing.repeat(max / 2 + 1)), refused);
    if (min > 0) {
      t.equal(pathOf('x'.repeat(min)), 'taken');
      t.same(pathOf(` ${'x'.repeat(min - 1)} `), refused);
    }
  }
});

t.test('a multi question has 2 to 10 different options of 1 to 100 characters', async (t) => {
  const withOptions = (options: readonly string[]) => {
    const made = make({ question_type: 'multi', options: [...options] });
    return 'kind' in made ? made.def.code : made.options.length;
  };
  const numbered = (count: number) => Array.from({ length: count }, (_, n) => `Option ${n}`);
  t.equal(withOptions(numbered(2)), 2);
  t.equal(withOptions(numbered(10)), 10);
  for (const few of [[], ['one'], ['a', 'A'], ['a', ' a '], ['a', ' ']]) {
    t.equal(withOptions(few), 'INVALID_OPTIONS', few.join());
  }
  t.equal(withOptions(['a', 'x'.repeat(100)]), 2);
  t.equal(withOptions(['a', 'x'.repeat(101)]), 'INVALID_REQUEST');
  t.equal(withOptions(['a', growing.repeat(51)]), 'INVALID_REQUEST');
  t.match(make({ options: ['a', 'b'] }), { def: { code: 'INVALID_OPTIONS' } }, 'binary has none');
});

t.test('dates follow each other', async (t) => {
  const at = (text: string) => `2026-03-${text}T00:00:00.000Z`;
  const dated = (
    opens_at: string | null,
    closes_at: string | null,
    resolution_date: string | null,
  ) => {
    const made = make({ opens_at, closes_at, resolution_date });
    return 'kind' in made ? `${made.def.code} ${made.fields?.[0]?.path}` : 'taken';
  };
  t.equal(dated(at('02'), at('03'), at('04')), 'taken');
  t.equal(dated(at('02'), at('03'), at('03')), 'taken', 'resolved when it closes');
  t.equal(dated(null, at('02'), null), 'taken');
  t.equal(dated(at('03'), at('03'), null), 'INVALID_DATES body.closes_at');
  t.equal(dated(null, at('01'), null), 'INVALID_DATES body.closes_at', 'closed before now');
  t.equal(dated(at('02'), at('04'), at('03')), 'INVALID_DATES body.resolution_date');
  t.equal(dated(null, null, at('02')), 'taken');
  t.equal(dated(null, null, at('01')), 'INVALID_DATES body.resolution_date');
  t.equal(dated(null, null, null), 'INVALID_REQUEST body.closes_at');
  const by_resolution = make({ closes_at: null, resolution_date: at('02') });
  t.match(by_resolution, { closes_at: new Date(at('02')), resolution_date: new Date(at('02')) });
});

t.test('the timeframe goes by whole days to the resolution', async (t) => {
  const after = (days: number) => timeframeOf(now, new Date(now.getTime() + days * 86_400_000));
  t.same([after(6.99), after(7), after(29.99), after(30)], ['short', 'mid', 'mid', 'long']);
});

t.test('a question takes predictions from its opening to just before its close', async (t) => {
  const question = {
    status: 'open' as const,
    opens_at: new Date('2026-03-01T12:00:00.000Z'),
    closes_at: new Date('2026-03-02T12:00:00.000Z'),
  };
  const at = (text: string) => whyNotOpen(question, new Date(text));
  t.match(at('2026-03-01T11:59:59.999Z'), /opens at 2026-03-01T12/);
  t.equal(at('2026-03-01T12:00:00.000Z'), null);
  t.equal(at('2026-03-02T11:59:59.999Z'), null);
  t.match(at('2026-03-02T12:00:00.000Z'), /closed at 2026-03-02T12/);
  for (const status of ['draft', 'closed', 'resolved', 'voided'] as const) {
    t.match(whyNotOpen({ ...question, status }, now), new RegExp(status));
  }
});
