import { openModern } from '../features/mcp/world.js';
import { no_limits, startApp } from '../help/app.js';
import { closeQuestion, decideAndSettle, settleEagerly } from '../help/settling.js';
import { openCalls } from '../help/socket-calls.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { openImport } from '../tools/import-files.js';
import {
  type Any,
  age,
  byAgent,
  csvOf,
  type Fields,
  importQuestion,
  place,
  placeOrThrow,
  revise,
  statedOf,
  yesterday,
} from './world.js';

/** Numbers that differ from 0, 1, 100 or the ends of a range only by rounding errors. */

const app = await startApp(t, { roles: ['api', 'relay'], env: { ...no_limits } });
await settleEagerly(t, app);
const human = await makeHuman(app);
const agentOf = () => makeAgent(app, { human });
const numeric = (range: Fields = {}) =>
  makeOpenQuestion(app, { question_type: 'numeric', range: { min: 0, max: 100, ...range } });
const at = (cdf: readonly Any[], value: number): number =>
  cdf.find((one) => one.value === value)?.p;
const near = (a: number, b: number, within = 1e-5): boolean => Math.abs(a - b) <= within;

/** A uniform forecast in numpy's float32, with this first and last value. */
const float32 = (first: number, last: number): readonly number[] =>
  Array.from({ length: 201 }, (_, n) =>
    n === 0 ? first : n === 200 ? last : Math.fround(n / 200),
  );

/** A cumulative sum in JavaScript, where each sum is rounded again. */
const cumsum = (shares: readonly number[]): readonly number[] => {
  let sum = 0;
  return shares.map((share) => {
    sum += share;
    return sum;
  });
};

t.test('a continuous_cdf in float32 is in fractions, whatever its last bits are', async (t) => {
  const id = await numeric();
  for (const [what, first, last] of [
    ['one ulp of float32 above 1', 0, Math.fround(1 + 2 ** -23)],
    ['eight ulps of float32 above 1', 0, Math.fround(1 + 2 ** -20)],
    ['one ulp below 1', 0, Math.fround(1 - 2 ** -24)],
    ['sixteen ulps below 1', 0, Math.fround(1 - 2 ** -20)],
    ['a first value just below 0', Math.fround(-(2 ** -22)), 1],
    ['a negative zero', -0, Math.fround(1 + 2 ** -23)],
  ] as const) {
    const { status, body } = await place(app, await agentOf(), id, {
      continuous_cdf: float32(first, last),
    });
    t.equal(status, 201, `${what}: ${body.error}`);
    const { cdf, quartiles, scale } = body.prediction;
    t.equal(scale, 'percent', what);
    t.equal(cdf[0].p, 0, `${what}: the first end`);
    t.equal(cdf.at(-1).p, 100, `${what}: the last end`);
    t.ok(near(at(cdf, 50), 50), `${what}: the middle is ${at(cdf, 50)}`);
    t.ok(near(quartiles[1], 50, 1e-4), `${what}: the median is ${quartiles[1]}`);
  }
});

