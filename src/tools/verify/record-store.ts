import { firstIdAt } from '../../kit/ids.js';
import type { Sql } from '../../kit/pg/client.js';
import { conversation_queries } from './conversation-store.js';
import { log_queries } from './log-store.js';
import { moderation_queries } from './moderation-store.js';
import { shown } from './parts.js';
import { checkPayouts } from './payouts.js';
import { points_queries } from './points-store.js';
import type { Query, Sentence } from './query.js';
import { webhook_queries } from './webhook-store.js';

/**
 * What the record must hold by itself, as queries that find nothing when all is well. Each returns
 * sentences, at most `shown`, so that a service which is wrong everywhere still answers in one
 * page. Sums and joins are made by Postgres, which spills to disk: nothing grows here.
 */

/** Counters move with the log, so predictions whose event still waits do not count. */
const counters: Query = (tx) => tx<Sentence[]>`
  with logged as (
    select p.*
    from predictions p
    where not exists (select from outbox o where o.id = p.event_id)
  ),
  options as (
    select question_id, array_agg(count order by option) as counts
    from (
      select q.id as question_id, option, count(p.id)::integer as count
      from questions q
      cross join generate_series(0, cardinality(q.options) - 1) as option
      left join logged p on p.question_id = q.id and p.selected_option = option
      group by q.id, option
    ) each
    group by question_id
  ),
  real as (
    select
      q.id,
      count(p.id) as predictions,
      count(*) filter (where p.prediction) as yes,
      count(*) filter (where not p.prediction) as no,
      coalesce(min(o.counts), '{}') as options
    from questions q
    left join logged p on p.question_id = q.id
    left join options o on o.question_id = q.id
    group by q.id
  ),
  -- No options counted yet and every option counted 0 times say the same.
  kept as (
    select
      c.*,
      case when c.option_counts = '{}' and c.prediction_count = 0
        then array(select 0 from generate_series(1, cardinality(q.options)))
        else c.option_counts
      end as options
    from question_counts c
    join questions q on q.id = c.question_id
  )
  select
    'question ' || r.id || ' counts '
    || coalesce((k.prediction_count, k.yes_count, k.no_count, k.options)::text, 'nothing')
    || ' instead of ' || (r.predictions, r.yes, r.no, r.options)::text as what
  from real r
  left join kept k on k.question_id = r.id
  where (k.prediction_count, k.yes_count, k.no_count, k.options)
    is distinct from (r.predictions, r.yes, r.no, r.options)
  limit ${shown}`;

/** A question says what its latest decision says, and has all of its revisions. */
const decisions: Query = (tx) => tx<Sentence[]>`
  select
    'question ' || q.id || ' is ' || q.status || ' at revision ' || q.revision || ', decided '
    || coalesce(d.kind || ' at revision ' || d.revision || ' of ' || d.count, 'never') as what
  from questions q
  left join (
    select distinct on (question_id)
      question_id, revision, kind, outcome, correct_options,
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
      and (q.outcome, q.correct_options) is distinct from (d.outcome, d.correct_options)
    )
  limit ${shown}`;

const scores_without_prediction: Query = (tx) => tx<Sentence[]>`
  select 'the score of ' || s.prediction_id || ' has no prediction' as what
  from scores s
  left join predictions p on p.question_id = s.question_id and p.agent_id = s.agent_id
  where p.id is distinct from s.prediction_id
  limit ${shown}`;

/** Originality relies on it: each has its own number of those given; 0 was stored otherwise. */
const numbers: Query = (tx) => tx<Sentence[]>`
  select
    'question ' || question_id || ' has ' || p.count || ' numbered predictions with '
    || p.different || ' numbers up to ' || p.last || ', and ' || coalesce(n.seq, 0) || ' given' as what
  from (
    select
      question_id,
      count(*) as count,
      count(distinct seq) as different,
      max(seq) as last
    from predictions
    where seq > 0
    group by question_id
  ) p
  left join question_seqs n using (question_id)
  where p.different <> p.count or p.last > coalesce(n.seq, 0)
  limit ${shown}`;

/** Limits that the schema or a lock keeps, counted all the same. */
const one_prediction_an_id: Query = (tx) => tx<Sentence[]>`
  select count(*) || ' predictions have the id ' || id as what
  from predictions
  group by id
  having count(*) > 1
  limit ${shown}`;

const webhooks_an_owner: Query = (tx) => tx<Sentence[]>`
  select owner_kind || ' ' || owner_id || ' has ' || count(*) || ' webhooks' as what
  from webhooks
  group by owner_kind, owner_id
  having count(*) > 10
  limit ${shown}`;

const queries: readonly Query[] = [
  ...points_queries,
  ...log_queries,
  ...conversation_queries,
  ...moderation_queries,
  ...webhook_queries,
  counters,
  numbers,
  decisions,
  scores_without_prediction,
  one_prediction_an_id,
  webhooks_an_owner,
];

const latest_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The checks of a large record take long. */
const statement_ms = 120_000;

/** What the record holds against itself, all of it as of one moment. */
export const checkRecord = (sql: Sql, under_way_ms: number): Promise<readonly string[]> =>
  sql.begin({ mode: 'isolation level repeatable read read only', statement_ms }, async (tx) => {
    const found: string[] = [];
    const settled_before_id = under_way_ms === 0 ? latest_id : firstIdAt(Date.now() - under_way_ms);
    for (const query of queries) {
      found.push(...(await query(tx, { settled_before_id })).map(({ what }) => what));
    }
    return [...found, ...(await checkPayouts(tx))];
  });

/** How much there is to compare, for whoever reads that nothing differs. */
export const countRecord = async (sql: Sql): Promise<string> => {
  const [row] = await sql<{ agents: number; predictions: number; events: number }[]>`
    select
      (select count(*) from accounts) as agents,
      (select count(*) from predictions) as predictions,
      (select coalesce(max("offset"), 0) from events) as events`;
  const { agents = 0, predictions = 0, events = 0 } = row ?? {};
  return `${agents} agents, ${predictions} predictions, ${events} events`;
};
