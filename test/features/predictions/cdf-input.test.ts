import fc from 'fast-check';
import {
  dataOf,
  type ForecastBody,
  readForecastInput,
  showForecastInput,
} from '../../../src/features/predictions/forecast-input.js';
import { startApp } from '../../help/app.js';
import { no_range } from '../../help/number.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/**
 * Numeric and date forecasts: the accepted forms, the refusals with their fields, and the stored
 * values.
 */

const asked = { ...no_range, question_type: 'numeric', options: [] } as const;
const closed = { ...asked, range_min: 0, range_max: 100 };
const open = { ...closed, open_min: true, open_max: true };

const read = (body: ForecastBody, question: typeof closed | typeof open = closed) => {
  const stated = readForecastInput(body, question);
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

t.test('noise of a calculation changes neither the scale nor the ends', async (t) => {
  // A plain cumulative sum of ten times 0.1 ends at 0.9999999999999999. The sum of 0.7, 0.1 and
  // 0.2 ends above 1.
  const summed = (shares: readonly number[]) =>
    shares.map((_, n) => shares.slice(0, n + 1).reduce((sum, share) => sum + share, 0));
  const tenths = summed(Array<number>(10).fill(0.1));
  t.equal(tenths.at(-1), 0.999_999_999_999_999_9);
  const by_tenths = tenths.map((p, n) => ({ value: 10 * (n + 1), p }));
  const tenth = (n: number) => [10 * n, n / 10];
  const wanted = Array.from({ length: 11 }, (_, n) => tenth(n)).flat();
  t.strictSame(read({ cdf: by_tenths }), wanted);
  for (const last of [1 + 2 ** -52, 1 + 5e-7, 1.000_001, 1 - 1e-9, 0.999_999_5]) {
    t.strictSame(read({ cdf: points([20, 0.5], [80, last]) }), [0, 0, 20, 0.5, 80, 1, 100, 1]);
  }
  const above = read({ cdf: points([20, 0.5], [80, 1.000_003]) });
  t.strictSame(above, [0, 0, 20, 0.005, 80, 0.010_000_03, 100, 1], 'this is percent');
  for (const last of [100 + 1e-13, 100.000_09, 99.999_99]) {
    t.strictSame(read({ cdf: points([20, 50], [80, last]) }), [0, 0, 20, 0.5, 80, 1, 100, 1]);
  }
  t.strictSame(read({ cdf: points([20, -1e-12], [80, 1]) }), [0, 0, 20, 0, 80, 1, 100, 1]);
  t.strictSame(
    read({ quantiles: points([20, 0.1], [30, 0.5], [40, 0.499_999_9]), below: 0.1000001 }, open),
    [0, 0.100_000_1, 20, 0.100_000_1, 30, 0.5, 40, 0.5, 100, 1],
    'and no order is lost by it',
  );
  t.strictSame(
    read({ cdf: points([-1e-8, 0], [30, 0.5], [30 - 1e-8, 0.6], [100 + 1e-8, 1]) }),
    [0, 0, 30, 0.5, 30, 0.6, 100, 1],
    'values of the ends too',
  );
  t.same(read({ cdf: points([-1e-6, 0], [30, 0.5]) }), wrong('cdf.0.value'));
  t.same(read({ cdf: points([30, 0.5], [29.999, 0.6]) }), wrong('cdf.1.value'));
  t.same(read({ cdf: points([30, 0.5], [31, 0.49]) }), wrong('cdf.1.p'));
});

t.test('any shares that sum to 1 are read as fractions, however they are added up', async () => {
  const shares = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), {
    minLength: 2,
    maxLength: 40,
  });
  fc.assert(
    fc.property(shares, (parts) => {
      const all = parts.reduce((sum, part) => sum + part, 0);
      fc.pre(all > 1e-3);
      let sum = 0;
      const continuous_cdf = parts.map((part) => (sum += part / all));
      for (const read_as of [{ continuous_cdf }, { cdf: continuous_cdf }]) {
        const stored = read(read_as, open) as number[];
        if (stored.at(-1) !== 1) throw new Error(`ends at ${stored.at(-1)}`);
        const first = Math.round(continuous_cdf[0]! * 1e8) / 1e8;
        if (Math.abs(stored[1]! - first) > 1e-6) throw new Error(`starts at ${stored[1]}`);
      }
    }),
    { numRuns: 2_000 },
  );
});

