import { createHash, createHmac } from 'node:crypto';
import { agentId, humanId, questionId } from '../../bench/env/seed.js';
import { makeReasoning } from '../../bench/load/predict-texts.js';
import type { Sql } from '../../src/db/client.js';
import { applyMigrations, migrate, readMigrations } from '../../src/db/migrate.js';
import { makeApiKey } from '../../src/features/accounts/rules.js';
import { createSealer } from '../../src/features/webhooks/signing.js';
import { findDifferences } from '../../src/tools/verify.js';
import { secret_key, startApp } from '../help/app.js';
import { openAdmin } from '../help/own-stores.js';
import { openParts } from '../help/parts.js';
import { startReceiver } from '../help/receiver.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { untilNone } from '../help/until.js';

/**
 * A database of the oldest schema that has everything that people keep: accounts, questions,
 * forecasts, points, comments, votes, disputes and webhooks are all there from migration 12 on. It
 * is filled as the program of that schema filled it, upgraded as a start does, and read by REST.
 * No version was released before 0.1.0, so that there is no release to begin with.
 */

const oldest = 12;
const [opened, resolved] = [0, 1] as const;
const agents = 3;
const keys = Array.from({ length: agents }, makeApiKey);
const numbered = (family: string, n: number): string =>
  `01900000-0000-7000-${family}-${n.toString(16).padStart(12, '0')}`;
const predictionId = (question: number, agent: number): string =>
  numbered('8004', question * 16 + agent);
const commentId = (n: number): string => numbered('8005', n);
const hook_id = numbered('8006', 1);
const hook_secret = '0123456789abcdef'.repeat(4);
const text = 'The base rate of such events over the last decade is close to a third. '.repeat(4);

const addPeople = async (sql: Sql): Promise<void> => {
  for (const [n, key] of keys.entries()) {
    const digest = createHash('sha256').update(key).digest('hex');
    await sql`
      insert into humans (id, email, email_key, password_hash, email_verified_at)
      values (${humanId(n)}, ${`p${n}@people.dev`}, ${`p${n}@people.dev`}, 'not-a-hash', now())`;
    await sql`
      insert into agents (
        id, name, name_key, model, model_family, persona_archetype, risk_profile, roles,
        referral_code, owner_id, linked_at, key_digest
      )
      values (
        ${agentId(n)}, ${`Older agent ${n}`}, ${`older agent ${n}`}, 'gpt-5', 'gpt', 'data_driven',
        'moderate', '{predictor}', ${`older${n}`}, ${humanId(n)}, now(), decode(${digest}, 'hex')
      )`;
    await sql`insert into accounts (agent_id, balance) values (${agentId(n)}, 0)`;
    await post(sql, n, 'registration', 5_000);
    await sql`insert into standing_changes (agent_id) values (${agentId(n)})`;
  }
};

/** An entry in the ledger, and the balance and the stake that follow from it. */
const post = async (
  sql: Sql,
  ...[agent, reason, amount, question]: [number, string, number, number?]
): Promise<void> => {
  const subject_id = question === undefined ? null : predictionId(question, agent);
  await sql`
    with moved as (
      update accounts
      set
        balance = balance + ${amount},
        staked = staked - case when ${reason} like 'stake%' then ${amount} else 0 end
      where agent_id = ${agentId(agent)}
      returning balance
    )
    insert into ledger (agent_id, id, reason, amount, balance_after, subject_id, question_id)
    select
      ${agentId(agent)}, gen_random_uuid(), ${reason}, ${amount}, balance, ${subject_id}::uuid,
      ${question === undefined ? null : questionId(question)}::uuid
    from moved`;
};

const addQuestion = async (sql: Sql, question: number): Promise<void> => {
  const is_over = question === resolved;
  await sql`
    insert into questions (
      id, question, category, subcategory, question_type, status, timeframe, opens_at, closes_at,
      resolution_date, published_at, closed_at, resolved_at, outcome, revision
    )
    select
      ${questionId(question)}, ${`Will series ${question} end the year above its median?`},
      'technology', 'data', 'binary', ${is_over ? 'resolved' : 'open'}, 'long', opened, closes,
      closes + interval '1 hour', opened, case when over then closes end,
      case when over then now() end, case when over then true end, over::integer
    from (
      select
        ${is_over}::boolean as over,
        now() - interval '9 days' as opened,
        now() + interval '1 day' * ${is_over ? -2 : 60}::integer as closes
    ) as times`;
  await sql`insert into question_counts (question_id) values (${questionId(question)})`;
};

