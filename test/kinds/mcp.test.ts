import { openModern, openOld } from '../features/mcp/world.js';
import { no_limits, startApp } from '../help/app.js';
import { range } from '../help/hub.js';
import { makeForecasts } from '../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { type Any, importQuestion } from './world.js';

/**
 * MCP answers are small. Each is at most 60 KB regardless of the stored data, nothing is skipped
 * between two pages, and omitted parts can be requested.
 */

const most = 61_440;
const app = await startApp(t, { env: no_limits });
const { key } = await makeAgent(app, { human: await makeHuman(app) });
const { connect, callTool } = await openModern(t, app.url, key);
await connect();

const kanji = '漢'.repeat(10_000);
const question_id = await makeOpenQuestion(app, { description: kanji });
const placed = await makeForecasts(app, question_id, Array(30).fill({ probability: 60 }));
const long = `EVIDENCE ${'字'.repeat(9_979)} BOTTOM LINE`;
await app.sql`
  update predictions set reasoning = ${long}, prior_basis = ${'字'.repeat(2_000)}
  where question_id = ${question_id}`;

const numeric = await makeOpenQuestion(app, {
  question_type: 'numeric',
  range: { min: 0, max: 1_000_000, unit: '字'.repeat(30) },
});
const steps = range(1, 998).map((n) => ({ value: n * 1_000 + 0.123_456, p: n / 1_000 }));
await makeForecasts(app, numeric, Array(12).fill({ quantiles: steps }));
await app.sql`update predictions set reasoning = ${long} where question_id = ${numeric}`;

for (const n of range(1, 100)) {
  await importQuestion(app, {
    description: kanji,
    question: `${'問'.repeat(490)} ${n}`,
    question_type: 'multi',
    options: range(1, 10).map((option) => `${'選'.repeat(90)}${option}`),
  });
}

const bytesOf = (text: string | undefined): number => Buffer.byteLength(text ?? '');

/** Returns the answer to a call and checks that it is small enough. */
const ask = async (t: Any, name: string, args: Any): Promise<Any> => {
  const { content, answer } = await callTool(name, args);
  const bytes = bytesOf(content[0]?.text);
  t.equal(content.length, 1);
  if (bytes > most) t.fail(`${name} ${JSON.stringify(args)}: ${bytes} bytes`);
  return { ...answer, bytes };
};

/** The rows of all pages, read with each page's cursor. */
const readAll = async (t: Any, name: string, args: Any, rows: string): Promise<Any[]> => {
  const found: Any[] = [];
  let max_seen = 0;
  for (let cursor: string | null = null; ; ) {
    const answer: Any = await ask(t, name, { ...args, ...(cursor && { cursor }) });
    max_seen = Math.max(max_seen, answer.bytes);
    found.push(...answer[rows]);
    cursor = answer.next_cursor;
    if (answer[rows].length === 0 || cursor === null) break;
  }
  t.comment(`${name} ${JSON.stringify(args)}: ${found.length} rows, at most ${max_seen} bytes`);
  return found;
};

const idsOf = (rows: readonly Any[]): readonly string[] => rows.map(({ id }) => id);

t.test('pages of long questions fit, and nothing is skipped between them', async (t) => {
  const path = '/api/questions?status=all&limit=100&source=mirror';
  const expected = idsOf((await app.call('GET', path)).body.questions);
  t.equal(expected.length, 100);
  const args = { status: 'all', source: 'mirror', limit: 100 };
  for (const more of [{}, { sort: 'closing_soon' }, { include: ['consensus', 'trend'] }]) {
    const found = idsOf(await readAll(t, 'find_questions', { ...args, ...more }, 'questions'));
    t.same([...found].sort(), [...expected].sort(), JSON.stringify(more));
  }
  const whole = await readAll(
    t,
    'find_questions',
    { ...args, full: true, limit: '5' },
    'questions',
  );
  t.same(idsOf(whole), expected);
  t.equal(whole[0].description, kanji);
  const short = await ask(t, 'find_questions', args);
  t.match(short.questions[0].description, /… \[9000 more characters; full: true returns all\] …/);
  const usual = await ask(t, 'find_questions', { status: 'open', fields: ['id', 'closes_at'] });
  t.equal(usual.questions.length, 10);
  t.same(Object.keys(usual.questions[0]), ['id', 'closes_at']);
});

t.test('a question with thirty of the longest reasonings is read page by page', async (t) => {
  const expected = placed.map(({ prediction_id }) => prediction_id).reverse();
  const whole = { full: true, fields: 'predictions' };
  for (const more of [{}, { limit: 100 }, { ...whole, limit: 7 }, { ...whole, limit: 100 }]) {
    const args = { question_id, ...more };
    const found = await readAll(t, 'get_question', args, 'predictions');
    t.same(idsOf(found), expected, JSON.stringify(more));
    if ('full' in more) t.ok(found.every(({ reasoning }) => reasoning === long));
    else t.match(found[0].reasoning, /^EVIDENCE .*9000 more characters.*BOTTOM LINE$/s);
  }
  const first = await ask(t, 'get_question', { question_id });
  t.match(first.question.description, /more characters/);
  const fields = ['question.description', 'predictions.id'];
  const part = await ask(t, 'get_question', { question_id, fields, full: true, limit: 2 });
  t.same(part, {
    question: { description: kanji },
    predictions: expected.slice(0, 2).map((id) => ({ id })),
    next_cursor: part.next_cursor,
    bytes: part.bytes,
  });
});

