import { createHmac } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { tableFromIPC } from 'apache-arrow';
import { parse } from 'csv-parse/sync';
import { readParquet } from 'parquet-wasm';
import {
  type Column,
  prediction_columns,
  predictions_schema,
} from '../../../src/features/exports/columns.js';
import { file_routes } from '../../../src/features/exports/file-routes.js';
import { pseudonymOf } from '../../../src/features/exports/index.js';
import { startApp } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import { act } from '../../help/settling.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import {
  fetchBytes,
  hostile_texts,
  predict,
  putHostile,
  type Row,
  readLines,
  sha256,
} from './world.js';

/** Exports of predictions in every format, read back by libraries that did not write them. */

const app = await startApp(t, {
  roles: ['api', 'relay', 'timer'],
  env: { LIMIT_EXPORTS: '100000' },
});
const human = await makeHuman(app);
const agents: Agent[] = [];
for (let n = 0; n < hostile_texts.length; n += 1) agents.push(await makeAgent(app, { human }));
const [first, second] = agents as [Agent, Agent];
const binary = await makeOpenQuestion(app);
const multi = await makeOpenQuestion(app, {
  question_type: 'multi',
  options: ['=red', 'green, or "lime"', 'blue'],
});
const protocols = ['Ask.', { by: '=1+1', or: ['a "b"', null] }, ['@x', 2], 7, false, null];
const ids: string[] = [];
for (const [n, agent] of agents.entries()) {
  const id = await predict(app, {
    question_id: binary,
    agent,
    body: {
      probability: 10 * n + 0.41,
      prior_probability: 0.05,
      scale: 'percent',
      resolution_protocol: protocols[n % protocols.length],
    },
  });
  ids.push(id);
  await putHostile(app, id, hostile_texts[n] ?? '');
}
for (const [agent, body] of [
  [first, { selected_option: '=red', confidence: 60.05 }],
  [second, { probabilities: { '=red': 20.4, 'green, or "lime"': 50.01, blue: 29.59 } }],
] as const) {
  ids.push(await predict(app, { question_id: multi, agent, body }));
}

const path = '/api/export/predictions';
const read = (query: string, headers: Record<string, string> = {}) =>
  fetchBytes(`${app.url}${path}?${query}`, headers);
const rowsOf = async (query: string): Promise<Row[]> =>
  readLines((await read(query)).bytes.toString());

/** A moment at which all predictions are recorded, so that all exports below cover the same. */
const snapshot = await until('everything can be exported', async () => {
  const { answer, bytes } = await read('format=ndjson');
  const is_whole = readLines(bytes.toString()).length === ids.length;
  return is_whole ? (answer.headers.get('x-export-snapshot') ?? undefined) : undefined;
});
const at = `snapshot=${snapshot}`;
const lines = await rowsOf(`${at}&format=ndjson`);
const names = prediction_columns.map(({ name }) => name);

t.test('every row has every column, and says what is stored', async (t) => {
  t.strictSame(pluck(lines, 'prediction_id'), ids);
  for (const row of lines) t.strictSame(Object.keys(row), names);
  const stored = await app.sql<Row[]>`
    select
      p.id as prediction_id, p.question_id, q.question, q.category, q.subcategory, q.question_type,
      p.model_family, p.prediction, p.probability / 100::float8 as probability,
      p.confidence / 100::float8 as confidence, 'percent' as scale, p.reasoning, p.citations,
      p.resolution_protocol, p.prior_probability / 100::float8 as prior_probability, p.prior_basis,
      g.model, p.created_at
    from predictions p
    join questions q on q.id = p.question_id
    join agents g on g.id = p.agent_id
    order by p.id`;
  for (const [n, { created_at, ...fields }] of stored.entries()) {
    for (const [name, value] of Object.entries(fields)) t.strictSame(lines[n]?.[name], value, name);
    t.equal(lines[n]?.['created_at'], (created_at as Date).toISOString());
  }
  t.match(lines[8], {
    options: ['=red', 'green, or "lime"', 'blue'],
    selected_option: '=red',
    probabilities: null,
    question_status: 'open',
    revision: null,
    outcome: null,
  });
  t.strictSame(lines[9]?.['probabilities'], [20.4, 50.01, 29.59]);
});