t.test('lists at equal steps, of probabilities and of values', async (t) => {
  const list = Array.from({ length: 201 }, (_, n) => n / 200);
  const uniform = list.flatMap((p, n) => [n / 2, p]);
  t.strictSame(read({ continuous_cdf: list }), uniform);
  t.strictSame(read({ cdf: list }), uniform);
  t.strictSame(read({ continuous_cdf: list.map((p) => 100 * p) }), uniform, 'in percent');
  t.strictSame(read({ continuous_cdf: [0.1, 0.8] }, open), [0, 0.1, 100, 0.8], 'with open ends');
  t.strictSame(read({ quantiles: [20, 50, 90] }), [0, 0, 20, 0.25, 50, 0.5, 90, 0.75, 100, 1]);
  t.same(read({ continuous_cdf: [0, 0.6, 0.5, 1] }), wrong('continuous_cdf.2'));
  t.same(read({ quantiles: [20, 120] }), wrong('quantiles.1'));
  t.same(read({ quantiles: ['2030-01-01T00:00:00Z', 3] }), wrong('quantiles.0'));
  t.same(read({ cdf: [...points([1, 0]), 1] }), wrong('cdf.1'), 'not both kinds');
  t.same(read({ continuous_cdf: list, cdf: list }), wrong('quantiles'));
  const most = Array.from({ length: 1_001 }, (_, n) => n / 1_000);
  t.same(read({ continuous_cdf: most }), wrong('continuous_cdf'));
  t.equal((read({ continuous_cdf: most.slice(1) }, open) as number[]).length, 2_000);
});

t.test('an answer is the same forecast when it is sent back', async (t) => {
  const question = { ...open, range_min: 1_000_000_000_000, range_max: 1_000_000_000_010 };
  const inner = Array.from({ length: 1_000 }, (_, n) => ({
    value: 1_000_000_000_000 + (n + 1) / 200,
    p: (n + 1) / 1_001,
  }));
  for (const body of [
    { cdf: inner },
    { cdf: inner, below: 1e-3 / 2, above: 1e-4 },
    { quantiles: points([1_000_000_000_003, 0.2], [1_000_000_000_004, 0.9]), above: 0.05 },
    { continuous_cdf: Array.from({ length: 200 }, (_, n) => 0.003 + (n / 199) * 0.006) },
  ]) {
    const stated = readForecastInput(body, question);
    if ('failures' in stated) throw new Error(JSON.stringify(stated.failures));
    const shown = JSON.parse(JSON.stringify(showForecastInput(stated, question)));
    t.strictSame(readForecastInput(shown, question), stated);
    const event = JSON.parse(JSON.stringify(dataOf(stated, question)));
    t.strictSame(readForecastInput(event, question), stated, 'as an event has it');
    const [low, middle, high] = shown.quartiles;
    t.ok((low < middle && middle < high) || low === question.range_max, `${low} ${middle} ${high}`);
  }
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
  const yes_no = readForecastInput(
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
  const most = Array.from({ length: 1_000 }, (_, n) => ({ value: day(2), p: n / 2_000 }));
  t.match((await predict({ cdf: most, dry_run: true })).body, { would_be_accepted: true });
  const many = await predict({ cdf: [...most, { value: day(3), p: 0.9 }], dry_run: true });
  t.match(many.body.failures, [{ path: 'body.cdf', code: 'INVALID_DISTRIBUTION', status: 400 }]);

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

t.test('a thousand points are placed, revised and sent back', async (t) => {
  for (const [question_type, range] of [
    ['numeric', { min: 0, max: 1, open_min: true, open_max: true }],
    ['date', { min: '2030-01-01T00:00:00Z', max: '2031-01-01T00:00:00Z', open_max: true }],
  ] as const) {
    const id = await makeOpenQuestion(app, { question_type, range });
    const { key } = await makeAgent(app, { human });
    const at = (n: number) => (n + 1) / 1_001 + 1e-9;
    const continuous_cdf = Array.from({ length: 1_000 }, (_, n) => at(n));
    const placed = await app.call('POST', `/api/questions/${id}/predict`, {
      key,
      body: { reasoning: makeReasoning(), continuous_cdf },
    });
    t.equal(placed.status, 201, JSON.stringify(placed.body).slice(0, 300));
    const { prediction } = placed.body;
    t.ok(prediction.cdf.length >= 1_000);
    const revise = (stated: object) =>
      app.call('PATCH', `/api/predictions/${prediction.id}`, { key, body: { reason, ...stated } });
    const { cdf, scale } = prediction;
    t.match(await revise({ cdf, scale }), { status: 200, body: { changed: false } });
    await app.sql`
      update predictions set created_at = now() - interval '2 minutes' where id = ${prediction.id}`;
    const other = await revise({ continuous_cdf: continuous_cdf.map((p) => p ** 2) });
    t.match(
      other,
      { status: 200, body: { changed: true } },
      JSON.stringify(other.body).slice(0, 200),
    );
  }
});
