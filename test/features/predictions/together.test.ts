import { type Test, t } from 'tap';
import { type Answered, startApp } from '../../help/app.js';
import {
  type Ask,
  bodyOf,
  countStored,
  openQuestions,
  predict,
  readEntries,
} from '../../help/own-predictions.js';
import { openCalls } from '../../help/socket-calls.js';
import { openStores } from '../../help/stores.js';
import {
  type Agent,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
  makeReasoning,
} from '../../help/story.js';
import { untilLocked } from '../../help/until-locked.js';

/** Many predictions of one agent at once: stored together, judged as one after the other. */

const stores = await openStores(t);
const start = () => startApp(t, { stores, roles: ['api'] });
const apps = [await start(), await start()] as const;
const [app] = apps;
const human = await makeHuman(app);
const questions = (count: number) => openQuestions(app, human, count);

const outcome = ({ status, body }: Answered): string => body.code ?? String(status);

/**
 * The asks over a socket, which keeps their order, behind a first one, while that is held up: so
 * all are one batch.
 */
const predictTogether = async (
  t: Pick<Test, 'teardown'>,
  agent: Agent,
  asks: readonly Ask[],
): Promise<Answered[]> => {
  const [first_id, other_id] = await Promise.all([makeOpenQuestion(app), makeOpenQuestion(app)]);
  const socket = await openCalls(t, app.port, { 'x-api-key': agent.key });
  const answers = await app.sql.begin(async (tx) => {
    await tx`select from accounts where agent_id = ${agent.id} for update`;
    const first = predict(app, agent, { id: first_id, confidence: 50 });
    await untilLocked('the first one waits for the account', tx);
    const others = asks.map((ask) =>
      socket.call('POST', `/api/questions/${ask.id}/predict`, {
        headers:
          ask.idempotency_key === undefined ? {} : { 'idempotency-key': ask.idempotency_key },
        body: bodyOf(ask),
      }),
    );
    // What is behind them on the socket waits for nothing; once it is answered, all of them wait.
    const body = { ...bodyOf({ id: other_id }), dry_run: true };
    const dry = await socket.call('POST', `/api/questions/${other_id}/predict`, { body });
    if (dry.status !== 200) throw new Error(JSON.stringify(dry));
    return () => Promise.all([first, ...others]);
  });
  const [first, ...others] = await answers();
  if (first?.status !== 201) throw new Error(JSON.stringify(first));
  return others;
};

t.test('they are one transaction, and each takes its stake behind the one before it', async (t) => {
  const agent = await makeAgent(app, { human });
  await app.sql`update accounts set balance = 5000, staked = 0 where agent_id = ${agent.id}`;
  const ids = await questions(20);
  const answers = await predictTogether(
    t,
    agent,
    ids.map((id, n) => ({ id, confidence: 51 + n })),
  );
  t.same(answers.map(outcome), Array(20).fill('201'));
  const { rows, account } = await readEntries(app, agent);
  let balance = 5_000;
  for (const { amount, balance_after } of rows) {
    balance += amount;
    t.equal(balance_after, balance, 'an entry says what the one before it left');
  }
  t.match(account, { balance, staked: 5_000 - balance, count: 21 });
  t.same(
    answers.map(({ body }) => body.points.balance).sort((a, b) => b - a),
    rows.slice(1).map(({ balance_after }) => balance_after),
    'an answer says the balance of its entry',
  );
  for (const { body } of answers) {
    t.equal(body.points.equity, 5_000, 'a stake leaves equity as it is');
  }
  const stored = await countStored(app, agent);
  t.same(stored, { transactions: 2, predictions: 21 }, 'the one that was held up, and the others');
  const events = await app.sql`select from outbox where agent_id = ${agent.id}`;
  t.equal(events.length, 21, 'each with its event');
});

t.test('points that do not suffice for one suffice for those behind it', async (t) => {
  const agent = await makeAgent(app, { human });
  await app.sql`update accounts set balance = 700, staked = 5000 where agent_id = ${agent.id}`;
  const ids = await questions(8);
  // Stakes of 300, 300, 300, 21, 300, 44, 300, 0.
  const confidences = [100, 100, 100, 55, 100, 60, 100, 50];
  const answers = await predictTogether(
    t,
    agent,
    ids.map((id, n) => ({ id, confidence: confidences[n]! })),
  );
  const poor = 'INSUFFICIENT_POINTS';
  t.same(answers.map(outcome), ['201', '201', poor, '201', poor, '201', poor, '201']);
  t.same(
    answers.map(({ status, body }) => (status === 201 ? body.points.balance : null)),
    [400, 100, null, 79, null, 35, null, 35],
  );
  t.same(
    answers.filter(({ status }) => status !== 201).map(({ body }) => body.balance),
    [100, 79, 35],
    'a refusal says what was left of the balance then',
  );
  const { rows, account } = await readEntries(app, agent);
  t.same(
    rows.map(({ balance_after }) => balance_after),
    [700, 400, 100, 79, 35, 35],
  );
  t.match(account, { balance: 35, staked: 5_665, count: 6 });
});

