import { tableFromIPC } from 'apache-arrow';
import { parse } from 'csv-parse/sync';
import { readParquet } from 'parquet-wasm';
import { fetchBytes, type Row, readLines } from '../features/exports/world.js';
import { startApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { openImport } from '../tools/import-files.js';

/** Forecasts with tenths and hundredths of a percent, in every place that stores or shows them. */

const app = await startApp(t, {
  roles: ['api', 'relay', 'timer'],
  env: { LIMIT_EXPORTS: '100000' },
});
const human = await makeHuman(app);
const options = ['Rises', 'Stays', 'Falls'];
const sourced = (source_id: string) => ({ source: 'almanac', source_id });
const binary = await makeOpenQuestion(app, sourced('rain'));
const multi = await makeOpenQuestion(app, { question_type: 'multi', options, ...sourced('price') });
const [one, two, three] = await Promise.all([1, 2, 3].map(() => makeAgent(app, { human })));

const no = { prediction: false, probability: 0.4, confidence: 99.6, prior_probability: 0.01 };
const stays = {
  prediction: null,
  probability: null,
  confidence: 98.99,
  selected_option: 'Stays',
  probabilities: { Rises: 0.01, Stays: 98.99, Falls: 1 },
  prior_probability: null,
};

const predict = async (key: string, question_id: string, body: object) => {
  const text = { reasoning: makeReasoning(), question_id };
  const answer = await app.call('POST', '/api/predictions', { key, body: { ...body, ...text } });
  if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
  return answer.body.prediction;
};

const stored = async (question_id: string) => {
  const rows = await app.sql`
    select p.prediction, p.probability, p.confidence, p.selected_option, p.probabilities::text
    from predictions p
    where question_id = ${question_id}`;
  return rows.map((row) => ({ ...row }));
};
const stored_no = {
  prediction: false,
  probability: 40,
  confidence: 9_960,
  selected_option: null,
  probabilities: null,
};
const stored_stays = {
  prediction: null,
  probability: null,
  confidence: 9_899,
  selected_option: 1,
  probabilities: '{1,9899,100}',
};

const rain = await predict(one!.key, binary, {
  probability: 0.4,
  prior_probability: 0.01,
  scale: 'percent',
});
const price = await predict(one!.key, multi, {
  probabilities: { Rises: 0.0001, Stays: 0.9899, Falls: 0.01 },
});

const exported = (format: string) =>
  until(`all as ${format}`, async () => {
    const { bytes } = await fetchBytes(`${app.url}/api/export/predictions?format=${format}`);
    const rows =
      format === 'csv'
        ? (parse(bytes, { columns: true }) as Row[])
        : format === 'parquet'
          ? tableFromIPC(readParquet(bytes).intoIPCStream())
              .toArray()
              .map((row) => row.toJSON() as Row)
          : readLines(bytes.toString());
    return rows.length === 2 ? rows : undefined;
  });

t.test('every answer gives back what was stated, in percent', async (t) => {
  t.same(await stored(binary), [stored_no]);
  t.same(await stored(multi), [stored_stays]);
  const read = async (path: string, key?: string) =>
    (await app.call('GET', path, key === undefined ? {} : { key })).body;
  const mine = (await read('/api/me/predictions', one?.key)).predictions;
  const own = (await read('/api/me/export', one?.key)).predictions;
  for (const [id, question_id, wanted, placed] of [
    [rain.id, binary, no, rain],
    [price.id, multi, stays, price],
  ] as const) {
    const { predictions } = await read(`/api/questions/${question_id}/predictions`);
    const { own_prediction } = await read(`/api/questions/${question_id}/preflight`, one?.key);
    const { prediction } = await read(`/api/predictions/${id}`);
    const whole = await read(`/api/questions/${question_id}`);
    const isThis = (any: { id: string }) => any.id === id;
    for (const shown of [
      placed,
      prediction,
      own_prediction,
      predictions[0],
      whole.predictions[0],
      mine.find(isThis),
      own.find(isThis),
    ]) {
      t.match(shown, { ...wanted, scale: 'percent' });
    }
  }
});

t.test('the log has them in percent', async (t) => {
  const { events } = await until('both events', async () => {
    const { body } = await app.call(
      'GET',
      '/api/events?events=prediction.placed&min_confidence=98.99',
    );
    return body.events.length === 2 ? body : undefined;
  });
  t.match(events[0].data, { prediction: false, probability: 0.4, confidence: 99.6 });
  t.match(events[1].data, {
    ...stays,
    prediction: undefined,
    probability: undefined,
    prior_probability: undefined,
    option_index: 1,
  });
  const sure = await app.call('GET', '/api/events?events=prediction.placed&min_confidence=99');
  t.equal(sure.body.events.length, 1);
});

t.test('exports of every format have them, with their scale', async (t) => {
  const [rain_line, price_line] = await exported('ndjson');
  t.match(rain_line, { ...no, scale: 'percent' });
  const in_order = Object.values(stays.probabilities);
  t.match(price_line, { ...stays, probabilities: in_order, scale: 'percent' });
  const [rain_row, price_row] = await exported('csv');
  t.match(rain_row, { probability: '0.4', confidence: '99.6', prior_probability: '0.01' });
  t.match(price_row, { probability: '', confidence: '98.99', scale: 'percent' });
  t.same(JSON.parse(String(price_row?.['probabilities'])), in_order);
  const [rain_cells, price_cells] = await exported('parquet');
  t.match(rain_cells, { probability: 0.4, confidence: 99.6, prior_probability: 0.01 });
  t.match(price_cells, { probability: null, confidence: 98.99, scale: 'percent' });
});

t.test('an answer and a line of an export, sent back as they are, mean the same', async (t) => {
  const [rain_line, price_line] = await exported('ndjson');
  await predict(two!.key, binary, rain);
  await predict(two!.key, multi, price);
  await predict(three!.key, binary, rain_line!);
  await predict(three!.key, multi, price_line!);
  const { writeLines, run } = openImport(t, app);
  const lines = [rain_line, price_line].map((line, n) => ({
    ...line,
    type: 'forecast',
    forecast_at: line?.['created_at'],
    reasoning: null,
    ...sourced(n === 0 ? 'rain' : 'price'),
  }));
  const { code, output } = await run(writeLines('again.ndjson', lines));
  t.equal(code, 0, output);
  t.match(output, /forecasts: 2 created/);
  t.same(
    await stored(binary),
    Array.from({ length: 4 }, () => stored_no),
  );
  t.same(
    await stored(multi),
    Array.from({ length: 4 }, () => stored_stays),
  );
  t.match((await run(writeLines('more.ndjson', lines))).output, /forecasts: 0 created, 2 there/);
});
