import { execFile } from 'node:child_process';
import path from 'node:path';
import { parse } from 'csv-parse/sync';
import { createClient } from '#client/node.js';
import { openModern } from '../features/mcp/world.js';
import { no_limits, startApp } from '../help/app.js';
import { project_root } from '../help/own-stores.js';
import { python, withoutPython } from '../help/python.js';
import { openCalls } from '../help/socket-calls.js';
import {
  type Agent,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
  makeReasoning,
} from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { openImport } from '../tools/import-files.js';
import {
  type Any,
  age,
  byAgent,
  consensusOf,
  csvOf,
  eventOf,
  type Fields,
  findMembers,
  importQuestion,
  place,
  placeOrThrow,
  reason,
  revise,
  statedOf,
  yesterday,
} from './world.js';

/** If the service returns, exports or computes a forecast, it accepts the same forecast back. */

const app = await startApp(t, { roles: ['api', 'relay'], env: { ...no_limits } });
const human = await makeHuman(app);
const agentOf = () => makeAgent(app, { human });

const options = ['Rises', 'Stays', 'Falls'];
const kinds = {
  yes_no: {},
  options: { question_type: 'multi', options },
  number: { question_type: 'numeric', range: { min: -20, max: 180, unit: 'GW', open_max: true } },
  date: {
    question_type: 'date',
    range: { min: '2030-01-01T00:00:00Z', max: '2030-12-31T00:00:00Z', open_min: true },
  },
} as const;
type Kind = keyof typeof kinds;

/** Forecasts that the service might not read back correctly. */
const awkward: readonly [string, Kind, Fields][] = [
  ['exactly one percent', 'yes_no', { probability: 1, scale: 'percent' }],
  ['half a percent', 'yes_no', { probability: 0.5, scale: 'percent' }],
  ['certain', 'yes_no', { probability: 100 }],
  ['impossible', 'yes_no', { probability: 0 }],
  ['a NO with a confidence', 'yes_no', { prediction: false, confidence: 99.01 }],
  ['thirds', 'options', { probabilities: { Rises: 33.33, Stays: 33.33, Falls: 33.34 } }],
  ['one option with one percent', 'options', { probabilities: [1, 0, 99], scale: 'percent' }],
  ['a chosen option', 'options', { selected_option: 'Falls', confidence: 70 }],
  [
    'a number that is hardly in its range',
    'number',
    { continuous_cdf: Array.from({ length: 201 }, (_, n) => n * 4e-5), scale: 'fraction' },
  ],
  ['flat quantiles', 'number', { quantiles: [12.3, 45.6, 78.9], above: 0 }],
  [
    'a jump',
    'number',
    {
      cdf: [
        { value: 10, p: 0.1 },
        { value: 10, p: 0.6 },
        { value: 179.999, p: 0.93 },
      ],
    },
  ],
  [
    'a date with a third of a day',
    'date',
    {
      quantiles: [
        { value: '2030-02-03T07:59:59.999Z', p: 1 / 3 },
        { value: '2030-05-01T12:00:00Z', p: 2 / 3 },
      ],
      below: 0.012_345_678,
    },
  ],
];

interface Standing {
  readonly what: string;
  readonly kind: Kind;
  readonly agent: Agent;
  readonly id: string;
  readonly prediction: Any;
}

/** Places each awkward forecast on its own question. */
const placeAll = async (): Promise<readonly Standing[]> => {
  const all: Standing[] = [];
  for (const [what, kind, stated] of awkward) {
    const agent = await agentOf();
    const id = await makeOpenQuestion(app, kinds[kind]);
    const prediction = await placeOrThrow(app, agent, id, stated);
    await age(app, prediction.id);
    all.push({ what, kind, agent, id, prediction });
  }
  return all;
};
const standing = await placeAll();

t.test('a whole answer to a prediction, sent to revise, changes nothing', async (t) => {
  for (const { what, agent, prediction } of standing) {
    const answer = await revise(app, agent, prediction.id, prediction);
    t.equal(answer.status, 200, `${what}: ${JSON.stringify(answer.body.fields ?? '')}`);
    t.equal(answer.body.changed, false, what);
    const read = (await app.call('GET', `/api/predictions/${prediction.id}`)).body;
    const again = await revise(app, agent, prediction.id, read.prediction ?? read);
    t.equal(again.body.changed, false, `${what}: as it is read`);
  }
});

