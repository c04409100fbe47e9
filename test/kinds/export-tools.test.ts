import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { type Row, readLines, sha256 } from '../features/exports/world.js';
import { startApp } from '../help/app.js';
import { act, predict, settleEagerly } from '../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/** Researchers' tools can use the exports: DuckDB reads all six, and the net follows from them. */

const app = await startApp(t, {
  roles: ['api', 'relay', 'timer'],
  env: { LIMIT_EXPORTS: '100000', LIMIT_PREDICTIONS: '1000' },
});
const folder = mkdtempSync(path.join(os.tmpdir(), 'pf-tools-'));
t.teardown(() => rmSync(folder, { recursive: true }));

const human = await makeHuman(app);
const [first, second, third] = [
  await makeAgent(app, { human }),
  await makeAgent(app, { human: await makeHuman(app) }),
  await makeAgent(app, { human }),
];

/** As names in a JavaScript object, these digits would be in another order. */
const options = ['2', '10', '1'];
const day = (n: number): string => new Date(Date.UTC(2031, 0, n)).toISOString();
const ids = {
  binary: await makeOpenQuestion(app, { weight: 3 }),
  multi: await makeOpenQuestion(app, { question_type: 'multi', options }),
  numeric: await makeOpenQuestion(app, { question_type: 'numeric', range: { min: -10, max: 90 } }),
  date: await makeOpenQuestion(app, {
    question_type: 'date',
    range: { min: day(1), max: day(31) },
  }),
};
const [binary, multi] = [ids.binary, ids.multi];

await predict(app, first, binary, { probability: 80 });
const revised = await predict(app, second, binary, { probability: 30.25 });
await predict(app, first, multi, { probabilities: { '1': 29.59, '2': 20.4, '10': 50.01 } });
await predict(app, second, multi, { selected_option: '10', confidence: 60 });
const points = (from: unknown, to: unknown) => [
  { value: from, p: 10 },
  { value: to, p: 90 },
];
await predict(app, first, ids.numeric, { quantiles: points(-5, 42.5) });
await predict(app, second, ids.date, { quantiles: points(day(5), day(9)) });

/** Makes all forecasts, and the opening times of their questions, some hours older. */
const grow = async (hours: number): Promise<void> => {
  for (const table of ['predictions', 'earlier_forecasts'] as const) {
    await app.sql`
      update ${app.sql(table)} set created_at = created_at - make_interval(hours => ${hours})`;
  }
  await app.sql`update predictions set revised_at = revised_at - make_interval(hours => ${hours})`;
  await app.sql`update questions set opens_at = opens_at - make_interval(hours => ${hours})`;
};
await grow(6);
await app.call('PATCH', `/api/predictions/${revised}`, {
  key: second.key,
  body: { probability: 60.5, reason: 'The office announced the date of printing, a week earlier.' },
});
await grow(3);
// As if the question had been closed five hours ago and reopened an hour later.
await app.sql`
  insert into closed_times (question_id, from_at, to_at)
  values (${binary}, now() - interval '5 hours', now() - interval '4 hours')`;
await settleEagerly(t, app);
const outcomes = {
  binary: { outcome: true, known_at: new Date(Date.now() - 3_600_000).toISOString() },
  multi: { correct_options: ['10', '1'] },
  numeric: { outcome_value: 12.5 },
  date: { outcome_value: day(7) },
} as const;
for (const [name, outcome] of Object.entries(outcomes)) {
  await act(app, ids[name as keyof typeof ids], 'close');
  await act(app, ids[name as keyof typeof ids], 'resolve', { ...outcome, resolution_note: 'So.' });
}
const comment = 'Nobody has looked at the printing house, which was late twice this year.';
await app.call('POST', `/api/questions/${binary}/comments`, {
  key: first.key,
  body: { content: comment },
});

const read = async (subject: string, query: string): Promise<Buffer> =>
  Buffer.from(await (await fetch(`${app.url}/api/export/${subject}?${query}`)).arrayBuffer());
const rowsOf = async (subject: string): Promise<Row[]> =>
  readLines((await read(subject, 'format=ndjson')).toString());
await until('all is settled, and older than the moment of an export', async () => {
  const rows = await rowsOf('predictions');
  return rows.length === 6 && rows.every(({ net }) => net !== null);
});

const duck = await (await DuckDBInstance.create(':memory:')).connect();
t.teardown(() => duck.closeSync());
const ask = async (sql: string): Promise<Row[]> =>
  (await duck.runAndReadAll(sql)).getRowObjectsJson() as Row[];

