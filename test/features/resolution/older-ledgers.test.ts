import { agentId, questionId, seed } from '../../../bench/env/seed.js';
import type { Sql } from '../../../src/db/client.js';
import { makeApiKey } from '../../../src/features/accounts/rules.js';
import { evenRestDistribution } from '../../../src/features/points/rules.js';
import { scoreForecast } from '../../../src/features/points/score-rules.js';
import { makeId } from '../../../src/kit/ids.js';
import { findBy } from '../../../src/tools/verify/parts.js';
import { checkPayouts, points_queries } from '../../../src/tools/verify/record-store.js';
import { startApp } from '../../help/app.js';
import { openAdmin } from '../../help/own-stores.js';
import { decideAndSettle, ledgerOf, untilSettled } from '../../help/settling.js';
import { openStores } from '../../help/stores.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/**
 * Ledgers with stakes and loans, which agents can no longer have, and decisions under versions 1
 * and 2 of the points rules. Some decisions were half settled when version 3 was introduced.
 */

const options = ['Rises', 'Stays', 'Falls', 'Nobody can tell'];
const right = ['Rises', 'Falls'];
const [is_open, half_settled, half_voided, settled, half_multi] = [0, 1, 2, 3, 4] as const;
const multi: readonly number[] = [settled, half_multi];
const isMulti = (question: number): boolean => multi.includes(question);
const agents = 6;

const predictionId = (agent: number, question: number): string =>
  `01900000-0000-7000-8004-${(question * 256 + agent).toString(16).padStart(12, '0')}`;

/** A forecast of 70 %, with a stake that was returned later. */
const place = async (sql: Sql, agent: number, question: number, stake: number): Promise<void> => {
  const id = predictionId(agent, question);
  const is_multi = isMulti(question);
  await sql`
    insert into predictions (
      question_id, agent_id, id, prediction, probability, confidence, selected_option, reasoning,
      citations, model_family, body_digest, event_id, revision
    )
    values (
      ${questionId(question)}, ${agentId(agent)}, ${id}, ${is_multi ? null : true},
      ${is_multi ? null : 7_000}, 7000, ${is_multi ? 0 : null}, repeat('x', 200), '{}', 'gpt', '',
      ${id}, 0
    )`;
  await post(sql, agent, question, 'stake', -stake);
  await post(sql, agent, question, 'stake_returned', stake);
};

const post = async (
  sql: Sql,
  ...[agent, question, reason, amount]: [number, number | null, string, number]
): Promise<void> => {
  await sql`
    with moved as (
      update accounts set balance = balance + ${amount}
      where agent_id = ${agentId(agent)}
      returning balance
    )
    insert into ledger (agent_id, id, reason, amount, balance_after, subject_id, question_id)
    select
      ${agentId(agent)}, ${makeId()}::uuid, ${reason}, ${amount}, balance,
      ${question === null ? null : predictionId(agent, question)}::uuid,
      ${question === null ? null : questionId(question)}::uuid
    from moved`;
};

const settle = async (sql: Sql, agent: number, question: number, net: number): Promise<void> => {
  await post(sql, agent, question, 'settlement', net);
  const is_multi = isMulti(question);
  const n = is_multi ? 4 : 2;
  const distribution = evenRestDistribution({ options: n, selected: 0, confidence: 7_000 });
  const score = scoreForecast({ distribution, correct: is_multi ? [0, 2] : [0], selected: 0 });
  await sql`
    insert into scores (
      question_id, agent_id, prediction_id, revision, category, question_type, n_options, forecast,
      stated, correct, hit, brier, log_score, baseline, relative, net, resolved_at, settled_at
    )
    values (
      ${questionId(question)}, ${agentId(agent)}, ${predictionId(agent, question)}, 1, 'technology',
      ${is_multi ? 'multi' : 'binary'}, ${n}, ${score.forecast}, 7000, ${score.correct}, ${score.hit},
      ${score.brier}, ${score.log_score}, ${score.baseline}, null, ${net}, now(), now()
    )`;
};

/** Decides the question. `cursor` is the last agent that was settled, or null if all three were. */
const decide = async (
  sql: Sql,
  ...[question, cursor, kind = 'resolve']: [number, number | null, ('resolve' | 'void')?]
): Promise<void> => {
  const is_multi = isMulti(question);
  const now = new Date();
  const outcome = kind === 'void' || is_multi ? null : true;
  const correct = is_multi ? right : null;
  await sql`
    update questions
    set
      status = ${kind === 'void' ? 'voided' : 'resolved'}, outcome = ${outcome},
      correct_options = ${correct}::text[], revision = 1, closed_at = now(),
      resolved_at = ${kind === 'void' ? null : now}, voided_at = ${kind === 'void' ? now : null}
    where id = ${questionId(question)}`;
  await sql`
    insert into resolutions (
      question_id, revision, kind, outcome, correct_options, decided_by, points_rule, state,
      cursor_agent, total, done, created_at, finished_at
    )
    values (
      ${questionId(question)}, 1, ${kind}, ${outcome}, ${correct}::text[], 'admin',
      ${is_multi ? 1 : 2}, ${cursor === null ? 'rescoring' : 'running'},
      ${cursor === null ? null : agentId(cursor)}, 3, ${cursor === null ? 0 : cursor + 1}, now(),
      ${cursor === null ? now : null}
    )`;
};