t.test('an entry of the revisions, sent to revise, is that forecast', async (t) => {
  for (const { what, agent, prediction } of standing) {
    const list = async () =>
      (await app.call('GET', `/api/predictions/${prediction.id}/revisions`)).body.revisions;
    const [first] = await list();
    const { status, body } = await revise(app, agent, prediction.id, first);
    t.equal(status, 200, `${what}: ${JSON.stringify(body.fields ?? body.error)}`);
    t.equal(body.changed, false, what);
    t.same(statedOf(first), statedOf({ ...prediction, ...first }), `${what}: nothing is missing`);
    t.equal((await list()).length, 1, what);
  }
});

t.test(
  'the own prediction of a preflight, sent over a socket by a twin, is the same',
  async (t) => {
    const twin = await agentOf();
    const socket = await openCalls(t, app.port, { 'x-api-key': twin.key });
    for (const { what, agent, id, prediction } of standing) {
      const flight = await app.call('GET', `/api/questions/${id}/preflight`, { key: agent.key });
      const { own_prediction } = flight.body;
      const { status, body } = await socket.call('POST', `/api/questions/${id}/predict`, {
        body: { ...own_prediction, reasoning: makeReasoning() },
      });
      t.equal(status, 201, `${what}: ${JSON.stringify(body.fields ?? body.error)}`);
      t.same(statedOf(body.prediction), statedOf(prediction), what);
    }
  },
);

t.test('the data of an event, sent to predict by a copier, are the same forecast', async (t) => {
  for (const { what, id, kind, prediction } of standing) {
    const { events } = await until(`the event of ${what}`, async () => {
      const { body } = await app.call('GET', `/api/events?topic=question:${id}&limit=100`);
      return body.events.some((one: Any) => one.data.prediction_id === prediction.id) && body;
    });
    const { data } = events.find((one: Any) => one.data.prediction_id === prediction.id);
    const copied = await place(app, await agentOf(), id, data);
    t.equal(copied.status, 201, `${what}: ${JSON.stringify(copied.body.fields ?? copied.body)}`);
    t.same(statedOf(copied.body.prediction), statedOf(prediction), what);
    if (kind !== 'options') continue;
    const { question_id: _, ...rest } = data;
    const batch = await app.call('POST', '/api/predictions/batch', {
      key: (await agentOf()).key,
      body: { predictions: [{ ...rest, question_id: id, reasoning: makeReasoning() }] },
    });
    t.equal(batch.body.results[0].status, 201, `${what}: in a batch`);
  }
});

t.test('both distributions of a consensus are forecasts, in its scale', async (t) => {
  for (const kind of ['number', 'date'] as const) {
    const id = await makeOpenQuestion(app, kinds[kind]);
    const fans: Fields[] =
      kind === 'number'
        ? [{ quantiles: [10, 20, 30] }, { quantiles: [50, 60, 150], above: 0.003 }]
        : [
            { quantiles: ['2030-03-01T00:00:00Z', '2030-04-01T00:00:00Z'] },
            { quantiles: ['2030-05-01T00:00:00Z', '2030-11-01T00:00:00Z'], below: 0.01 },
          ];
    for (const fan of fans) await placeOrThrow(app, await agentOf(), id, fan);
    const { scale, linear_pool, quantile_average } = await consensusOf(app, id, 2);
    t.equal(scale, 'percent', `${kind}: the consensus says its scale`);
    const pool = await placeOrThrow(app, await agentOf(), id, { cdf: linear_pool.cdf, scale });
    for (const at of [50, 100, 150]) {
      const [{ p }, wanted] = [pool.cdf[at], linear_pool.cdf[at]];
      t.ok(Math.abs(p - wanted) < 1e-5, `${kind}: the pool at ${at}: ${p}, ${wanted}`);
    }
    const { quantiles } = quantile_average;
    const average = await place(app, await agentOf(), id, { quantiles, scale });
    t.equal(average.status, 201, `${kind}: ${JSON.stringify(average.body.fields)}`);
    const median = quantile_average.p50?.value ?? quantile_average.p50;
    const got = average.body.prediction?.quartiles[1];
    const toNumber = (one: unknown) => (kind === 'date' ? Date.parse(String(one)) : Number(one));
    const width = kind === 'date' ? 365 * 86_400_000 : 200;
    t.ok(
      Math.abs(toNumber(got) - toNumber(median)) < 2e-6 * width,
      `${kind}: the median of the average is ${median}, and ${got} when it is sent back`,
    );
  }
});

