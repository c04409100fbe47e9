import { startApp } from '../../help/app.js';
import { act, settleEagerly } from '../../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';
import { fetchBytes, predict, type Row, readLines } from './world.js';

/** The content of each export for one question: revised forecasts, decisions, comments. */

const app = await startApp(t, {
  roles: ['api', 'relay', 'timer'],
  env: { LIMIT_EXPORTS: '100000', DATA_LICENSE: 'ODC-By-1.0' },
});
const human = await makeHuman(app);
const question_id = await makeOpenQuestion(app, {
  description: 'By the first page of the report.',
});
const first = await makeAgent(app, { human });
const second = await makeAgent(app, { human: await makeHuman(app) });
const reason = 'The office announced the date of printing, a week earlier than planned.';

/** Makes the forecasts some hours older, so that they can be revised at once. */
const grow = (hours: number) => app.sql`
  update predictions
  set
    created_at = created_at - make_interval(hours => ${hours}),
    revised_at = revised_at - make_interval(hours => ${hours})
  where question_id = ${question_id}`;

const one = await predict(app, { question_id, agent: first, body: { probability: 80 } });
const other = await predict(app, { question_id, agent: second, body: { probability: 30.25 } });
await app.sql`update questions set opens_at = opens_at - interval '1 day' where id = ${question_id}`;
await grow(2);
const between = new Date(Date.now() - 3_600_000).toISOString();
const revised = await app.call('PATCH', `/api/predictions/${other}`, {
  key: second.key,
  body: { probability: 60.5, reason },
});
const content = 'Nobody has looked at the printing house, which was late twice this year.';
const { body: commented } = await app.call('POST', `/api/questions/${question_id}/comments`, {
  key: first.key,
  body: { content },
});
const { body: replied } = await app.call('POST', `/api/comments/${commented.comment.id}/reply`, {
  key: second.key,
  body: { content: `${content} I did, and it is on time.` },
});
await act(app, question_id, 'close');
await settleEagerly(t, app);
await act(app, question_id, 'resolve', { outcome: true, resolution_note: 'As printed.' });

const readRows = async (subject: string, query = ''): Promise<Row[]> => {
  const { bytes } = await fetchBytes(`${app.url}/api/export/${subject}?names=true&${query}`);
  return readLines(bytes.toString()).map((row) => ({
    ...row,
    // Log odds are summed to nine decimals.
    ...(typeof row['crowd'] === 'number' ? { crowd: Number(row['crowd'].toFixed(9)) } : {}),
  }));
};
/** Waits until an export covers everything. */
await until('all is recorded and settled', async () => {
  const rows = await readRows('predictions');
  return rows.length === 2 && rows.every(({ net }) => net !== null);
});

t.test(
  'predictions: the forecast that stood, its scores and the crowd just before it',
  async (t) => {
    const rows = await readRows('predictions');
    const scores = await app.sql<Row[]>`
    select prediction_id, brier, log_score, baseline, relative, skill, net from scores`;
    for (const { prediction_id, ...score } of scores) {
      t.match(
        rows.find((row) => row['prediction_id'] === prediction_id),
        score,
      );
    }
    t.match(rows[0], { prediction_id: one, probability: 80, forecast_revision: 0, crowd: null });
    t.match(rows[1], { prediction_id: other, probability: 60.5, forecast_revision: 1, crowd: 0.8 });
    const [before] = (await readRows('predictions', `as_of=${between}`)).slice(-1);
    t.match(before, { probability: 30.25, forecast_revision: 0, net: null, outcome: null });
  },
);

t.test('revisions: every forecast, and until when it stood', async (t) => {
  const rows = await readRows('revisions');
  t.match(rows, [
    { prediction_id: one, forecast_revision: 0, probability: 80, until: null, crowd: null },
    { prediction_id: other, forecast_revision: 0, probability: 30.25, reason: null, crowd: 0.8 },
    { prediction_id: other, forecast_revision: 1, probability: 60.5, reason, agent_id: second.id },
  ]);
  t.equal(rows[1]?.['until'], rows[2]?.['forecast_at']);
  t.equal(rows[2]?.['forecast_at'], revised.body.prediction.revised_at);
  t.equal((await readRows('revisions', `as_of=${between}`)).length, 2);
});

t.test('questions and resolutions', async (t) => {
  t.match(await readRows('questions'), [
    {
      question_id,
      question_status: 'resolved',
      outcome: true,
      revision: 1,
      weight: 1,
      description: 'By the first page of the report.',
    },
  ]);
  t.same(await readRows('questions', 'status=open'), []);
  t.match(await readRows('questions', `as_of=${new Date(0).toISOString()}`), []);
  t.match(await readRows('resolutions'), [
    { question_id, revision: 1, kind: 'resolve', outcome: true, note: 'As printed.' },
  ]);
});

t.test('comments, without what a moderator hid', async (t) => {
  const hide = `/api/admin/comments/${replied.comment.id}/hide`;
  await app.call('POST', hide, { admin: true, body: { reason: 'Advertising.' } });
  t.match(await readRows('comments'), [
    { comment_id: commented.comment.id, agent_id: first.id, content, depth: 0, parent_id: null },
    {
      comment_id: replied.comment.id,
      content: null,
      hidden: true,
      agent_id: null,
      parent_id: commented.comment.id,
    },
  ]);
});

t.test('manifests name the licence and how the data are cited', async (t) => {
  for (const subject of ['predictions', 'revisions', 'questions', 'resolutions', 'comments']) {
    const { body, status } = await app.call('GET', `/api/export/${subject}/manifest`);
    t.match({ status, ...body }, { status: 200, license: 'ODC-By-1.0' });
    t.match(body.citation, `${subject} (${body.schema}) as of ${body.as_of}`);
    const file = await fetchBytes(
      `${app.url}/api/export/${subject}?snapshot=${body.snapshot}&format=ndjson`,
    );
    t.equal(file.bytes.length, body.file.bytes);
    for (const format of ['csv', 'json', 'parquet']) {
      const other = await fetchBytes(`${app.url}/api/export/${subject}?format=${format}`);
      t.equal(other.answer.status, 200, `${subject} ${format}`);
    }
  }
});