const addEvent = async (
  sql: Sql,
  { event, id, question, agent }: { event: string; id: string; question: number; agent: number },
): Promise<void> => {
  const place = { question_id: questionId(question), agent_id: agentId(agent) };
  const body = JSON.stringify({
    id,
    event,
    created_at: new Date().toISOString(),
    data: { ...place, prediction_id: predictionId(question, agent), confidence: 70 },
  });
  await sql`
    with head as (update log_head set "offset" = "offset" + 1 returning "offset")
    insert into events (
      "offset", recorded_on, recorded_at, id, event, question_id, agent_id, owner_id, category,
      subcategory, body
    )
    select
      "offset", current_date, now(), ${id}, ${event}, ${place.question_id}, ${place.agent_id},
      ${humanId(agent)}, 'technology', 'data', ${body}
    from head`;
};

const addPrediction = async (sql: Sql, question: number, agent: number): Promise<void> => {
  const id = predictionId(question, agent);
  await sql`
    with next as (
      update question_seqs set seq = seq + 1 where question_id = ${questionId(question)}
      returning seq
    )
    insert into predictions (
      question_id, agent_id, id, prediction, probability, confidence, reasoning, citations, stake,
      model_family, owner_id, body_digest, event_id, created_at, seq
    )
    select
      ${questionId(question)}, ${agentId(agent)}, ${id}, true, 70, 70, ${text},
      '{https://a.example/}', 10, 'gpt', ${humanId(agent)}, sha256(${id}::text::bytea), ${id},
      now() - interval '5 days', seq
    from next`;
  await sql`
    update accounts set prediction_count = prediction_count + 1 where agent_id = ${agentId(agent)}`;
  await post(sql, agent, 'stake', -10, question);
  await addEvent(sql, { event: 'prediction.placed', id, question, agent });
  await sql`
    update question_counts set
      prediction_count = prediction_count + 1,
      yes_count = yes_count + 1,
      prediction_offset = (select "offset" from log_head)
    where question_id = ${questionId(question)}`;
};

const settle = async (sql: Sql, agent: number): Promise<void> => {
  await post(sql, agent, 'stake_returned', 10, resolved);
  await post(sql, agent, 'settlement', 64, resolved);
  await sql`
    insert into scores (
      question_id, agent_id, prediction_id, revision, category, question_type, n_options, forecast,
      stated, correct, hit, brier, log_score, baseline, relative, net, resolved_at, settled_at
    )
    select
      question_id, agent_id, id, 1, 'technology', 'binary', 2, 0.7, 70, true, true, 0.09, ln(0.7),
      100 * (1 + log(2, 0.7)), 0, 64, now(), now()
    from predictions
    where question_id = ${questionId(resolved)} and agent_id = ${agentId(agent)}`;
};

/** A comment of the first agent with a reply, and a vote on each and on a forecast. */
const addDiscussion = async (sql: Sql): Promise<void> => {
  for (const [n, parent] of [null, 0].entries()) {
    const root = commentId(0);
    await sql`
      insert into comments (
        question_id, id, agent_id, parent_id, root_id, depth, slot, content, upvotes, replies,
        body_digest, event_id, created_at
      )
      values (
        ${questionId(opened)}, ${commentId(n)}, ${agentId(n)}, ${parent === null ? null : root},
        ${root}, ${n}, ${parent === null ? 1 : null}, ${text}, 1, ${1 - n},
        sha256(${commentId(n)}::text::bytea), ${commentId(n)}, now()
      )`;
    await addEvent(sql, { event: 'comment.created', id: commentId(n), question: opened, agent: n });
  }
  await sql`
    update question_counts set comment_count = 2 where question_id = ${questionId(opened)}`;
  await sql`
    insert into votes (question_id, subject_id, agent_id, kind, author_id, value, created_at)
    values
      (${questionId(opened)}, ${commentId(0)}, ${agentId(1)}, 'comment', ${agentId(0)}, 1, now()),
      (${questionId(opened)}, ${commentId(1)}, ${agentId(0)}, 'comment', ${agentId(1)}, 1, now()),
      (${questionId(opened)}, ${predictionId(opened, 0)}, ${agentId(2)}, 'prediction', ${agentId(0)},
        -1, now())`;
  await sql`update predictions set downvotes = 1 where id = ${predictionId(opened, 0)}`;
};

const addWebhook = async (sql: Sql, url: string): Promise<void> => {
  const sealed = createSealer(secret_key).seal(hook_id, hook_secret).toString('hex');
  await sql`
    insert into webhooks (id, owner_kind, owner_id, slot, url, events, secret_sealed)
    values (
      ${hook_id}, 'agent', ${agentId(0)}, 1, ${url}, '{prediction.placed}', decode(${sealed}, 'hex')
    )`;
  await sql`
    insert into deliveries (
      webhook_id, event_id, id, event_offset, recorded_on, state, attempts, next_at, delivered_at
    )
    select
      ${hook_id}, id, delivery_id(${hook_id}, id), "offset", recorded_on, 'delivered', 1, now(), now()
    from events
    where event = 'prediction.placed'`;
  await sql`
    insert into attempts (webhook_id, event_id, attempt, at, latency_ms, status)
    select webhook_id, event_id, 1, now(), 20, 204 from deliveries`;
};

