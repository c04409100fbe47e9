import { checkRecord } from '../../../src/tools/verify/record-store.js';
import { startApp } from '../../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** Revised forecasts: their storage, their events, and refusals. */

const app = await startApp(t, { roles: ['api', 'relay'] });
const human = await makeHuman(app);
const reason = 'The regulator published its decision this morning, earlier than expected.';

type Body = Readonly<Record<string, unknown>>;

const place = async (body: Body, fields: Body = {}) => {
  const question_id = await makeOpenQuestion(app, fields);
  const agent = await makeAgent(app, { human });
  const { status, body: placed } = await app.call('POST', `/api/questions/${question_id}/predict`, {
    key: agent.key,
    body: { reasoning: makeReasoning(), ...body },
  });
  t.equal(status, 201, placed.error);
  return { question_id, agent, id: placed.prediction.id as string, placed: placed.prediction };
};

/** Simulates that a minute has passed since the latest forecast. */
const grow = (id: string) => app.sql`
  update predictions
  set
    created_at = created_at - interval '61 s',
    revised_at = revised_at - interval '61 s'
  where id = ${id}`;

const revise = (key: string, id: string, body: Body, headers: Record<string, string> = {}) =>
  app.call('PATCH', `/api/predictions/${id}`, { key, headers, body: { reason, ...body } });

const listRevisions = async (id: string) =>
  (await app.call('GET', `/api/predictions/${id}/revisions`)).body;

t.test('a yes/no forecast changes twice; every one is kept with its time', async (t) => {
  const { question_id, agent, id, placed } = await place({ probability: 0.4, scale: 'percent' });
  await grow(id);
  const one = await revise(agent.key, id, { probability: 12.34 });
  t.match(one, { status: 200, body: { changed: true } }, one.body.error);
  t.match(one.body.prediction, {
    id,
    revision: 1,
    prediction: false,
    probability: 12.34,
    confidence: 87.66,
    reasoning: placed.reasoning,
    revision_reason: reason,
  });
  await grow(id);
  const two = await revise(agent.key, id, { prediction: 'yes', confidence: 66 });
  t.match(two.body.prediction, { revision: 2, prediction: true, probability: 66 });

  const { total, revisions } = await listRevisions(id);
  t.equal(total, 3);
  t.match(revisions, [
    { revision: 0, probability: 0.4, confidence: 99.6, prediction: false, reason: null },
    { revision: 1, probability: 12.34, reason },
    { revision: 2, probability: 66, until: null, forecast_at: two.body.prediction.revised_at },
  ]);
  t.equal(revisions[1].until, revisions[2].forecast_at, 'each stands until the next');
  const picture = await app.call('GET', `/api/predictions/${id}/chart.svg?width=400`);
  t.equal(picture.headers.get('content-type'), 'image/svg+xml; charset=utf-8');
  for (const level of ['0.4%, 12%, 66%', '66% for Yes', agent.name]) t.match(picture.body, level);
  const shown = await app.call('GET', `/api/questions/${question_id}/predictions`);
  t.same(shown.body.predictions[0], two.body.prediction, 'lists have the latest');

  const events = await until('both revisions in the log', async () => {
    const { body } = await app.call('GET', '/api/events?events=prediction.revised');
    const own = body.events.filter((event: Body) => JSON.stringify(event['data']).includes(id));
    return own.length === 2 && own;
  });
  t.match(events[0].data, {
    question_id,
    prediction_id: id,
    user_id: agent.id,
    revision: 1,
    probability: 12.34,
    confidence: 87.66,
    prediction: false,
    previous: { probability: 0.4, confidence: 99.6, prediction: false },
  });
  t.equal(events[1].id, two.body.event_id);
  const { body } = await app.call('GET', `/api/questions/${question_id}`);
  t.match(body.question, { prediction_count: 1, yes_count: 1, no_count: 0 }, 'counters follow');
});