t.test('a dry run says which scale it understood, and is what is stored then', async (t) => {
  const id = await numeric({ open_min: true, open_max: true });
  const rows: readonly [string, Fields, 'fraction' | 'percent', number, number][] = [
    ['an ulp above 1', { cdf: [0.5, 1.000_000_000_000_000_2] }, 'fraction', 50, 100],
    ['9e-7 above 1', { cdf: [0.5, 1.000_000_9] }, 'fraction', 50, 100],
    ['1e-5 above 1', { cdf: [0.5, 1.000_01] }, 'percent', 0.5, 1.000_01],
    ['an ulp above 100', { cdf: [50, 100.000_000_000_000_01] }, 'percent', 50, 100],
    ['9e-5 above 100', { cdf: [50, 100.000_09] }, 'percent', 50, 100],
    ['9e-7 below 0', { cdf: [-9e-7, 1] }, 'fraction', 0, 100],
    ['a hair below 0', { cdf: [-1e-300, 0.75] }, 'fraction', 0, 75],
    ['told to be percent', { cdf: [0.5, 1], scale: 'percent' }, 'percent', 0.5, 1],
    [
      'told to be a fraction',
      { cdf: [0.25, 1.000_000_000_000_000_2], scale: 'fraction' },
      'fraction',
      25,
      100,
    ],
  ];
  for (const [what, { cdf, ...more }, scale, low, high] of rows) {
    const agent = await agentOf();
    const [a, b] = cdf as number[];
    for (const name of ['cdf', 'quantiles']) {
      const points = [
        { value: 20, p: a },
        { value: 80, p: b },
      ];
      const dry = await place(app, agent, id, { [name]: points, ...more, dry_run: true });
      t.equal(dry.body.would_be_accepted, true, `${what}: ${JSON.stringify(dry.body.failures)}`);
      t.equal(dry.body.understood_scale, scale, `${what}, ${name}`);
      const { forecast } = dry.body;
      t.ok(near(at(forecast.cdf, 20), low, 1e-6), `${what}, ${name}: ${at(forecast.cdf, 20)}`);
      t.ok(near(at(forecast.cdf, 80), high, 1e-6), `${what}, ${name}: ${at(forecast.cdf, 80)}`);
      if (name === 'cdf') continue;
      const stored = await placeOrThrow(app, agent, id, { [name]: points, ...more });
      t.same(statedOf(forecast), statedOf(stored), `${what}: as it is stored`);
    }
  }
  for (const [what, a, b, more] of [
    ['2e-4 above 100', 50, 100.000_2, {}],
    ['1e-5 below 0', -1e-5, 1, {}],
    ['percent told to be a fraction', 50, 100, { scale: 'fraction' }],
  ] as const) {
    const points = [
      { value: 20, p: a },
      { value: 80, p: b },
    ];
    const refused = await place(app, await agentOf(), id, { cdf: points, ...more });
    t.match(refused, { status: 400, body: { code: 'INVALID_DISTRIBUTION' } }, what);
  }
});

t.test('each item of a batch is read in its own scale', async (t) => {
  const agent = await agentOf();
  const [a, b, c, d, e, f] = await Promise.all([
    numeric(),
    numeric(),
    ...Array.from({ length: 4 }, () => makeOpenQuestion(app)),
  ]);
  const items: readonly [string, string, Fields, number | string][] = [
    ['fractions with an ulp', a, { continuous_cdf: float32(0, Math.fround(1 + 2 ** -23)) }, 100],
    [
      'percent with an ulp',
      b,
      { continuous_cdf: float32(0, 1).map((p, n) => (n === 200 ? 100 + 1e-13 : 100 * p)) },
      100,
    ],
    ['an ulp below 1', c!, { probability: 1 - 2 ** -53 }, 'INVALID_CONFIDENCE'],
    ['the same as a fraction', d!, { probability: 1 - 2 ** -53, scale: 'fraction' }, 100],
    ['the same as percent', e!, { probability: 1 + 2 ** -52, scale: 'percent' }, 1],
    ['an ulp above 100', f!, { probability: 100 + 2 ** -46 }, 100],
  ];
  const { status, body } = await app.call('POST', '/api/predictions/batch', {
    key: agent.key,
    body: {
      predictions: items.map(([, question_id, stated]) => ({
        ...stated,
        question_id,
        reasoning: makeReasoning(),
      })),
    },
  });
  t.equal(status, 200);
  for (const [n, [what, id, , wanted]] of items.entries()) {
    const result = body.results[n];
    if (typeof wanted === 'string') {
      t.match(result, { status: 400, code: wanted }, what);
      continue;
    }
    t.equal(result.status, 201, `${what}: ${JSON.stringify(result)}`);
    const stored = (await byAgent(app, id)).get(agent.name);
    if (stored?.cdf) {
      t.equal(stored.cdf.at(-1).p, wanted, what);
      t.ok(near(at(stored.cdf, 50), 50), `${what}: ${at(stored.cdf, 50)}`);
    } else t.equal(stored?.probability, wanted, what);
  }
});