t.test('agents stand under a keyed pseudonym, and by name where that is asked for', async (t) => {
  const config = { SECRET_KEY: 'test-secret-key-0123456789abcdefghij' };
  for (const [n, agent] of agents.entries()) {
    t.equal(lines[n]?.['agent'], pseudonymOf(config, agent.id));
    t.match(lines[n], { agent_id: null, agent_name: null });
  }
  const plain = createHmac('sha256', config.SECRET_KEY).update(first.id).digest('hex');
  t.not(pseudonymOf(config, first.id), plain.slice(0, 32), 'its key serves this purpose only');
  const named = await rowsOf(`${at}&names=true`);
  for (const [n, agent] of agents.entries()) {
    const row = { agent: lines[n]?.['agent'], agent_id: agent.id, agent_name: agent.name };
    t.match(named[n], row);
  }
});

const is_json = new Set(['list', 'numbers', 'json']);

/** The value that a CSV cell represents. */
const fromCell = (text: string, { type, is_free }: Column): unknown => {
  if (is_free) return /^'[=+@\t\r-]/.test(text) ? text.slice(1) : text;
  if (type === 'integer' || type === 'number') return Number(text);
  if (type === 'boolean') return text === 'true';
  return is_json.has(type) ? JSON.parse(text) : text;
};

interface Cell {
  readonly text: string;
  readonly quoting: boolean;
}

t.test('CSV is what a strict reader of RFC 4180 takes, and no cell is a formula', async (t) => {
  const { answer, bytes } = await read(`${at}&format=csv`);
  t.equal(answer.headers.get('content-type'), 'text/csv; charset=utf-8; header=present');
  const records = parse(bytes, {
    relax_quotes: false,
    relax_column_count: false,
    record_delimiter: '\r\n',
    cast: (text, { quoting }) => ({ text, quoting }) as unknown as string,
  }) as unknown as Cell[][];
  const [head = [], ...rows] = records;
  t.strictSame(pluck(head, 'text'), names);
  t.equal(rows.length, lines.length);
  for (const [n, cells] of rows.entries()) {
    const values = cells.map(({ text, quoting }, i) => {
      t.notMatch(text, /^[=+@\t\r-]/);
      return text === '' && !quoting ? null : fromCell(text, prediction_columns[i] as Column);
    });
    t.strictSame(Object.fromEntries(values.map((value, i) => [names[i], value])), lines[n]);
  }
});

t.test('JSON is one document of the same rows', async (t) => {
  const { bytes } = await read(`${at}&format=json`);
  t.strictSame(JSON.parse(bytes.toString()), { schema: predictions_schema, predictions: lines });
  const none = await read(`${at}&format=json&model_family=kimi`);
  t.strictSame(JSON.parse(none.bytes.toString()).predictions, []);
});

const plainValue = (value: unknown, type: string): unknown => {
  if (value === null || value === undefined) return null;
  if (type === 'time') return new Date(Number(value)).toISOString();
  if (!is_json.has(type)) return value;
  return JSON.parse(typeof value === 'string' ? value : Buffer.from(value as Buffer).toString());
};

t.test('Parquet is read by another library, equal in every row', async (t) => {
  const { bytes } = await read(`${at}&format=parquet`);
  const table = tableFromIPC(readParquet(bytes).intoIPCStream());
  t.strictSame(pluck(table.schema.fields, 'name'), names);
  t.equal(table.numRows, lines.length);
  for (const [n, line] of lines.entries()) {
    const row = table.get(n)?.toJSON() ?? {};
    const values = prediction_columns.map(({ name, type }) => [name, plainValue(row[name], type)]);
    t.strictSame(Object.fromEntries(values), line);
  }
});

t.test('the manifest has rows, bytes and SHA-256 of the file, before and after it', async (t) => {
  for (const format of ['csv', 'ndjson', 'json', 'parquet']) {
    const query = `${at}&format=${format}&question_id=${binary}`;
    const before = await app.call('GET', `${path}/manifest?${query}`);
    const { bytes } = await read(query);
    t.match(before.body, {
      schema: predictions_schema,
      format,
      snapshot,
      as_of: snapshot,
      filters: { question_id: binary },
      rows: agents.length,
      file: { bytes: bytes.byteLength, sha256: sha256(bytes) },
    });
    t.strictSame((await app.call('GET', `${path}/manifest?${query}`)).body, before.body);
  }
});

