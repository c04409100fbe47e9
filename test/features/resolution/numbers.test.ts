import fc from 'fast-check';
import { scoreNumber } from '../../../src/features/resolution/numbers.js';
import { checkRecord } from '../../../src/tools/verify/record-store.js';
import { startApp } from '../../help/app.js';
import { holds } from '../../help/property.js';
import {
  act,
  decide,
  decideAndSettle,
  ledgerOf,
  predict,
  settleEagerly,
  untilSettled,
} from '../../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** The points of numeric and date forecasts, with hand-computed figures. */

const near = (found: number, wanted: number) => Math.abs(found - wanted) < 1e-9;

/** The probabilities of eleven values, a tenth of the range apart. */
const chances = fc
  .array(fc.integer({ min: 0, max: 20 }), { minLength: 11, maxLength: 11 })
  .filter((weights) => weights.some((weight) => weight > 0))
  .map((weights) => {
    const sum = weights.reduce((a, b) => a + b, 0);
    return weights.map((weight) => weight / sum);
  });

/** The CDF of a distribution with all probability at these eleven values. */
const cdfOf = (shares: readonly number[]): readonly number[] => {
  let p = 0;
  const jumps = shares.flatMap((share, value) => {
    const before = p;
    p = Math.min(1, p + share);
    return [value, before, value, p];
  });
  return [0, 0, ...jumps, 10, 1];
};

t.test('nothing beats honesty, also with a revision after news', async (t) => {
  const range = { min: 0, max: 10, open_min: false, open_max: false, is_date: false };
  // News reveals which of two beliefs is right. Before that, the honest forecast is their mixture.
  await holds(
    t,
    fc.property(
      fc.tuple(chances, chances, fc.double({ min: 0, max: 1, noNaN: true })),
      fc.tuple(chances, chances, chances),
      fc.integer({ min: 1, max: 9 }),
      ([one, two, of_one], [first, after_one, after_two], stood) => {
        const mixed = one.map((share, n) => of_one * share + (1 - of_one) * two[n]!);
        const expect = (before: readonly number[], later: readonly (readonly number[])[]) =>
          [one, two].reduce(
            (total, belief, news) =>
              total +
              (news === 0 ? of_one : 1 - of_one) *
                belief.reduce((sum, share, outcome_value) => {
                  const spans = [
                    { cdf: cdfOf(before), weight_ms: stood },
                    { cdf: cdfOf(later[news]!), weight_ms: 10 - stood },
                  ];
                  const { crps } = scoreNumber(spans, { range, outcome_value, weight: 1 });
                  const x = outcome_value / 10;
                  return sum + share * (x ** 3 + (1 - x) ** 3 - 3 * crps);
                }, 0),
            0,
          );
        const honest = expect(mixed, [one, two]);
        return honest >= expect(first, [after_one, after_two]) - 1e-9;
      },
    ),
  );
});

const app = await startApp(t, {
  roles: ['api', 'relay', 'timer'],
  env: { LIMIT_EXPORTS: '100000' },
});
await settleEagerly(t, app);

const uniform = (low: number, high: number) => [
  { value: low, p: 0 },
  { value: high, p: 1 },
];
const sure = (value: number) => [
  { value, p: 0 },
  { value, p: 1 },
];