t.test('a revision that differs by round-off from what stands changes nothing', async (t) => {
  const options = ['Rises', 'Stays', 'Falls'];
  const number = await numeric();
  const binary = await makeOpenQuestion(app);
  const multi = await makeOpenQuestion(app, { question_type: 'multi', options });
  const exact = Array.from({ length: 201 }, (_, n) => n / 200);
  const summed = [0, ...cumsum(Array.from({ length: 200 }, () => 0.005))];
  t.not(summed[200], 1, 'the sum is not exact');
  const rows: readonly [string, string, Fields, Fields][] = [
    ['200 times 0.005', number, { continuous_cdf: exact }, { continuous_cdf: summed }],
    [
      'the same in percent',
      number,
      { continuous_cdf: exact },
      { continuous_cdf: summed.map((p) => 100 * p) },
    ],
    ['0.1 + 0.2', binary, { probability: 30 }, { probability: 0.1 + 0.2 }],
    ['0.29 · 100', binary, { probability: 29 }, { probability: 0.29 * 100 }],
    ['1.1 · 1.1 percent', binary, { probability: 1.21 }, { probability: 1.1 * 1.1 }],
    ['certainty', binary, { probability: 100 }, { probability: 100.000_000_000_000_01 }],
    [
      'shares of a softmax',
      multi,
      { probabilities: { Rises: 10, Stays: 20, Falls: 70 } },
      { probabilities: [0.1, 0.2, 0.7 + 2 ** -52] },
    ],
  ];
  for (const [what, id, first, second] of rows) {
    const agent = await agentOf();
    const { id: pid } = await placeOrThrow(app, agent, id, first);
    await age(app, pid);
    const { status, body } = await revise(app, agent, pid, second);
    t.match(
      { status, changed: body.changed },
      { status: 200, changed: false },
      `${what} ${body.error}`,
    );
    const { revisions } = (await app.call('GET', `/api/predictions/${pid}/revisions`)).body;
    t.equal(revisions.length, 1, what);
  }
});

t.test('a simulation reads numbers as a forecast does', async (t) => {
  const simulate = (body: Fields) => app.call('POST', '/api/points/simulate', { body });
  const asked = { range: { min: 0, max: 100 }, outcome_value: 30 };
  const exact = Array.from({ length: 11 }, (_, n) => n / 10);
  const wanted = (await simulate({ ...asked, continuous_cdf: exact })).body.simulation;
  t.ok(wanted, 'an exact list is simulated');
  for (const [what, list] of [
    ['cumsum', [0, ...cumsum(Array.from({ length: 10 }, () => 0.1))]],
    ['an ulp above 1', exact.map((p) => (p === 1 ? 1 + 2 ** -52 : p))],
    ['percent', exact.map((p) => 100 * p * (1 + 2 ** -52))],
  ] as const) {
    const { status, body } = await simulate({ ...asked, continuous_cdf: list });
    t.equal(status, 200, `${what}: ${body.error}`);
    t.same(body.simulation?.outcomes, wanted.outcomes, what);
  }
  const nets = async (body: Fields) =>
    (await simulate(body)).body.simulation?.outcomes.map(({ net }: Any) => net);
  t.same(await nets({ probability: 1 - 2 ** -53, scale: 'fraction' }), [100, -300], 'certain');
  t.same(await nets({ probability: 1 + 2 ** -52, scale: 'percent' }), [-292, 100], '1 percent');
  for (const probability of [1, 1 - 2 ** -53, 1 + 2 ** -52, 0.999_999_5, 1.000_000_9]) {
    const refused = await simulate({ probability });
    t.match(refused, { status: 400, body: { code: 'INVALID_CONFIDENCE' } }, `${probability}`);
  }
});

