import { pino } from 'pino';
import type { Test } from 'tap';
import { questionId, seed, seedForecasts } from '../../../bench/env/seed.js';
import { makeApiKey } from '../../../src/features/accounts/rules.js';
import { type Lease, takeLease } from '../../../src/features/events/index.js';
import { decideQuestion } from '../../../src/features/resolution/index.js';
import { readDecision } from '../../../src/features/resolution/rules.js';
import { createSettling, type SettlingOptions } from '../../../src/features/resolution/settling.js';
import { moveCursor, readJob } from '../../../src/features/resolution/settling-store.js';
import { makeId } from '../../../src/kit/ids.js';
import { openParts, type Parts, type PartsOptions } from '../../help/parts.js';
import { closeQuestion, findWrongAccounts, untilSettled } from '../../help/settling.js';
import { t } from '../../help/tap.js';

/** Settling by itself: several settlers at once, stale leases, and a question that fails. */

const agents = 1_500;

const makeWorld = async (t: Test, options: PartsOptions = {}): Promise<Parts> => {
  const parts = await openParts(t, options);
  const { sql } = parts.deps;
  await seed(sql, { keys: Array.from({ length: agents }, makeApiKey), questions: 2 });
  for (const question of [0, 1]) {
    await seedForecasts(sql, { question, first_agent: 0, count: agents, events: false });
    await closeQuestion({ sql }, questionId(question));
  }
  return parts;
};

const resolveQuestion = ({ deps }: Parts, question: number) =>
  deps.sql.begin((tx) =>
    decideQuestion(tx, {
      question_id: questionId(question),
      decided_by: 'admin',
      at: deps.clock(),
      decide: (row, at) => readDecision({ outcome: true }, row, at),
    }),
  );

const startSettling = async (t: Test, { deps }: Parts, options: SettlingOptions = {}) => {
  const settling = createSettling(deps, { poll_ms: 5, ...options });
  await settling.start();
  t.teardown(() => settling.stop());
};

/** Predictions of the question that were not paid their net exactly once. */
const findUnpaid = ({ deps }: Parts, question: number) => deps.sql`
  select p.agent_id, p.probability, l.total, l.count
  from predictions p
  left join (
    select subject_id, sum(amount) as total, count(*) as count from ledger group by subject_id
  ) l on l.subject_id = p.id
  where p.question_id = ${questionId(question)}
    and (
      coalesce(l.total, 0) <> round(100 - 0.04 * (p.probability / 100 - 100) ^ 2)
      or l.count > 1
    )
  limit 3`;

t.test('settlers whose leases run out at once take turns and settle everything once', async (t) => {
  const parts = await makeWorld(t);
  await resolveQuestion(parts, 0);
  const options = { lease_seconds: 0, per_second: 1_000_000 };
  for (let n = 0; n < 3; n += 1) await startSettling(t, parts, options);
  await untilSettled(parts.deps.sql, questionId(0));
  const [row] = await parts.deps.sql`select total, done from resolutions`;
  t.same(row, { total: agents, done: agents });
  t.same(await findUnpaid(parts, 0), []);
  t.same(await findWrongAccounts(parts.deps.sql), []);
  const [lease] = await parts.deps.sql`select fence from leases where name = 'settling'`;
  t.ok(lease?.['fence'] > 3, `the lease changed hands: fence ${lease?.['fence']}`);
});

t.test('of two settling one chunk one moves the cursor, and none without the lease', async (t) => {
  const parts = await makeWorld(t);
  await resolveQuestion(parts, 0);
  const { sql } = parts.deps;
  const job = await readJob(sql, []);
  if (job === undefined) return t.fail('there is no job');
  const [first] = await sql`select agent_id from predictions order by agent_id limit 1`;
  const step = { cursor_agent: first?.['agent_id'], count: 1, is_last: false, at: new Date() };
  const lease = await takeLease(sql, 'settling', makeId(), 60);
  if (lease === undefined) return t.fail('the lease is taken');
  const move = (by: Lease) => sql.begin(async (tx) => moveCursor(tx, job, by, step));
  t.equal(await move({ ...lease, fence: lease.fence - 1 }), false, 'an older fence');
  t.equal(await move({ ...lease, holder: makeId() }), false, 'somebody else');
  const moved = await Promise.all([1, 2, 3].map(() => move(lease)));
  t.same([...moved].sort(), [false, false, true]);
  const [row] = await sql`select done from resolutions`;
  t.equal(row?.['done'], 1);
});

t.test('a question that cannot be settled does not hold up another', async (t) => {
  const said: string[] = [];
  const parts = await makeWorld(t, { log: pino({}, { write: (line) => void said.push(line) }) });
  const { sql } = parts.deps;
  // In operation, only a bug or a damaged database could cause this.
  const [lost] = await sql`
    delete from accounts
    where agent_id = (select agent_id from predictions order by agent_id limit 1)
    returning agent_id, balance`;
  await sql`
    delete from predictions
    where agent_id = ${lost?.['agent_id']} and question_id = ${questionId(1)}`;
  // The smaller question is processed first, so it is the one that fails.
  await sql`
    delete from predictions
    where question_id = ${questionId(0)}
      and agent_id in (select id from agents order by id desc limit 100)`;
  await resolveQuestion(parts, 0);
  await resolveQuestion(parts, 1);
  await startSettling(t, parts);
  await untilSettled(sql, questionId(1));
  const [stuck] =
    await sql`select state, done from resolutions where question_id = ${questionId(0)}`;
  t.same(stuck, { state: 'running', done: 0 }, 'nobody of its first chunk was paid alone');
  t.match(said.join(''), /1 predictions have no account/, 'and it is said why');
  await sql`insert into accounts ${sql(lost as Record<string, never>)}`;
  await untilSettled(sql, questionId(0));
  t.same(await findUnpaid(parts, 0), []);
});
