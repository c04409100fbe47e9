import { readStated, type StatedBody } from '../../../src/features/predictions/stated.js';
import { startApp } from '../../help/app.js';
import { no_range } from '../../help/number.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** Forecasts of a number or a date: what is understood, what is refused and where, what is kept. */

const asked = { ...no_range, question_type: 'numeric', options: [] } as const;
const closed = { ...asked, range_min: 0, range_max: 100 };
const open = { ...closed, open_min: true, open_max: true };

const read = (body: StatedBody, question: typeof closed | typeof open = closed) => {
  const stated = readStated(body, question);
  return 'failures' in stated
    ? stated.failures.map(({ path, code }) => `${path} ${code}`)
    : stated.cdf;
};
const points = (...pairs: readonly (readonly [number, number])[]) =>
  pairs.map(([value, p]) => ({ value, p }));
const wrong = (path: string) => [`body.${path} INVALID_DISTRIBUTION`];

t.test('quantiles and a distribution, by fractions and percent, with their ends', async (t) => {
  const fan = points([10, 0.05], [40, 0.5], [80, 0.95]);
  const kept = [0, 0, 10, 0.05, 40, 0.5, 80, 0.95, 100, 1];
  t.strictSame(read({ quantiles: fan }), kept);
  t.strictSame(read({ cdf: fan }), kept);
  const percent = points([10, 5], [40, 50], [80, 95]);
  t.strictSame(read({ quantiles: percent }), kept, 'one of them is above 1');
  const small = points([10, 0.5], [80, 0.9]);
  t.strictSame(
    read({ quantiles: small, scale: 'percent' }),
    [0, 0, 10, 0.005, 80, 0.009, 100, 1],
    'the scale says so',
  );
  t.strictSame(
    read({ quantiles: fan, below: 0.05, above: 0.02 }, open),
    [0, 0.05, 10, 0.05, 40, 0.5, 80, 0.95, 100, 0.98],
  );
  t.strictSame(read({ cdf: points([50, 0], [50, 1]) }), [0, 0, 50, 0, 50, 1, 100, 1], 'a jump');
  const whole = points([0, 0.1], [100, 0.8]);
  t.strictSame(read({ cdf: whole }, open), [0, 0.1, 100, 0.8], 'an answer says its own ends');
  t.strictSame(read({ cdf: whole }), [0, 0, 0, 0.1, 100, 0.8, 100, 1], 'jumps at closed ends');
});

t.test('what is no distribution is refused where it is not', async (t) => {
  t.same(read({}), wrong('quantiles'));
  const fan = points([10, 0.05], [40, 0.5]);
  t.same(read({ quantiles: fan, cdf: fan }), wrong('quantiles'));
  t.same(read({ quantiles: points([10, 0.1], [9, 0.2]) }), wrong('quantiles.1.value'));
  t.same(read({ quantiles: points([10, 0.3], [11, 0.2]) }), wrong('quantiles.1.p'));
  t.same(read({ cdf: points([-1, 0.3], [101, 0.4]) }), wrong('cdf.0.value'));
  t.same(read({ cdf: points([1, -0.1], [2, 0.4]) }), wrong('cdf.0.p'));
  t.same(read({ cdf: points([1, 0.1], [2, 101]) }), wrong('cdf.1.p'));
  t.same(read({ quantiles: fan, below: 0.1 }), wrong('below'));
  t.same(read({ quantiles: fan, below: 0.1 }, open), wrong('quantiles.0.p'));
  t.same(read({ quantiles: fan, above: 0.6 }, open), wrong('quantiles.1.p'));
  t.same(
    read({ quantiles: [{ value: '2026-01-01', p: 0.01 }, ...fan] }),
    wrong('quantiles.0.value'),
  );
  t.same(read({ quantiles: fan, probability: 40 }), ['body.probability INVALID_OPTION']);
  const yes_no = readStated(
    { quantiles: fan },
    { ...no_range, question_type: 'binary', options: [] },
  );
  t.match(yes_no, { failures: [{ path: 'body.quantiles', code: 'INVALID_OPTION' }] });
});

