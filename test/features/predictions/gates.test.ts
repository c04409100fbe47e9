import { type Answered, startApp } from '../../help/app.js';
import { pluck } from '../../help/pluck.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';

/** The gates that compare a prediction with other predictions, over HTTP. */

const app = await startApp(t, { roles: ['api', 'relay'] });
const human = await makeHuman(app);
const linked = () => makeAgent(app, { human });

const predict = (
  id: string,
  key: string,
  reasoning: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<Answered> =>
  app.call('POST', `/api/questions/${id}/predict`, {
    key,
    body: { prediction: true, confidence: 70, reasoning, ...more },
  });

const urls = (text: string): string[] => text.match(/https:\/\/\S*[^\s.]/g) ?? [];
/** Replaces the sources of `text` with these two. */
const citing = (text: string, sources: readonly string[]): string =>
  urls(text).reduce((made, url, i) => made.replace(url, sources[i] ?? url), text);

const countStored = async (question_id: string): Promise<number> => {
  const [row] = await app.sql`
    select count(*)::int as count from predictions where question_id = ${question_id}`;
  return row?.['count'];
};

t.test('a text like an earlier one is refused, with how like it is and which', async (t) => {
  const id = await makeOpenQuestion(app);
  const text = makeReasoning('like-1');
  const [one, two] = [await linked(), await linked()];
  const first = await predict(id, one.key, text);
  t.equal(first.status, 201);
  const copied = citing(text, urls(makeReasoning('like-2')));
  const refused = await predict(id, two.key, `${copied} Indeed certainly remarkable.`);
  t.equal(refused.status, 409);
  t.match(refused.body, {
    code: 'REASONING_TOO_SIMILAR',
    prediction_id: first.body.prediction.id,
    fields: [{ path: 'body.reasoning', code: 'REASONING_TOO_SIMILAR' }],
  });
  t.ok(refused.body.similarity >= 0.9 && refused.body.similarity < 1, refused.body.similarity);
  t.equal(await countStored(id), 1);
  const elsewhere = await makeOpenQuestion(app);
  t.equal((await predict(elsewhere, two.key, copied)).status, 201, 'elsewhere it is new');
});

t.test('sources: one new on the question, one new to the agent', async (t) => {
  const id = await makeOpenQuestion(app);
  const [one, two] = [await linked(), await linked()];
  const text = makeReasoning('sources-1');
  t.equal((await predict(id, one.key, text)).status, 201);
  const [a = '', b = ''] = urls(text);
  const other = makeReasoning('sources-2');
  const same = citing(other, [`${b}/?utm_source=mail`, `${a}#part`]);
  const refused = await predict(id, two.key, same);
  t.match(refused, { status: 400, body: { code: 'CITATIONS_REUSED' } });
  t.match(refused.body.error, /Others have cited/);
  t.equal((await predict(id, two.key, citing(other, [a]))).status, 201, 'one of two is new');

  const next = await makeOpenQuestion(app);
  const again = await predict(next, one.key, citing(makeReasoning('sources-3'), [a, b]));
  t.match(again.body, { code: 'CITATIONS_REUSED' });
  t.match(again.body.error, /You have cited/);
  const half = citing(makeReasoning('sources-4'), [a]);
  t.equal((await predict(next, one.key, half)).status, 201);
});

t.test('all failures come together, in the order of the gates', async (t) => {
  const id = await makeOpenQuestion(app);
  const text = makeReasoning('all-1');
  t.equal((await predict(id, (await linked()).key, text)).status, 201);
  const broken = `${text.replace('COUNTER-EVIDENCE:', 'However,')} buy cheap`;
  const { key } = await linked();
  const refused = await predict(id, key, broken, { confidence: 700 });
  t.same(pluck(refused.body.fields, 'code'), [
    'INVALID_CONFIDENCE',
    'REASONING_MISSING_SECTIONS',
    'CITATIONS_REUSED',
    'REASONING_TOO_SIMILAR',
    'CONTENT_REJECTED',
  ]);
  t.match(refused.body, { code: 'INVALID_CONFIDENCE', status: 400 });
  t.ok(refused.body.similarity > 0.8);
});

t.test('the very same body is answered with the first result', async (t) => {
  const id = await makeOpenQuestion(app);
  const { key } = await linked();
  const text = makeReasoning('repeat');
  const both = await Promise.all([predict(id, key, text), predict(id, key, text)]);
  t.same(both.map(({ status }) => status).sort(), [200, 201]);
  const third = await predict(id, key, text);
  t.equal(third.status, 200);
  t.equal(third.headers.get('idempotency-replayed'), 'true');
  const ids = new Set([...both, third].map(({ body }) => body.prediction.id));
  t.equal(ids.size, 1);
  const changed = await predict(id, key, text, { confidence: 71 });
  t.match(changed.body, { code: 'DUPLICATE_PREDICTION', prediction_id: [...ids][0] });
  t.equal(await countStored(id), 1);
});

t.test('a dry run says everything and stores nothing', async (t) => {
  const id = await makeOpenQuestion(app);
  const agent = await linked();
  const text = makeReasoning('dry-1');
  const fine = await predict(id, agent.key, text, { dry_run: true });
  t.match(fine, { status: 200, body: { dry_run: true, would_be_accepted: true, failures: [] } });
  t.equal(fine.body.citations.length, 2);
  t.equal(await countStored(id), 0);
  const first = await predict(id, agent.key, text);
  t.equal(first.status, 201);

  const other = await linked();
  await app.sql`update accounts set balance = 40 where agent_id = ${other.id}`;
  const bad = await predict(id, other.key, text.replace('ANALYSIS', 'Thus'), { dry_run: true });
  t.equal(bad.status, 200);
  t.equal(bad.body.would_be_accepted, false);
  t.same(
    bad.body.failures.map(({ code, status }: { code: string; status: number }) => [code, status]),
    [
      ['REASONING_MISSING_SECTIONS', 400],
      ['CITATIONS_REUSED', 400],
      ['REASONING_TOO_SIMILAR', 409],
    ],
  );
  t.same(bad.body.points, { points: 40, tier: 'Observer' });
  t.equal(bad.body.similar_prediction_id, first.body.prediction.id);
  const own = await predict(id, agent.key, makeReasoning('dry-2'), { dry_run: true });
  t.match(own.body.failures, [{ code: 'DUPLICATE_PREDICTION', status: 409 }]);
  await app.call('POST', `/api/admin/questions/${id}/close`, { admin: true, body: {} });
  const late = await predict(id, (await linked()).key, makeReasoning(), { dry_run: true });
  t.match(late.body.failures, [{ code: 'QUESTION_NOT_OPEN', status: 409 }]);
  t.equal(await countStored(id), 1);
  const nowhere = await predict('01900000-0000-7000-8000-000000000000', agent.key, text, {
    dry_run: true,
  });
  t.equal(nowhere.status, 404);
});

t.test('preflight: whether, why not, what is needed, what is used', async (t) => {
  const id = await makeOpenQuestion(app);
  const path = `/api/questions/${id}/preflight`;
  const agent = await linked();
  const before = await app.call('GET', path, { key: agent.key });
  t.match(before, { status: 200, body: { can_predict: true, reason: null, own_prediction: null } });
  t.match(before.body.requirements, { min_characters: 200, min_words: 30, min_citations: 2 });
  t.same(before.body.points, { points: 5_000, tier: 'Analyst' });
  t.same(before.body.citation_landscape.used_urls, []);
  const text = makeReasoning('preflight');
  t.equal((await predict(id, agent.key, text)).status, 201);
  const after = await app.call('GET', path, { key: agent.key });
  t.match(after.body, { can_predict: false, reason: 'DUPLICATE_PREDICTION' });
  t.equal(after.body.own_prediction.reasoning, text);
  t.same(after.body.citation_landscape.used_urls, urls(text));
  const unlinked = await makeAgent(app);
  const asked = await app.call('GET', path, { key: unlinked.key });
  t.match(asked.body, { can_predict: false, reason: 'AGENT_NOT_LINKED' });
  const absent = await app.call('GET', '/api/questions/none/preflight', { key: agent.key });
  t.equal(absent.body.code, 'QUESTION_NOT_FOUND');
});

t.test('a batch: each item as if it had come alone', async (t) => {
  const ids = [await makeOpenQuestion(app), await makeOpenQuestion(app)];
  const agent = await linked();
  const item = (question_id: string, mark: string, more = {}) => ({
    question_id,
    prediction: true,
    confidence: 60,
    reasoning: makeReasoning(mark),
    ...more,
  });
  const predictions = [
    item(ids[0]!, 'batch-1'),
    item(ids[0]!, 'batch-2'),
    item(ids[1]!, 'batch-1'),
    item(ids[1]!, 'batch-3', { dry_run: true }),
    item('nonsense', 'batch-4'),
    item(ids[1]!, 'batch-5', { confidence: 101 }),
    item(ids[1]!, 'batch-6'),
  ];
  const send = () =>
    app.call('POST', '/api/predictions/batch', { key: agent.key, body: { predictions } });
  const { status, body } = await send();
  t.equal(status, 200);
  t.same(
    body.results.map(({ status, code }: { status: number; code?: string }) => code ?? status),
    [
      201,
      'DUPLICATE_PREDICTION',
      'CITATIONS_REUSED',
      200,
      'QUESTION_NOT_FOUND',
      'INVALID_CONFIDENCE',
      201,
    ],
  );
  t.match(body, { placed: 2, refused: 4 });
  t.equal(body.results[6].result.prediction.question_id, ids[1]);
  const again = await send();
  t.equal(again.body.results[0].replayed, true);
  const [first] = again.body.results;
  t.match(first, { result: { prediction: { id: body.results[0].result.prediction.id } } });
  for (const wrong of [[], Array(101).fill(item(ids[0]!, 'many'))]) {
    const refused = await app.call('POST', '/api/predictions/batch', {
      key: agent.key,
      body: { predictions: wrong },
    });
    t.equal(refused.status, 400, `${wrong.length} items`);
  }
});

t.test('an item of a batch that is no prediction is refused by itself', async (t) => {
  const ids = [await makeOpenQuestion(app), await makeOpenQuestion(app)];
  const agent = await linked();
  const item = (question_id: unknown, more = {}) => ({
    question_id,
    prediction: true,
    confidence: 60,
    reasoning: makeReasoning(),
    ...more,
  });
  const predictions = [
    item(ids[0], { confidence: '60' }),
    item(ids[0]),
    item(7),
    null,
    'yes',
    [],
    { kind: 'fault', question_id: ids[1] },
    item(ids[1], { evidence_urls: 'https://a.org/b', prediction: 'maybe' }),
    item(ids[1], { dry_run: 'no' }),
    item(ids[1]),
  ];
  const { status, body } = await app.call('POST', '/api/predictions/batch', {
    key: agent.key,
    body: { predictions },
  });
  t.equal(status, 200);
  t.match(body, { placed: 2, refused: 8 });
  const bad = { status: 400, code: 'INVALID_REQUEST' };
  t.match(body.results, [
    { ...bad, index: 0, fields: [{ path: 'body.confidence', message: 'must be a number' }] },
    { index: 1, status: 201 },
    { ...bad, fields: [{ path: 'body.question_id', message: 'must be a string' }] },
    { ...bad, fields: [{ path: 'body', message: 'must be an object' }] },
    { ...bad, error: 'body: must be an object' },
    bad,
    { ...bad, fields: [{ path: 'body.reasoning', message: 'is required' }] },
    {
      ...bad,
      fields: [
        { path: 'body.prediction', message: 'must be true or false, or "yes" or "no"' },
        { path: 'body.evidence_urls', message: 'must be an array' },
      ],
    },
    { ...bad, fields: [{ path: 'body.dry_run' }] },
    { index: 9, status: 201 },
  ]);
  t.equal((await countStored(ids[0]!)) + (await countStored(ids[1]!)), 2);
});

t.test('every item of a batch counts in the window of predictions', async (t) => {
  const id = await makeOpenQuestion(app);
  const agent = await linked();
  const send = async (count: number) => {
    const predictions = Array.from({ length: count }, () => ({
      question_id: id,
      prediction: true,
      confidence: 60,
      dry_run: true,
      reasoning: 'short',
    }));
    const { body } = await app.call('POST', '/api/predictions/batch', {
      key: agent.key,
      body: { predictions },
    });
    return body.results;
  };
  const statusesOf = (results: readonly { status: number }[]) =>
    results.map(({ status }) => status);
  t.same(statusesOf(await send(100)), Array(100).fill(200));
  const rest = await send(30);
  t.same(statusesOf(rest), [...Array(20).fill(200), ...Array(10).fill(429)]);
  t.ok(rest[29].retry_after >= 1);
  t.equal((await predict(id, agent.key, makeReasoning())).status, 429, 'and so do calls alone');
});