t.test('a forecast over options changes form; the same again stores nothing', async (t) => {
  const options = ['north', 'south', 'east'];
  const multi = { question_type: 'multi', options };
  const { question_id, agent, id } = await place(
    { selected_option: 'south', confidence: 50 },
    multi,
  );
  await grow(id);
  const probabilities = { north: 70.5, south: 29.25, east: 0.25 };
  const one = await revise(agent.key, id, { probabilities });
  t.match(one.body.prediction, { selected_option: 'north', confidence: 70.5, probabilities });
  const picture = await app.call('GET', `/api/predictions/${id}/chart.svg`);
  // The forecast of 50 % for south left 25 % for each of the other two options.
  for (const level of ['25%, 71%', '71% for north']) t.match(picture.body, level);
  const same = await revise(agent.key, id, { probabilities });
  t.match(same, { status: 200, body: { changed: false, event_id: null } });
  t.equal((await listRevisions(id)).total, 2);
  await until('the counters have followed', async () => {
    const { body } = await app.call('GET', `/api/questions/${question_id}`);
    return body.question.option_counts[0].count === 1 && body.question;
  });
});

t.test('what cannot be revised says why', async (t) => {
  const { question_id, agent, id } = await place({ probability: 30 });
  const soon = await revise(agent.key, id, { probability: 40 });
  t.match(soon, { status: 429, body: { code: 'REVISION_TOO_SOON' } });
  const wait = Number(soon.headers.get('retry-after'));
  t.ok(wait >= 1 && wait <= 60, `${wait}`);
  await grow(id);
  const other = await makeAgent(app, { human });
  for (const [body, key, status, code] of [
    [{ probability: 40 }, other.key, 403, 'NOT_YOUR_PREDICTION'],
    [{ probability: 1 }, agent.key, 400, 'INVALID_CONFIDENCE'],
    [{ selected_option: 'north' }, agent.key, 400, 'INVALID_OPTION'],
    [{ probability: 40, reason: 'too short' }, agent.key, 400, 'INVALID_REQUEST'],
    [{ probability: 40, reason: 'so so so so so so so so' }, agent.key, 400, 'INVALID_REQUEST'],
  ] as const) {
    const answer = await revise(key, id, body);
    t.match(answer, { status, body: { code } }, JSON.stringify(body));
  }
  const missing = await revise(agent.key, question_id, { probability: 40 });
  t.match(missing, { status: 404, body: { code: 'PREDICTION_NOT_FOUND' } });
  const again = await app.call('POST', `/api/questions/${question_id}/predict`, {
    key: agent.key,
    body: { probability: 55, reasoning: makeReasoning() },
  });
  t.match(again.body, { code: 'DUPLICATE_PREDICTION', prediction_id: id });
  t.match(again.body.error, `PATCH /api/predictions/${id}`, 'names the call');
  await app.call('POST', `/api/admin/questions/${question_id}/close`, { admin: true, body: {} });
  const closed = await revise(agent.key, id, { probability: 40 });
  t.match(closed, { status: 409, body: { code: 'QUESTION_NOT_OPEN' } });
  t.equal((await listRevisions(id)).total, 1, 'nothing was stored');
});

t.test('200 revisions are the most', async (t) => {
  const { agent, id } = await place({ probability: 30 });
  await app.sql`
    update predictions
    set
      revision = 200, revised_at = created_at, revision_event_id = event_id,
      created_at = created_at - interval '1 hour'
    where id = ${id}`;
  await grow(id);
  const answer = await revise(agent.key, id, { probability: 40 });
  t.match(answer, { status: 409, body: { code: 'REVISION_LIMIT_REACHED' } });
  await app.sql`update predictions set revision = 0, revised_at = null, revision_event_id = null where id = ${id}`;
});

t.test('a key makes a repeat harmless; together, one revision of a minute counts', async (t) => {
  const { agent, id } = await place({ probability: 30 });
  await grow(id);
  const key = { 'idempotency-key': `revise ${id}` };
  const first = await revise(agent.key, id, { probability: 35 }, key);
  const again = await revise(agent.key, id, { probability: 35 }, key);
  t.equal(again.headers.get('idempotency-replayed'), 'true');
  t.same(again.body, first.body);
  const other = await revise(agent.key, id, { probability: 36 }, key);
  t.match(other, { status: 422, body: { code: 'IDEMPOTENCY_MISMATCH' } });
  await grow(id);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, n) => revise(agent.key, id, { probability: 40 + n })),
  );
  const stored = answers.filter(({ status }) => status === 200);
  t.equal(stored.length, 1);
  t.ok(answers.every(({ status }) => status === 200 || status === 429));
  t.equal((await listRevisions(id)).total, 3);
});

t.test('the record is right afterwards', async (t) => {
  await until('the log is at rest', async () => {
    const [row] = await app.sql`select count(*)::integer as waiting from outbox`;
    return row?.['waiting'] === 0;
  });
  t.same(await checkRecord(app.sql, 60_000), []);
});