t.test('a single number within a millionth of 1 is refused like 1', async (t) => {
  const options = ['Rises', 'Stays', 'Falls'];
  const multi = await makeOpenQuestion(app, { question_type: 'multi', options });
  const binary = await makeOpenQuestion(app);
  const rows: readonly [string, string, Fields, number | 'refused'][] = [
    ['1', binary, { probability: 1 }, 'refused'],
    ['an ulp below 1', binary, { probability: 1 - 2 ** -53 }, 'refused'],
    ['an ulp above 1', binary, { probability: 1 + 2 ** -52 }, 'refused'],
    ['float32 below 1', binary, { probability: Math.fround(1 - 2 ** -24) }, 'refused'],
    ['5e-7 below 1', binary, { probability: 0.999_999_5 }, 'refused'],
    ['9e-7 above 1', binary, { probability: 1.000_000_9 }, 'refused'],
    ['a confidence', binary, { prediction: true, confidence: 1 - 2 ** -53 }, 'refused'],
    ['a confidence in NO', binary, { prediction: 'no', confidence: 1 + 2 ** -23 }, 'refused'],
    ['a prior', binary, { probability: 60, prior_probability: 1 - 2 ** -53 }, 'refused'],
    ['an option', multi, { selected_option: 'Rises', confidence: 1 - 2 ** -53 }, 'refused'],
    ['1e-5 above 1', binary, { probability: 1.000_01 }, 1],
    ['1e-5 below 1', binary, { probability: 0.999_99 }, 100],
    ['an ulp above 100', binary, { probability: 100 + 2 ** -46 }, 100],
    ['a hair below 0', binary, { probability: -1e-17 }, 0],
    ['told to be percent', binary, { probability: 1 - 2 ** -53, scale: 'percent' }, 1],
    ['told to be a fraction', binary, { probability: 1 + 2 ** -52, scale: 'fraction' }, 100],
  ];
  for (const [what, id, stated, wanted] of rows) {
    const { status, body } = await place(app, await agentOf(), id, stated);
    if (wanted === 'refused') {
      t.match({ status, code: body.code }, { status: 400, code: 'INVALID_CONFIDENCE' }, what);
    } else {
      t.equal(status, 201, `${what}: ${body.error}`);
      t.equal(body.prediction?.probability, wanted, what);
    }
  }
});

t.test('the import of an admin clamps, understands and refuses alike', async (t) => {
  const number = await importQuestion(app, {
    question_type: 'numeric',
    range: { min: 0, max: 100 },
  });
  const binary = await importQuestion(app);
  const rows: readonly [string, typeof number, Fields, number | 'refused'][] = [
    ['float32', number, { continuous_cdf: float32(0, 1 + 2 ** -23) }, 100],
    [
      'percent',
      number,
      { continuous_cdf: float32(0, 1).map((p) => p * 100 * (1 + 2 ** -52)) },
      100,
    ],
    ['an ulp below 1', binary, { probability: 1 - 2 ** -53 }, 'refused'],
    ['a certain fraction', binary, { probability: 1 - 2 ** -53, scale: 'fraction' }, 100],
    ['one percent', binary, { probability: 1 - 2 ** -53, scale: 'percent' }, 1],
    ['an ulp above 100', binary, { prediction: true, confidence: 100 + 2 ** -46 }, 100],
  ];
  const names = rows.map((_, n) => `Imported rounder ${n}`);
  await app.call('POST', '/api/admin/agents/import', {
    admin: true,
    body: { items: names.map((name) => ({ name, model: 'gpt-4o' })) },
  });
  const { status, body } = await app.call('POST', '/api/admin/predictions/import', {
    admin: true,
    body: {
      items: rows.map(([, { source, source_id }, stated], n) => ({
        ...stated,
        source,
        source_id,
        agent: names[n],
        forecast_at: yesterday(),
      })),
    },
  });
  t.equal(status, 200, body.error);
  const stored = new Map([...(await byAgent(app, number.id)), ...(await byAgent(app, binary.id))]);
  for (const [n, [what, , , wanted]] of rows.entries()) {
    const one = stored.get(names[n] ?? '');
    if (wanted === 'refused') {
      t.match(body.results[n], { status: 'refused' }, what);
      t.equal(one, undefined, `${what}: nothing is stored`);
      continue;
    }
    t.equal(body.results[n].status, 'created', `${what}: ${JSON.stringify(body.results[n])}`);
    t.equal(one?.cdf?.at(-1).p ?? one?.probability, wanted, what);
    if (one?.cdf) t.ok(near(at(one.cdf, 50), 50), `${what}: ${at(one.cdf, 50)}`);
  }
});

