import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { type Test, t } from 'tap';
import { agentId, questionId, seed } from '../../bench/env/seed.js';
import { makeConfidence, makeReasoning } from '../../bench/load/predict-texts.js';
import { makeApiKey } from '../../src/features/accounts/index.js';
import { tallyKey } from '../../src/features/consensus/index.js';
import { projectedKey } from '../../src/features/events/index.js';
import { planDeliveries } from '../../src/features/webhooks/index.js';
import { makeId } from '../../src/kit/ids.js';
import type { VerifyParts } from '../../src/tools/verify/parts.js';
import { findDifferences } from '../../src/tools/verify.js';
import { startApp, type TestApp } from '../help/app.js';
import { project_root } from '../help/own-stores.js';
import { openParts } from '../help/parts.js';
import { until } from '../help/until.js';

// Each test starts a whole service, which a busy machine takes its time for.
t.setTimeout(150_000);

/**
 * A service with some predictions, at rest and stopped, so that nothing repairs what a test breaks.
 */
const makeRested = async (
  t: Test,
  also: (app: TestApp, questions: readonly string[]) => Promise<void> = async () => undefined,
): Promise<{ app: TestApp; parts: VerifyParts }> => {
  const app = await startApp(t, { roles: ['api', 'relay', 'timer', 'signer'] });
  const { sql, stores } = app;
  const keys = [makeApiKey(), makeApiKey(), makeApiKey()];
  await seed(sql, { keys, questions: 2 });
  const hook = await app.call('POST', '/api/webhooks', {
    key: keys[0] as string,
    body: { url: 'https://example.org:8443/hook', events: ['prediction.placed'] },
  });
  if (hook.status !== 201) throw new Error(JSON.stringify(hook.body));
  // So old that every event counts as one after it.
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
  await also(
    app,
    questions.map(({ id }) => id),
  );
  const { deps } = await openParts(t, { stores });
  const parts = { sql: deps.sql, redis: deps.redis, prefix: stores.redis_prefix };
  await until('nothing differs', async () => {
    await deps.sql.begin((tx) => planDeliveries(tx, { first: 1, last: 1_000 }));
    return (await findDifferences(parts)).length === 0;
  });
  await app.stop();
  return { app, parts };
};

/** Breaks the record within a transaction that is taken back. */
const makeFinds =
  (t: Test, parts: VerifyParts) =>
  async (what: RegExp, breaking: string): Promise<void> => {
    const undo = new Error('undo');
    let found: readonly string[] = [];
    await parts.sql
      .begin(async (tx) => {
        await tx.unsafe(breaking);
        // A transaction inside this one; the checks of the record run in one of their own.
        const inner = Object.assign(
          (...args: never[]) => (tx as never as CallableFunction)(...args),
          {
            begin: (_: string, work: (inner: typeof tx) => unknown) => work(tx),
          },
        );
        found = await findDifferences({ ...parts, sql: inner as never });
        throw undo;
      })
      .catch((error: unknown) => {
        if (error !== undo) throw error;
      });
    t.ok(
      found.some((line) => what.test(line)),
      `${breaking} → ${found.join(' | ')}`,
    );
  };

