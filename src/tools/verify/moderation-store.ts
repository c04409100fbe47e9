import { shown } from './parts.js';
import type { Query, Sentence } from './query.js';

/** Disputes against resolutions, and what is hidden against the acts of admins. */

const disputes: Query = (tx) => tx<Sentence[]>`
  select 'dispute ' || d.id || ' ' || wrong.what as what
  from disputes d
  left join resolutions r
    on r.question_id = d.question_id and r.revision = coalesce(d.new_revision, d.revision)
  cross join lateral (
    select 'is upheld by revision ' || d.new_revision || ', which there is not' as what
    where d.status = 'upheld' and r.revision is null
    union all
    select 'is upheld by a revision that is not later than its own'
    where d.status = 'upheld' and d.new_revision <= d.revision
    union all
    select 'is about revision ' || d.revision || ', which there is not'
    where d.status <> 'upheld' and r.revision is null
    union all
    select 'is of an agent that did not predict'
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
  ) wrong
  limit ${shown}`;

const resolutions_by_dispute: Query = (tx) => tx<Sentence[]>`
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
    )
  limit ${shown}`;

/** The latest act about a content says whether it is hidden. */
const hidden_content: Query = (tx) => tx<Sentence[]>`
  select c.kind || ' ' || c.id || ' is hidden, and no act of an admin says so' as what
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
  where l.act is distinct from c.kind || '.hide'
  limit ${shown}`;

export const moderation_queries: readonly Query[] = [
  disputes,
  resolutions_by_dispute,
  hidden_content,
];