t.test('what is refused for itself refuses none behind it', async (t) => {
  const agent = await makeAgent(app, { human });
  await app.sql`update accounts set balance = 5000, staked = 0 where agent_id = ${agent.id}`;
  const [a, b, c, d, closing] = (await questions(5)) as [string, string, string, string, string];
  const used = makeReasoning('used');
  const [x = '', y = ''] = used.match(/https:\/\/\S*[^\s.]/g) ?? [];
  const other = makeReasoning('other');
  const [u = '', v = ''] = other.match(/https:\/\/\S*[^\s.]/g) ?? [];
  await predict(app, agent, { id: d });
  await app.sql`update questions set closes_at = now() where id = ${closing}`;
  const answers = await predictTogether(t, agent, [
    { id: a, reasoning: used },
    { id: closing },
    { id: d },
    // Only what is before it in the batch cites these two.
    { id: b, reasoning: other.replace(u, x).replace(v, y) },
    { id: a },
    { id: c },
  ]);
  t.same(answers.map(outcome), [
    '201',
    'QUESTION_NOT_OPEN',
    'DUPLICATE_PREDICTION',
    'CITATIONS_REUSED',
    'DUPLICATE_PREDICTION',
    '201',
  ]);
  const { account } = await readEntries(app, agent);
  t.equal(account.count, 4);
  t.equal(account.balance + account.staked, 5_000);
  t.equal(account.staked, 3 * 21, 'nobody pays for what was refused');
});

t.test('without points for the others, all of them are told so', async (t) => {
  const agent = await makeAgent(app, { human });
  await app.sql`update accounts set balance = 400, staked = 5000 where agent_id = ${agent.id}`;
  const ids = await questions(40);
  const answers = await predictTogether(
    t,
    agent,
    ids.map((id) => ({ id, confidence: 100 })),
  );
  t.same(answers.map(outcome), ['201', ...Array(39).fill('INSUFFICIENT_POINTS')]);
  t.match((await readEntries(app, agent)).account, { balance: 100, staked: 5_300, count: 2 });
});

t.test('stakes that do not fit hold up none that do', async (t) => {
  const agent = await makeAgent(app, { human });
  await app.sql`update accounts set balance = 600, staked = 5000 where agent_id = ${agent.id}`;
  const confidences = [100, 100, 95, 100, 90, 95, 80, 90, 70, 80, 60, 70, 55, 60, 52, 55, 51, 52];
  const ids = await questions(confidences.length);
  const answers = await predictTogether(
    t,
    agent,
    ids.map((id, n) => ({ id, confidence: confidences[n]! })),
  );
  let balance = 600;
  const expected = confidences.map((confidence) => {
    const stake = Math.max(0, Math.round(0.04 * confidence ** 2) - 100);
    if (stake > balance) return 'INSUFFICIENT_POINTS';
    balance -= stake;
    return '201';
  });
  t.same(answers.map(outcome), expected);
  t.match((await readEntries(app, agent)).account, { balance, staked: 5_600 - balance });
  t.equal((await countStored(app, agent)).transactions, 2, 'and all are judged at once');
});

t.test('through two processes at once nothing is lost or paid twice', async (t) => {
  for (let round = 0; round < 4; round += 1) {
    const agent = await makeAgent(app, { human });
    await app.sql`update accounts set balance = 5000, staked = 0 where agent_id = ${agent.id}`;
    const ids = await questions(16);
    // Half of the questions are asked through both: one of two is a duplicate.
    const answers = await Promise.all(
      ids.flatMap((id, n) =>
        (n % 2 === 0 ? [0, 1] : [n % 4 === 1 ? 0 : 1]).map((at) =>
          predict(apps[at]!, agent, { id }),
        ),
      ),
    );
    const counts = new Map<string, number>();
    for (const one of answers) counts.set(outcome(one), (counts.get(outcome(one)) ?? 0) + 1);
    t.same(Object.fromEntries(counts), { 201: 16, DUPLICATE_PREDICTION: 8 });
    const { rows, account } = await readEntries(app, agent);
    t.equal(rows.length, 16);
    t.match(account, { balance: 5_000 - 16 * 21, staked: 16 * 21, count: 16 });
    t.equal(new Set(rows.map(({ balance_after }) => balance_after)).size, 16, 'a chain, no fork');
  }
});