t.test('every kind of difference is found, and nothing else', async (t) => {
  const { parts } = await makeRested(t);
  const { redis, prefix } = parts;
  t.same(await findDifferences(parts), []);
  const stream = `${prefix}:{log}:events`;
  const finds = makeFinds(t, parts);

  await finds(/balance .*sum of the ledger/, 'update accounts set balance = balance + 1');
  await finds(
    /the stakes of prediction .* come to -5 points/,
    `insert into ledger (agent_id, id, reason, amount, balance_after, subject_id)
    select agent_id, gen_random_uuid(), 'stake', -5, 0, id from predictions limit 1`,
  );
  await finds(
    /owes 7 points/,
    `insert into ledger (agent_id, id, reason, amount, balance_after)
    select agent_id, gen_random_uuid(), 'debt_advanced', 7, 7 from accounts limit 1`,
  );
  await finds(/the log has .* and its head is/, 'update log_head set "offset" = "offset" + 1');
  await finds(/the log has/, 'delete from events where "offset" = 3');
  await finds(/has no event/, 'delete from events where "offset" = 3');
  await finds(
    /is about no prediction/,
    `
    update predictions set event_id = gen_random_uuid()
    where id = (select id from predictions limit 1)`,
  );
  await finds(
    /is not about its prediction/,
    `
    update predictions p set event_id = q.event_id
    from predictions q where q.agent_id = p.agent_id and q.question_id <> p.question_id`,
  );
  await finds(
    /wait in the outbox/,
    `
    insert into outbox (id, event, body) values (gen_random_uuid(), 'question.closed', '{}')`,
  );
  await finds(
    /question .* counts 1 times option 3 instead of 0/,
    "update question_counts set option_counts = '{0,0,1}' where cardinality(option_counts) = 3",
  );
  await finds(/has no delivery of event/, 'delete from deliveries where event_offset = 2');
  await finds(/which it does not want/, "update webhooks set events = '{question.closed}'");
  await finds(
    /which the log has not/,
    'update deliveries set event_id = gen_random_uuid() where event_offset = 2',
  );
  await finds(/which is not for it/, 'update events set audience_id = gen_random_uuid()');
  await finds(/numbered predictions with/, 'update predictions set seq = seq + 100');
  await finds(/has no account/, 'delete from accounts');
  await finds(
    /agent .* has 11 webhooks/,
    `alter table webhooks drop constraint webhooks_owner_kind_owner_id_slot_key;
    insert into webhooks (id, owner_kind, owner_id, slot, url, events, secret_sealed)
    select gen_random_uuid(), owner_kind, owner_id, 1, url, events, secret_sealed
    from webhooks, generate_series(1, 10)`,
  );
  await finds(
    /was paid for 1 recruits, the last as number 2/,
    `insert into referrals (agent_id, ordinal, recruit_id, bonus, recruit_owner_id, paid_at)
    select id, 2, gen_random_uuid(), 300, gen_random_uuid(), now() from agents`,
  );
  await finds(
    /bonus 200, 0 ledger entries/,
    `insert into referrals (agent_id, ordinal, recruit_id, bonus, recruit_owner_id, paid_at)
    select id, 1, gen_random_uuid(), 200, gen_random_uuid(), now() from agents`,
  );
  await finds(
    /was not recruited by/,
    `insert into referrals (agent_id, ordinal, recruit_id, bonus, recruit_owner_id, paid_at)
    select id, 1, gen_random_uuid(), 200, gen_random_uuid(), now() from agents`,
  );
  await finds(
    /is tallied .* instead of $/,
    `
    delete from predictions;
    delete from events where event = 'prediction.placed';
    update log_head set "offset" = 0;
    update question_counts set prediction_count = 0, yes_count = 0, no_count = 0`,
  );
  await finds(/counts .* instead of/, 'update question_counts set yes_count = yes_count + 1');
  await finds(
    /the stream tells/,
    'update events set event = \'question.closed\' where "offset" = 2',
  );
  await finds(/is tallied/, 'update predictions set probability = 3, confidence = 3');

  const find = async (what: RegExp): Promise<void> => {
    const found = await findDifferences(parts);
    t.ok(
      found.some((line) => what.test(line)),
      found.join(' | '),
    );
  };
  const tally = tallyKey(prefix, questionId(0));
  const whole = await redis.hgetall(tally);
  await redis.del(tally);
  await find(/has no live tally/);
  await redis.hset(tally, { ...whole, o: 1 });
  await find(/stands at 1/);
  await redis.hset(tally, whole);
  const entries = await redis.xrange(stream, '-', '+');
  await redis.xdel(stream, entries[2]?.[0] ?? '');
  await find(/the stream has .* where the log has/);
  const board = `${prefix}:{boards}:points:all:all`;
  const members = await redis.zrange(board, '0', '-1');
  await redis.zrem(board, members.find((one) => one.includes(agentId(1))) as string);
  await find(/board points of all:all: agent .* has/);
  await redis.xtrim(stream, 'MAXLEN', 0);
  await find(/the stream is empty/);
});

t.test('what was settled wrongly is found', async (t) => {
  const { parts } = await makeRested(t, async (app, [first, second]) => {
    const act = async (id: string, name: string, body: unknown): Promise<void> => {
      const path = `/api/admin/questions/${id}/${name}`;
      const { status } = await app.call('POST', path, { admin: true, body });
      if (status >= 300) throw new Error(`${name}: ${status}`);
    };
    await act(first as string, 'close', {});
    await act(first as string, 'resolve', { outcome: true });
    await act(first as string, 'resolve', { outcome: false });
    await act(second as string, 'void', {});
    const settled = async () => {
      const [row] = await app.sql<{ left: number }[]>`
        select count(*)::integer as left from resolutions where state = 'running'`;
      return row?.left === 0;
    };
    await until('all is settled', settled);
  });
  t.same(await findDifferences(parts), []);
  const finds = makeFinds(t, parts);
  await finds(
    /earns -?\d+, and the ledger says/,
    `insert into ledger (agent_id, id, reason, amount, balance_after, subject_id)
    select agent_id, gen_random_uuid(), reason, amount, balance_after, subject_id
    from ledger where reason = 'settlement' limit 1`,
  );
  await finds(
    /is void, the ledger says 1, and it has no score/,
    `
    insert into ledger (agent_id, id, reason, amount, balance_after, subject_id)
    select p.agent_id, gen_random_uuid(), 'settlement', 1, 1, p.id
    from predictions p
    join resolutions r on r.question_id = p.question_id and r.kind = 'void'
    limit 1`,
  );
  await finds(/by revision 2, its score says/, 'update scores set net = net + 1');
  await finds(/by revision 2, its score says/, 'update scores set revision = 1');
  await finds(/its score says null by null/, 'delete from scores');
  await finds(/has a Brier score of/, 'update scores set brier = brier + 0.01');
  await finds(/has no prediction/, 'update scores set prediction_id = gen_random_uuid()');
  await finds(/is resolved at revision 3/, 'update questions set revision = 3 where revision = 2');
  await finds(/is resolved at revision 2/, 'update questions set outcome = not outcome');
  await finds(/of 1/, 'delete from resolutions where revision = 1');
  await finds(
    /is open, the ledger says/,
    "update resolutions set state = 'running', finished_at = null, cursor_agent = null",
  );
  await finds(/is open, the ledger says/, 'delete from resolutions');
});

