import { valueText } from '../../../src/features/questions/range.js';
import { checkRange } from '../../../src/features/questions/rules.js';
import { startApp } from '../../help/app.js';
import { makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';

/** Numeric and date questions: their range, and how it is shown. */

const app = await startApp(t, { roles: ['api'] });

const pathOf = (question_type: string, range: object | null) => {
  const found = checkRange({ question_type, range: range as never });
  return 'message' in found ? found.fields?.[0]?.path : found;
};

t.test(
  'a range is two numbers in order, of a date two times, and no other question has one',
  async (t) => {
    const range = { min: 0, max: 1 };
    t.match(pathOf('numeric', { ...range, unit: ' GW ', open_max: true }), {
      range_min: 0,
      range_max: 1,
      unit: 'GW',
      open_min: false,
      open_max: true,
    });
    t.equal(pathOf('numeric', null), 'body.range');
    t.equal(pathOf('binary', range), 'body.range');
    t.equal(pathOf('numeric', { min: 1, max: 1 }), 'body.range.max');
    t.equal(
      pathOf('numeric', { min: -1e308, max: 1e308 }),
      'body.range.max',
      'too wide for a float',
    );
    t.equal(pathOf('numeric', { min: '2030-01-01T00:00:00Z', max: 1 }), 'body.range.min');
    t.equal(pathOf('date', range), 'body.range.min');
    const dates = { min: '2030-01-01T00:00:00Z', max: '2031-01-01T00:00:00+01:00' };
    t.match(pathOf('date', dates), {
      range_min: Date.UTC(2030, 0),
      range_max: Date.UTC(2030, 11, 31, 23),
    });
    t.equal(pathOf('date', { ...dates, unit: 'days' }), 'body.range.unit');
    t.match(pathOf('numeric', { ...range, unit: 'u'.repeat(40) }), { unit: 'u'.repeat(40) });
    t.equal(pathOf('numeric', { ...range, unit: 'u'.repeat(41) }), 'body.range.unit');
  },
);

t.test('values for people', async (t) => {
  const of = { question_type: 'numeric', unit: 'GW', range_min: 0, range_max: 2_000_000 };
  t.equal(valueText(1_234_567, of), '1,235,000 GW');
  t.equal(valueText(1_000_001.5, { ...of, range_min: 1e6, range_max: 1e6 + 2 }), '1,000,001.5 GW');
  t.equal(valueText(0.00123456, { ...of, unit: null }), '0.001235');
  t.equal(valueText('2030-01-02T00:00:00Z', { ...of, question_type: 'date' }), '2 Jan 2030');
});

t.test('it is asked, listed, edited as a draft, and fixed once it is open', async (t) => {
  const range = { min: 0, max: 10, unit: 'm', open_min: false, open_max: true };
  const id = await makeOpenQuestion(app, { question_type: 'numeric', range, publish: false });
  const patch = (body: object) =>
    app.call('PATCH', `/api/admin/questions/${id}`, { admin: true, body });
  const wider = await patch({ range: { ...range, max: 20 } });
  t.match(wider.body.question, { range: { ...range, max: 20 }, outcome_value: null, options: [] });
  t.match(await patch({ question_type: 'date' }), { status: 400, body: { code: 'INVALID_RANGE' } });
  const refused = await patch({ range: { ...range, min: 30 } });
  t.match(refused, { status: 400, body: { code: 'INVALID_RANGE' } });
  t.equal(
    (await app.call('POST', `/api/admin/questions/${id}/publish`, { admin: true, body: {} }))
      .status,
    200,
  );
  const late = await patch({ range });
  t.match(late, {
    status: 409,
    body: { code: 'QUESTION_NOT_EDITABLE', fields: [{ path: 'body.range' }] },
  });
  t.equal((await patch({ description: 'By the gauge at the pier.' })).status, 200);
  const { questions } = (await app.call('GET', '/api/questions?question_type=numeric')).body;
  t.match(questions, [{ id, range: { max: 20, unit: 'm' } }]);
  const [event] = await app.sql`select body::json -> 'data' -> 'range' as range from outbox`;
  t.same(event?.['range'], { ...range, max: 20 });
});