t.test('gzip by the header of the request, and as a file', async (t) => {
  const whole = (await read(`${at}&format=csv`, { 'accept-encoding': 'identity' })).bytes;
  const packed = await read(`${at}&format=csv`, { 'accept-encoding': 'gzip' });
  t.equal(packed.answer.headers.get('content-encoding'), 'gzip');
  t.ok(packed.bytes.equals(whole), 'fetch unpacks it');
  const file = await read(`${at}&format=csv&gzip=true`, { 'accept-encoding': 'gzip' });
  t.equal(file.answer.headers.get('content-encoding'), null);
  t.equal(file.answer.headers.get('content-type'), 'application/gzip');
  t.match(file.answer.headers.get('content-disposition'), /\.csv\.gz"$/);
  t.ok(gunzipSync(file.bytes).equals(whole));
  const refused = await read(at, { 'accept-encoding': 'gzip;q=0, identity' });
  t.equal(refused.answer.headers.get('content-encoding'), null);
});

t.test('an interrupted export goes on behind the bytes that are there', async (t) => {
  for (const format of ['csv', 'ndjson', 'json', 'parquet']) {
    const whole = (await read(`${at}&format=${format}`)).bytes;
    for (const have of [0, 1, 777, whole.byteLength - 1, whole.byteLength]) {
      const { bytes } = await read(`${at}&format=${format}&skip_bytes=${have}`);
      t.ok(bytes.equals(whole.subarray(have)), `${format} behind ${have}`);
    }
  }
});

t.test('filters choose rows', async (t) => {
  const idsOf = async (query: string) =>
    (await rowsOf(`${at}&${query}`)).map((row) => row['prediction_id']);
  const third = String(lines[2]?.['created_at']);
  t.strictSame(await idsOf(`question_id=${multi}`), ids.slice(8));
  t.strictSame(await idsOf(`since=${third}`), ids.slice(2));
  t.strictSame(await idsOf(`until=${third}`), ids.slice(0, 2));
  t.strictSame(await idsOf('category=society'), ids);
  t.strictSame(await idsOf('category=technology'), []);
  t.strictSame(await idsOf('subcategory=benefits_public_good&model_family=claude'), ids);
  t.strictSame(await idsOf('model_family=gpt'), []);
  t.strictSame(await idsOf('status=open'), ids);
  t.strictSame(await idsOf('status=resolved'), []);
  t.strictSame(await idsOf(`as_of=${third}`), ids.slice(0, 3));
});

t.test('wrong parameters are refused', async (t) => {
  const later = new Date(Date.now() + 60_000).toISOString();
  for (const query of [
    'format=xml',
    'since=yesterday',
    'question_id=1',
    'status=draft',
    'skip_bytes=-1',
    `as_of=${later}`,
    `snapshot=${later}`,
    `snapshot=${new Date().toISOString()}`,
  ]) {
    const answer = await app.call('GET', `${path}?${query}`);
    t.match(answer, { status: 400, body: { code: 'INVALID_REQUEST' } }, query);
  }
});

t.test('hidden rows keep their forecast and lose their texts and names', async (t) => {
  const id = ids[3] ?? '';
  const hidden = await app.call('POST', `/api/admin/predictions/${id}/hide`, {
    admin: true,
    body: { reason: 'It is an advertisement.' },
  });
  t.equal(hidden.status, 200);
  t.match((await rowsOf(`${at}&names=true`))[3], {
    prediction_id: id,
    agent: lines[3]?.['agent'],
    probability: 30.41,
    hidden: true,
    reasoning: null,
    citations: null,
    prior_basis: null,
    agent_id: null,
    agent_name: null,
  });
});

t.test('as_of gives what was known then: a decision made later is not', async (t) => {
  const question_id = await makeOpenQuestion(app);
  await predict(app, { question_id, agent: first, body: { probability: 80 } });
  const before = new Date().toISOString();
  await act(app, question_id, 'close');
  await act(app, question_id, 'resolve', { outcome: true, resolution_note: 'It did.' });
  const now = await until('it is recorded', async () => {
    const [row] = await rowsOf(`question_id=${question_id}`);
    return row?.['revision'] === 1 ? row : undefined;
  });
  t.match(now, { question_status: 'resolved', outcome: true, revision: 1 });
  const [decided] = await app.sql<{ created_at: Date }[]>`
    select created_at from resolutions where question_id = ${question_id}`;
  t.equal(now['resolved_at'], decided?.created_at.toISOString());
  t.match((await rowsOf(`question_id=${question_id}&as_of=${before}`))[0], {
    question_status: 'open',
    outcome: null,
    revision: null,
    resolved_at: null,
  });
});

t.test('a file whose first bytes come late is not cut, nor is the sum of one', (t) => {
  for (const { path, longest_ms } of file_routes) t.equal(longest_ms, 600_000, path);
  t.end();
});