t.test('an imported question is replayed, decided, and decided anew', async (t) => {
  const begin = Date.now() - 20 * 86_400_000;
  const day = (n: number): string => new Date(begin + n * 86_400_000).toISOString();
  const named = { source: 'register', source_id: 'n1' };
  const load = async (what: string, ...items: object[]) => {
    const path = `/api/admin/${what}/import`;
    const { body } = await app.call('POST', path, { admin: true, body: { items } });
    return body.results;
  };
  const [made] = await load('questions', {
    ...named,
    question: 'How many ships will call at the harbour in the season?',
    category: 'society',
    question_type: 'numeric',
    range: { min: 0, max: 100 },
    weight: 2,
    opens_at: day(0),
    closes_at: day(10),
    publish: true,
  });
  t.match(made, { status: 'created' });
  const id = made.question_id;
  await load('agents', ...['A', 'B', 'C'].map((name) => ({ name: `Number ${name}`, model: 'm' })));
  const forecasts = [
    { agent: 'Number A', quantiles: uniform(0, 100), forecast_at: day(0) },
    { agent: 'Number B', quantiles: uniform(20, 40), forecast_at: day(1) },
    { agent: 'Number C', cdf: sure(80), forecast_at: day(2) },
    { agent: 'Number C', cdf: sure(30), forecast_at: day(4) },
  ].map((one) => ({ ...named, ...one }));
  const placed = await load('predictions', ...forecasts);
  t.strictSame(
    placed.map(({ status }: { status: string }) => status),
    ['created', 'created', 'created', 'created'],
    JSON.stringify(placed),
  );
  t.match(await load('predictions', ...forecasts), Array(4).fill({ status: 'exists' }));
  const wrong = await load('resolutions', { ...named, outcome: true });
  t.match(wrong, [{ status: 'refused', code: 'INVALID_OUTCOME' }]);
  const right = { ...named, outcome_value: 30 };
  t.match(await load('resolutions', right), [{ status: 'created' }]);
  await untilSettled(app.sql, id);
  t.match(await load('resolutions', right), [{ status: 'exists' }]);
  const other = await load('resolutions', { ...named, outcome_value: 31 });
  t.match(other, [{ status: 'refused', code: 'INVALID_TRANSITION' }]);

  // x = 0.3: x³ + (1 − x)³ = 0.37. B: 2 · ∫ (5z)² over 0.1. C: 0.5 for a quarter of its life.
  const scoresOf = () => app.sql`
    select g.name, s.crps, s.net, s.correct, s.hit, s.stated, s.brier, s.log_score, s.forecast
    from scores s
    join agents g on g.id = s.agent_id
    where s.question_id = ${id}
    order by g.name`;
  const none = { brier: null, log_score: null, forecast: null, stated: 5_000 };
  const [a, b, c] = await scoresOf();
  t.match(a, { ...none, net: 0, correct: false, hit: true });
  t.match(b, { ...none, net: 64, correct: true, hit: true });
  t.match(c, { ...none, net: -1, correct: false, hit: true });
  t.ok(near(a!['crps'], 0.37 / 3) && near(b!['crps'], 1 / 60) && near(c!['crps'], 0.125));

  const { predictions } = (await app.call('GET', `/api/questions/${id}/predictions`)).body;
  const own = predictions.find(({ user_name }: { user_name: string }) => user_name === 'Number C');
  const receiptOf = async () =>
    (await app.call('GET', `/api/predictions/${own.id}/receipt`)).body.receipt;
  t.match(await receiptOf(), {
    question_type: 'numeric',
    distribution: [],
    weight: 2,
    ends_at: day(10),
    result: { outcome_value: 30, x: 0.3, crps: 0.125, net: -1 },
    intervals: [
      {
        revision: 0,
        from: day(2),
        to: day(4),
        crps: 0.5,
        b: null,
        cdf: [{ value: 0 }, {}, {}, {}],
      },
      { revision: 1, from: day(4), to: day(10), crps: 0 },
    ],
    outcomes: [],
    entries_total: -1,
  });

  // An outcome above the range counts as its upper end. B is off by 1 − F², C by 0.2 and then 0.7.
  await decideAndSettle(app, id, 'resolve', { outcome_value: 150 });
  const nets = (await scoresOf()).map(({ net }) => net);
  t.same(nets, [0, -200, -145]);
  t.same(await ledgerOf(app.sql, own.user_id), [
    ['registration', 5_000],
    ['settlement', -1],
    ['reversal', 1],
    ['settlement', -145],
  ]);
  const shown = (await app.call('GET', `/api/questions/${id}`)).body.question;
  t.match(shown, { outcome: null, correct_options: null, outcome_value: 150, revision: 2 });
  t.match((await receiptOf()).result, { outcome_value: 150, x: 1, net: -145 });
  t.same(await checkRecord(app.sql, 60_000), []);

  // No probability was stated, so accuracy does not apply.
  const { body: profile } = await app.call('GET', `/api/agents/${own.user_id}`);
  t.match(profile.performance, { resolved: 0, correct: 0, accuracy: null, brier: null });
  const { body: calibration } = await app.call('GET', '/api/export/calibration?by=family');
  t.same(calibration.groups, []);
  await until('the board of points has its net', async () => {
    const { body: board } = await app.call('GET', '/api/leaderboard?kind=imported');
    const row = board.entries.find(({ name }: { name: string }) => name === 'Number B');
    return row?.net === -200;
  });

  const rowsOf = (subject: string, isWhole: (text: string) => boolean = () => true) =>
    until('it can be exported', async () => {
      const path = `/api/export/${subject}?format=ndjson&question_id=${id}`;
      const text = String((await app.call('GET', path)).body);
      const rows = text.trim().split('\n');
      return rows.length >= 3 && isWhole(text) && rows.map((row) => JSON.parse(row));
    });
  const rows = await rowsOf('predictions', (text) => text.includes('"net":-200'));
  t.match(
    rows.find(({ net }) => net === -200),
    {
      outcome_value: 150,
      range: { min: 0, max: 100, unit: null },
      brier: null,
      cdf: [
        { value: 0, p: 0 },
        { value: 20, p: 0 },
        { value: 40, p: 100 },
        { value: 100, p: 100 },
      ],
    },
  );
  const history = await rowsOf('consensus-history');
  // Half of the headline is the linear pool, and half is the quantile average. With A and B, the
  // average is uniform on 10–70, and 0.5·(x − 10)/60 + 0.25·(x/100 + (x − 20)/20) is a half at
  // 35.714.
  t.same(
    history.slice(0, 2).map(({ quantiles }) => quantiles.p50),
    [50, 35.7142857],
  );
});

