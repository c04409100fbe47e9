import type { Db } from '../../db/client.js';
import type { Query } from './parts.js';

/**
 * Compares deliveries with the log, and with each other. Suppose a webhook has not changed since a
 * planned event. If it wants the event and may see it, it has exactly one delivery of the event.
 * Otherwise it has no delivery. A gap can replace the delivery; it says that the event was left out. If
 * the webhook changed within some seconds of the hand-over, both results are allowed, because
 * either may have come first. Deliveries are stored for at least eight days.
 */
const unchanged_s = 3;
const surely_kept_days = 7;

const isListed = (tx: Db) => tx`(
  (w.filter_questions is null or coalesce(e.question_id = any (w.filter_questions), false))
  and (w.filter_categories is null or coalesce(e.category = any (w.filter_categories), false))
  and (
    w.filter_families is null
    or coalesce(e.body::jsonb #>> '{data,model_family}' = any (w.filter_families), false)
  )
  and (
    w.filter_confidence is null
    or jsonb_path_exists(
      e.body::jsonb,
      '$.data.confidence ? (@ >= $least)',
      jsonb_build_object('least', w.filter_confidence)
    )
  )
)`;

export const webhook_queries: readonly Query[] = [
  (tx) => tx`
    select 'webhook ' || w.id || ' has no delivery of event ' || e.id as what
    from webhooks w
    cross join lateral (select distinct event from unnest(w.events) as named (event)) wanted
    cross join delivery_plan p
    join events e on e.event = wanted.event
      and e."offset" > w.after_offset
      and e."offset" <= p.planned_offset
      and e.recorded_at > w.updated_at + make_interval(secs => ${unchanged_s})
      and e.recorded_at > now() - make_interval(days => ${surely_kept_days})
    where ${isListed(tx)}
      and (
        e.audience_id is null
        or (w.owner_kind = 'agent' and w.owner_id = e.audience_id)
        or (
          w.owner_kind = 'human'
          and exists (
            select
            from agents a
            where a.id = e.audience_id
              and a.owner_id = w.owner_id
              and a.linked_at < e.recorded_at - make_interval(secs => ${unchanged_s})
          )
        )
      )
      and not exists (select from deliveries d where d.webhook_id = w.id and d.event_id = e.id)
      and not exists (
        select
        from deliveries g
        where g.webhook_id = w.id
          and g.state = 'gap'
          and e."offset" between g.event_offset and g.gap_until_offset
      )`,
  (tx) => tx`
    select
      'webhook ' || w.id || ' has a delivery of event ' || d.event_id || case
        when e.id is null then ', which is not in the log'
        when w.owner_kind = 'agent' and e.audience_id <> w.owner_id then ', which is not for it'
        else ', which it does not want'
      end as what
    from deliveries d
    join webhooks w on w.id = d.webhook_id
    left join events e on e.recorded_on = d.recorded_on and e."offset" = d.event_offset
      and e.id = d.event_id
    where d.state <> 'gap'
      and (
        (
          e.id is null
          and d.event_offset >= (select oldest from log_head)
        )
        or (w.owner_kind = 'agent' and e.audience_id <> w.owner_id)
        or (
          e.recorded_at > w.updated_at + make_interval(secs => ${unchanged_s})
          and (e.event <> all (w.events) or not ${isListed(tx)})
        )
      )`,
  // A deleted webhook has no deliveries, except while they are being cleared away.
  (tx) => tx`
    select count(*) || ' deliveries belong to missing webhook ' || d.webhook_id as what
    from deliveries d
    where not exists (select from webhooks w where w.id = d.webhook_id)
      and not exists (select from webhook_leavings l where l.webhook_id = d.webhook_id)
    group by d.webhook_id`,
  (tx) => tx`
    select 'an attempt at event ' || a.event_id || ' for webhook ' || a.webhook_id
      || ' has no delivery' as what
    from attempts a
    where a.at > now() - make_interval(days => ${surely_kept_days})
      and not exists (
        select from deliveries d where d.webhook_id = a.webhook_id and d.event_id = a.event_id
      )`,
  // A delivery marked as delivered was answered with a 2xx. Each delivery has at least as many
  // stored attempts as it counts.
  (tx) => tx`
    select
      'delivery ' || d.id || ' is ' || d.state || ' after ' || d.attempts || ' attempts, stored: '
      || made.count || case when made.is_answered then '' else ', none with a 2xx' end as what
    from deliveries d
    cross join lateral (
      select
        count(*) as count,
        coalesce(bool_or(a.status between 200 and 299), false) as is_answered
      from attempts a
      where a.webhook_id = d.webhook_id and a.event_id = d.event_id
    ) made
    where d.queued_at > now() - make_interval(days => ${surely_kept_days})
      and (made.count < d.attempts or (d.state = 'delivered' and not made.is_answered))`,
  (tx) => tx`
    select 'delivery ' || id || ' has an id that does not match its webhook and event' as what
    from deliveries
    where id <> delivery_id(webhook_id, event_id)`,
  // A gap leaves out only events between its ends, and never more than exist there.
  (tx) => tx`
    select
      'a gap of webhook ' || webhook_id || ' leaves out ' || gap_count || ' events from '
      || event_offset || ' to ' || gap_until_offset as what
    from deliveries
    where state = 'gap'
      and (
        gap_count > gap_until_offset - event_offset + 1
        or gap_until_offset > (select "offset" from log_head)
      )`,
  // A webhook that is off has no deliveries to send, once its queue has had time to empty.
  (tx) => tx`
    select 'webhook ' || w.id || ' is off and has ' || count(*) || ' deliveries to be sent' as what
    from webhooks w
    join deliveries d on d.webhook_id = w.id
    where not w.active
      and w.updated_at < now() - interval '1 minute'
      and d.state in ('pending', 'waiting')
      and d.queued_at < now() - interval '1 minute'
    group by w.id`,
  (tx) => tx`
    select 'webhook ' || id || ' is ' || case when active then 'on' else 'off' end
      || ', and its disabled_reason is ' || coalesce(disabled_reason, 'null') as what
    from webhooks
    where (active and disabled_reason is not null)
      or (cardinality(gone_events) >= 2 and active and updated_at < now() - interval '1 minute')`,
  // Planning is never ahead of the log. A planned range that touches the planned part is merged
  // into it.
  (tx) => tx`
    select 'deliveries are planned up to ' || p.planned_offset || ', but the log has ' || h."offset"
      || ' events; a range is planned from ' || coalesce(r.first::text, 'nowhere') as what
    from delivery_plan p
    cross join log_head h
    cross join (select min(first_offset) as first from planned_ranges) r
    where p.planned_offset > h."offset" or r.first <= p.planned_offset + 1`,
  (tx) => tx`
    select 'a replay belongs to missing webhook ' || r.webhook_id as what
    from webhook_replays r
    where not exists (select from webhooks w where w.id = r.webhook_id)`,
];