t.test('files of the import: CSV of a spreadsheet and NDJSON of numpy', async (t) => {
  const { write, writeLines, run } = openImport(t, app);
  const number = await importQuestion(app, {
    question_type: 'numeric',
    range: { min: 0, max: 100 },
  });
  const binary = await importQuestion(app);
  const lineOf = ({ source, source_id }: typeof number, agent: string, stated: Fields): Fields => ({
    type: 'forecast',
    source,
    source_id,
    agent,
    model: 'gpt-4o',
    forecast_at: yesterday(),
    ...stated,
  });
  const made = (kind: string): readonly Fields[] => [
    lineOf(number, `${kind} float32`, { continuous_cdf: float32(0, 1 + 2 ** -23) }),
    lineOf(number, `${kind} points`, {
      quantiles: [
        { value: 10, p: -1e-17 },
        { value: 50, p: 0.5 },
        { value: 90, p: 1 + 2 ** -52 },
      ],
    }),
    lineOf(binary, `${kind} near one`, { probability: 1 - 2 ** -53 }),
    lineOf(binary, `${kind} certain`, { probability: 1 - 2 ** -53, scale: 'fraction' }),
    lineOf(binary, `${kind} hundred`, { probability: 100 + 2 ** -46 }),
  ];
  for (const kind of ['csv', 'ndjson']) {
    const file =
      kind === 'csv' ? write('rounded.csv', csvOf(made(kind))) : writeLines('r.ndjson', made(kind));
    const { code, output } = await run(file);
    t.equal(code, 4, `${kind}: one line is bad: ${output}`);
    t.match(output, /^line (?:3|4): /m, `${kind}: and it is named`);
    const numbers = await byAgent(app, number.id);
    for (const name of ['float32', 'points']) {
      const { cdf } = numbers.get(`${kind} ${name}`) ?? {};
      t.equal(cdf?.[0].p, 0, `${kind} ${name}: the first end`);
      t.equal(cdf?.at(-1).p, 100, `${kind} ${name}: the last end`);
      t.ok(near(at(cdf ?? [], 50), 50), `${kind} ${name}: the middle`);
    }
    const chances = await byAgent(app, binary.id);
    t.equal(chances.get(`${kind} certain`)?.probability, 100, `${kind}: a certain fraction`);
    t.equal(chances.get(`${kind} hundred`)?.probability, 100, `${kind}: 100 and an ulp`);
    t.equal(chances.get(`${kind} near one`), undefined, `${kind}: nothing is guessed`);
  }
});

t.test('a call of the socket and a tool of MCP understand the same numbers', async (t) => {
  const id = await numeric();
  const binary = await makeOpenQuestion(app);
  const agent = await agentOf();
  const socket = await openCalls(t, app.port, { 'x-api-key': agent.key });
  const { connect, callTool } = await openModern(t, app.url, agent.key);
  await connect();
  const lists: readonly [string, readonly number[], string][] = [
    ['float32', float32(0, 1 + 2 ** -23), 'fraction'],
    ['percent and an ulp', float32(0, 1).map((p) => p * 100 * (1 + 2 ** -52)), 'percent'],
  ];
  for (const [what, list, scale] of lists) {
    const stated = { continuous_cdf: list, reasoning: makeReasoning(), dry_run: true };
    const rest = await place(app, agent, id, stated);
    const call = await socket.call('POST', `/api/questions/${id}/predict`, { body: stated });
    const answers: readonly [string, Any][] = [
      ['REST', rest.body],
      ['socket', call.body],
      ['MCP', (await callTool('predict', { question_id: id, ...stated })).answer],
    ];
    for (const [transport, answer] of answers) {
      t.equal(
        answer?.understood_scale,
        scale,
        `${what}, ${transport}: ${JSON.stringify(answer?.failures)}`,
      );
      t.equal(answer?.forecast?.cdf.at(-1).p, 100, `${what}, ${transport}: the last end`);
      t.same(answer?.forecast, rest.body.forecast, `${what}, ${transport}: the same forecast`);
    }
  }
  const near_one = { probability: 1 - 2 ** -53, reasoning: makeReasoning() };
  const refused = await socket.call('POST', `/api/questions/${binary}/predict`, { body: near_one });
  t.match(refused, { status: 400, body: { code: 'INVALID_CONFIDENCE' } }, 'socket, near 1');
  const tool = await callTool('predict', { question_id: binary, ...near_one });
  t.match(tool, { isError: true }, 'MCP, near 1');
  t.match(JSON.stringify(tool), 'INVALID_CONFIDENCE');
});