/** The export as a DuckDB table, with the format that DuckDB detects in the file itself. */
const readers = {
  ndjson: (file: string) => `read_json('${file}')`,
  json: (file: string) => `read_json('${file}')`,
  csv: (file: string) => `read_csv('${file}')`,
  parquet: (file: string) => `read_parquet('${file}')`,
} as const;
type Format = keyof typeof readers;

const tableOf = async (subject: string, format: Format, query = ''): Promise<string> => {
  const file = path.join(folder, `${subject}${query}.${format}`);
  writeFileSync(file, await read(subject, `format=${format}${query}`));
  return readers[format](file);
};

const subjects = [
  'predictions',
  'revisions',
  'questions',
  'resolutions',
  'comments',
  'consensus-history',
];

for (const subject of subjects) {
  t.test(`DuckDB reads ${subject} in every format`, async (t) => {
    const rows = await rowsOf(subject);
    t.ok(rows.length > 0);
    for (const format of ['ndjson', 'csv', 'parquet'] as const) {
      const table = await tableOf(subject, format);
      const [counted] = await ask(`select count(*)::int as n from ${table}`);
      t.same(counted, { n: rows.length }, format);
      const described = await ask(`describe select * from ${table}`);
      t.same(
        described.map((one) => one['column_name']),
        Object.keys(rows[0] ?? {}),
        format,
      );
    }
    const document = await tableOf(subject, 'json');
    const list = subject.replace('-', '_');
    const [name = list] = (await ask(`describe select * from ${document}`))
      .map((one) => String(one['column_name']))
      .filter((one) => one !== 'schema');
    const [counted] = await ask(`select len(${name})::int as n from ${document}`);
    t.same(counted, { n: rows.length }, 'json');
  });
}

t.test('probabilities are a list in the order of the options', async (t) => {
  for (const subject of ['predictions', 'revisions']) {
    const table = await tableOf(subject, 'ndjson');
    const found = await ask(`
      select typeof(probabilities) as kind, probabilities[list_position(options, '10')] as of_ten,
        list_sum(probabilities) as sum
      from ${table} where probabilities is not null`);
    t.match(found, [{ kind: /^DOUBLE\[\]$/, of_ten: 50.01, sum: 100 }], subject);
  }
  const [last] = await ask(`
    select options, option_probabilities, option_percents
    from ${await tableOf('consensus-history', 'ndjson')}
    where options is not null order by created_at desc limit 1`);
  t.match(last, { options, option_percents: [0, 100, 0] });
  t.match(last?.['option_probabilities'], { length: 3 });
});

t.test('times of Parquet have a zone, and those of dates are plain text in CSV', async (t) => {
  const table = await tableOf('questions', 'parquet');
  const [kind] = await ask(`select typeof(closed_at) as kind from ${table} limit 1`);
  t.same(kind, { kind: 'TIMESTAMP WITH TIME ZONE' });
  const [exact] = await ask(`
    select epoch_ms(created_at)::varchar as ms from ${table} where question_id = '${binary}'`);
  const row = (await rowsOf('questions')).find(({ question_id }) => question_id === binary);
  t.equal(exact?.['ms'], String(Date.parse(String(row?.['created_at']))));
  for (const subject of ['questions', 'resolutions', 'predictions']) {
    const found = await ask(`
      select distinct outcome_value::varchar as value from ${await tableOf(subject, 'csv')}
      where question_id in ('${ids.date}', '${ids.numeric}') order by 1`);
    t.same(
      found.map(({ value }) => value),
      ['12.5', outcomes.date.outcome_value],
      subject,
    );
  }
});

t.test('a list goes back in as it came out, to predict and to check', async (t) => {
  const question_id = await makeOpenQuestion(app, { question_type: 'multi', options });
  const rows = await rowsOf('predictions');
  const { probabilities, scale, selected_option, confidence } =
    rows.find((row) => Array.isArray(row['probabilities'])) ?? {};
  await predict(app, third, question_id, { probabilities, scale, selected_option, confidence });
  const { body } = await app.call('GET', `/api/questions/${question_id}`);
  t.same(body.predictions[0].probabilities, { '2': 20.4, '10': 50.01, '1': 29.59 });
});

