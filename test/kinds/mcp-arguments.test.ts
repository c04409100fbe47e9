import { openModern } from '../features/mcp/world.js';
import { no_limits, startApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { type Any, age, type Fields, reason } from './world.js';

/**
 * MCP arguments sent as strings are parsed by their type, and unknown arguments are refused by
 * name. Each case was written from the documentation alone.
 */

const app = await startApp(t, { env: no_limits });
const human = await makeHuman(app);
const agent = await makeAgent(app, { human });
const other = await makeAgent(app, { human: await makeHuman(app) });
const { connect, callTool } = await openModern(t, app.url, agent.key);
await connect();
const question_id = await makeOpenQuestion(app);
const options_id = await makeOpenQuestion(app, { question_type: 'multi', options: ['A', 'B'] });

const reasoning = makeReasoning();
const good = { question_id, prediction: true, confidence: 80, reasoning };
const dry = { ...good, dry_run: true };
const unsure = { question_id, reasoning, dry_run: true };
const multi = { question_id: options_id, reasoning, dry_run: true };
const text = 'The second survey was published this morning, earlier than expected.';

/** The number of rows in all tables to which a call could write. */
const countStored = async (): Promise<number> => {
  const [row] = await app.sql<{ count: number }[]>`
    select
      (select count(*) from predictions) + (select count(*) from comments)
      + (select count(*) from votes) + (select count(*) from earlier_forecasts) as count`;
  return Number(row?.count);
};

const pathsOf = (refused: Any): string =>
  (JSON.parse(refused.content[0].text).fields ?? []).map(({ path }: Any) => path).join(' ');

t.test('a text is read by the type of its argument', async (t) => {
  const cases: readonly (readonly [string, Fields, Fields])[] = [
    ['a number', { ...dry, confidence: '80' }, { confidence: 80 }],
    ['a decimal', { ...unsure, probability: '62.5' }, { probability: 62.5 }],
    ['a fraction', { ...unsure, probability: '0.85' }, { probability: 85 }],
    ['a scale', { ...unsure, probability: '0.5', scale: 'percent' }, { probability: 0.5 }],
    ['true', { ...good, dry_run: 'true' }, { prediction: true }],
    ['false', { ...dry, prediction: 'false', confidence: 90 }, { probability: 10 }],
    ['yes', { ...dry, prediction: 'yes' }, { prediction: true }],
    ['no', { ...dry, prediction: 'no' }, { prediction: false }],
    [
      'an object',
      { ...multi, probabilities: '{"A":60,"B":40}' },
      { probabilities: { A: 60, B: 40 } },
    ],
    ['a list', { ...multi, probabilities: '[60,40]' }, { probabilities: { A: 60, B: 40 } }],
    [
      'texts in a text',
      { ...multi, probabilities: '{"A":"60","B":"40"}' },
      { probabilities: { A: 60, B: 40 } },
    ],
  ];
  const before = await countStored();
  for (const [name, args, wanted] of cases) {
    const { answer, content } = await callTool('predict', args);
    t.match(answer?.forecast, wanted, `${name}: ${content[0]?.text?.slice(0, 200)}`);
  }
  t.equal(await countStored(), before, 'nothing is stored');
  const one = await callTool('predict', { ...unsure, probability: '1' });
  t.match(one.answer?.failures, [{ message: /100.*0\.01|0\.01.*100/ }]);
});

t.test('lists, pages and waiting come as texts', async (t) => {
  const urls = ['https://a.example.org/1', 'https://b.example.net/2'];
  const listed = await callTool('predict', { ...dry, evidence_urls: urls });
  const written = await callTool('predict', { ...dry, evidence_urls: JSON.stringify(urls) });
  t.same(written.answer?.citations, listed.answer?.citations);
  t.equal((await callTool('find_questions', { limit: '2' })).answer.questions.length, 2);
  const { answer } = await callTool('events', { after: '0', limit: '5', wait: '1' });
  t.ok(answer.events.length > 0 && answer.events.length <= 5);
  for (const limit of ['5.0', '1e1', '+5', '05', ' 5 ']) {
    const found = await callTool('find_questions', { limit });
    if (found.isError) t.match(pathsOf(found), /limit/);
    else t.not(found.answer.questions.length, 20, `limit ${limit}`);
  }
});

t.test('a text that is meant as a text stays one', async (t) => {
  for (const q of ['2026', 'true', 'null', '[1]', '{"a":1}']) {
    const { body } = await app.call('GET', `/api/questions?limit=10&q=${encodeURIComponent(q)}`);
    const { answer } = await callTool('find_questions', { q });
    t.equal(answer.total, body.total, q);
  }
  const content = '["rates","will","probably","fall","before","winter","of","next","year"]';
  const said = await callTool('comment', { question_id, content, idempotency_key: '00123' });
  t.equal(said.answer?.comment.content, content);
  const again = await callTool('comment', { question_id, content, idempotency_key: '00123' });
  t.equal(again.answer?.comment.id, said.answer?.comment.id);
  t.match(await callTool('find_questions', { category: 'null' }), {
    isError: true,
    content: [{ text: /INVALID_CATEGORY/ }],
  });
});

t.test('a text that cannot be read is refused by the name of its argument', async (t) => {
  const confidence = [
    'eighty',
    '80%',
    '80,5',
    '',
    ' ',
    'NaN',
    'Infinity',
    '0x50',
    '80 points',
    '150',
    '-5',
  ];
  const deep = '['.repeat(20_000);
  const cases: readonly (readonly [string, Fields])[] = [
    ...confidence.map((one) => ['confidence', { ...good, confidence: one }] as const),
    ...['maybe', '', '2', '[]'].map((dry_run) => ['dry_run', { ...good, dry_run }] as const),
    ['evidence_urls', { ...dry, evidence_urls: '["https://a.example.org"' }],
    ['evidence_urls', { ...dry, evidence_urls: '1'.repeat(40_000) }],
    ...['{A:60}', '60/40', '"x"', deep, '{"__proto__":{"A":60},"B":40}'].map(
      (probabilities) => ['probabilities', { ...multi, probabilities }] as const,
    ),
    ['content', { content: 12_345, question_id }],
  ];
  const before = await countStored();
  for (const [name, args] of cases) {
    const tool = name === 'content' ? 'comment' : 'predict';
    const refused = await callTool(tool, args);
    const label = `${name} ${JSON.stringify((args as Any)[name]).slice(0, 40)}`;
    t.equal(refused.isError, true, label);
    t.match(refused.content[0]?.text, new RegExp(name), label);
  }
  for (const dry_run of ['TRUE', 'True', '1', 1]) await callTool('predict', { ...good, dry_run });
  t.equal(await countStored(), before, 'nothing is stored');
});

t.test('null stands for an optional argument that is left out', async (t) => {
  const optional =
    'probability selected_option probabilities evidence_urls resolution_protocol prior_probability prior_basis scale dry_run idempotency_key';
  const nulls = Object.fromEntries(optional.split(' ').map((name) => [name, null]));
  const fresh = await makeOpenQuestion(app);
  const { answer } = await callTool('predict', { ...good, ...nulls, question_id: fresh });
  t.match(answer?.prediction, { prediction: true, confidence: 80 });
  const nothing = { status: null, category: null, q: null, limit: null, cursor: null };
  const [listed, usual] = [
    await callTool('find_questions', nothing),
    await callTool('find_questions'),
  ];
  t.equal(listed.answer.total, usual.answer.total);
  t.equal(listed.answer.questions.length, usual.answer.questions.length);
  const none = await callTool('get_question', { question_id: null });
  t.match(none, { isError: true, content: [{ text: /question_id/ }] });
  const before = await countStored();
  const empty = await callTool('comment', { question_id, content: null });
  t.match(empty, { isError: true, content: [{ text: /content/ }] });
  t.equal(await countStored(), before);
});

t.test('votes and revisions are read as texts too', async (t) => {
  const target = await makeOpenQuestion(app);
  const placed = await app.call('POST', `/api/questions/${target}/predict`, {
    key: other.key,
    body: { ...good, reasoning: makeReasoning(), question_id: undefined },
  });
  const prediction_id = placed.body.prediction.id;
  const voted = await callTool('vote', { prediction_id, direction: 'up', comment_id: null });
  t.notOk(voted.isError, `${voted.content[0]?.text}`);
  const { answer } = await callTool('predict', {
    ...good,
    question_id: target,
    reasoning: makeReasoning(),
  });
  await age(app, answer.prediction.id);
  const revised = await callTool('revise', {
    prediction_id: answer.prediction.id,
    probability: '35.25',
    reason,
  });
  t.match(revised.answer?.prediction, { probability: 35.25 });
});

t.test('an argument that the tool does not take is refused by name', async (t) => {
  const target = await makeOpenQuestion(app);
  const { answer } = await callTool('predict', {
    ...good,
    question_id: target,
    reasoning: makeReasoning(),
  });
  const prediction_id = answer.prediction.id;
  await age(app, prediction_id);
  const mine = { ...good, question_id: await makeOpenQuestion(app), reasoning: makeReasoning() };
  const cases: readonly (readonly [string, Fields, readonly string[]])[] = [
    ['predict', { ...mine, confidance: 80 }, ['confidance']],
    ['predict', { ...mine, dryrun: true }, ['dryrun']],
    ['predict', { ...mine, dryRun: true }, ['dryRun']],
    ['predict', { ...mine, 'dry-run': true }, ['dry-run']],
    ['predict', { ...mine, foo: 1, baz: [] }, ['foo', 'baz']],
    ['predict', { arguments: mine }, ['arguments']],
    ['predict', { input: mine }, ['input']],
    ['predict', { body: mine }, ['body']],
    ['comment', { question_id, content: text, parent: prediction_id }, ['parent']],
    ['comment', { question_id, content: text, mood: 'x', idempotency_key: 'k-1' }, ['mood']],
    ['vote', { prediction_id, weight: 5 }, ['weight']],
    ['vote', { prediction_id, content: text }, ['content']],
    ['revise', { prediction_id, probability: 40, reason, reasoning_text: 'x' }, ['reasoning_text']],
    ['find_questions', { categories: ['society'] }, ['categories']],
    ['find_questions', { statuss: 'open' }, ['statuss']],
    ['find_questions', { search: 'rates' }, ['search']],
    ['find_questions', { Limit: 5 }, ['Limit']],
    ['find_questions', { reasoning }, ['reasoning']],
    ['find_questions', { toString: 'x' }, ['toString']],
    ['find_questions', { '': 1 }, ['']],
    ['events', { after: 0, types: ['question.created'] }, ['types']],
    ['events', { since: '2026-01-01' }, ['since']],
    ['get_question', { question_id, verbose: true }, ['verbose']],
    ['get_question', { Question_Id: question_id }, ['Question_Id']],
    ['my_record', { agent: 'x' }, ['agent']],
    ['my_record', { id: other.id }, ['id']],
  ];
  const before = await countStored();
  for (const [tool, args, names] of cases) {
    const refused = await callTool(tool, args);
    const label = `${tool} ${names}`;
    t.equal(refused.isError, true, label);
    t.equal(pathsOf(refused), names.map((name) => `arguments.${name}`).join(' '), label);
  }
  await t.rejects(callTool('find_questions', { constructor: 1 }), /constructor/);
  t.equal(await countStored(), before, 'nothing is stored');
  t.match((await callTool('predict', mine)).answer?.prediction, { confidence: 80 });
  const said = await callTool('comment', { question_id, content: text, idempotency_key: 'k-1' });
  t.notOk(said.isError, 'a refusal costs no key');
  const revised = await callTool('revise', { prediction_id, probability: 40, reason });
  t.match(revised.answer?.prediction, { probability: 40 });
});

t.test('no arguments, and members of objects', async (t) => {
  t.match((await callTool('my_record')).answer, { user: { id: agent.id } });
  t.ok((await callTool('find_questions')).answer.questions.length > 0);
  const third = await callTool('predict', { ...multi, probabilities: { A: 60, B: 40, C: 0 } });
  t.match(third.answer, { would_be_accepted: false, failures: [{ code: 'INVALID_OPTION' }] });
  const rest = await app.call('POST', `/api/questions/${question_id}/comments`, {
    key: other.key,
    body: { content: text, mood: 'x' },
  });
  t.equal(rest.status, 201, 'REST goes on ignoring unknown members');
  t.equal(rest.body.comment.mood, undefined);
});
