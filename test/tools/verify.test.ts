import path from 'node:path';
import type { Test } from 'tap';
import { agentId, questionId, seed } from '../../bench/env/seed.js';
import { makeConfidence, makeReasoning } from '../../bench/load/predict-texts.js';
import type { Sql, Tx } from '../../src/db/client.js';
import { makeApiKey } from '../../src/features/accounts/rules.js';
import { countAll, type saidIn, tallyKey } from '../../src/features/consensus/index.js';
import { readProjected, writeProjected } from '../../src/features/events/index.js';
import { planDeliveries } from '../../src/features/webhooks/index.js';
import { makeId } from '../../src/kit/ids.js';
import { webhook_queries } from '../../src/tools/verify/deliveries-store.js';
import { findBy, type VerifyParts } from '../../src/tools/verify/parts.js';
import { moderation_queries } from '../../src/tools/verify/record-store.js';
import { findDifferences } from '../../src/tools/verify.js';
import { makeContent } from '../features/comments/texts.js';
import { makeWorld } from '../features/webhooks/world.js';
import { type Answered, startApp, type TestApp } from '../help/app.js';
import { openParts } from '../help/parts.js';
import { runTool } from '../help/run-tool.js';
import { closeQuestion, decideAndSettle, makeForecasts } from '../help/settling.js';
import { type Agent, makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

/**
 * A service with predictions on a question that was decided twice and on a voided one. The service
 * is idle and stopped, so that nothing repairs the damage that a test does.
 */
const makeRested = async (): Promise<{ app: TestApp; parts: VerifyParts }> => {
  const app = await startApp(t, { roles: ['api', 'relay', 'timer', 'signer'] });
  const { sql, stores } = app;
  const keys = [makeApiKey(), makeApiKey(), makeApiKey()];
  await seed(sql, { keys, questions: 2 });
  const hook = await app.call('POST', '/api/webhooks', {
    key: keys[0] as string,
    body: { url: 'https://example.org:8443/hook', events: ['prediction.placed'] },
  });
  if (hook.status !== 201) throw new Error(JSON.stringify(hook.body));
  // Makes the webhook so old that every event counts as later.
  await sql`update webhooks set updated_at = updated_at - interval '1 minute'`;
  const questions = await sql<{ id: string }[]>`select id from questions order by id`;
  for (const [n, key] of keys.entries()) {
    for (const [m, { id }] of questions.entries()) {
      const text = 10 * n + m;
      const body = {
        prediction: true,
        confidence: makeConfidence(text),
        reasoning: makeReasoning(text),
      };
      const answer = await app.call('POST', `/api/questions/${id}/predict`, { key, body });
      if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
    }
  }
  const unasked = await app.call('POST', '/api/admin/questions', {
    admin: true,
    body: {
      question: 'Which of three options that nobody predicts on?',
      category: 'technology',
      question_type: 'multi',
      options: ['one', 'two', 'three'],
      closes_at: '2099-01-01T00:00:00Z',
      publish: true,
    },
  });
  if (unasked.status !== 201) throw new Error(JSON.stringify(unasked.body));
  const [first, second] = questions.map(({ id }) => id);
  for (const [id, act, body] of [
    [first, 'close', {}],
    [first, 'resolve', { outcome: true }],
    [first, 'resolve', { outcome: false }],
    [second, 'void', {}],
  ] as const) {
    const { status } = await app.call('POST', `/api/admin/questions/${id}/${act}`, {
      admin: true,
      body,
    });
    if (status >= 300) throw new Error(`${act}: ${status}`);
  }
  await until('all is settled', async () => {
    return (await sql`select from resolutions where state = 'running'`).length === 0;
  });
  const { deps } = await openParts(t, { stores });
  const parts = { sql: deps.sql, redis: deps.redis, prefix: stores.redis_prefix };
  const agree = async (): Promise<boolean> => {
    await deps.sql.begin((tx) => planDeliveries(tx, { first: 1, last: 1_000 }));
    return (await findDifferences(parts)).length === 0;
  };
  await until('nothing differs', agree, 30_000, 200);
  await app.stop();
  return { app, parts };
};

/** The findings after the record has been damaged, in a transaction that is rolled back. */
const lookAfter = async (
  sql: Sql,
  breaking: string,
  look: (tx: Tx) => Promise<readonly string[]>,
): Promise<readonly string[]> => {
  const undo = new Error('undo');
  let found: readonly string[] = [];
  await sql
    .begin(async (tx) => {
      await tx.unsafe(breaking);
      found = await look(tx);
      throw undo;
    })
    .catch((error: unknown) => {
      if (error !== undo) throw error;
    });
  return found;
};

/** A sentence that must be found, and the SQL that causes it. */
type Case = readonly [what: RegExp, breaking: string];

const isFound = (t: Test, what: RegExp, found: readonly string[], breaking = ''): void => {
  const is_there = found.some((line) => what.test(line));
  t.ok(is_there, is_there ? String(what) : `${what} ${breaking} → ${found.join(' | ')}`);
};

/** Checks that verify finds the damage of each case. */
const findsAll = async (t: Test, parts: VerifyParts, cases: readonly Case[]): Promise<void> => {
  const look = (tx: Tx) => {
    // The checks of the record usually begin a transaction. Here they run in the current one.
    const inner = Object.assign((...args: never[]) => (tx as never as CallableFunction)(...args), {
      begin: (_: unknown, work: (inner: Tx) => unknown) => work(tx),
      unsafe: (text: string) => tx.unsafe(text),
    });
    return findDifferences({ ...parts, sql: inner as never });
  };
  for (const [what, breaking] of cases) {
    isFound(t, what, await lookAfter(parts.sql, breaking, look), breaking);
  }
};

const record_cases: readonly Case[] = [
  [/balance .*sum of the ledger/, 'update accounts set balance = balance + 1'],
  [
    /the stakes of prediction .* add up to -5 points/,
    `insert into ledger (agent_id, id, reason, amount, balance_after, subject_id)
    select agent_id, gen_random_uuid(), 'stake', -5, 0, id from predictions limit 1`,
  ],
  [
    /owes 7 points/,
    `insert into ledger (agent_id, id, reason, amount, balance_after)
    select agent_id, gen_random_uuid(), 'debt_advanced', 7, 7 from accounts limit 1`,
  ],
  [/the log has .* and its head is/, 'update log_head set "offset" = "offset" + 1'],
  [/the log has/, 'delete from events where "offset" = 3'],
  [/has no event/, 'delete from events where "offset" = 3'],
  [
    /belongs to no prediction/,
    `
    update predictions set event_id = gen_random_uuid()
    where id = (select id from predictions limit 1)`,
  ],
  [
    /does not belong to its prediction/,
    `
    update predictions p set event_id = q.event_id
    from predictions q where q.agent_id = p.agent_id and q.question_id <> p.question_id`,
  ],
  [
    /wait in the outbox/,
    `
    insert into outbox (id, event, body) values (gen_random_uuid(), 'question.closed', '{}')`,
  ],
  [
    /question .* counts 1 times option 3 instead of 0/,
    "update question_counts set option_counts = '{0,0,1}' where cardinality(option_counts) = 3",
  ],
  [/has no delivery of event/, 'delete from deliveries where event_offset = 2'],
  [/which it does not want/, "update webhooks set events = '{question.closed}'"],
  [
    /which is not in the log/,
    'update deliveries set event_id = gen_random_uuid() where event_offset = 2',
  ],
  [/which is not for it/, 'update events set audience_id = gen_random_uuid()'],
  [/numbered predictions up to/, 'update predictions set seq = seq + 100'],
  [/no row for its last prediction/, 'delete from last_predictions'],
  [/last prediction that does not exist/, 'update last_predictions set prediction_id = agent_id'],
  [/has no account/, 'delete from accounts'],
  [
    /was paid for 1 recruits, but the last one has number 2/,
    `insert into referrals (agent_id, ordinal, recruit_id, bonus, recruit_owner_id, paid_at)
    select id, 2, gen_random_uuid(), 300, gen_random_uuid(), now() from agents`,
  ],
  [
    /bonus 200, 0 ledger entries/,
    `insert into referrals (agent_id, ordinal, recruit_id, bonus, recruit_owner_id, paid_at)
    select id, 1, gen_random_uuid(), 200, gen_random_uuid(), now() from agents`,
  ],
  [
    /was not recruited by/,
    `insert into referrals (agent_id, ordinal, recruit_id, bonus, recruit_owner_id, paid_at)
    select id, 1, gen_random_uuid(), 200, gen_random_uuid(), now() from agents`,
  ],
  [
    /has tally .* instead of $/,
    `
    delete from predictions;
    delete from events where event = 'prediction.placed';
    update log_head set "offset" = 0;
    update question_counts set prediction_count = 0, yes_count = 0, no_count = 0`,
  ],
  [/counts .* instead of/, 'update question_counts set yes_count = yes_count + 1'],
  [/and the log differ at/, 'update events set event = \'question.closed\' where "offset" = 2'],
  [
    /the digest at 3 does not match the events after 0/,
    `insert into event_digests ("offset", digest) values (3, repeat('a', 64))`,
  ],
  [/no stored digest covers the oldest event, 1/, 'delete from event_digests'],
  [/has tally/, 'update predictions set probability = 300, confidence = 300'],
];

const settled_cases: readonly Case[] = [
  [
    /earns -?\d+, but the ledger says/,
    `insert into ledger (agent_id, id, reason, amount, balance_after, subject_id)
    select agent_id, gen_random_uuid(), reason, amount, balance_after, subject_id
    from ledger where reason = 'settlement' limit 1`,
  ],
  [
    /is void, but the ledger says 1, and it has no score/,
    `
    insert into ledger (agent_id, id, reason, amount, balance_after, subject_id)
    select p.agent_id, gen_random_uuid(), 'settlement', 1, 1, p.id
    from predictions p
    join resolutions r on r.question_id = p.question_id and r.kind = 'void'
    limit 1`,
  ],
  [/by revision 2, but its score says/, 'update scores set net = net + 1'],
  [/by revision 2, but its score says/, 'update scores set revision = 1'],
  [/its score says null by null/, 'delete from scores'],
  [/has a Brier score of/, 'update scores set brier = brier + 0.01'],
  [/has no prediction/, 'update scores set prediction_id = gen_random_uuid()'],
  [/is resolved at revision 3/, 'update questions set revision = 3 where revision = 2'],
  [/is resolved at revision 2/, 'update questions set outcome = not outcome'],
  [/of 1/, 'delete from resolutions where revision = 1'],
  [
    /is open, but the ledger says/,
    "update resolutions set state = 'running', finished_at = null, cursor_agent = null",
  ],
  [/is open, but the ledger says/, 'delete from resolutions'],
];

const { app, parts } = await makeRested();

t.test('what is under way is a difference only once it is old', async (t) => {
  const { sql, redis, prefix } = parts;
  const under_way_ms = 600_000;
  const old_id = '01900000-0000-7000-8000-000000000000';
  await sql`insert into outbox (id, event, body) values (${makeId()}, 'question.closed', '{}')`;
  t.match(await findDifferences(parts), [/1 events wait in the outbox/]);
  t.same(await findDifferences({ ...parts, under_way_ms }), []);
  await sql`delete from outbox`;

  // All of Redis is one prediction behind.
  const [last] = await sql<{ offset: number; question_id: string }[]>`
    select "offset", question_id
    from events
    where event = 'prediction.placed'
    order by "offset" desc
    limit 1`;
  const { offset, question_id } = last as { offset: number; question_id: string };
  const tally = tallyKey(prefix, question_id);
  const whole = await redis.hgetall(tally);
  const projected = await readProjected(redis, prefix);
  const before = await sql<Parameters<typeof saidIn>[0][]>`
    select p.model_family as family, p.prediction as yes, null as option, p.probability as value
    from predictions p
    join events e on e.id = p.event_id
    where p.question_id = ${question_id} and e."offset" < ${offset}`;
  // All three agents have the same owner.
  const { cells } = countAll(before.map((one) => ({ ...one, owner: 'one', given: null })));
  await redis.del(tally);
  await redis.hset(tally, { ...Object.fromEntries(cells), o: offset - 1, t: whole['t'] ?? '' });
  await writeProjected(redis, prefix, offset - 1);
  t.match(await findDifferences(parts), [/Redis follows the log up to/]);
  t.same(await findDifferences({ ...parts, under_way_ms }), []);
  await writeProjected(redis, prefix, projected);
  await sql`insert into outbox (id, event, body) values (${old_id}, 'question.closed', '{}')`;
  const old = await findDifferences({ ...parts, under_way_ms });
  t.match(old, [/1 events wait in the outbox/, /has tally/, /is at offset/]);
  await sql`delete from outbox`;
  await redis.del(tally);
  await redis.hset(tally, whole);
  t.same(await findDifferences(parts), []);
});

t.test('every kind of difference is found, and nothing else', async (t) => {
  const { redis, prefix } = parts;
  t.same(await findDifferences(parts), []);
  await findsAll(t, parts, [...record_cases, ...settled_cases]);

  const { database_url, redis_url, redis_prefix } = app.stores;
  const env = { DATABASE_URL: database_url, REDIS_URL: redis_url, REDIS_PREFIX: redis_prefix };
  const right = await runTool('verify', env);
  t.match(right, {
    code: 0,
    output:
      /^Nothing differs; compared: agents [1-9]\d*, predictions [1-9]\d*, events [1-9]\d*\.\n$/,
  });
  await parts.sql`update accounts set balance = balance + 1`;
  const broken = await runTool('verify', env);
  t.match(broken, {
    code: 1,
    output: /balance \d+, the sum of the ledger is \d+\n[\s\S]*\n3 differences; compared: .+\.\n$/,
  });
  await parts.sql`update accounts set balance = balance - 1`;

  const stream = `${prefix}:{log}:events`;
  const find = async (what: RegExp): Promise<void> => {
    isFound(t, what, await findDifferences(parts));
  };
  const tally = tallyKey(prefix, questionId(0));
  const whole = await redis.hgetall(tally);
  await redis.del(tally);
  await find(/has no live tally/);
  await redis.hset(tally, { ...whole, o: 1 });
  await find(/is at offset 1/);
  await redis.hset(tally, whole);
  const entries = await redis.xrange(stream, '-', '+');
  await redis.xdel(stream, entries[2]?.[0] ?? '');
  await find(/the stream has .*, but the log has/);
  const board = `${prefix}:{boards}:points:all:all`;
  const members = await redis.zrange(board, '0', '-1');
  await redis.zrem(board, members.find((one) => one.includes(agentId(1))) as string);
  await find(/board points of all:all: agent .* has/);
  await redis.xtrim(stream, 'MAXLEN', 0);
  await find(/the stream is empty/);
});

t.test('without a service the command says so', async (t) => {
  const env = { DATA_DIR: path.join(t.testdir(), 'none') };
  const { code, output } = await runTool('verify', env);
  t.equal(code, 3);
  t.match(output, /There is no service in .*none\. Start it, or set DATA_DIR\.\n$/);
});

const delivery_cases: readonly Case[] = [
  [/has no delivery of event/, 'delete from deliveries where event_offset = 2'],
  [/which it does not want/, "update webhooks set filter_categories = '{technology}'"],
  [/which is not in the log/, 'delete from events where "offset" = 2'],
  [/belong to missing webhook/, 'delete from webhooks'],
  [/an attempt at event .* has no delivery/, 'delete from deliveries where event_offset = 1'],
  [/is delivered after 1 attempts, stored: 0, none with a 2xx/, 'delete from attempts'],
  [/is delivered .* stored: 1, none with a 2xx/, 'update attempts set status = 500'],
  [/does not match its webhook and event/, 'update deliveries set id = gen_random_uuid()'],
  [
    /a gap of webhook .* leaves out 9 events from 1 to 2/,
    `update deliveries
    set state = 'gap', gap_until_offset = 2, gap_count = 9, gap_reason = 'age', delivered_at = null
    where event_offset = 1`,
  ],
  [
    /is off and has 1 deliveries to be sent/,
    `update webhooks set active = false, updated_at = now() - interval '1 hour';
    update deliveries
    set state = 'waiting', delivered_at = null, queued_at = now() - interval '1 hour'
    where event_offset = 1`,
  ],
  [/is on, and its disabled_reason is x/, "update webhooks set disabled_reason = 'x'"],
  [/are planned up to 9, but the log has 2/, 'update delivery_plan set planned_offset = 9'],
  [
    /a range is planned from 3/,
    'insert into planned_ranges (first_offset, last_offset) values (3, 4)',
  ],
  [
    /a replay belongs to missing webhook/,
    `insert into webhook_replays (webhook_id, id, after_offset, next_offset, until_offset)
    values (gen_random_uuid(), gen_random_uuid(), 0, 1, 1)`,
  ],
];

t.test('deliveries that contradict the log or themselves are found', async (t) => {
  const world = await makeWorld(t);
  const { sql } = world.deps;
  await world.addHook();
  await world.record({}, {});
  await world.startSigner();
  await world.settled(2, 'delivered');
  // Long before the events, so that no missing delivery is excused.
  await sql`update webhooks set updated_at = now() - interval '1 hour'`;
  const look = (tx: Tx) => findBy(tx, webhook_queries, '');
  t.same(await sql.begin(look), []);
  for (const [what, breaking] of delivery_cases) {
    isFound(t, what, await lookAfter(sql, breaking, look), breaking);
  }
});

const moderation_cases: readonly Case[] = [
  [/is upheld by revision 2, which does not exist/, 'delete from resolutions where revision = 2'],
  [/not later than its own/, "update disputes set revision = 2 where status = 'upheld'"],
  [/is about revision 9/, "update disputes set revision = 9 where status = 'rejected'"],
  [/belongs to an agent that did not predict/, 'delete from predictions'],
  [
    /is decided by no act/,
    "update disputes set status = 'rejected', new_revision = null where status = 'upheld'",
  ],
  [/which is not upheld/, `update resolutions set decided_by = 'dispute:x' where revision = 2`],
  [/prediction .* is hidden, but no act/, 'update predictions set hidden_at = now()'],
];

t.test('disputes and hidden content that contradict the record are found', async (t) => {
  const app = await startApp(t, { roles: ['api', 'timer'] });
  const admin = (path: string, body: unknown): Promise<Answered> =>
    app.call('POST', `/api/admin/${path}`, { admin: true, body });

  const question_id = await makeOpenQuestion(app);
  const stated = [true, false, true].map((prediction) => ({ prediction, confidence: 70 }));
  const forecasts = await makeForecasts(app, question_id, stated);
  await closeQuestion(app, question_id);
  await decideAndSettle(app, question_id, 'resolve', { outcome: true });
  const disputes: string[] = [];
  for (const { agent } of forecasts) {
    const { body } = await app.call('POST', `/api/questions/${question_id}/dispute`, {
      key: agent.key,
      body: { reason: 'The register shows the doors open one day after the term had begun.' },
    });
    disputes.push(body.dispute.id);
  }
  const note = 'The register says so.';
  await admin(`disputes/${disputes[0]}/resolve`, { status: 'upheld', outcome: false, note });
  await admin(`disputes/${disputes[1]}/resolve`, { status: 'rejected', note });
  await admin(`predictions/${forecasts[0]?.prediction_id}/hide`, { reason: note });

  const look = (tx: Tx) => findBy(tx, moderation_queries, '');
  t.same(await app.sql.begin(look), []);
  for (const [what, breaking] of moderation_cases) {
    isFound(t, what, await lookAfter(app.sql, breaking, look), breaking);
  }
});

const one_comment = '(select id from comments where hidden_at is null order by id limit 1)';
const conversation_cases: readonly Case[] = [
  [
    /counts \d+ comments instead of/,
    `update comments set hidden_at = now() where id = ${one_comment}`,
  ],
  [
    /counts \d+ replies instead of/,
    `update comments set replies = replies + 1 where id = ${one_comment}`,
  ],
  [/in its thread/, 'update comments set depth = depth + 1 where depth = 1'],
  [/has no event/, "delete from events where event = 'comment.created'"],
  [
    /comment .* counts \d+ upvotes/,
    `update comments set upvotes = upvotes + 1 where id = ${one_comment}`,
  ],
  [/is for a missing comment/, 'update votes set subject_id = gen_random_uuid()'],
  [
    /of the same owner/,
    'update agents set owner_id = (select id from humans limit 1), linked_at = now()',
  ],
  [/board debaters .* agent/, 'update comments set upvotes = upvotes + 7'],
];

t.test('conversation: a race leaves nothing wrong, and what is wrong is found', async (t) => {
  const app = await startApp(t, {
    roles: ['api', 'relay', 'timer'],
    env: { LIMIT_KEY: '1000000', LIMIT_COMMENTS: '1000000', LIMIT_VOTES: '1000000' },
  });
  const { deps } = await openParts(t, { stores: app.stores });
  const parts = { sql: deps.sql, redis: deps.redis, prefix: app.stores.redis_prefix };
  const rest = () =>
    until('nothing differs', async () => (await findDifferences(parts)).length === 0, 30_000, 200);

  const post = async (agent: Agent, path: string): Promise<string> => {
    const body = { content: makeContent() };
    const answer = await app.call('POST', path, { key: agent.key, body });
    return answer.body.comment?.id ?? answer.body.code;
  };
  const people = await Promise.all([makeHuman(app), makeHuman(app), makeHuman(app)]);
  const [first, second] = people;
  const agents = await Promise.all(
    Array.from({ length: 12 }, (_, n) => {
      const human = people[n % 3];
      return human === undefined ? makeAgent(app) : makeAgent(app, { human });
    }),
  );
  const question_id = await makeOpenQuestion(app);
  const path = `/api/questions/${question_id}/comments`;
  const ids = await Promise.all(agents.map((agent) => post(agent, path)));
  const agentAt = (n: number) => agents[n % agents.length] as Agent;
  const idAt = (n: number) => ids[n % ids.length] as string;
  const hide = (id: string) =>
    app.call('POST', `/api/admin/comments/${id}/hide`, {
      admin: true,
      body: { reason: 'It names a private person.' },
    });
  const moved = agentAt(0);
  await app.call('DELETE', `/api/me/agents/${moved.id}`, { token: first?.token ?? '' });
  await Promise.all([
    ...Array.from({ length: 120 }, (_, n) =>
      app.call(n % 5 === 0 ? 'DELETE' : 'POST', `/api/comments/${idAt(n * 7)}/upvote`, {
        key: agentAt(n + 1 + Math.floor(n / 12)).key,
      }),
    ),
    ...Array.from({ length: 60 }, (_, n) =>
      post(agentAt(n), n % 3 === 0 ? path : `/api/comments/${idAt(n * 11)}/reply`),
    ),
    app.call('POST', '/api/me/agents', {
      token: second?.token ?? '',
      body: { api_key: moved.key },
    }),
    ...[2, 5, 8].map((n) => hide(idAt(n))),
  ]);
  await rest();
  t.same(await findDifferences(parts), []);
  const [row] = await app.sql<{ votes: number; hidden: number }[]>`
    select
      (select count(*)::int from votes) as votes,
      (select count(*)::int from comments where hidden_at is not null) as hidden`;
  t.ok((row?.votes ?? 0) > 10);
  t.equal(row?.hidden, 3);

  await app.stop();
  await findsAll(t, parts, conversation_cases);
  const board = `${parts.prefix}:{boards}:debaters:all:all`;
  const [, member] = await parts.redis.zrange(board, '0', '1');
  await parts.redis.zrem(board, member as string);
  t.match(await findDifferences(parts), [/board debaters of all:all: agent .* has nothing/]);
  await parts.redis.del(board);
  t.match(await findDifferences(parts), [/no board debaters of all:all/]);
});