t.test('option probabilities of a consensus are a forecast over MCP', async (t) => {
  const seven = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
  for (const [what, names, stated] of [
    ['three options', options, { probabilities: [1 / 3, 1 / 3, 1 / 3] }],
    ['seven options', seven, { selected_option: 'Wed', confidence: 14.29 }],
    ['two agents', options, { selected_option: 'Stays', confidence: 85.55 }],
  ] as const) {
    const id = await makeOpenQuestion(app, { question_type: 'multi', options: names });
    await placeOrThrow(app, await agentOf(), id, stated);
    if (what === 'two agents') {
      await placeOrThrow(app, await agentOf(), id, { probabilities: [0, 0, 100] });
    }
    const consensus = await consensusOf(app, id, what === 'two agents' ? 2 : 1);
    const { scale, model_breakdown } = consensus;
    const agent = await agentOf();
    const { connect, callTool } = await openModern(t, app.url, agent.key);
    await connect();
    const probabilities = model_breakdown[0].option_probabilities;
    t.ok(probabilities, `${what}: ${Object.keys(model_breakdown[0])}`);
    const forecast = { question_id: id, probabilities, scale, reasoning: makeReasoning() };
    const dry = await callTool('predict', { ...forecast, dry_run: true });
    t.equal(
      dry.answer?.would_be_accepted,
      true,
      `${what}: ${JSON.stringify(dry.answer ?? dry.content)}`,
    );
    const means = consensus.options.map((one: Any) => one.mean_probability);
    const placed = await callTool('predict', { ...forecast, probabilities: means });
    const got = placed.answer?.prediction?.probabilities ?? {};
    const list = Array.isArray(got) ? got : names.map((name) => got[name]);
    for (const [n, mean] of means.entries()) {
      t.ok(Math.abs(list[n] - mean) <= 0.02, `${what}: option ${n} is ${list[n]} of ${mean}`);
    }
  }
});

const replayable = async (path: string): Promise<string> => {
  const { status, body } = await until(`an export of ${path}`, async () => {
    // A snapshot is up to two seconds old.
    const answer = await app.call('GET', path);
    const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
    return standing.every(({ id }) => text.includes(id)) && { ...answer, body: text };
  });
  if (status !== 200) throw new Error(`${status}: ${body}`);
  return body as string;
};

/** For each exported forecast, makes a question of the same kind to import the forecast to. */
const mirrorOf = async (rows: readonly Any[], mark: string) => {
  const lines: { what: string; line: Fields; id: string; agent: string; wanted: Any }[] = [];
  for (const [n, { what, kind, id: original, prediction }] of standing.entries()) {
    const row = rows.find((one) => (one.prediction_id ?? one.id) === prediction.id);
    if (row === undefined) throw new Error(`${what} of ${original} is not in the export`);
    const { source, source_id, id } = await importQuestion(app, kinds[kind]);
    const agent = `${mark} ${n}`;
    const line = { ...row, type: 'forecast', source, source_id, forecast_at: yesterday(), agent };
    lines.push({ what, line, id, agent, wanted: prediction });
  }
  return lines;
};

const compare = async (
  t: Any,
  mirror: Awaited<ReturnType<typeof mirrorOf>>,
  what: string,
): Promise<void> => {
  for (const one of mirror) {
    const stored = (await byAgent(app, one.id)).get(one.agent);
    t.same(statedOf(stored), statedOf(one.wanted), `${what}: ${one.what}`);
  }
};

t.test('lines of the NDJSON export of predictions go in again as the same forecasts', async (t) => {
  const text = await replayable('/api/export/predictions?format=ndjson');
  const rows = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
  const mirror = await mirrorOf(rows, 'Mirror of lines');
  const { writeLines, run } = openImport(t, app);
  const file = writeLines(
    'mirror.ndjson',
    mirror.map(({ line }) => line),
  );
  const { code, output } = await run(file);
  t.equal(code, 0, output);
  await compare(t, mirror, 'NDJSON');
  t.match(await run(file), { code: 0, output: /0 created/ }, 'and nothing twice');
});

