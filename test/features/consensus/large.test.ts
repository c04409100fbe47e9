import { questionId } from '../../../bench/env/seed.js';
import type { Tx } from '../../../src/db/client.js';
import {
  createConsensusProjector,
  createLiveConsensus,
} from '../../../src/features/consensus/index.js';
import { writeProjected } from '../../../src/features/events/index.js';
import { makeRandom } from '../../help/long-run.js';
import { openParts } from '../../help/parts.js';
import { t } from '../../help/tap.js';
import { addPredictions, addQuestions, addRevisions, type Placed } from './world.js';

/**
 * One question with many predictions, each revised four times. After 1,000 more events, the
 * consensus still equals the result computed in SQL. TEST_PREDICTIONS=100000 makes it a long run.
 */

const count = Number(process.env['TEST_PREDICTIONS'] ?? 3_000);
const revisions = 4;
t.setTimeout(600_000);

const { deps } = await openParts(t);
const { sql, redis, config } = deps;
const question_id = questionId(0);
await addQuestions(sql, { count: 1 });

/** Forecasts in the tables and the log. Some agents of one owner belong to different families. */
const fill = (tx: Tx) => tx`
  with forecast as (
    select
      a.agent,
      r.revision,
      ('01900000-0000-7000-8000-' || lpad(to_hex(a.agent), 12, '0'))::uuid as agent_id,
      ('01900000-0000-7000-8001-' || lpad(to_hex(a.agent / 3), 12, '0'))::uuid as owner_id,
      ('01900000-0000-7000-9' || lpad(to_hex(r.revision), 3, '0') || '-'
        || lpad(to_hex(a.agent), 12, '0'))::uuid as event_id,
      (array['claude', 'gpt', 'gemini', 'llama', 'other'])[1 + a.agent * 7 % 11 % 5] as family,
      abs(hashint8(a.agent * 31 + r.revision)) % 10001 as bp,
      now() - interval '1 day' + (r.revision * 3600 + a.agent % 3600) * interval '1 second' as at,
      r.revision * ${count} + a.agent + 1 as "offset"
    from generate_series(0, ${count} - 1) as a (agent)
    cross join generate_series(0, ${revisions}) as r (revision)
  ),
  earlier as (
    insert into earlier_forecasts
      (question_id, agent_id, revision, prediction, probability, confidence, event_id, created_at)
    select
      ${question_id}, agent_id, revision, bp >= 5000, bp, greatest(bp, 10000 - bp), event_id, at
    from forecast
    where revision < ${revisions}
  ),
  latest as (
    insert into predictions (
      question_id, agent_id, owner_id, id, prediction, probability, confidence, reasoning,
      citations, model_family, body_digest, event_id, created_at, revision, revised_at,
      revision_event_id
    )
    select
      ${question_id}, l.agent_id, l.owner_id, l.agent_id, l.bp >= 5000, l.bp,
      greatest(l.bp, 10000 - l.bp), repeat('A measured reason. ', 20), '{}', l.family, '',
      f.event_id, f.at, l.revision, l.at, l.event_id
    from forecast l
    join forecast f on f.agent = l.agent and f.revision = 0
    where l.revision = ${revisions}
  ),
  head as (update log_head set "offset" = ${(revisions + 1) * count}),
  counts as (
    update question_counts
    set prediction_count = ${count}, prediction_offset = ${(revisions + 1) * count}
  )
  insert into events ("offset", recorded_on, recorded_at, id, event, question_id, body)
  select
    "offset", (now() at time zone 'UTC')::date, now(), event_id,
    case when revision = 0 then 'prediction.placed' else 'prediction.revised' end,
    ${question_id}, '{}'
  from forecast`;