t.test('a call with many predictions stores some at a time, in their order', async (t) => {
  const agent = await makeAgent(app, { human });
  await app.sql`update accounts set balance = 700, staked = 5000 where agent_id = ${agent.id}`;
  const ids = await questions(32);
  const items = ids.map((id, n) => ({
    question_id: ids[n % 8 === 3 ? n - 1 : n]!,
    ...bodyOf({ id, confidence: n % 2 === 0 ? 60 : 75 }),
  }));
  const { status, body } = await app.call('POST', '/api/predictions/batch', {
    key: agent.key,
    body: { predictions: items },
  });
  t.equal(status, 200);
  let balance = 700;
  const placed = new Set<string>();
  const expected = items.map((item) => {
    if (placed.has(item.question_id)) return 'DUPLICATE_PREDICTION';
    const stake = item.confidence === 60 ? 44 : 125;
    if (stake > balance) return 'INSUFFICIENT_POINTS';
    balance -= stake;
    placed.add(item.question_id);
    return balance;
  });
  interface Result {
    readonly code?: string;
    readonly result?: { readonly points: { readonly balance: number } };
  }
  const results = body.results as readonly Result[];
  t.same(
    results.map(({ code, result }) => code ?? result?.points.balance),
    expected,
    'as if they had come one after the other',
  );
  t.equal((await readEntries(app, agent)).account.balance, balance);
  const { transactions, predictions } = await countStored(app, agent);
  t.ok(transactions < predictions / 2, `${predictions} in ${transactions} transactions`);
});

t.test('calls with a key keep their places among those without', async (t) => {
  const agent = await makeAgent(app, { human });
  await app.sql`update accounts set balance = 5000, staked = 0 where agent_id = ${agent.id}`;
  const ids = await questions(12);
  const asks = ids.map((id, n) => ({ id, confidence: 60 + n }));
  const answers = await predictTogether(
    t,
    agent,
    asks.map((ask, n) => (n % 3 === 0 ? { ...ask, idempotency_key: `place-${ask.id}` } : ask)),
  );
  t.same(answers.map(outcome), Array(12).fill('201'));
  const { rows } = await readEntries(app, agent);
  let balance = 5_000;
  for (const { amount, balance_after } of rows) {
    balance += amount;
    t.equal(balance_after, balance, 'in the order of the ids');
  }
});

t.test('in one call nothing overtakes an item that hangs on one before it', async (t) => {
  const agent = await makeAgent(app, { human });
  await app.sql`update accounts set balance = 250, staked = 5000 where agent_id = ${agent.id}`;
  const [first, second] = (await questions(2)) as [string, string];
  const reasoning = makeReasoning();
  const item = (question_id: string, more: Omit<Ask, 'id'>) => ({
    question_id,
    ...bodyOf({ id: question_id, ...more }),
  });
  const { body } = await app.call('POST', '/api/predictions/batch', {
    key: agent.key,
    body: {
      predictions: [
        item(first, { confidence: 100, reasoning }),
        // Like the one before it, which is not stored: known once that has its verdict.
        item(first, { confidence: 80, reasoning }),
        item(second, { confidence: 75 }),
      ],
    },
  });
  t.same(
    body.results.map(({ status, code }: { status: number; code?: string }) => code ?? status),
    ['INSUFFICIENT_POINTS', 201, 'INSUFFICIENT_POINTS'],
  );
});

t.test('who cannot pay for a second one is still told that it is there', async (t) => {
  const agent = await makeAgent(app, { human });
  const [id = ''] = await questions(1);
  const same: Ask = { id, confidence: 60, reasoning: makeReasoning() };
  t.equal(outcome(await predict(app, agent, same)), '201');
  for (const points of ['balance = 0, staked = 5000', 'balance = 0, staked = 44']) {
    await app.sql.unsafe(`update accounts set ${points} where agent_id = '${agent.id}'`);
    const again = await predict(app, agent, same);
    t.equal(again.status, 200, `the first answer, with ${points}`);
    t.equal(again.headers.get('idempotency-replayed'), 'true');
    t.equal(outcome(await predict(app, agent, { id })), 'DUPLICATE_PREDICTION');
  }
});

t.test('an import that stores nothing leaves its question open to predictions', async (t) => {
  const source = { source: 'together', source_id: '1' };
  const id = await makeOpenQuestion(app, source);
  const [early, late] = [await makeAgent(app, { human }), await makeAgent(app, { human })];
  t.equal((await predict(app, early, { id })).status, 201);
  const importing = (path: string, item: object) =>
    app.call('POST', path, { admin: true, body: { items: [item] } });
  await importing('/api/admin/agents/import', { name: 'From elsewhere', model: 'gpt-5' });
  const forecast = { ...source, agent: 'From elsewhere', prediction: true, confidence: 70 };
  for (const status of ['created', 'exists', 'exists']) {
    const { body } = await importing('/api/admin/predictions/import', forecast);
    t.match(body.results, [{ status }]);
  }
  t.equal((await predict(app, late, { id })).status, 201);
});
