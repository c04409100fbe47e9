import { shown } from './parts.js';
import type { Query, Sentence } from './query.js';

/** The log against itself and against the predictions it tells of. */

const offsets: Query = (tx) => tx<Sentence[]>`
  select
    'the log has ' || count || ' events (' || different || ' different offsets) from ' || oldest
    || ' to ' || newest || ', and its head is ' || head as what
  from (
    select
      count(*) as count,
      count(distinct e."offset") as different,
      min(e."offset") as oldest,
      max(e."offset") as newest,
      (select "offset" from log_head) as head
    from events e
  ) log
  where count > 0 and (count <> newest - oldest + 1 or different <> count or newest <> head)`;

/** Events older than the oldest one kept are gone, and their predictions are not asked for them. */
const prediction_events: Query = (tx) => tx<Sentence[]>`
  with placed as (
    select id, count(*) as count, min(body) as body
    from (
      select id, body from events where event = 'prediction.placed'
      union all
      select id, body from outbox where event = 'prediction.placed'
    ) known
    group by id
  )
  select
    case
      when p.id is null then 'event ' || e.id || ' is about no prediction'
      when e.id is null then 'prediction ' || p.id || ' has no event'
      when e.count > 1 then 'prediction ' || p.id || ' has ' || e.count || ' events'
      else 'event ' || e.id || ' is not about its prediction ' || p.id
    end as what
  from predictions p
  full join placed e on e.id = p.event_id
  where (
      e.id is null
      and p.created_at > coalesce(
        (select min(recorded_at) from events having min("offset") > 1),
        '-infinity'
      )
    )
    or p.id is null
    or e.count > 1
    or (e.body::jsonb #>> '{data,prediction_id}')::uuid <> p.id
  limit ${shown}`;

const waiting: Query = (tx, { settled_before_id }) => tx<Sentence[]>`
  select count(*) || ' events wait in the outbox' as what
  from outbox
  where id < ${settled_before_id}
  having count(*) > 0`;

export const log_queries: readonly Query[] = [offsets, prediction_events, waiting];
