import { createDays } from '../../../src/features/briefs/index.js';
import { createLiveConsensus } from '../../../src/features/consensus/index.js';
import { tellForecasters, tellMoves, tellQueued } from '../../../src/features/follows/news.js';
import { startApp } from '../../help/app.js';
import { openParts } from '../../help/parts.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** The news that followers get, and when. */

const app = await startApp(t, { roles: ['api', 'relay'] });
const parts = await openParts(t, { stores: app.stores });
let ahead_ms = 0;
const deps = { ...parts.deps, clock: () => new Date(Date.now() + ahead_ms) };
const days = createDays(deps, createLiveConsensus(deps, 1));
const owner = await makeHuman(app);
type Caller = { readonly token: string } | { readonly key: string };

const follow = async (by: Caller, kind: string, id: string, query = '') => {
  const path = `/api/me/follows/${kind}/${encodeURIComponent(id)}${query}`;
  const { status } = await app.call('PUT', path, by);
  if (status !== 201) throw new Error(`not followed: ${status}`);
};
const inbox = async (by: Caller, query = '') =>
  (await app.call('GET', `/api/me/inbox${query}`, by)).body;
const predict = async (
  question_id: string,
  fields: object,
  by = makeAgent(app, { human: owner }),
) => {
  const { key, id } = await by;
  const { status, body } = await app.call('POST', `/api/questions/${question_id}/predict`, {
    key,
    body: { scale: 'percent', reasoning: makeReasoning(), ...fields },
  });
  if (status !== 201) throw new Error(JSON.stringify(body));
  return { agent_id: id, prediction_id: body.prediction.id as string, key };
};
const quantiles = (median: number) => [
  { p: 10, value: median - 1 },
  { p: 50, value: median },
  { p: 90, value: median + 1 },
];
/** Waits until the relay has counted the predictions of a question. */
const counted = (question_id: string, count: number) =>
  until('counted', async () => {
    const [row] = await app.sql`
      select prediction_count from question_counts where question_id = ${question_id}`;
    return row?.['prediction_count'] === count;
  });
const admin = (id: string, act: string, body: object) =>
  app.call('POST', `/api/admin/questions/${id}/${act}`, { admin: true, body });
const queued = (count: number) =>
  until('queued', async () => {
    const [row] = await app.sql`select count(*)::int as n from news_queue`;
    return row?.['n'] === count;
  });

t.test('a follower is told when the headline has moved far enough', async (t) => {
  const [person, agent, coarse] = [
    await makeHuman(app),
    await makeAgent(app),
    await makeAgent(app),
  ];
  const id = await makeOpenQuestion(app);
  await predict(id, { probability: 40 });
  await counted(id, 1);
  await follow(person, 'question', id);
  await follow(agent, 'question', id);
  await follow(coarse, 'question', id, '?move_points=60');
  t.equal(await tellMoves(deps), 0, 'nothing is new');
  await predict(id, { probability: 42 });
  await counted(id, 2);
  t.equal(await tellMoves(deps), 1);
  t.equal((await inbox(person)).total, 0, 'the move is too small');
  for (let n = 0; n < 3; n += 1) await predict(id, { probability: 95 });
  await counted(id, 5);
  await tellMoves(deps);
  await tellMoves(deps);
  for (const by of [person, agent]) {
    const { total, unread, items } = await inbox(by);
    t.match({ total, unread }, { total: 1, unread: 1 });
    t.match(items[0], {
      type: 'question.moved',
      message: /^“Will .*” moved from 4[01]% to \d\d%\.$/,
      path: `/questions/${id}`,
      question_id: id,
      read: false,
      details: { before: [Number], after: [Number] },
    });
  }
  t.equal((await inbox(coarse)).total, 0, 'this follower wants larger moves');
});

t.test('two timers tell of a move once', async (t) => {
  const person = await makeHuman(app);
  const id = await makeOpenQuestion(app);
  await predict(id, { probability: 20 });
  await counted(id, 1);
  await follow(person, 'question', id);
  await predict(id, { probability: 90 });
  await counted(id, 2);
  await Promise.all([tellMoves(deps), tellMoves(deps)]);
  t.equal((await inbox(person)).total, 1);
});

t.test('a move names the option, or the value of a number', async (t) => {
  const person = await makeHuman(app);
  const options = ['Red', 'Green', 'Blue'];
  const colours = await makeOpenQuestion(app, { question_type: 'multi', options });
  const rate = await makeOpenQuestion(app, {
    question_type: 'numeric',
    range: { min: 0, max: 10, unit: 'points' },
  });
  await predict(colours, { selected_option: 'Red', confidence: 90 });
  await predict(rate, { quantiles: quantiles(2) });
  for (const id of [colours, rate]) await counted(id, 1);
  for (const id of [colours, rate]) await follow(person, 'question', id);
  for (let n = 0; n < 3; n += 1) {
    await predict(colours, { selected_option: 'Blue', confidence: 97 });
    await predict(rate, { quantiles: quantiles(8) });
  }
  for (const id of [colours, rate]) await counted(id, 4);
  await tellMoves(deps);
  const { items } = await inbox(person);
  const messageOf = (id: string) =>
    items.find((one: { question_id: string }) => one.question_id === id)?.message;
  t.match(messageOf(colours), /moved: (?:Red|Blue) from \d+% to \d+%\.$/);
  t.match(messageOf(rate), /moved from 2(?:\.\d+)? points to \d\.?\d* points\.$/);
});