/** Computes every figure in SQL, by its formula. */
const bySql = async (tx: Tx) => {
  const [row] = await tx`
    with stated as (
      select
        model_family as family,
        coalesce(owner_id, agent_id) as owner,
        prediction,
        probability as p,
        confidence,
        1.0::float8 / count(*) over (partition by coalesce(owner_id, agent_id)) as w,
        round(
          ln(greatest(100, least(9900, probability))
            / (10000 - greatest(100, least(9900, probability)))::numeric), 9
        )::float8 as x
      from predictions
    ),
    weighed as (
      select family, sum(w) as weight, sum(w * x) / sum(w) as x from stated group by family
    ),
    capped as (
      select *, weight / (1 + 0.25 * greatest(0, weight - 1)) as v from weighed
    ),
    shares as (
      select s.owner, sum(s.w * c.v / c.weight) / (select sum(v) from capped) as a
      from stated s
      join capped c using (family)
      group by s.owner
    ),
    pool as (
      select
        (select sum(v * x) / sum(v) from capped) as l,
        1 / (0.6::float8 + 0.4 * (select sum(a ^ 2) from shares)) as n
    ),
    extremized as (
      select *, 3 * n / (sqrt(3 * n ^ 2 - 3 * n + 1) + 2) as d from pool
    ),
    owners as (select avg(p) as mean from stated group by owner)
    select
      count(*)::integer as total_predictions,
      (count(*) filter (where prediction))::integer as yes_count,
      round(100.0 * count(*) filter (where prediction) / count(*), 2)::float8 as yes_percent,
      round(avg(confidence) / 100, 2)::float8 as avg_confidence,
      round(avg(p) / 100, 2)::float8 as mean_probability,
      round((percentile_cont(0.5) within group (order by p))::numeric / 100, 2)::float8
        as median_probability,
      round((percentile_cont(0.25) within group (order by p))::numeric / 100, 2)::float8 as p25,
      round((percentile_cont(0.75) within group (order by p))::numeric / 100, 2)::float8 as p75,
      round((select avg(mean) from owners) / 100, 2)::float8 as by_owner_mean,
      (select round(n::numeric, 2)::float8 from extremized) as effective_forecasters,
      (select round(d::numeric, 2)::float8 from extremized) as extremizing,
      (select round((100 / (1 + exp(-d * l)))::numeric, 2)::float8 from extremized) as pooled
    from stated`;
  return row as Record<string, unknown>;
};

t.test('after 1,000 random events the tally says what the record says', async (t) => {
  const long = { statement_ms: 300_000 };
  await sql.begin(long, fill);
  await sql`analyze`;
  const projector = createConsensusProjector(deps);
  await projector.rebuild?.();
  const live = createLiveConsensus(deps);
  const next = makeRandom(5);
  const placed: Placed[] = [];
  const compare = async (): Promise<void> => {
    const [head] = await sql<{ offset: number }[]>`select "offset" from log_head`;
    await writeProjected(redis, config.REDIS_PREFIX, head?.offset ?? 0);
    const found = await createLiveConsensus(deps).find(question_id);
    const wanted = await sql.begin(long, bySql);
    t.match(found, wanted);
    t.match(await live.find(question_id), wanted, 'and what a process follows');
  };
  await compare();
  for (let round = 0; round < 10; round += 1) {
    const fresh = Array.from({ length: 50 }, (_, n): Placed => {
      const agent = 1_000 * round + n;
      const family = ['claude', 'gpt', 'new'][Math.floor(3 * next())] as string;
      const owner = Math.floor(next() * 40);
      return {
        question: 0,
        agent,
        owner,
        family,
        at: new Date(),
        value: Math.round(1e4 * next()) / 100,
      };
    });
    placed.push(...fresh);
    const revised = fresh.map((one) => {
      const { agent } = placed[Math.floor(next() * placed.length)] ?? one;
      return { ...one, agent, value: Math.round(1e4 * next()) / 100 };
    });
    const entries = [...(await addPredictions(sql, fresh)), ...(await addRevisions(sql, revised))];
    await projector.project?.(entries);
    live.onEvents(entries);
    if (round % 3 === 0) await compare();
  }
  const counted = await redis.hlen(
    `${config.REDIS_PREFIX}:{q${question_id.slice(-1)}}:tally:4:${question_id}`,
  );
  t.ok(counted < 10_001 + 5 * count, `${counted} fields`);
});
