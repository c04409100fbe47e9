import { readPages, type Sql, type Tx } from '../../db/client.js';
import { net as netOf, type PointsRule, points_rule } from '../../features/points/rules.js';
import {
  type QuestionTimes,
  scoreOverTime,
  spansOf,
} from '../../features/points/time-weighting.js';
import { type RangeColumns, rangeOf } from '../../features/questions/range.js';
import type { QuestionType } from '../../features/questions/schema.js';
import { questionTimes, statedForecasts } from '../../features/resolution/index.js';
import { scoreNumber } from '../../features/resolution/numbers.js';
import { correctIndices, countOptions } from '../../features/resolution/rules.js';
import { type ForecastAt, scoringTimeOf, toTimed } from '../../features/resolution/timed.js';
import { firstIdAt } from '../../kit/ids.js';
import { snapshot_queries } from './consensus-store.js';
import { webhook_queries } from './deliveries-store.js';
import { chunk, findBy, type Query, shown } from './parts.js';

/**
 * Checks the record against itself, by queries that find nothing when all is well. Postgres
 * computes the sums and joins and spills them to disk, so no memory grows here.
 */

/** Compares accounts with the ledger, and the ledger with predictions and referrals. */
export const points_queries: readonly Query[] = [
  (tx) => tx`
    select
      'agent ' || agent_id || ': balance ' || coalesce(a.balance::text, 'none')
      || ', the sum of the ledger is ' || coalesce(l.total, 0) as what
    from accounts a
    full join (select agent_id, sum(amount) as total from ledger group by agent_id) l
      using (agent_id)
    where a.balance is distinct from coalesce(l.total, 0)`,
  // Stakes and debts from older versions: all stakes must be returned, and all debts repaid.
  (tx) => tx`
    select
      'agent ' || agent_id || coalesce(': the stakes of prediction ' || subject_id || ' add up to ',
      ' owes ') || sum(amount) || ' points' as what
    from ledger
    where reason in ('stake', 'stake_returned', 'debt_advanced', 'debt_repaid')
    group by agent_id, subject_id
    having sum(amount) <> 0`,
  (tx) => tx`
    select 'agent ' || g.id || ' has no account' as what
    from agents g
    where not exists (select from accounts a where a.agent_id = g.id)`,
  (tx) => tx`
    select
      'recruiter ' || agent_id || ' was paid for ' || count(*)
      || ' recruits, but the last one has number ' || max(ordinal) as what
    from referrals
    group by agent_id
    having count(*) <> max(ordinal)`,
  (tx) => tx`
    select
      'recruit ' || coalesce(r.recruit_id, l.subject_id) || ' of '
      || coalesce(r.agent_id, l.agent_id) || ': bonus ' || coalesce(r.bonus::text, 'none') || ', '
      || coalesce(l.count, 0) || ' ledger entries with the sum ' || coalesce(l.total, 0) as what
    from referrals r
    full join (
      select agent_id, subject_id, count(*) as count, sum(amount) as total
      from ledger
      where reason = 'referral'
      group by agent_id, subject_id
    ) l on l.agent_id = r.agent_id and l.subject_id = r.recruit_id
    where l.count is distinct from 1 or r.bonus is null or l.total <> r.bonus`,
  (tx) => tx`
    select 'agent ' || r.recruit_id || ' was not recruited by ' || r.agent_id as what
    from referrals r
    left join agents a on a.id = r.recruit_id
    where a.referred_by is distinct from r.agent_id`,
];

/** When the oldest stored event was recorded, plus a minute because clocks may differ. */
const keptSince = (tx: Tx) => tx`coalesce(
  (
    select e.recorded_at + interval '1 minute'
    from log_head h
    join events e on e."offset" = h.oldest
    where h.oldest > 1
  ),
  '-infinity'
)`;

