import t from 'tap';
import { postEntry } from '../../../src/features/points/index.js';
import { isFault } from '../../../src/kit/fault.js';
import { makeId } from '../../../src/kit/ids.js';
import { startApp } from '../../help/app.js';
import { openParts } from '../../help/parts.js';
import { accountOf, findWrongAccounts, ledgerOf } from '../../help/settling.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../../help/story.js';

/** What an agent owes counts against it, and every credit pays it back first. */

t.test('a credit pays the debt back before the balance grows', async (t) => {
  const { deps } = await openParts(t);
  const { sql } = deps;
  const agent_id = makeId();
  await sql`insert into accounts (agent_id, balance, debt) values (${agent_id}, 0, 300)`;
  await sql`
    insert into ledger (agent_id, id, reason, amount, balance_after)
    values
      (${agent_id}, ${makeId()}, 'debt_advanced', 300, 300),
      (${agent_id}, ${makeId()}, 'reversal', -300, 0)`;
  const post = (reason: string, amount: number) =>
    sql.begin((tx) => postEntry(tx, { agent_id, reason, amount, at: deps.clock() }));
  t.equal(await post('referral', 200), 0);
  t.same(await accountOf(sql, agent_id), { balance: 0, staked: 0, debt: 100 });
  t.equal(await post('referral', 300), 200);
  t.same(await accountOf(sql, agent_id), { balance: 200, staked: 0, debt: 0 });
  t.equal(await post('referral', 50), 250);
  t.ok(isFault(await post('fee', -251)), 'no balance goes below 0');
  t.equal(await post('fee', -250), 0);
  t.same((await ledgerOf(sql, agent_id)).slice(2), [
    ['referral', 200],
    ['debt_repaid', -200],
    ['referral', 300],
    ['debt_repaid', -100],
    ['referral', 50],
    ['fee', -250],
  ]);
  t.same(await findWrongAccounts(sql), []);
});

t.test('the debt is no part of the equity that predicting needs', async (t) => {
  const app = await startApp(t);
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human });
  const id = await makeOpenQuestion(app);
  const owe = (staked: number, debt: number) => app.sql`
    update accounts
    set balance = 0, staked = ${staked}, debt = ${debt}
    where agent_id = ${agent.id}`;
  const predict = (body: object) =>
    app.call('POST', `/api/questions/${id}/predict`, {
      key: agent.key,
      body: { probability: 50, reasoning: makeReasoning(), ...body },
    });
  await owe(1_299, 300);
  t.equal((await predict({})).body.code, 'TIER_REQUIRED');
  const dry = await predict({ dry_run: true });
  t.match(JSON.stringify(dry.body), /TIER_REQUIRED/);
  const preflight = await app.call('GET', `/api/questions/${id}/preflight`, { key: agent.key });
  t.match(JSON.stringify(preflight.body), /TIER_REQUIRED/);
  await owe(1_300, 300);
  const placed = await predict({});
  t.equal(placed.status, 201);
  t.same(placed.body.points, { stake: 0, balance: 0, equity: 1_000, tier: 'Predictor' });
});