const no = 'refused';
/** The value sent as `probabilities`, other members sent with it, and the resulting percentages. */
const lists: readonly (readonly [unknown, object, readonly number[] | typeof no])[] = [
  [[50, 30, 20], {}, [50, 30, 20]],
  [{ '1': 20, '2': 50, '10': 30 }, {}, [50, 30, 20]],
  [{ '\u{ff11}': 20, ' 2': 50, '10\u200b': 30 }, {}, [50, 30, 20]],
  [[0.5, 0.3, 0.2], {}, [50, 30, 20]],
  [[1, 0, 0], {}, [100, 0, 0]],
  [[1, 98, 1], {}, [1, 98, 1]],
  [[0.5, 0.3, 0.2], { scale: 'fraction' }, [50, 30, 20]],
  [[33.33, 33.33, 33.33], {}, [33.34, 33.33, 33.33]],
  [[50, 30, 20], { selected_option: '2' }, [50, 30, 20]],
  [[50, 50], {}, no],
  [[50, 30, 20, 0], {}, no],
  [[], {}, no],
  [[0.5, 0.3, 0.2], { scale: 'percent' }, no],
  [[50, 30, 20], { scale: 'fraction' }, no],
  [[50, 30, 10], {}, no],
  [[50, null, 50], {}, no],
  [['50', '30', '20'], {}, no],
  [[-10, 60, 50], {}, no],
  [[[50, 30, 20]], {}, no],
  ['[50,30,20]', {}, no],
  [[50, 30, 20], { selected_option: '1' }, no],
];

t.test('lists in the order of the options, and what is none', async (t) => {
  const question_id = await makeOpenQuestion(app, { question_type: 'multi', options });
  for (const [probabilities, beside, wanted] of lists) {
    const { status, body } = await app.call('POST', `/api/questions/${question_id}/predict`, {
      key: first.key,
      body: { probabilities, ...beside, reasoning: makeReasoning(), dry_run: true },
    });
    const is_refused = status === 400 || body.would_be_accepted === false;
    const by_option = body.forecast?.probabilities ?? {};
    const found = is_refused ? no : options.map((option) => by_option[option]);
    t.same(found, wanted, JSON.stringify([probabilities, beside]));
  }
});

t.test('every time at which a question was closed, and none that came later', async (t) => {
  const question_id = await makeOpenQuestion(app);
  const rowOf = async (query = ''): Promise<Row | undefined> => {
    const text = await read('questions', `format=ndjson&question_id=${question_id}${query}`);
    return readLines(text.toString())[0];
  };
  await until('it is exported', rowOf);
  t.match(await rowOf(), { closed_at: null, closed_times: null, question_status: 'open' });
  await app.sql`
    update questions set published_at = now() - interval '9 days', opens_at = now() - interval '9 days'
    where id = ${question_id}`;
  await app.sql`
    insert into closed_times (question_id, from_at, to_at)
    values
      (${question_id}, now() - interval '3 days', now() - interval '2 days'),
      (${question_id}, now() - interval '6 days', now() - interval '5 days')`;
  await act(app, question_id, 'close');
  const closed = await until('it is closed there', async () => {
    const row = await rowOf();
    return row?.['closed_at'] ? row : undefined;
  });
  const times = closed['closed_times'] as { from: string; to: string }[];
  t.equal(times.length, 2);
  t.ok(Date.parse(times[0]!.to) < Date.parse(times[1]!.from), 'in order of time');
  const then = new Date(Date.now() - 4 * 86_400_000).toISOString();
  t.match(await rowOf(`&as_of=${then}`), { closed_at: null, closed_times: times.slice(0, 1) });
});

t.test('an export without rows has its columns, and goes on behind what is there', async (t) => {
  const question_id = await makeOpenQuestion(app);
  for (const format of ['csv', 'parquet'] as const) {
    const table = await tableOf('comments', format, `&question_id=${question_id}`);
    t.same(await ask(`select count(*)::int as n from ${table}`), [{ n: 0 }], format);
  }
  const snapshot = new Date(Date.now() - 2_500).toISOString();
  const whole = await read('predictions', `excel=true&snapshot=${snapshot}`);
  const rest = await read('predictions', `excel=true&snapshot=${snapshot}&skip_bytes=1000`);
  t.ok(whole.subarray(1_000).equals(rest));
  const { body } = await app.call(
    'GET',
    `/api/export/predictions/manifest?excel=true&snapshot=${snapshot}`,
  );
  t.equal(body.file.sha256, sha256(whole));
  t.match(body.schema, /predictions\/4$/);
  const plain = await read('predictions', `format=csv&excel=false&snapshot=${snapshot}`);
  t.equal(plain.subarray(0, 13).toString(), 'prediction_id');
});