/** Compares the log with itself and with its predictions. */
const log_queries: readonly Query[] = [
  (tx) => tx`
    select
      'the log has ' || count || ' events (' || different || ' different offsets) from ' || oldest
      || ' to ' || newest || '; its oldest is ' || kept_from || ', and its head is ' || head as what
    from (
      select
        count(*) as count,
        count(distinct e."offset") as different,
        min(e."offset") as oldest,
        max(e."offset") as newest,
        (select oldest from log_head) as kept_from,
        (select "offset" from log_head) as head
      from events e
      where e."offset" >= (select oldest from log_head)
    ) log
    where count <> head - kept_from + 1
      or different <> count
      or (count > 0 and (oldest <> kept_from or newest <> head))`,
  // Events before the oldest stored one are gone, so their predictions need no event.
  (tx) => tx`
    with placed as (
      select id, count(*) as count, min(event) as event, min(body) as body
      from (
        select id, event, body from events where event like 'prediction.%'
        union all
        select id, event, body from outbox where event like 'prediction.%'
      ) known
      group by id
    )
    select
      case
        when f.event_id is null then 'event ' || e.id || ' belongs to no prediction'
        when e.id is null then 'prediction ' || f.prediction_id || ' has no event'
        when e.count > 1 then 'prediction ' || f.prediction_id || ' has ' || e.count || ' events'
        else 'event ' || e.id || ' does not belong to its prediction ' || f.prediction_id
      end as what
    from forecasts f
    full join placed e on e.id = f.event_id
    where (
        e.id is null
        and f.forecast_at > ${keptSince(tx)}
      )
      or f.event_id is null
      or e.count > 1
      or e.event <> case f.revision when 0 then 'prediction.placed' else 'prediction.revised' end
      or (e.body::jsonb #>> '{data,prediction_id}')::uuid <> f.prediction_id`,
  (tx, settled_before_id) => tx`
    select count(*) || ' events wait in the outbox' as what
    from outbox
    where id < ${settled_before_id}
    having count(*) > 0`,
];

/** Compares comments and votes with their counters, their events and their limits. */
const conversation_queries: readonly Query[] = [
  (tx) => tx`
    select 'comment ' || c.id || ' is at the wrong place in its thread' as what
    from comments c
    left join comments p on p.question_id = c.question_id and p.id = c.parent_id
    where c.parent_id is not null
      and (
        p.id is null
        or c.depth <> p.depth + 1
        or c.root_id <> p.root_id
        or c.prediction_id is distinct from p.prediction_id
      )`,
  (tx) => tx`
    select 'comment ' || c.id || ' has no event' as what
    from comments c
    where not exists (select from outbox o where o.id = c.event_id)
      and not exists (
        select from events e where e.id = c.event_id and e.event = 'comment.created'
      )
      and c.created_at > ${keptSince(tx)}`,
  (tx) => tx`
    select 'a vote of ' || v.agent_id || ' is for a missing ' || v.kind as what
    from votes v
    left join predictions p
      on v.kind = 'prediction' and p.question_id = v.question_id and p.agent_id = v.author_id
      and p.id = v.subject_id
    left join comments c
      on v.kind = 'comment' and c.question_id = v.question_id and c.id = v.subject_id
      and c.agent_id = v.author_id
    where p.id is null and c.id is null`,
  (tx) => tx`
    select
      'agent ' || v.agent_id || ' has voted on content of ' || v.author_id || ', of the same owner'
        as what
    from votes v
    join agents a on a.id = v.agent_id
    join agents b on b.id = v.author_id
    where a.owner_id = b.owner_id`,
];