const app = await startApp(t, { roles: ['api', 'relay'] });
const human = await makeHuman(app);
const reason = 'The regulator published its decision this morning, earlier than expected.';

t.test('a date: placed, answered, sent back, revised and told', async (t) => {
  const range = { min: '2030-01-01T00:00:00Z', max: '2030-01-11T00:00:00Z', open_max: true };
  const id = await makeOpenQuestion(app, { question_type: 'date', range });
  const { key } = await makeAgent(app, { human });
  const day = (n: number): string => new Date(Date.UTC(2030, 0, n)).toISOString();
  const quantiles = [
    { value: day(2), p: 0.25 },
    { value: day(4), p: 0.75 },
  ];
  const predict = (body: object) =>
    app.call('POST', `/api/questions/${id}/predict`, {
      key,
      body: { reasoning: makeReasoning(), ...body },
    });
  const dry = await predict({ quantiles: [...quantiles].reverse(), dry_run: true });
  t.match(dry.body.failures, [
    { path: 'body.quantiles.1.value', code: 'INVALID_DISTRIBUTION', status: 400 },
  ]);
  t.match(await predict({ quantiles: quantiles.slice(1) }), { status: 400 }, 'two points at least');
  const most = Array.from({ length: 200 }, (_, n) => ({ value: day(2), p: n / 400 }));
  t.match((await predict({ cdf: most, dry_run: true })).body, { would_be_accepted: true });
  const many = await predict({ cdf: [...most, { value: day(3), p: 0.9 }], dry_run: true });
  t.match(many, { status: 400, body: { code: 'INVALID_REQUEST' } });

  const { status, body } = await predict({ quantiles, above: 0.1 });
  t.equal(status, 201, body.error);
  const { prediction } = body;
  t.match(prediction, {
    prediction: null,
    probability: null,
    selected_option: null,
    probabilities: null,
    confidence: 50,
    scale: 'percent',
    cdf: [
      { value: day(1), p: 0 },
      { value: day(2), p: 25 },
      { value: day(4), p: 75 },
      { value: day(11), p: 90 },
    ],
    quartiles: [day(2), day(3), day(4)],
  });
  const revise = (stated: object) =>
    app.call('PATCH', `/api/predictions/${prediction.id}`, { key, body: { reason, ...stated } });
  const { cdf, scale, confidence, quartiles } = prediction;
  const same = await revise({ cdf, scale, confidence, quartiles });
  t.match(same, { status: 200, body: { changed: false } }, same.body.error);
  await app.sql`
    update predictions set created_at = created_at - interval '61 s' where id = ${prediction.id}`;
  t.match(await revise({ probability: 3 }), { status: 400, body: { code: 'INVALID_OPTION' } });
  const later = quantiles.map(({ p }, n) => ({ value: day(5 + n), p }));
  const revised = await revise({ quantiles: later });
  t.match(revised.body, { changed: true, prediction: { revision: 1, confidence: 50 } });
  t.same(revised.body.prediction.quartiles, [day(5), '2030-01-05T12:00:00.000Z', day(6)]);

  const { revisions } = (await app.call('GET', `/api/predictions/${prediction.id}/revisions`)).body;
  t.match(revisions, [{ cdf, quartiles }, { cdf: revised.body.prediction.cdf }]);
  const [event] = await until('the revision in the log', async () => {
    const { body } = await app.call('GET', '/api/events?events=prediction.revised');
    return body.events.length === 1 && body.events;
  });
  t.match(event.data, {
    confidence: 50,
    cdf: revised.body.prediction.cdf,
    revision: 1,
    previous: { cdf, quartiles, confidence: 50 },
  });
  const counted = await app.call('GET', `/api/questions/${id}`);
  t.match(counted.body.question, { prediction_count: 1, yes_count: 0, no_count: 0 });
  const lines = await app.call('GET', `/api/export/predictions?format=json&question_id=${id}`);
  t.equal(lines.status, 200);
});
