import type { Test } from 'tap';
import { seedForecasts } from '../../bench/env/seed.js';
import { findDifferences } from '../../src/tools/verify/differences.js';
import { makeCaller } from './app.js';
import { startService, type TestService } from './service.js';
import { closeQuestion, decide, findWrongAccounts } from './settling.js';
import { until } from './until.js';

/** A service with a question of many predictions that resolves while something is taken away. */

const count = 5_000;
const admin_key = 'test-admin-key-0123456789abcdefghij';

export interface World extends TestService {
  readonly question_id: string;
  done(): Promise<number>;
  resolve(outcome: boolean): Promise<void>;
}

export const makeWorld = async (t: Test): Promise<World> => {
  const service = await startService(t, {
    agents: count,
    questions: 2,
    env: { ADMIN_KEY: admin_key },
  });
  const { sql } = service;
  await seedForecasts(sql, { question: 0, first_agent: 0, count, events: true });
  const question_id = service.questions[0]?.id ?? '';
  await closeQuestion(service, question_id);
  const app = { call: makeCaller(service.url) };
  return {
    ...service,
    question_id,
    async done() {
      const [row] = await sql<{ done: number }[]>`
        select done from resolutions order by revision desc limit 1`;
      return row?.done ?? 0;
    },
    async resolve(outcome) {
      const answer = await decide(app, question_id, 'resolve', { outcome });
      t.equal(answer.status, 202);
      t.equal(answer.body.resolution.total, count);
    },
  };
};

/** Waits until it goes on and is not over; false when it is. */
export const untilUnderWay = async (world: World): Promise<boolean> => {
  const before = await world.done();
  let now = before;
  await until(
    'the settling goes on',
    async () => {
      now = await world.done();
      return now > before || now === count;
    },
    20_000,
  );
  return now < count;
};

export const untilDone = (world: World) =>
  until('all is settled', async () => (await world.done()) === count, 60_000);

/** Net of chance p, as the contract writes it for yes/no and weight 1: 100 · (1 − 4·(p − o)²). */
export const compareBooks = async (t: Test, world: World, revisions: readonly boolean[]) => {
  const { sql, question_id } = world;
  const outcome = revisions[revisions.length - 1] === true;
  const wrong = await sql`
    with paid as (
      select
        subject_id,
        sum(amount) as total,
        count(*) filter (where reason = 'settlement') as settlements,
        count(*) filter (where reason = 'reversal') as reversals
      from ledger
      where question_id = ${question_id}
      group by subject_id
    )
    select p.probability, paid.*, s.net
    from predictions p
    left join paid on paid.subject_id = p.id
    left join scores s on s.question_id = p.question_id and s.agent_id = p.agent_id
    cross join lateral (
      select round(100 - 0.04 * (p.probability - ${outcome ? 100 : 0}) ^ 2) as net
    ) wanted
    where p.question_id = ${question_id}
      and (
        coalesce(paid.total, 0) <> wanted.net
        or s.net is distinct from wanted.net
        or s.revision is distinct from ${revisions.length}
        or paid.settlements > ${revisions.length}
        or paid.reversals > ${revisions.length - 1}
      )
    limit 3`;
  t.same(wrong, [], 'everybody is paid exactly once');
  t.same(await findWrongAccounts(sql), [], 'balances are the sums of the ledger');
  const [sums] = await sql`
    select count(*)::integer as count, abs(sum(relative)) < 1e-6 as is_even from scores`;
  t.same(sums, { count, is_even: true }, 'relative scores sum to 0');
  let found: readonly string[] = [];
  const look = async (): Promise<boolean> => {
    found = await findDifferences(world);
    return found.length === 0;
  };
  await until('the stores agree', look, 60_000).catch(() => undefined);
  t.same(found, [], 'the stores agree');
};