/** Compares disputes with resolutions, and hidden content with the actions of admins. */
export const moderation_queries: readonly Query[] = [
  (tx) => tx`
    select 'dispute ' || d.id || ' ' || wrong.what as what
    from disputes d
    left join resolutions r
      on r.question_id = d.question_id and r.revision = coalesce(d.new_revision, d.revision)
    cross join lateral (
      select 'is upheld by revision ' || d.new_revision || ', which does not exist' as what
      where d.status = 'upheld' and r.revision is null
      union all
      select 'is upheld by a revision that is not later than its own'
      where d.status = 'upheld' and d.new_revision <= d.revision
      union all
      select 'is about revision ' || d.revision || ', which does not exist'
      where d.status <> 'upheld' and r.revision is null
      union all
      select 'belongs to an agent that did not predict'
      where not exists (
        select from predictions p where p.question_id = d.question_id and p.agent_id = d.agent_id
      )
      union all
      select 'is decided by no act of an admin, or by several'
      where d.status in ('upheld', 'rejected')
        and 1 <> (
          select count(*)
          from audit_log l
          where l.subject_id = d.id::text
            and l.act = case d.status when 'upheld' then 'dispute.uphold' else 'dispute.reject' end
        )
    ) wrong`,
  (tx) => tx`
    select
      'revision ' || r.revision || ' of ' || r.question_id || ' is decided by ' || r.decided_by
        || ', which is not upheld' as what
    from resolutions r
    where r.decided_by like 'dispute:%'
      and not exists (
        select from disputes d
        where d.question_id = r.question_id
          and 'dispute:' || d.id = r.decided_by
          and d.status = 'upheld'
          and d.new_revision = r.revision
      )`,
  // The latest action on an item says whether the item is hidden.
  (tx) => tx`
    select c.kind || ' ' || c.id || ' is hidden, but no act of an admin hid it' as what
    from (
      select 'prediction' as kind, id from predictions where hidden_at is not null
      union all
      select 'comment', id from comments where hidden_at is not null
    ) c
    left join lateral (
      select act
      from audit_log l
      where l.subject_id = c.id::text and l.subject_kind = c.kind
      order by l.id desc
      limit 1
    ) l on true
    where l.act is distinct from c.kind || '.hide'`,
];

const question_queries: readonly Query[] = [
  // Compares every counter with the rows that it counts. Counters of questions move with the log,
  // so rows whose event is still in the outbox do not count.
  (tx) => tx`
    select
      kind || ' ' || id || ' counts ' || coalesce(kept.count, 0) || ' ' || unit || ' instead of '
      || coalesce(counted.count, 0) as what
    from (
      select 'question' as kind, question_id as id, unit, count
      from question_counts
      cross join lateral (
        values
          ('predictions', prediction_count), ('times YES', yes_count), ('times NO', no_count),
          ('comments', comment_count)
        union all
        select 'times option ' || n, count from unnest(option_counts) with ordinality as o (count, n)
      ) one (unit, count)
      union all
      select 'comment', id, unit, count
      from comments
      cross join lateral (values ('replies', replies), ('upvotes', upvotes)) one (unit, count)
      union all
      select 'prediction', id, unit, count
      from predictions
      cross join lateral (values ('upvotes', upvotes), ('downvotes', downvotes)) one (unit, count)
    ) kept
    full join (
      select 'question' as kind, question_id as id, unit, count(*) as count
      from (
        -- The latest forecast of each prediction that is in the log.
        select distinct on (question_id, agent_id) *
        from forecasts f
        where not exists (select from outbox o where o.id = f.event_id)
        order by question_id, agent_id, revision desc
      ) f
      cross join lateral (
        values
          ('predictions'), ('times option ' || (selected_option + 1)),
          (case prediction when true then 'times YES' when false then 'times NO' end)
      ) one (unit)
      where unit is not null
      group by 2, 3
      union all
      select 'question', question_id, 'comments', count(*)
      from comments c
      where hidden_at is null and not exists (select from outbox o where o.id = c.event_id)
      group by 2
      union all
      select 'comment', parent_id, 'replies', count(*)
      from comments
      where parent_id is not null and hidden_at is null
      group by 2
      union all
      select kind::text, subject_id, case value when 1 then 'upvotes' else 'downvotes' end, count(*)
      from votes
      group by 1, 2, 3
    ) counted using (kind, id, unit)
    where coalesce(kept.count, 0) <> coalesce(counted.count, 0)`,
  // A question agrees with its latest decision, and no revision of the decision is missing.
  (tx) => tx`
    select
      'question ' || q.id || ' is ' || q.status || ' at revision ' || q.revision || ', decided '
      || coalesce(d.kind || ' at revision ' || d.revision || ' of ' || d.count, 'never') as what
    from questions q
    left join (
      select distinct on (question_id)
        question_id, revision, kind, outcome, correct_options, outcome_value,
        count(*) over (partition by question_id) as count
      from resolutions
      order by question_id, revision desc
    ) d on d.question_id = q.id
    where q.revision <> coalesce(d.revision, 0)
      or q.revision <> coalesce(d.count, 0)
      or (q.status = 'resolved') <> (d.kind is not distinct from 'resolve')
      or (q.status = 'voided' and q.revision > 0) <> (d.kind is not distinct from 'void')
      or (
        q.status = 'resolved'
        and (q.outcome, q.correct_options, q.outcome_value)
          is distinct from (d.outcome, d.correct_options, d.outcome_value)
      )`,
  (tx) => tx`
    select 'the score of ' || s.prediction_id || ' has no prediction' as what
    from scores s
    left join predictions p on p.question_id = s.question_id and p.agent_id = s.agent_id
    where p.id is distinct from s.prediction_id`,
  // Originality relies on this: no prediction has a number that was not assigned.
  (tx) => tx`
    select
      'question ' || question_id || ' has numbered predictions up to ' || max(p.seq)
      || ', but only ' || coalesce(n.seq, 0) || ' numbers are assigned' as what
    from predictions p
    left join question_seqs n using (question_id)
    group by question_id, n.seq
    having max(p.seq) > coalesce(n.seq, 0)`,
  // An agent without a row in `last_predictions` cannot predict.
  (tx) => tx`
    select
      'agent ' || a.id || case
        when l.agent_id is null then ' has no row for its last prediction'
        else ' has a last prediction that does not exist'
      end as what
    from agents a
    left join last_predictions l on l.agent_id = a.id
    left join predictions p on p.agent_id = l.agent_id and p.id = l.prediction_id
    where l.agent_id is null or p.id is distinct from l.prediction_id`,
  (tx) => tx`
    select count(*) || ' predictions have the id ' || id as what
    from predictions
    group by id
    having count(*) > 1`,
];