t.test('what is under way is a difference only once it is old', async (t) => {
  const { parts } = await makeRested(t);
  const { sql, redis, prefix } = parts;
  const under_way_ms = 60_000;
  const old_id = '01900000-0000-7000-8000-000000000000';
  await sql`insert into outbox (id, event, body) values (${makeId()}, 'question.closed', '{}')`;
  t.match(await findDifferences(parts), [/1 events wait in the outbox/]);
  t.same(await findDifferences({ ...parts, under_way_ms }), []);
  await sql`insert into outbox (id, event, body) values (${old_id}, 'question.closed', '{}')`;
  t.match(await findDifferences({ ...parts, under_way_ms }), [/1 events wait in the outbox/]);
  await sql`delete from outbox`;

  // Redis is one prediction behind, everywhere.
  const [last] = await sql<{ offset: number; question_id: string }[]>`
    select "offset", question_id
    from events
    where event = 'prediction.placed'
    order by "offset" desc
    limit 1`;
  const { offset, question_id } = last as { offset: number; question_id: string };
  const tally = tallyKey(prefix, question_id);
  const fields = Object.entries(await redis.hgetall(tally)).filter(([name]) => name.includes('|'));
  const [stated] = await sql<{ value: number }[]>`
    select p.probability as value
    from predictions p
    join events e on e.id = p.event_id
    where e."offset" = ${offset}`;
  // All three are of one owner.
  for (const [name, count] of fields) {
    await redis.hdel(tally, name);
    const is_last = name.endsWith(`|${stated?.value}|3`);
    if (!is_last) await redis.hset(tally, name.replace(/3$/, '2'), count);
  }
  await redis.hset(tally, 'o', offset - 1);
  await redis.set(projectedKey(prefix), offset - 1);
  t.match(await findDifferences(parts), [/Redis follows the log up to/]);
  t.same(await findDifferences({ ...parts, under_way_ms }), []);
  await redis.set(projectedKey(prefix), offset);
  t.match(await findDifferences({ ...parts, under_way_ms }), [/is tallied/, /stands at/]);
});

const runVerify = async (env: NodeJS.ProcessEnv): Promise<{ code: number; text: string }> => {
  const entry = path.join(project_root, 'dist', 'src', 'tools', 'verify.js');
  const child = spawn(process.execPath, [entry], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      text += chunk;
    });
  }
  const [code] = await once(child, 'close');
  return { code: code as number, text };
};

t.test('the command says what it found and ends accordingly', async (t) => {
  const { parts, app } = await makeRested(t);
  const { stores } = app;
  const env = {
    DATABASE_URL: stores.database_url,
    REDIS_URL: stores.redis_url,
    REDIS_PREFIX: stores.redis_prefix,
  };
  const right = await runVerify(env);
  t.equal(right.code, 0);
  t.match(
    right.text,
    /^Nothing differs; compared: [1-9]\d* agents, [1-9]\d* predictions, [1-9]\d* events\.\n$/,
  );
  await parts.sql`update accounts set balance = balance + 1`;
  const broken = await runVerify(env);
  t.equal(broken.code, 1);
  t.match(
    broken.text,
    /balance 5\d+, the sum of the ledger is 5\d+\n[\s\S]*\n3 differences; compared: .+\.\n$/,
  );
});

t.test('without a service the command says so', async (t) => {
  const { code, text } = await runVerify({ DATA_DIR: path.join(t.testdir(), 'none') });
  t.equal(code, 1);
  t.match(text, /There is no service in .*none: start it, or set DATA_DIR\.\n$/);
});