const fill = async (sql: Sql, hook_url: string): Promise<void> => {
  await addPeople(sql);
  for (const question of [opened, resolved]) await addQuestion(sql, question);
  for (const agent of [0, 1]) {
    await addPrediction(sql, opened, agent);
    await addPrediction(sql, resolved, agent);
    await settle(sql, agent);
  }
  await sql`
    insert into resolutions (
      question_id, revision, kind, outcome, decided_by, state, total, done, forecasters, log_sum,
      created_at, finished_at
    )
    values (
      ${questionId(resolved)}, 1, 'resolve', true, 'admin', 'done', 2, 2, 2, 2 * ln(0.7), now(), now()
    )`;
  await sql`
    insert into disputes (
      question_id, id, agent_id, revision, reason, evidence_urls, status, created_at
    )
    values (
      ${questionId(resolved)}, ${numbered('8007', 0)}, ${agentId(1)}, 1, ${text}, '{}', 'open', now()
    )`;
  await addDiscussion(sql);
  await addWebhook(sql, hook_url);
};

/** Rows of every table, those of a partitioned one together. */
const countRows = async (sql: Sql): Promise<ReadonlyMap<string, number>> => {
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
    order by relname`;
  const counts = new Map<string, number>();
  for (const { name } of tables) {
    const [row] = await sql.unsafe<{ count: number }[]>(
      `select count(*)::integer as count from ${name}`,
    );
    counts.set(name, row?.count ?? 0);
  }
  return counts;
};

t.test('the oldest schema with data becomes the newest, and everything is there', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const stores = await openStores(t);
  const older = openAdmin(stores.database_url);
  t.teardown(() => older.end());
  await older.unsafe('drop schema public cascade; create schema public');
  await older.begin((tx) => applyMigrations(tx, readMigrations().slice(0, oldest)));
  await fill(older, receiver.url('/older'));
  const before = await countRows(older);
  await migrate(stores.database_url);
  const after = await countRows(older);
  t.same(
    [...before].filter(([name, count]) => after.get(name) !== count).map(([name]) => name),
    // What was staked is given back, and the board of debaters is in Redis.
    ['debater_board', 'ledger', 'migrations'],
    'every other table has its rows',
  );

  const app = await startApp(t, {
    stores,
    env: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', WEBHOOK_CA_FILE: receiver.ca_file },
  });
  const has = async (path: string, wanted: object): Promise<void> => {
    const { body } = await app.call('GET', path, { key: keys[0] as string });
    t.match(body, wanted, path);
  };
  const of_open = `/api/questions/${questionId(opened)}`;
  const points = 5_064;
  await has('/api/me', { user: { name: 'Older agent 0', points, owner_linked: true } });
  await has(`/api/agents/${agentId(1)}`, { agent: { points }, performance: { resolved: 1 } });
  await has('/api/agents', { total: agents });
  await has('/api/questions', { total: 2 });
  await has(`/api/questions/${questionId(resolved)}`, { question: { outcome: true } });
  await has(`${of_open}/predictions`, {
    total: 2,
    predictions: [{ downvotes: 0 }, { probability: 70, downvotes: 1, reasoning: text }],
  });
  await has(`${of_open}/comments`, { total: 2, comments: [{ upvotes: 1, replies: 1 }] });
  await has('/api/webhooks', [{ id: hook_id, active: true }]);
  await has(`/api/webhooks/${hook_id}/deliveries`, {
    total: 4,
    deliveries: [{ status: 'delivered', last_attempt: { status: 204 } }],
  });
  await has('/api/events?after=0', { events: { length: 6 } });

  const placed = await app.call('POST', `${of_open}/predict`, {
    key: keys[2] as string,
    body: { probability: 60, reasoning: makeReasoning(1) },
  });
  t.equal(placed.status, 201, 'the program goes on with it');
  const [call] = await receiver.waitFor('/older', 1);
  const digest = createHmac('sha256', hook_secret)
    .update(call?.body ?? '')
    .digest('hex');
  t.equal(call?.headers['x-svc-signature'], `sha256=${digest}`, 'signed by the older secret');
  const { deps } = await openParts(t, { stores });
  const parts = { sql: deps.sql, redis: deps.redis, prefix: stores.redis_prefix };
  t.same(await untilNone(() => findDifferences(parts), 20_000), [], 'verify finds nothing');
});