interface PaidPrediction extends QuestionTimes, Omit<RangeColumns, 'unit'> {
  readonly question_type: QuestionType;
  readonly id: string;
  /** All forecasts that counted, in their order. */
  readonly forecasts: readonly ForecastAt[];
  readonly weight: number;
  readonly options: readonly string[];
  /** The latest decision that has been applied to this agent. Null while the prediction is open. */
  readonly kind: 'resolve' | 'void' | null;
  readonly revision: number | null;
  readonly outcome: boolean | null;
  readonly correct_options: readonly string[] | null;
  readonly outcome_value: number | null;
  readonly points_rule: PointsRule | null;
  readonly scored_net: number | null;
  readonly scored_revision: number | null;
  readonly brier: number | null;
  readonly crps: number | null;
  /** Sum of settlements and reversals. */
  readonly total: number;
}

const readPaid = (tx: Tx): AsyncIterable<readonly PaidPrediction[]> =>
  readPages(
    tx,
    tx<PaidPrediction[]>`
    with paid as (
      select agent_id, subject_id, sum(amount)::integer as total
      from ledger
      where reason in ('settlement', 'reversal')
      group by agent_id, subject_id
    )
    select
      p.id, ${statedForecasts(tx)}, q.weight, q.options, ${questionTimes(tx)}, d.kind,
      d.revision, d.outcome, d.correct_options, d.outcome_value, d.known_at, d.points_rule, s.net as scored_net, s.revision as scored_revision, s.brier, s.crps, q.question_type,
      q.range_min, q.range_max, q.open_min, q.open_max, coalesce(l.total, 0) as total
    from predictions p
    join questions q on q.id = p.question_id
    left join paid l on l.agent_id = p.agent_id and l.subject_id = p.id
    left join scores s on s.question_id = p.question_id and s.agent_id = p.agent_id
    left join lateral (
      select r.kind, r.revision, r.outcome, r.correct_options, r.outcome_value, r.known_at, r.points_rule
      from resolutions r
      where r.question_id = p.question_id
        and (r.state <> 'running' or p.agent_id <= r.cursor_agent)
      order by r.revision desc
      limit 1
    ) d on true`,
    chunk,
  );

