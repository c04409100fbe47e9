import { type Answered, startApp } from '../help/app.js';
import { makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { batch_path, openBatches } from './fleet.js';
import { type Any, age, type Fields, reason } from './world.js';

/** A batch of 100 predictions fits within the rate limit of its agent. */

const { app, start, itemsOf, predict, predictOne } = await openBatches(t, 130);

const storedOf = async (key: string): Promise<number> =>
  (await app.call('GET', '/api/me/predictions', { key })).body.total;
const leftOf = async (key: string): Promise<Any> => {
  const { limits } = (await app.call('GET', '/api/limits', { key })).body;
  return limits.find(({ name }: Any) => name === 'predictions').left;
};
const shownLeft = ({ headers }: Answered): string | undefined =>
  /"predictions";r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1];
const keyOf = async (): Promise<string> => (await start(1)).fleet[0]?.key ?? '';
const codesOf = ({ body }: Answered): string[] =>
  body.results.map(({ code = '' }: Any) => code as string);

t.test('a batch of a hundred fits, twenty more do, and the next does not', async (t) => {
  const key = await keyOf();
  const first = await predict(key, itemsOf(0, 100));
  t.match(first, { status: 200, body: { placed: 100, refused: 0 } });
  t.equal(shownLeft(first), '20');
  t.match(first.headers.get('ratelimit-policy'), /"predictions";q=120;w=60/);
  t.equal(await storedOf(key), 100);
  t.equal(await leftOf(key), 20);
  for (let n = 100; n < 120; n += 1) t.equal((await predictOne(key, n)).status, 201);
  const refused = await predictOne(key, 120);
  t.match(refused, { status: 429, body: { code: 'RATE_LIMITED', error: /limit of 120 calls/ } });
  t.match(Number(refused.headers.get('retry-after')) <= 60, true);
  t.equal(await storedOf(key), 120);
});

t.test('a second batch gets the places that are left', async (t) => {
  const key = await keyOf();
  await predict(key, itemsOf(0, 100));
  const second = await predict(key, itemsOf(100, 30));
  t.match(second.body, { placed: 20, refused: 10 });
  t.same(codesOf(second), [...Array(20).fill(''), ...Array(10).fill('RATE_LIMITED')]);
  t.equal(shownLeft(second), '0');
  t.ok(second.body.results.at(-1).retry_after >= 1);
  t.equal(await storedOf(key), 120);
});

t.test('every item counts, also one that is refused', async (t) => {
  const key = await keyOf();
  const short = itemsOf(30, 30, { reasoning: 'Too short for a gate.' });
  const answer = await predict(key, [...itemsOf(0, 30), ...short]);
  t.match(answer.body, { placed: 30, refused: 30 });
  t.ok(
    codesOf(answer)
      .slice(30)
      .every((code) => code === 'REASONING_TOO_SHORT'),
  );
  t.equal(shownLeft(answer), '60');
  t.equal(await leftOf(key), 60);
});

t.test('a batch of 101, of none and without a list is refused and counts nothing', async (t) => {
  const key = await keyOf();
  for (const predictions of [itemsOf(0, 101), [], undefined, {}, 'all']) {
    const refused = await predict(key, predictions);
    t.match(refused, {
      status: 400,
      body: { code: 'INVALID_REQUEST', fields: [{ path: 'body.predictions' }] },
    });
  }
  t.equal(await leftOf(key), 120);
  t.equal(await storedOf(key), 0);
});

t.test('agents of one owner each have a limit of their own', async (t) => {
  const { fleet } = await start(4);
  const answers = await Promise.all(
    fleet.map(({ key }, n) => predict(key, itemsOf(0, 100, { probability: 40 + n }))),
  );
  for (const answer of answers) t.match(answer, { status: 200, body: { placed: 100 } });
});

t.test('revisions and predictions count in one window', async (t) => {
  const { fleet } = await start(1);
  const { key } = fleet[0] as (typeof fleet)[number];
  const { body } = await predict(key, itemsOf(0, 10));
  for (const { result } of body.results) await age(app, result.prediction.id);
  for (const { result } of body.results) {
    const path = `/api/predictions/${result.prediction.id}`;
    const revised = await app.call('PATCH', path, { key, body: { probability: 55, reason } });
    t.equal(revised.status, 200);
  }
  const rest = await predict(key, itemsOf(10, 100));
  t.equal(rest.body.placed, 100);
  t.equal((await predictOne(key, 110)).status, 429);
});

t.test('an item that is wrong is refused at its place', async (t) => {
  const key = await keyOf();
  const items: unknown[] = itemsOf(0, 100);
  const [first] = items;
  items[17] = { ...(items[17] as Fields), probability: 'lots' };
  items[18] = 5;
  items[19] = { ...(items[19] as Fields), question_id: '01890a5d-ac96-7f3b-8bb0-0d5c3b2f6a99' };
  items[20] = { ...(items[20] as Fields), question_id: (first as Fields)['question_id'] };
  const answer = await predict(key, items);
  t.match(answer, { status: 200, body: { placed: 96, refused: 4 } });
  const codes = codesOf(answer);
  t.match(codes[17], /^INVALID_/);
  t.same(codes.slice(18, 21), ['INVALID_REQUEST', 'QUESTION_NOT_FOUND', 'DUPLICATE_PREDICTION']);
});

t.test('a dry run stores nothing, a repeat replays, a long batch fits', async (t) => {
  const key = await keyOf();
  const dry = await predict(key, itemsOf(0, 20, { dry_run: true }));
  t.match(dry, { status: 200, body: { placed: 0, refused: 0 } });
  t.equal(await storedOf(key), 0);
  const items = itemsOf(0, 100);
  const headers = { 'idempotency-key': 'batch-1' };
  const first = await predict(key, items, headers);
  const again = await predict(key, items, headers);
  t.same(again.body, first.body);
  t.equal(again.headers.get('idempotency-replayed'), 'true');
  t.equal(await storedOf(key), 100);
  const padded = itemsOf(0, 100).map((item) => {
    return { ...item, reasoning: `${item['reasoning']}\n${'word '.repeat(1_600)}` };
  });
  t.equal((await predict(await keyOf(), padded)).status, 200);
});

t.test('the limit is 120 wherever it is named, and an operator sets it', async (t) => {
  const key = await keyOf();
  t.equal(await leftOf(key), 120);
  t.match((await app.call('GET', '/llms.txt')).body, /predictions.{0,20}120/);
  const few = await startApp(t, { roles: ['api'], env: { LIMIT_PREDICTIONS: '3' } });
  const human = await makeHuman(few);
  const { body } = await few.call('POST', batch_path, {
    token: human.token,
    body: { agents: [{ name: 'Few', model: 'm' }] },
  });
  const ids = await Promise.all([1, 2, 3, 4].map(() => makeOpenQuestion(few)));
  const predictions = ids.map((question_id, n) => ({ ...itemsOf(n, 1)[0], question_id }));
  const answer = await few.call('POST', '/api/predictions/batch', {
    key: body.results[0].result.api_key,
    body: { predictions },
  });
  t.match(answer.body, { placed: 3, refused: 1 });
  t.equal(codesOf(answer)[3], 'RATE_LIMITED');
});