t.test('followers are told of results, corrections and voided questions', async (t) => {
  const person = await makeHuman(app);
  const [yes, void_one, foreign] = [
    await makeOpenQuestion(app),
    await makeOpenQuestion(app),
    await makeOpenQuestion(app),
  ];
  await follow(person, 'question', yes);
  await follow(person, 'question', void_one);
  for (const id of [yes, foreign]) {
    await admin(id, 'close', {});
    await admin(id, 'resolve', { outcome: true, resolution_note: 'It opened.' });
  }
  await admin(void_one, 'void', { resolution_note: 'It burned down.' });
  await queued(2);
  t.equal(await tellQueued(deps), 2);
  t.equal(await tellQueued(deps), 0);
  const { items } = await inbox(person);
  t.match(
    items.map((one: { message: string }) => one.message).sort(),
    [/is resolved: YES\.$/, /was voided\. Its forecasts are not scored\.$/].sort(),
  );
  await admin(yes, 'resolve', { outcome: false, resolution_note: 'It did not.' });
  await queued(1);
  await tellQueued(deps);
  t.match((await inbox(person)).items[0], {
    type: 'question.resolved',
    message: /^The outcome of .* was corrected: NO\.$/,
  });
});

t.test('a new question is told to those whose search it matches, once each', async (t) => {
  const [person, other] = [await makeHuman(app), await makeHuman(app)];
  await follow(person, 'search', 'q=lighthouse&category=society');
  await follow(person, 'search', 'lighthouse keepers');
  await follow(other, 'search', 'q=lighthouse&category=technology');
  const id = await makeOpenQuestion(app, {
    question: 'Will the lighthouse keepers of the north be replaced by sensors this year?',
  });
  await makeOpenQuestion(app);
  await queued(2);
  await tellQueued(deps);
  const { total, items } = await inbox(person);
  t.equal(total, 1);
  t.match(items[0], { type: 'question.matched', question_id: id });
  t.match(items[0].details.searches.sort(), [
    'q=lighthouse&category=society',
    'q=lighthouse+keepers',
  ]);
  t.equal((await inbox(other)).total, 0);
});

t.test("a followed agent's forecasts of a day are one item, which grows", async (t) => {
  const person = await makeHuman(app);
  const author = makeAgent(app, { human: owner });
  const { id, name } = await author;
  await follow(person, 'agent', id);
  const [first, second] = [await makeOpenQuestion(app), await makeOpenQuestion(app)];
  await predict(first, { probability: 30 }, author);
  await tellForecasters(deps, days);
  t.match(
    (await inbox(person)).items,
    [{ message: `${name} made a forecast on “`.slice(0, 10), path: `/agents/${id}` }].map(
      ({ path }) => ({ type: 'agent.forecast', path, question_id: first }),
    ),
  );
  const { items } = await inbox(person);
  await app.call('POST', '/api/me/inbox/read', { ...person, body: { ids: [items[0].id] } });
  await tellForecasters(deps, days);
  t.equal((await inbox(person)).unread, 0, 'nothing is new');
  await predict(second, { probability: 30 }, author);
  await tellForecasters(deps, days);
  const after = await inbox(person);
  t.match(after, { total: 1, unread: 1 });
  t.match(after.items[0].message, new RegExp(`^${name} made 2 forecasts today, the last on`));
});

t.test("a followed family's day is told after its end", async (t) => {
  const person = await makeHuman(app);
  await follow(person, 'family', 'claude');
  await predict(await makeOpenQuestion(app), { probability: 30 });
  await tellForecasters(deps, days);
  const familyItems = async () =>
    (await inbox(person)).items.filter((one: { type: string }) => one.type === 'family.day');
  t.same(await familyItems(), []);
  ahead_ms = 86_400_000;
  await tellForecasters(deps, days);
  await tellForecasters(deps, days);
  const items = await familyItems();
  t.equal(items.length, 1);
  t.match(items[0], {
    message: /^claude: \d+ forecasts by \d+ agents on \d{4}-\d\d-\d\d/,
    path: '/families/claude',
  });
});

t.test('who unfollows is told nothing more', async (t) => {
  const person = await makeHuman(app);
  const id = await makeOpenQuestion(app);
  await follow(person, 'question', id);
  await app.call('DELETE', `/api/me/follows/question/${id}`, person);
  await admin(id, 'close', {});
  await admin(id, 'resolve', { outcome: true, resolution_note: 'It opened.' });
  await tellQueued(deps);
  await predict(await makeOpenQuestion(app), { probability: 50 });
  t.equal((await inbox(person)).total, 0);
});