const [stake_of_yes, stake_of_option] = [96, 150];
/** Points for 70 % on YES, and for 70 % on one of four options if two are right (divided by U). */
const [net_of_yes, older_net] = [64, 12];

const makeOlder = async (sql: Sql): Promise<void> => {
  await seed(sql, {
    keys: Array.from({ length: agents }, () => makeApiKey()),
    questions: 5,
    optionsOf: (n) => (isMulti(n) ? options : []),
  });
  await sql`update accounts set balance = 5000`;
  await sql`update ledger set amount = 5000, balance_after = 5000`;
  for (const agent of [0, 1, 2]) {
    for (const question of [is_open, half_settled, half_voided]) {
      await place(sql, agent, question, stake_of_yes);
    }
    for (const question of multi) await place(sql, agent, question, stake_of_option);
  }
  await settle(sql, 0, half_settled, net_of_yes);
  await decide(sql, half_settled, 0);
  await decide(sql, half_voided, 1, 'void');
  for (const agent of [0, 1, 2]) await settle(sql, agent, settled, older_net);
  await decide(sql, settled, null);
  await settle(sql, 0, half_multi, older_net);
  await decide(sql, half_multi, 0);
  // A reversal took more points than the agents had. They got a loan, which was repaid later.
  for (const agent of [2, 3]) {
    const [account] = await sql<{ balance: number }[]>`
      select balance from accounts where agent_id = ${agentId(agent)}`;
    await post(sql, agent, null, 'debt_advanced', 300);
    await post(sql, agent, null, 'reversal', -(account?.balance ?? 0) - 300);
    await post(sql, agent, null, 'debt_repaid', -300);
  }
};

const findWrong = (sql: Sql): Promise<readonly string[]> =>
  sql.begin(async (tx) => {
    return [...(await checkPayouts(tx)), ...(await findBy(tx, points_queries, ''))];
  });

const readSums = (sql: Sql) => sql`
  select a.agent_id, a.balance, l.total
  from accounts a
  join (select agent_id, sum(amount)::integer as total from ledger group by agent_id) l
    using (agent_id)
  where a.balance <> l.total`;

t.test('what was half settled by an older rule is settled by it', async (t) => {
  const stores = await openStores(t);
  const sql = openAdmin(stores.database_url);
  t.teardown(() => sql.end());
  await makeOlder(sql);
  t.same([...(await readSums(sql))], []);
  t.same(await findWrong(sql), []);

  const app = await startApp(t, { stores, roles: ['api', 'timer'] });
  for (const question of [half_settled, half_voided, half_multi]) {
    await untilSettled(app.sql, questionId(question));
  }
  const scoredAnew = () => app.sql`
    select kind, name, n_agents from group_scores where question_id = ${questionId(settled)}
    order by kind, name`;
  await until('the older decision is scored anew', async () => (await scoredAnew()).length > 0);
  t.match(await scoredAnew(), [{ kind: 'crowd', n_agents: 3 }, { kind: 'even' }, {}, {}, {}, {}]);
  t.same(await findWrong(app.sql), []);
  const paid = await app.sql`
    select p.question_id, array_agg(l.amount order by l.agent_id) as nets
    from ledger l
    join predictions p on p.id = l.subject_id
    where l.reason = 'settlement'
    group by p.question_id
    order by p.question_id`;
  const nets = [
    [half_settled, 64],
    [settled, 12],
    [half_multi, 12],
  ] as const;
  t.same(
    [...paid],
    nets.map(([n, net]) => ({ question_id: questionId(n), nets: [net, net, net] })),
    'everybody once, and all of a question by the rule of its decision',
  );

  const path = `/api/predictions/${predictionId(0, settled)}/receipt`;
  const receiptOf = async () => (await app.call('GET', path)).body.receipt;
  t.match(await receiptOf(), {
    formula: 'net = round(100 * weight * (1 - B / U))',
    result: { net: older_net },
    entries_total: older_net,
  });
  await decideAndSettle(app, questionId(settled), 'resolve', {
    correct_options: right,
    resolution_note: 'Looked at again.',
  });
  const entries = await ledgerOf(app.sql, agentId(0));
  const about = entries.filter(([reason]) => reason !== 'registration').slice(-2);
  t.same(about, [
    ['reversal', -older_net],
    ['settlement', 4],
  ]);
  t.match(await receiptOf(), {
    formula: /U - B.* B weighted by time/,
    result: { net: 4 },
    entries_total: 4,
  });
  t.same(await findWrong(app.sql), []);
  t.same([...(await readSums(app.sql))], []);
});