t.test('rows of the CSV export of predictions go in again as the same forecasts', async (t) => {
  const text = await replayable('/api/export/predictions?format=csv');
  const rows = parse(text, { columns: true, bom: true }) as Any[];
  const mirror = await mirrorOf(rows, 'Mirror of rows');
  const { write, run } = openImport(t, app);
  const { code, output } = await run(write('mirror.csv', csvOf(mirror.map(({ line }) => line))));
  t.equal(code, 0, output);
  await compare(t, mirror, 'CSV');
});

t.test('the JSON export of revisions goes in again by the route of admins', async (t) => {
  const text = await replayable('/api/export/revisions?format=json');
  const parsed = JSON.parse(text);
  const rows = Array.isArray(parsed) ? parsed : (parsed.rows ?? parsed.revisions);
  const mirror = await mirrorOf(rows, 'Mirror of revisions');
  await app.call('POST', '/api/admin/agents/import', {
    admin: true,
    body: { items: mirror.map(({ agent }) => ({ name: agent, model: 'gpt-4o' })) },
  });
  const { status, body } = await app.call('POST', '/api/admin/predictions/import', {
    admin: true,
    body: { items: mirror.map(({ line }) => line) },
  });
  t.equal(status, 200, JSON.stringify(body).slice(0, 500));
  for (const [n, { what }] of mirror.entries()) {
    t.equal(body.results[n].status, 'created', `${what}: ${JSON.stringify(body.results[n])}`);
  }
  await compare(t, mirror, 'JSON of revisions');
});

t.test('receipts and answers pass through both clients and come back unchanged', async (t) => {
  for (const { what, kind, agent, prediction } of standing) {
    const client = createClient({ base_url: app.url, api_key: agent.key }) as unknown as {
      call(name: string, parts: object): Promise<Any>;
    };
    const params = { pid: prediction.id };
    if (kind === 'number' || kind === 'date') {
      const receipt = (await app.call('GET', `/api/predictions/${prediction.id}/receipt`)).body;
      const [cdf] = findMembers(receipt, 'cdf');
      t.ok(cdf, `${what}: the receipt shows the distribution`);
      const [scale = 'percent'] = findMembers(receipt, 'scale');
      const body = { cdf, scale, reason };
      const answer = await client.call('revisePrediction', { params, body });
      t.equal(answer.changed, false, `${what}: by its receipt`);
    }
    const answer = await client.call('revisePrediction', {
      params,
      body: { ...prediction, reason },
    });
    t.equal(answer.changed, false, `${what}: by the TypeScript client`);
  }
  const event = await eventOf(app, 'prediction.placed', standing[0]!.id);
  t.ok(event.data.scale, 'an event says its scale');
  const skip = withoutPython();
  if (skip !== false) {
    t.comment(`Python: ${skip}`);
    return;
  }
  const program = [
    'import json, os, sys',
    'from prediction_forum import Forum',
    'given = json.loads(sys.stdin.read())',
    'for one in given["all"]:',
    '    with Forum(given["base"], api_key=one["key"]) as forum:',
    '        read = forum.get_prediction(one["id"])',
    '        body = {**read.get("prediction", read), "reason": given["reason"]}',
    '        answer = forum.revise_prediction(one["id"], body)',
    '        print(json.dumps([one["what"], answer["changed"]]))',
  ].join('\n');
  const given = {
    base: app.url,
    reason,
    all: standing.map(({ what, agent, prediction }) => {
      return { what, key: agent.key, id: prediction.id };
    }),
  };
  const printed = await new Promise<string>((resolve) => {
    const env = { ...process.env, PYTHONPATH: path.join(project_root, 'clients', 'python') };
    const child = execFile(python, ['-c', program], { env }, (_, out, errors) =>
      resolve(out + errors),
    );
    child.stdin?.end(JSON.stringify(given));
  });
  const lines = printed.trim().split('\n');
  t.same(
    lines,
    standing.map(({ what }) => JSON.stringify([what, false]).replace('",', '", ')),
    'by the Python client',
  );
});
