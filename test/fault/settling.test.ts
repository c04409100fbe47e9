import type { Test } from 'tap';
import { seedForecasts } from '../../bench/env/seed.js';
import { findDifferences } from '../../src/tools/verify.js';
import { admin_key, makeCaller } from '../help/app.js';
import { putToSleep, startMoreRoles, startService, type TestService } from '../help/service.js';
import { closeQuestion, decide, findWrongAccounts } from '../help/settling.js';
import { t } from '../help/tap.js';
import { until, untilNone } from '../help/until.js';
import { fault_limits, is_long } from './world.js';

/**
 * Questions with many predictions are resolved while stores and timers are killed and paused. Every
 * agent is paid exactly once, and the books agree to the last point. The commit of a chunk does not
 * wait for the disk, so a crash of Postgres loses chunks together with their cursor.
 */

t.setTimeout(fault_limits.timeout);

const count = is_long ? 5_000 : 2_400;

/** A question that is being settled, and the decisions made about it so far. */
const makeSubject = async (t: Test, service: TestService, question: number) => {
  const { sql, url } = service;
  const id = service.questions[question]?.id ?? '';
  const decided: boolean[] = [];
  await seedForecasts(sql, { question, first_agent: 0, count, events: true });
  await closeQuestion(service, id);
  const readDone = async (): Promise<number> => {
    const [row] = await sql<{ done: number }[]>`
      select done from resolutions where question_id = ${id} order by revision desc limit 1`;
    return row?.done ?? 0;
  };
  return {
    id,
    decided,
    readDone,
    async resolve(outcome: boolean): Promise<void> {
      const { status, body } = await decide({ call: makeCaller(url) }, id, 'resolve', { outcome });
      t.equal(status, 202);
      t.equal(body.resolution.total, count);
      decided.push(outcome);
    },
    /** Strikes each time settling has advanced. Returns the number of strikes. */
    async strikeUnderWay(strikes: readonly (() => Promise<unknown>)[]): Promise<number> {
      let struck = 0;
      for (const strike of strikes) {
        const before = await readDone();
        const goesOn = async () => (await readDone()) > before || (await readDone()) === count;
        await until('the settling goes on', goesOn, 20_000);
        if ((await readDone()) === count) break;
        await strike();
        struck += 1;
      }
      await until('all is settled', async () => (await readDone()) === count, 60_000);
      return struck;
    },
  };
};

type Subject = Awaited<ReturnType<typeof makeSubject>>;

/** With weight 1, a yes/no forecast p with outcome o must net 100 · (1 − 4·(p − o)²). */
const compareBooks = async (t: Test, { sql, ...service }: TestService, subject: Subject) => {
  const { id, decided } = subject;
  const wrong = await sql`
    with paid as (
      select
        subject_id,
        sum(amount) as total,
        count(*) filter (where reason = 'settlement') as settlements,
        count(*) filter (where reason = 'reversal') as reversals
      from ledger
      where question_id = ${id}
      group by subject_id
    )
    select p.probability, paid.*, s.net
    from predictions p
    left join paid on paid.subject_id = p.id
    left join scores s on s.question_id = p.question_id and s.agent_id = p.agent_id
    cross join lateral (
      select round(100 - 0.04 * (p.probability / 100.0 - ${decided.at(-1) ? 100 : 0}) ^ 2) as net
    ) wanted
    where p.question_id = ${id}
      and (
        coalesce(paid.total, 0) <> wanted.net
        or s.net is distinct from wanted.net
        or s.revision is distinct from ${decided.length}
        or paid.settlements > ${decided.length}
        or paid.reversals > ${decided.length - 1}
      )
    limit 3`;
  t.same(wrong, [], 'everybody is paid exactly once');
  t.same(await findWrongAccounts(sql), [], 'balances are the sums of the ledger');
  // Each forecast is weighted by the time in which other agents also have a forecast. For the first
  // agent, this time starts with the second forecast.
  const [sums] = await sql`
    with times as (
      select agent_id, lead(created_at) over by_time as next, created_at, row_number() over by_time as n
      from predictions
      where question_id = ${id}
      window by_time as (order by created_at)
    )
    select
      count(*)::integer as count,
      abs(
        sum(
          relative * extract(
            epoch from date_trunc('milliseconds', q.closed_at)
              - case t.n when 1 then t.next else t.created_at end
          )
        )
      ) < 1e-3 as is_even
    from scores s
    join questions q on q.id = s.question_id
    join times t using (agent_id)
    where s.question_id = ${id}`;
  t.same(sums, { count, is_even: true }, 'relative scores sum to 0');
  const found = await untilNone(() => findDifferences({ sql, ...service }), 60_000);
  t.same(found, [], 'the stores agree');
};

const times = <T>(n: number, one: T): T[] => Array.from({ length: n }, () => one);

t.test('what settles is killed and sleeps', fault_limits, async (t) => {
  const env = { ADMIN_KEY: admin_key };
  const service = await startService(t, { agents: count, questions: 3, env });

  await t.test('kill -9 of Postgres and of Redis', async (t) => {
    const subject = await makeSubject(t, service, 0);
    await subject.resolve(true);
    const strikes = (['Postgres', 'Redis', 'Postgres'] as const).map((store) => {
      return () => service.kill(store);
    });
    t.ok((await subject.strikeUnderWay(strikes)) >= 2, 'they were killed under way');
    await compareBooks(t, service, subject);
  });

  await t.test('kill -9 of the timer, and the other outcome after it', async (t) => {
    const subject = await makeSubject(t, service, 1);
    // After each kill, settling waits until the lease expires.
    const kills = times(is_long ? 4 : 1, () => service.kill('timer'));
    for (const outcome of [true, false]) {
      await subject.resolve(outcome);
      const killed = await subject.strikeUnderWay(kills);
      t.ok(killed >= Math.max(1, kills.length - 1), `it was killed ${killed} times under way`);
      await compareBooks(t, service, subject);
    }
  });

  await t.test('two timers, one of which sleeps through its lease and wakes up', async (t) => {
    const subject = await makeSubject(t, service, 2);
    const second = await startMoreRoles(t, service, ['timer']);
    const timers = [...service.pidsOf('timer'), ...second.pidsOf('timer')];
    t.equal(timers.length, service.hosts.length + 1);
    await subject.resolve(true);
    const sleeps = times(is_long ? 2 : 1, timers)
      .flat()
      .map((pid) => async () => {
        const wake = putToSleep(pid);
        const before = await subject.readDone();
        // A timer that is paused inside a transaction locks its rows for 5 s. That is longer than a
        // lease, so the timer has lost its lease when it wakes up.
        const goesOn = async () => (await subject.readDone()) > before;
        await until('the other goes on', goesOn).finally(wake);
      });
    t.ok((await subject.strikeUnderWay(sleeps)) >= 2, 'both slept under way');
    await compareBooks(t, service, subject);
  });
  t.same(service.troubles(60), [], 'no process died of an error');
});