t.test('an item that is larger than the limit comes whole if it is asked for', async (t) => {
  const reasoning = '📈'.repeat(10_000);
  const one = { question_id: numeric, limit: 1, fields: ['predictions'] };
  await app.sql`
    update predictions set reasoning = ${reasoning}
    where question_id = ${numeric}`;
  const { content, answer } = await callTool('get_question', { ...one, full: true });
  t.ok(bytesOf(content[0]?.text) > most);
  t.equal(answer.predictions[0].reasoning, reasoning);
  t.equal(answer.predictions[0].cdf.length, 1_000);
  const short = await ask(t, 'get_question', one);
  t.match(short.predictions[0].cdf.at(-1), /950 more items; full: true returns all/);
});

t.test('pages of events with long distributions fit and go on at the next offset', async (t) => {
  const found: Any[] = [];
  const topic = `question:${numeric}`;
  await until('all events are there', async () => {
    const { body } = await app.call(
      'GET',
      `/api/events?topic=${topic}&limit=100&events=prediction.placed`,
    );
    return body.events.length === 12;
  });
  for (let after = 0; ; ) {
    const args = {
      topic,
      events: 'prediction.placed',
      after: String(after),
      limit: 100,
      full: true,
    };
    const answer = await ask(t, 'events', args);
    found.push(...answer.events);
    after = answer.next;
    if (answer.next_cursor === null) break;
  }
  t.equal(found.length, 12);
  t.equal(new Set(idsOf(found)).size, 12);
  t.ok(found.every(({ data }) => data.cdf.length === 1_000));
  const short = await ask(t, 'events', { topic, limit: 100, wait: 1, after: 0 });
  const cut = short.events.find(({ event }: Any) => event === 'prediction.placed');
  t.match(cut.data.cdf.at(-1), /950 more items; full: true returns all/);
  const names = await ask(t, 'events', { topic, after: 0, fields: 'offset,data.prediction_id' });
  t.same(Object.keys(names.events.at(-1)), ['offset', 'data']);
});

t.test('an answer to a forecast is shortened, and says where all of it is', async (t) => {
  const { key: other } = await makeAgent(app, { human: await makeHuman(app) });
  const writer = await openModern(t, app.url, other);
  await writer.connect();
  const lettered = (n: number) =>
    n.toString(26).replace(/\d/g, (digit) => 'qrstuvwxyz'.charAt(Number(digit)));
  const filler = range(1, 900)
    .map((n) => lettered(n * 1_000_003))
    .join(' ');
  const forecast = { question_id, probability: 60, reasoning: `${makeReasoning()}\n${filler}` };
  const written = await writer.callTool('predict', forecast);
  t.notOk(written.isError, `${written.content[0]?.text}`.slice(0, 300));
  t.match(written.answer.prediction.reasoning, /more characters; get_question with full: true/);
  const refused = await writer.callTool('predict', {
    ...forecast,
    selected_option: 'x'.repeat(50_000),
  });
  t.equal(refused.isError, true);
  t.ok(bytesOf(refused.content[0]?.text) <= most);
});

t.test('fields that are not there are refused by name', async (t) => {
  for (const [name, args, wrong] of [
    ['find_questions', { fields: ['id', 'titel'] }, /titel|arguments\.fields\.1/],
    ['get_question', { question_id, fields: 'reasoning' }, /use question, consensus, predictions/],
    ['get_question', { question_id, fields: 'predictions.reason' }, /use question_id, id/],
    ['my_record', { fields: 'user.id.x' }, /arguments\.fields\.0/],
    ['events', { fields: 'payload' }, /use offset, id, event/],
    ['find_questions', { fields: [] }, /needs at least one/],
    ['find_questions', { full: 'much' }, /arguments\.full/],
  ] as const) {
    const refused = await callTool(name, args);
    t.match(refused, { isError: true, content: [{ text: wrong }] }, JSON.stringify(args));
  }
  const record = await callTool('my_record', { fields: '["user.id"]' });
  t.same(Object.keys(record.answer.user), ['id']);
});

t.test('resources are as small', async (t) => {
  const seen: string[] = [];
  // A client of the newer protocol revision would read all pages at once.
  const { connect, client } = await openOld(t, app.url, key);
  await connect();
  for (let cursor: string | undefined; ; ) {
    const listed: Any = await client.listResources(cursor === undefined ? {} : { cursor });
    t.ok(bytesOf(JSON.stringify(listed)) <= most, `${bytesOf(JSON.stringify(listed))} bytes`);
    seen.push(...listed.resources.map(({ uri }: Any) => uri));
    cursor = listed.nextCursor;
    if (cursor === undefined) break;
  }
  t.equal(new Set(seen).size, 102);
  for (const uri of [`forum://question/${question_id}`, `forum://question/${numeric}`, seen[50]]) {
    const { contents } = await client.readResource({ uri: uri as string });
    const { text = '' } = contents[0] as { text?: string };
    t.ok(bytesOf(text) <= most, `${bytesOf(text)} bytes`);
  }
});