t.test('excel=true: a byte order mark and semicolons; other formats refuse it', async (t) => {
  for (const subject of subjects) {
    const plain = (await read(subject, 'format=csv')).toString();
    const excel = (await read(subject, 'excel=true')).toString();
    t.equal(excel.charCodeAt(0), 0xfeff);
    const [header = ''] = excel.slice(1).split('\r\n', 1);
    t.equal(header, plain.split('\r\n', 1)[0]?.replaceAll(',', ';'));
    const table = await tableOf(subject, 'csv', '&excel=true');
    const [counted] = await ask(`select count(*)::int as n from ${table}`);
    t.same(counted, { n: (await rowsOf(subject)).length }, subject);
  }
  const { status, body } = await app.call('GET', '/api/export/comments?excel=true&format=json');
  t.match({ status, body }, { status: 400, body: { code: 'INVALID_REQUEST', error: /CSV/ } });
});

/** The distribution in a row of revisions, in the order of the outcome vector. */
const statedBy = (row: Row): number[] => {
  if (typeof row['probability'] === 'number') {
    return [row['probability'] / 100, 1 - row['probability'] / 100];
  }
  const named = row['options'] as string[];
  if (row['probabilities'] !== null) return (row['probabilities'] as number[]).map((p) => p / 100);
  const confidence = Number(row['confidence']) / 100;
  return named.map((option) =>
    option === row['selected_option'] ? confidence : (1 - confidence) / (named.length - 1),
  );
};

/** Computes the net as docs/explanation/scoring.md defines it, from the rows of three exports alone. */
const netOf = (forecasts: readonly Row[], question: Row, decision: Row): number => {
  const ms = (value: unknown): number => (value === null ? Infinity : Date.parse(String(value)));
  const ends = [question['closes_at'], question['closed_at'], decision['known_at']].map(ms);
  const end = Math.min(...ends);
  const gaps = (question['closed_times'] ?? []) as { from: string; to: string }[];
  const open = (from: number, to: number): number =>
    to -
    from -
    gaps.reduce((closed, gap) => {
      return closed + Math.max(0, Math.min(to, ms(gap.to)) - Math.max(from, ms(gap.from)));
    }, 0);
  const named = question['options'] as string[] | null;
  const correct = decision['correct_options'] as string[] | null;
  const happened = named
    ? named.map((option) => correct?.includes(option) === true)
    : [decision['outcome'] === true, decision['outcome'] === false];
  const k = happened.filter(Boolean).length;
  const brierOf = (p: readonly number[]): number =>
    p.reduce((sum, one, n) => sum + (one - (happened[n] ? 1 / k : 0)) ** 2, 0);
  let sum = 0;
  let total = 0;
  for (const [n, row] of forecasts.entries()) {
    const stood = open(
      ms(row['forecast_at']),
      Math.min(ms(forecasts[n + 1]?.['forecast_at'] ?? null), end),
    );
    sum += stood * brierOf(statedBy(row));
    total += stood;
  }
  const uniform = brierOf(happened.map(() => 1 / happened.length));
  const best = 1 - 1 / happened.length;
  return Math.round((100 * Number(question['weight']) * (uniform - sum / total)) / best);
};

t.test('every net follows from the exports, also of a question that was reopened', async (t) => {
  const predictions = await rowsOf('predictions');
  const revisions = await rowsOf('revisions');
  const questions = await rowsOf('questions');
  const resolutions = await rowsOf('resolutions');
  const one = (rows: readonly Row[], id: unknown): Row =>
    rows.find(({ question_id }) => question_id === id) ?? {};
  let checked = 0;
  for (const { question_id, prediction_id, question_type, net } of predictions) {
    if (question_type === 'numeric' || question_type === 'date' || net === null) continue;
    const own = revisions.filter((row) => row['prediction_id'] === prediction_id);
    const question = one(questions, question_id);
    t.equal(net, netOf(own, question, one(resolutions, question_id)), `${question_type} ${net}`);
    checked += 1;
    if (question_id === binary) t.equal((question['closed_times'] as unknown[]).length, 1);
  }
  t.equal(checked, 4);
  // Without the closed periods, the result would be different.
  const own = revisions.filter((row) => row['prediction_id'] === revised);
  const never = { ...one(questions, binary), closed_times: null };
  const paid = predictions.find((row) => row['prediction_id'] === revised)?.['net'];
  t.not(netOf(own, never, one(resolutions, binary)), paid);
});
