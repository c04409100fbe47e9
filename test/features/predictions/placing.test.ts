import { setImmediate as nextTurn } from 'node:timers/promises';
import { agentId, questionId, seed } from '../../../bench/env/seed.js';
import { makeReasoning } from '../../../bench/load/predict-texts.js';
import type { Sql } from '../../../src/db/client.js';
import { makeApiKey } from '../../../src/features/accounts/rules.js';
import {
  type Needs,
  type Placed,
  prepare,
  storePrepared,
} from '../../../src/features/predictions/answering.js';
import { createOriginality, createPlacing } from '../../../src/features/predictions/index.js';
import { createQuestionCache } from '../../../src/features/questions/index.js';
import type { Claim } from '../../../src/http/route.js';
import { type Fault, isFault } from '../../../src/kit/fault.js';
import { makeId } from '../../../src/kit/ids.js';
import { openParts } from '../../help/parts.js';
import { pluck } from '../../help/pluck.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** The group commit of predictions, without routes: lost commits and lost in-memory state. */

const agents = 40;
const questions = 4;

const openWorld = async (config: { readonly ORIGINALITY_MB?: number } = {}) => {
  const { deps } = await openParts(t);
  const { sql } = deps;
  await seed(sql, { keys: Array.from({ length: agents }, makeApiKey), questions });
  const never = () => Promise.reject(new Error('not a batch'));
  /** Starts a separate api process, which uses `db` if that is given. */
  const start = (db: Sql = sql) => {
    const originality = createOriginality(db, { ...deps.config, ...config });
    const placing = createPlacing({ ...deps, sql: db, originality });
    const questions = createQuestionCache(deps);
    const parts: Needs = {
      ...deps,
      originality,
      placing,
      link_check: null,
      takePrediction: never,
      questions,
    };
    const predict = async (
      agent: number,
      question: number,
      reasoning = makeReasoning(agent),
      claim: Claim | null = null,
    ) => {
      const request = {
        question_id: questionId(question),
        body: { prediction: true, confidence: 80, reasoning },
        body_digest: Buffer.from(`${reasoning}`).toString('hex').slice(0, 64),
        claim,
        agent: {
          ...({ kind: 'agent', id: agentId(agent), name: `Agent ${agent}` } as const),
          model: 'gpt-5',
          model_family: 'gpt',
          owner_id: agentId(agents - 1),
        },
      };
      const prepared = await prepare(parts, request);
      const is_ready = !isFault(prepared) && 'kind' in prepared;
      return is_ready ? storePrepared(parts, request, prepared) : prepared;
    };
    return { predict, placing };
  };
  return { sql, start };
};

const outcome = (made: Placed | Fault): string =>
  isFault(made) ? made.def.code : made.replayed ? 'replayed' : 'placed';

/** Stores batches, but loses the answers to the first `times` of them. */
const losing = (sql: Sql, times: number): Sql => {
  let left = times;
  return new Proxy(sql, {
    apply(target, _, [text, ...values]: Parameters<Sql>) {
      const query = target(text as never, ...(values as never[]));
      if (!String(text).includes('insert into predictions') || left === 0) return query;
      left -= 1;
      const lost = Object.assign(new Error('the answer was lost'), { code: 'CONNECTION_CLOSED' });
      return (query as unknown as Promise<unknown>).then(() => Promise.reject(lost));
    },
  });
};

t.test('a commit whose answer is lost is an outage; a repeat gets the first result', async (t) => {
  const { sql, start } = await openWorld();
  const { predict } = start(losing(sql, 1));
  const [one, other] = [makeReasoning(1), makeReasoning(2)];
  const lost = await Promise.allSettled([predict(1, 0, one), predict(2, 0, other)]);
  t.same(pluck(lost, 'status'), ['rejected', 'rejected']);
  t.same(outcome(await predict(1, 0, one)), 'replayed');
  t.same(outcome(await predict(2, 0, makeReasoning(9))), 'DUPLICATE_PREDICTION');
  t.same(outcome(await predict(3, 0, other)), 'CITATIONS_REUSED', 'compared with what is stored');
  t.same(outcome(await predict(3, 0, makeReasoning(3))), 'placed');
  const rows = await sql<{ seq: number }[]>`select seq from predictions order by seq`;
  t.same(pluck(rows, 'seq'), [1, 2, 3]);
});

