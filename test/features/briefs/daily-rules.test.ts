import {
  contestedOf,
  type ResolvedRow,
  readDay,
  type SideRow,
  scoreCrowd,
} from '../../../src/features/briefs/daily-rules.js';
import { outcomeText } from '../../../src/features/briefs/rules.js';
import { no_range } from '../../help/number.js';
import { pluck } from '../../help/pluck.js';
import { t } from '../../help/tap.js';

const now = new Date('2026-03-10T12:34:56.789Z');

t.test('a day is a whole UTC day; today ends with the last minute', async (t) => {
  t.match(readDay(undefined, now), { date: '2026-03-09', is_partial: false });
  t.same(readDay('2026-03-10', now), {
    date: '2026-03-10',
    is_partial: true,
    from: new Date('2026-03-10T00:00:00.000Z'),
    to: new Date('2026-03-10T12:34:00.000Z'),
  });
  t.match(readDay('2024-02-29', now), { to: new Date('2024-03-01T00:00:00.000Z') });
  t.match(readDay('1970-01-01', now), { date: '1970-01-01' });
  const midnight = new Date('2026-03-10T00:00:00.000Z');
  t.match(readDay('2026-03-10', midnight), { from: midnight, to: midnight, is_partial: true });
  t.match(readDay('2026-03-09', midnight), { is_partial: false, to: midnight });
});

t.test('what names no day, or one that has not begun, is none', async (t) => {
  const wrong = ['2026-02-29', '2026-13-01', '2026-00-10', '2026-3-9', '2026-03-11', '20260309'];
  const others = ['yesterday', '2026-03-09T00:00:00Z', ' 2026-03-09', '-001-01-01', '1969-12-31'];
  for (const date of [...wrong, ...others, '9999-99-99', '２０２６-03-09']) {
    t.equal(readDay(date, now), null, date);
  }
});

const row = (fields: Partial<ResolvedRow>): ResolvedRow => ({
  question_id: 'q',
  question: 'Q',
  question_type: 'binary',
  options: [],
  outcome: true,
  ...no_range,
  correct_options: null,
  outcome_value: null,
  revision: 1,
  median_agent_brier: null,
  best_agent_brier: null,
  ...fields,
});

t.test('the headline is scored as agents are', async (t) => {
  t.equal(scoreCrowd(row({}), { forecast: null, total_predictions: 0 }), null);
  const pooled = { forecast: 70, total_predictions: 4 };
  const yes = scoreCrowd(row({}), pooled);
  t.ok(Math.abs((yes?.crowd_brier ?? 0) - 0.09) < 1e-12, '(0.7 − 1)²');
  t.match(yes, { crowd: 70, even_brier: 0.25 });
  const no = scoreCrowd(row({ outcome: false }), pooled);
  t.ok(Math.abs((no?.crowd_brier ?? 0) - 0.49) < 1e-12);
  const multi = row({
    question_type: 'multi',
    options: ['A', 'B', 'C'],
    outcome: null,
    correct_options: ['B'],
  });
  // Crowd: ((0.2)² + (0.5 − 1)² + (0.3)²) / 2 = 0.19. Even: ((1/3)² · 2 + (2/3)²) / 2 = 1/3.
  const options = [20, 50, 30].map((forecast, n) => ({
    option: 'ABC'.charAt(n),
    count: 1,
    percent: 33.33,
    avg_confidence: 50,
    forecast,
    mean_probability: 33.33,
  }));
  const scored = scoreCrowd(multi, { forecast: 50, total_predictions: 3, options });
  t.ok(Math.abs((scored?.crowd_brier ?? 0) - 0.19) < 1e-12);
  t.ok(Math.abs((scored?.even_brier ?? 0) - 1 / 3) < 1e-12);
  t.equal(scored?.crowd, 50);
  t.equal(outcomeText(row({ ...multi, correct_options: ['A', 'C'] })), 'A | C');
  t.equal(outcomeText(row({ outcome: false })), 'NO');
});

t.test('contested are those that are split, many before few, and none that agree', async (t) => {
  const sides = (id: string, counts: readonly number[]): SideRow[] =>
    counts.map((count, side) => ({
      question_id: id,
      question: id,
      question_type: 'binary',
      options: [],
      side,
      count,
    }));
  const rows = [
    ...sides('even of 10', [5, 5]),
    ...sides('even of 100', [50, 50]),
    ...sides('few', [2, 2]),
    ...sides('agreed', [0, 40]).filter(({ count }) => count > 0),
    ...sides('mostly', [10, 90]),
  ];
  const found = contestedOf(rows);
  t.same(pluck(found, 'question'), ['even of 100', 'even of 10', 'mostly']);
  t.match(found[2], { predictions: 100, leader: { position: 'YES', count: 90 } });
});