t.test(
  'ends of ranges, narrow ranges far from zero, and numbers that JSON cannot hold',
  async (t) => {
    const far = 1_000_000_000_000;
    const narrow = await numeric({ min: far, max: far + 10 });
    const quantiles = [
      { value: far - 5e-9, p: 0 },
      { value: far + 2.5, p: 0.25 },
      { value: far + 2.501, p: 0.5 },
      { value: far + 2.502, p: 0.75 },
      { value: far + 10, p: 1 },
    ];
    const { cdf, quartiles } = await placeOrThrow(app, await agentOf(), narrow, { quantiles });
    for (const [n, value] of [far + 2.5, far + 2.501, far + 2.502].entries()) {
      t.ok(
        near(quartiles[n], value, 1e-4),
        `quartile ${n} is ${quartiles[n] - far} above the least`,
      );
      t.ok(
        cdf.some((one: Any) => Math.abs(one.value - value) <= 1e-4),
        `the cdf has ${value - far}`,
      );
    }
    const small = await numeric({ min: 0, max: 1e-6 });
    const tiny = await placeOrThrow(app, await agentOf(), small, {
      quantiles: [2.5e-7, 5e-7, 7.5e-7],
    });
    t.ok(near(tiny.quartiles[1], 5e-7, 1e-15), `the median of a tiny range: ${tiny.quartiles[1]}`);
    const id = await numeric();
    const agent = await agentOf();
    for (const [what, value, status] of [
      ['5e-10 of the width above the greatest value', 100 + 5e-8, 200],
      ['5e-10 below the least', -5e-8, 200],
      ['1e-7 of the width above', 100 + 1e-5, 400],
    ] as const) {
      const points = [
        { value: Math.min(value, 40), p: 0 },
        { value: Math.max(value, 60), p: 1 },
      ];
      const answer = await place(app, agent, id, { cdf: points, dry_run: true });
      const accepted = answer.body.would_be_accepted === true;
      t.equal(accepted, status === 200, `${what}: ${JSON.stringify(answer.body)}`);
      if (status !== 200) continue;
      const values = answer.body.forecast.cdf.map((one: Any) => one.value);
      t.equal(Math.min(...values), 0, `${what}: the least value is the end`);
      t.equal(Math.max(...values), 100, `${what}: the greatest value is the end`);
    }
    const date = await makeOpenQuestion(app, {
      question_type: 'date',
      range: { min: '2030-01-01T00:00:00Z', max: '2030-01-11T00:00:00Z' },
    });
    const python = [
      { value: '2030-01-01T00:00:00+00:00', p: 0 },
      { value: '2030-01-06T00:00:00+00:00', p: 0.5 },
      { value: '2030-01-11T00:00:00+00:00', p: 1 + 2 ** -52 },
    ];
    const dated = await placeOrThrow(app, await agentOf(), date, { cdf: python });
    t.equal(dated.cdf.at(-1).p, 100, 'a date, with an ulp above 1');
    t.equal(dated.quartiles[1], '2030-01-06T00:00:00.000Z');

    const large = await numeric({ min: 0, max: 2 ** 54 });
    const send = async (value: string) => {
      const reasoning = JSON.stringify(makeReasoning());
      const body = `{"quantiles":[{"value":1,"p":0.1},{"value":${value},"p":0.5}],"reasoning":${reasoning}}`;
      const { key } = await agentOf();
      return app.call('POST', `/api/questions/${large}/predict`, { key, body });
    };
    t.equal(
      (await send('9007199254740993')).status,
      400,
      'an integer that is not exact is refused',
    );
    t.equal((await send('9007199254740991')).status, 201, 'the greatest exact one is not');
    await closeQuestion(app, large);
    const resolve = (value: string) =>
      app.call('POST', `/api/admin/questions/${large}/resolve`, {
        admin: true,
        body: `{"outcome_value":${value}}`,
      });
    t.equal((await resolve('9007199254740993')).status, 400, 'an outcome that is not exact');
    await decideAndSettle(app, large, 'resolve', { outcome_value: 1 });
  },
);