/** Sums of the same terms in a different order differ in their last bits. */
const tolerance = 1e-9;

const checkOne = (paid: PaidPrediction): string | null => {
  const { id, kind, total, revision, scored_net, scored_revision } = paid;
  if (kind !== 'resolve') {
    if (total === 0 && scored_revision === null) return null;
    const state = kind === null ? 'open' : 'void';
    const scored = scored_revision === null ? 'no score' : 'a score';
    return `prediction ${id} is ${state}, but the ledger says ${total}, and it has ${scored}`;
  }
  const { net, score } = scoreAgain(paid);
  if (total !== net) return `prediction ${id} earns ${net}, but the ledger says ${total}`;
  if (score === null) {
    return scored_net === null ? null : `prediction ${id} came too late, but it has a score`;
  }
  if (scored_net !== net || scored_revision !== revision) {
    return `prediction ${id} earns ${net} by revision ${revision}, but its score says ${scored_net} by ${scored_revision}`;
  }
  const kept = paid.crps ?? paid.brier;
  if (Math.abs(score.loss - (kept ?? 9)) <= tolerance) return null;
  return `prediction ${id} has a ${score.name} of ${score.loss}, but ${kept} is stored`;
};

/**
 * Returns the net points, and the loss on which they are based. The score is null if the prediction
 * came too late.
 */
const scoreAgain = (paid: PaidPrediction) => {
  const { weight, options, points_rule: rule, outcome_value, forecasts } = paid;
  const time = scoringTimeOf(paid, forecasts);
  const range = rangeOf(paid);
  if (range !== null && outcome_value !== null) {
    const spans = spansOf(forecasts, time);
    if (spans.length === 0) return { net: 0, score: null };
    const { net, crps: loss } = scoreNumber(spans, { range, weight, outcome_value });
    return { net, score: { name: 'CRPS', loss } };
  }
  const correct = correctIndices(paid, options);
  const timed = forecasts.map((one) => toTimed(one, countOptions(options)));
  const spans = spansOf(timed, time);
  const score = spans.length === 0 ? null : scoreOverTime(spans, { correct, weight });
  const is_older = rule !== null && rule !== points_rule;
  const net = is_older ? netOf({ ...timed.at(-1)!, weight, correct, rule }) : (score?.net ?? 0);
  return { net, score: score && { name: 'Brier score', loss: score.brier } };
};

/**
 * Recomputes the payout of each prediction from its forecasts and the decision. An open or voided
 * prediction earns nothing. A resolved one earns its net exactly once, by the latest revision that
 * has been applied to it.
 */
export const checkPayouts = async (tx: Tx): Promise<readonly string[]> => {
  const found: string[] = [];
  for await (const page of readPaid(tx)) {
    found.push(...page.flatMap((paid) => checkOne(paid) ?? []).slice(0, shown - found.length));
  }
  return found;
};

const queries: readonly Query[] = [
  ...points_queries,
  ...log_queries,
  ...conversation_queries,
  ...moderation_queries,
  ...webhook_queries,
  ...question_queries,
  ...snapshot_queries,
];

const latest_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const statement_ms = 120_000;

/** Returns the contradictions in the record, which is read as of one moment. */
export const checkRecord = (sql: Sql, under_way_ms: number): Promise<readonly string[]> =>
  sql.begin({ mode: 'isolation level repeatable read read only', statement_ms }, async (tx) => {
    const before_id = under_way_ms === 0 ? latest_id : firstIdAt(Date.now() - under_way_ms);
    return [...(await findBy(tx, queries, before_id)), ...(await checkPayouts(tx))];
  });

/** Counts the compared rows, for the line that says that nothing differs. */
export const countRecord = async (sql: Sql): Promise<string> => {
  const [row] = await sql<{ text: string }[]>`
    select
      'agents ' || (select count(*) from accounts)
        || ', predictions ' || (select count(*) from predictions)
        || ', events ' || (select "offset" - oldest + 1 from log_head)
        || (select case when oldest > 1 then ' from offset ' || oldest else '' end from log_head)
        as text`;
  return row?.text ?? '';
};