t.test('a date is decided, disputed and decided anew; outcomes that do not fit', async (t) => {
  const time = (hour: number): string => new Date(Date.UTC(2031, 4, 1, hour)).toISOString();
  const range = { min: time(0), max: time(10) };
  const id = await makeOpenQuestion(app, { question_type: 'date', range });
  const agent = await makeAgent(app, { human: await makeHuman(app) });
  const quantiles = [
    { value: time(2), p: 0 },
    { value: time(4), p: 1 },
  ];
  const pid = await predict(app, agent, id, { quantiles });
  const { receipt } = (await app.call('GET', `/api/predictions/${pid}/receipt`)).body;
  t.match(receipt, { state: 'open', result: null, outcomes: [], intervals: [{ crps: null }] });
  await act(app, id, 'close');
  for (const body of [
    {},
    { outcome: true },
    { outcome_value: 3 },
    { outcome_value: 'soon' },
    { outcome_value: time(3), outcome: true },
    { correct_options: ['a'] },
  ]) {
    const refused = await decide(app, id, 'resolve', body);
    t.match(refused, { status: 400, body: { code: 'INVALID_OUTCOME' } }, JSON.stringify(body));
  }
  await decideAndSettle(app, id, 'resolve', { outcome_value: time(3) });
  t.same(await ledgerOf(app.sql, agent.id), [
    ['registration', 5_000],
    ['settlement', 32],
  ]);
  const filed = await app.call('POST', `/api/questions/${id}/dispute`, {
    key: agent.key,
    body: { reason: 'The log of the harbour office names another hour for the event in question.' },
  });
  t.equal(filed.status, 201, filed.body.error);
  const upheld = await app.call('POST', `/api/admin/disputes/${filed.body.dispute.id}/resolve`, {
    admin: true,
    body: { status: 'upheld', outcome_value: time(10), note: 'The log of the office counts.' },
  });
  t.equal(upheld.status, 200, upheld.body.error);
  await untilSettled(app.sql, id);
  t.same((await ledgerOf(app.sql, agent.id)).slice(2), [
    ['reversal', -32],
    ['settlement', -100],
  ]);
  const event = await until('it is in the log', async () => {
    const { body } = await app.call('GET', '/api/events?events=question.resolved&limit=100');
    return body.events.find(
      ({ data }: { data: { question_id: string; revision: number } }) =>
        data.question_id === id && data.revision === 2,
    );
  });
  t.equal(event.data.outcome_value, time(10));
});

t.test('a simulation of a number', async (t) => {
  const simulate = (body: object) => app.call('POST', '/api/points/simulate', { body });
  const stated = { range: { min: 0, max: 100 }, quantiles: uniform(20, 40), weight: 2 };
  const one = await simulate({ ...stated, outcome_value: 30 });
  t.match(one.body.simulation, {
    question_type: 'numeric',
    question_id: null,
    distribution: [],
    outcomes: [{ outcome_value: 30, x: 0.3, net: 64 }],
  });
  t.match(await simulate({ ...stated, range: { min: 1, max: 0 } }), {
    status: 400,
    body: { code: 'INVALID_RANGE' },
  });
  for (const wrong of [{}, { outcome_value: 'high' }]) {
    const refused = await simulate({ ...stated, ...wrong });
    t.match(refused, { status: 400, body: { code: 'INVALID_OUTCOME' } });
  }
});
