import { humanId, questionId } from '../../../bench/env/seed.js';
import type { StoredFit } from '../../../src/features/consensus/fits-store.js';
import {
  createConsensusProjector,
  createLiveConsensus,
  createSnapshotTaker,
  fitToday,
  makeConsensusTopics,
} from '../../../src/features/consensus/index.js';
import { writeProjected } from '../../../src/features/events/index.js';
import { recomputeConsensus } from '../../help/consensus-oracle.js';
import { openParts } from '../../help/parts.js';
import { t } from '../../help/tap.js';
import { addPredictions, addQuestions, type Placed, without } from './world.js';

/** The daily fit of ρ: when it is made, its content, its effect, and when older fits apply. */

const day_ms = 86_400_000;
const minute_ms = 60_000;

const { deps, advance } = await openParts(t);
const { sql, redis, config } = deps;
// The clock starts at noon, so that adding minutes does not start another day.
advance(day_ms / 2 - (deps.clock().getTime() % day_ms));

const resolved = 40;
const [open, closing] = [resolved, resolved + 1];
await addQuestions(sql, { count: resolved + 2 });
const placed: Placed[] = Array.from({ length: 42 * 8 }, (_, n) => ({
  question: Math.floor(n / 8),
  agent: n % 8,
  owner: Math.floor((n % 8) / 2),
  family: n % 3 === 0 ? 'gpt' : 'claude',
  at: deps.clock(),
  value: ((n * 7_919 + Math.floor(n / 8) * 104_729) % 9_999) / 100,
}));
const entries = await addPredictions(sql, placed);
await createConsensusProjector(deps).project?.(entries);
await writeProjected(redis, config.REDIS_PREFIX, entries.length);

const end = async (question: number, change: ReturnType<typeof sql>): Promise<void> => {
  await sql`
    update questions
    set closed_at = ${deps.clock()}, ${change}
    where id = ${questionId(question)}`;
};
const readFits = async () => {
  const rows = await sql<StoredFit[]>`select * from consensus_fits order by number`;
  return rows.map((fit) => ({ ...fit, weights: { chance: fit.mixture!.chance.weights } }));
};

t.test('without a resolved question there is none; then it is made once a day', async (t) => {
  t.equal(await fitToday(deps), false);
  for (let n = 0; n < resolved; n += 1) {
    await end(n, sql`status = 'resolved', resolved_at = ${deps.clock()}, outcome = ${n % 3 === 0}`);
  }
  const made = await Promise.all([fitToday(deps), fitToday(deps)]);
  t.same(made.sort(), [false, true], 'of two timers one makes it');
  // SQL computes ρ from every pair of owners.
  const [wanted] = await sql<{ rho: number; measured: number }[]>`
    with stated as (
      select
        p.question_id, q.outcome, coalesce(p.owner_id, p.agent_id) as owner,
        ln(b.bp / (10000 - b.bp)) as x
      from predictions p
      join questions q on q.id = p.question_id and q.status = 'resolved'
      cross join lateral (select greatest(100, least(9900, p.probability))::float8 as bp) b
    ),
    residuals as (
      select s.question_id, s.owner, avg(s.x - m.mean) as r
      from stated s
      join (select outcome, avg(x) as mean from stated group by outcome) m using (outcome)
      group by s.question_id, s.owner
    ),
    pairs as (
      select a.question_id, avg(a.r * b.r) as product
      from residuals a
      join residuals b on b.question_id = a.question_id and b.owner <> a.owner
      group by a.question_id
    ),
    squares as (select question_id, avg(r * r) as square from residuals group by question_id),
    measured as (select avg(product) / avg(square) as measured from pairs join squares using (question_id))
    select
      measured,
      round(least(0.99, greatest(0, (${resolved} * measured + 120) / ${resolved + 200}))::numeric, 4)
        ::float8 as rho
    from measured`;
  const [fit] = await readFits();
  t.match(fit, { number: 1, questions: resolved, rho: wanted?.rho, fitted_at: deps.clock() });
  t.ok(Math.abs((fit?.measured ?? 8) - (wanted?.measured ?? 9)) < 1e-7);
  t.same(fit?.from_at, new Date(deps.clock().getTime() + 5 * minute_ms));
  const { chance, number } = fit!.mixture!;
  t.equal(chance.questions, resolved);
  t.match(number, { questions: 0, headline_loss: null, losses: null, weights: [0.5, 0.5] });
  const raw = chance.losses!.map((loss) => Math.exp((-resolved / 240) * resolved * loss));
  for (const [n, one] of raw.entries()) {
    const weight = one / (raw[0]! + raw[1]! + raw[2]! + raw[3]!);
    t.ok(Math.abs(chance.weights[n]! - weight) < 1e-9, `weight ${n}`);
  }
});

t.test(
  'it is in force minutes later, in every process, and a closed question keeps its own',
  async (t) => {
    const [fit] = await readFits();
    const known = createLiveConsensus(deps);
    const topics = makeConsensusTopics(known);
    const ask = async (question: number, live = createLiveConsensus(deps)) =>
      without({ ...(await live.find(questionId(question))) });
    const first = (await recomputeConsensus(sql)).get(questionId(open));
    t.strictSame(await ask(open, known), first);
    const version = (await topics.read(`consensus:${questionId(open)}`))?.version;
    advance(4 * minute_ms);
    t.strictSame(await ask(open, known), first, 'it is not in force yet');
    await end(closing, sql`status = 'closed'`);
    advance(minute_ms);
    const second = (await recomputeConsensus(sql, fit)).get(questionId(open));
    t.notSame(second, first);
    t.strictSame(await ask(open, known), second);
    t.strictSame(await ask(open), second);
    const now = await topics.read(`consensus:${questionId(open)}`);
    t.ok((now?.version ?? 0) > (version ?? 0), 'a state that is another has another version');
    const kept = (await recomputeConsensus(sql)).get(questionId(closing));
    t.strictSame(await ask(closing, known), kept);
    await createSnapshotTaker(deps).turn();
    const snapshots = await sql`
    select question_id, consensus
    from consensus_snapshots
    where reason = 'hourly' and question_id = any (${[open, closing].map(questionId)}::uuid[])
    order by question_id`;
    t.strictSame(
      snapshots.map(({ consensus }) => without(consensus)),
      [second, kept],
    );
    await sql`update questions set status = 'open', closed_at = null where id = ${questionId(closing)}`;
    const reopened = (await recomputeConsensus(sql, fit)).get(questionId(closing));
    t.strictSame(await ask(closing, known), reopened, 'once it is open again, it follows');
  },
);

t.test('the next day has another one', async (t) => {
  t.equal(await fitToday(deps), false);
  advance(day_ms / 2);
  t.equal(await fitToday(deps), true);
  t.same(
    (await readFits()).map(({ number }) => number),
    [1, 2],
  );
});

t.test('a question counts with three owners, and each imported agent is one', async (t) => {
  const countWith = async (owner_id: string | null): Promise<number | undefined> => {
    advance(day_ms);
    await sql`update predictions set owner_id = ${owner_id} where question_id = ${questionId(0)}`;
    await fitToday(deps);
    return (await readFits()).at(-1)?.mixture?.chance.questions;
  };
  t.equal(await countWith(humanId(0)), resolved - 1);
  t.equal(await countWith(null), resolved);
});