t.test('memories that are forgotten for want of room are read again', async (t) => {
  const { sql, start } = await openWorld({ ORIGINALITY_MB: 0.01 });
  const { predict } = start();
  for (let n = 0; n < 8; n += 1) t.equal(outcome(await predict(n, n % questions)), 'placed');
  for (let n = 0; n < 8; n += 1) {
    const again = await predict(n + 8, n % questions, makeReasoning(n));
    t.ok(isFault(again));
    t.match(again, { def: { code: 'CITATIONS_REUSED' } }, `text ${n}`);
  }
  const [row] = await sql`select count(*)::int as count from predictions`;
  t.equal(row?.['count'], 8);
});

t.test('a batch that would give a number twice is refused as a whole', async (t) => {
  const { sql, start } = await openWorld();
  const { predict } = start();
  t.equal(outcome(await predict(0, 0)), 'placed');
  // Simulates a process that assigned numbers without the lock.
  await sql`update question_seqs set seq = 0 where question_id = ${questionId(0)}`;
  await t.rejects(predict(1, 0), { code: '23505' });
  await sql`update question_seqs set seq = 1 where question_id = ${questionId(0)}`;
  t.equal(outcome(await predict(1, 0)), 'placed');
});

t.test(
  'an agent that predicts by two processes at once is told of its first prediction',
  async (t) => {
    const { sql, start } = await openWorld();
    const [one, other] = [start(), start()];
    const waiting = (count: number) =>
      until(`${count} wait for the lock`, async () => {
        const [row] = await sql<{ n: number }[]>`
        select count(*)::int as n from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
        return row?.n === count;
      });
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const holding = sql.begin(async (tx) => {
      await tx`select from questions where id = ${questionId(0)} for update`;
      await released;
    });
    const first = one.predict(1, 0, makeReasoning(1));
    await waiting(1);
    // With an idempotency key, the first of several statements sees the state before the wait.
    const claim = { scope: 'x', key: 'x', lease_id: makeId(), kept: null } as unknown as Claim;
    const second = other.predict(1, 0, makeReasoning(2), claim);
    await waiting(2);
    release();
    await holding;
    t.same([outcome(await first), outcome(await second)], ['placed', 'DUPLICATE_PREDICTION']);
  },
);

t.test('processes at once on one question: nothing twice, no gap, nothing alike', async (t) => {
  const { sql, start } = await openWorld();
  const processes = [start(), start(), start()];
  const texts = Array.from({ length: 60 }, (_, n) => makeReasoning(n));
  const pick = (below: number): number => Math.floor(Math.random() * below);
  const calls = Array.from({ length: 600 }, async (_, n) => {
    for (let turns = pick(200); turns > 0; turns -= 1) await nextTurn();
    const reasoning = texts[pick(texts.length)] as string;
    return outcome(await processes[n % 3]!.predict(pick(agents - 1), pick(questions), reasoning));
  });
  const outcomes = await Promise.all(calls);
  const placed = outcomes.filter((one) => one === 'placed').length;
  t.ok(placed > questions * 5, `${placed} placed`);
  const rows = await sql<{ question_id: string; agent_id: string; reasoning: string }[]>`
    select question_id, agent_id, reasoning from predictions`;
  t.equal(rows.length, placed, 'every answer has its row');
  const keys = (name: 'question_id' | 'agent_id') =>
    rows.map((row) => `${row[name]} ${row.reasoning}`);
  t.equal(new Set(keys('question_id')).size, placed, 'no text twice on a question');
  t.equal(new Set(keys('agent_id')).size, placed, 'no pages twice by an agent');
  const numbers = await sql`
    select s.seq, max(p.seq) as last, count(*)::int as count
    from question_seqs s join predictions p using (question_id)
    group by s.question_id, s.seq`;
  for (const { seq, last, count } of numbers) t.same([seq, last], [count, count], 'no gap');
  const [events] = await sql`
    select count(*)::int as count from outbox where event = 'prediction.placed'`;
  t.equal(events?.['count'], placed, 'each with its event');
});
