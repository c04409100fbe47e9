import { tableFromIPC } from 'apache-arrow';
import { parse } from 'csv-parse/sync';
import { readParquet } from 'parquet-wasm';
import { consensus_columns } from '../../../src/features/exports/columns.js';
import { startApp } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { fetchBytes, predict, type Row, readLines, sha256 } from './world.js';

/** Each row of the exported file equals the consensus that the API gave after that prediction. */

const app = await startApp(t, { roles: ['api', 'relay'], env: { LIMIT_EXPORTS: '100000' } });
const path = '/api/export/consensus-history';
const humans = [await makeHuman(app), await makeHuman(app)] as const;
const binary = await makeOpenQuestion(app);
const multi = await makeOpenQuestion(app, { question_type: 'multi', options: ['a "b"', 'c'] });
const models = ['claude-opus-4', 'gpt-5', 'gemini-3', 'claude-opus-4'];

/** The live consensus after each prediction. */
const lived: Row[] = [];
let first: { agent: Awaited<ReturnType<typeof makeAgent>>; prediction_id: string } | undefined;

for (const [n, model] of models.entries()) {
  const agent = await makeAgent(app, { human: humans[n % 2]!, model });
  for (const [question_id, body] of [
    [binary, { probability: [70, 20, 95, 55][n] }],
    [multi, { selected_option: n === 1 ? 'c' : 'a "b"', confidence: 60 + n }],
  ] as const) {
    const prediction_id = await predict(app, { question_id, agent, body });
    const { body: consensus } = await until('it is counted', async () => {
      const answer = await app.call('GET', `/api/questions/${question_id}/consensus`);
      return answer.body.total_predictions === n + 1 ? answer : undefined;
    });
    lived.push({ question_id, prediction_id, consensus });
    if (n === 0 && question_id === binary) first = { agent, prediction_id };
  }
}
// A forecast cannot be revised within its first minute.
await app.sql`
  update predictions set created_at = created_at - interval '1 hour'
  where id = ${first?.prediction_id ?? ''}`;
const revised = await app.call('PATCH', `/api/predictions/${first?.prediction_id}`, {
  key: first?.agent.key ?? '',
  body: {
    probability: 0.37,
    scale: 'percent',
    reason: 'The second survey found the very opposite of the first.',
  },
});
if (revised.status !== 200) throw new Error(JSON.stringify(revised.body));
const { body: last } = await until('the revision is counted', async () => {
  const answer = await app.call('GET', `/api/questions/${binary}/consensus`);
  return answer.body.mean_probability < 50 ? answer : undefined;
});
lived.push({
  question_id: binary,
  prediction_id: first?.prediction_id,
  revision: 1,
  consensus: last,
});

const read = (query: string) => fetchBytes(`${app.url}${path}?${query}`);
const snapshot = await until('everything can be exported', async () => {
  const { answer, bytes } = await read('');
  const is_whole = readLines(bytes.toString()).length === lived.length;
  return is_whole ? (answer.headers.get('x-export-snapshot') ?? undefined) : undefined;
});
const at = `snapshot=${snapshot}`;
const lines = readLines((await read(at)).bytes.toString());

t.test('each row is the consensus as it was answered then', async (t) => {
  t.strictSame(
    lines.map((row) => row['question_id']),
    [...lines].map((row) => row['question_id']).sort(),
    'question by question',
  );
  for (const row of lines) {
    t.strictSame(Object.keys(row), pluck(consensus_columns, 'name'));
    const then = lived.find(
      ({ prediction_id, revision = 0 }) =>
        prediction_id === row['prediction_id'] && revision === row['revision'],
    );
    const consensus = then?.['consensus'] as Row;
    t.equal(row['count'], consensus['total_predictions']);
    for (const name of ['yes_percent', 'mean_probability', 'median_probability', 'p25', 'p75']) {
      t.equal(row[name], consensus[name], name);
    }
    t.equal(row['pooled'], consensus['pooled']);
    const options = consensus['options'] as { option: string; percent: number }[] | undefined;
    t.strictSame(row['options'], options ? pluck(options, 'option') : null);
    t.strictSame(row['option_percents'], options ? pluck(options, 'percent') : null);
  }
});

t.test('one question alone, and what was known at a time', async (t) => {
  const one = readLines((await read(`${at}&question_id=${binary}`)).bytes.toString());
  t.strictSame(
    one,
    lines.filter((row) => row['question_id'] === binary),
  );
  const second = String(one[1]?.['created_at']);
  const then = await read(`${at}&question_id=${binary}&as_of=${second}`);
  t.strictSame(readLines(then.bytes.toString()), one.slice(0, 2));
});

t.test('CSV and Parquet hold the same, and the manifest its sums', async (t) => {
  const csv = (await read(`${at}&format=csv`)).bytes;
  const rows = parse(csv, { columns: true, record_delimiter: '\r\n' }) as Row[];
  const shown = (value: unknown): string =>
    value === null ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
  t.strictSame(
    rows,
    lines.map((row) =>
      Object.fromEntries(Object.entries(row).map(([name, value]) => [name, shown(value)])),
    ),
  );
  const { body } = await app.call('GET', `${path}/manifest?${at}&format=csv`);
  t.match(body, { rows: lines.length, file: { bytes: csv.byteLength, sha256: sha256(csv) } });
  const parquet = (await read(`${at}&format=parquet`)).bytes;
  const table = tableFromIPC(readParquet(parquet).intoIPCStream());
  t.equal(table.numRows, lines.length);
  for (const [n, line] of lines.entries()) {
    const row = table.get(n)?.toJSON() ?? {};
    t.equal(row['mean_probability'], line['mean_probability']);
    t.equal(new Date(Number(row['created_at'])).toISOString(), line['created_at']);
  }
});
