import type { Db, Fragment, Tx } from '../../db/client.js';
import { firstRow, newestFirst, readTotal } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';
import { type NewItem, tell } from '../notifications/index.js';
import type { ReportText, Subject } from './rules.js';
import type { CaseStatus, CaseWire, ReportKind, ReportWire } from './schema.js';

/**
 * Reports and their cases in Postgres. A case collects the reports of one subject until an admin
 * decides it. The unique index on open cases makes parallel reports share one case.
 */

const subjectQuery = (db: Db, kind: ReportKind, id: string): Fragment => {
  switch (kind) {
    case 'question':
      return db`
        select id, id as question_id, author_id
        from questions
        where id = ${id} and status <> 'draft'`;
    case 'prediction':
      return db`
        select id, question_id, agent_id as author_id
        from predictions
        where id = ${id} and hidden_at is null`;
    case 'comment':
      return db`
        select id, question_id, agent_id as author_id
        from comments
        where id = ${id} and hidden_at is null`;
    case 'agent':
      return db`select id, null::uuid as question_id, id as author_id from agents where id = ${id}`;
  }
};

/** Reads a subject that the public can see. */
export const readSubject = (db: Db, kind: ReportKind, id: string) =>
  firstRow(db<Subject[]>`
    select s.id, s.question_id, s.author_id, g.owner_id
    from (${subjectQuery(db, kind, id)}) as s
    left join agents g on g.id = s.author_id`);

const reporter_lock = 7_366_147;

/**
 * Returns whether the person reported the subject. Reports of one person run one after the other,
 * because a refused one must not open a case.
 */
export const hasReported = async (tx: Tx, person_id: string, subject_id: string) => {
  await tx`select pg_advisory_xact_lock(${reporter_lock}, hashtext(${person_id}))`;
  const rows = await tx`
    select from reports where person_id = ${person_id} and subject_id = ${subject_id}`;
  return rows.count === 1;
};

/**
 * Returns the open case of the subject, and opens one if there is none. The case stays open until
 * the transaction ends.
 */
export const openCase = async (
  tx: Tx,
  made: Subject & { readonly case_id: string; readonly kind: ReportKind; readonly at: Date },
): Promise<string> => {
  const { case_id, kind, id, question_id, author_id, at } = made;
  const [row] = await tx<{ id: string }[]>`
    insert into report_cases (id, kind, subject_id, question_id, author_id, status, opened_at)
    values (${case_id}, ${kind}, ${id}, ${question_id}, ${author_id}, 'open', ${at})
    on conflict (subject_id) where status = 'open' do update set kind = excluded.kind
    returning id`;
  return row?.id ?? case_id;
};

export type NewReport = ReportText & {
  readonly id: string;
  readonly case_id: string;
  readonly person_id: string;
  readonly agent_id: string | null;
  readonly subject_id: string;
  readonly kind: ReportKind;
  readonly at: Date;
};

/** Returns undefined if this person has already reported the subject. */
export const insertReport = async (tx: Tx, made: NewReport): Promise<ReportWire | undefined> => {
  const { id, case_id, person_id, agent_id, subject_id, kind, reason, note, at } = made;
  const rows = await tx`
    insert into reports (id, case_id, person_id, agent_id, subject_id, reason, note, created_at)
    values (
      ${id}, ${case_id}, ${person_id}, ${agent_id}, ${subject_id}, ${reason}, ${note}, ${at}
    )
    on conflict do nothing`;
  if (rows.count === 0) return undefined;
  const created_at = at.toISOString();
  return { id, report_id: id, kind, subject_id, reason, note, status: 'open', created_at };
};

type Times = 'opened_at' | 'decided_at';
export type CaseRow = Omit<CaseWire, Times | 'path'> & {
  readonly opened_at: Date;
  readonly decided_at: Date | null;
};

const max_notes = 20;

/** Selects cases `c`, with the reported text, its author and a summary of the reports. */
const selectCases = (db: Db) => db`
  select
    c.id, c.status, c.kind, c.subject_id, c.question_id, q.question, c.author_id,
    g.name as author_name, c.opened_at, c.decided_at, c.reason,
    case c.kind
      when 'question' then concat_ws(E'\n\n', q.question, nullif(q.description, ''))
      when 'prediction' then coalesce(p.reasoning, '')
      when 'comment' then coalesce(m.content, '')
      else concat_ws(E'\n\n', g.name, g.bio, g.domain_focus, g.philosophy)
    end as text,
    case c.kind
      when 'question' then q.status = 'voided'
      when 'prediction' then p.hidden_at is not null
      when 'comment' then m.hidden_at is not null
      else g.suspended_at is not null
    end as hidden,
    (select count(*)::int from reports r where r.case_id = c.id) as reports,
    (
      select coalesce(json_agg(one order by one.count desc, one.reason), '[]')
      from (
        select reason, count(*)::int as count from reports r where r.case_id = c.id group by reason
      ) one
    ) as reasons,
    (
      select coalesce(json_agg(one order by one.at desc), '[]')
      from (
        select reason, note, created_at as at
        from reports r
        where r.case_id = c.id and note is not null
        order by id desc
        limit ${db.unsafe(String(max_notes))}
      ) one
    ) as notes
  from report_cases c
  left join questions q on q.id = c.question_id
  left join agents g on g.id = c.author_id
  left join predictions p
    on c.kind = 'prediction' and p.question_id = c.question_id and p.id = c.subject_id
  left join comments m
    on c.kind = 'comment' and m.question_id = c.question_id and m.id = c.subject_id`;

const isOfStatus = (db: Db, status: CaseStatus | undefined) =>
  status === undefined ? db`true` : db`c.status = ${status}`;

export const listCases = (db: Db, status: CaseStatus | undefined, page: PageRequest) =>
  db<CaseRow[]>`
    ${selectCases(db)}
    where ${isOfStatus(db, status)} ${newestFirst(db, 'c.id', page)}`;

export const countCases = (db: Db, status: CaseStatus | undefined) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::int as total from report_cases c where ${isOfStatus(db, status)}`);

export const readCase = (db: Db, id: string) =>
  firstRow(db<CaseRow[]>`${selectCases(db)} where c.id = ${id}`);

export interface LockedCase {
  readonly id: string;
  readonly kind: ReportKind;
  readonly subject_id: string;
  readonly question_id: string | null;
  readonly author_id: string | null;
  readonly status: CaseStatus;
}

/** Locks the case, so that it is decided once, and reports that arrive meanwhile open another. */
export const lockCase = (tx: Tx, id: string) =>
  firstRow(tx<LockedCase[]>`
    select id, kind, subject_id, question_id, author_id, status
    from report_cases
    where id = ${id}
    for update`);

export const endCase = async (
  tx: Tx,
  ending: {
    readonly id: string;
    readonly status: CaseStatus;
    readonly reason: string;
    readonly at: Date;
  },
): Promise<void> => {
  const { id, status, reason, at } = ending;
  await tx`
    update report_cases
    set status = ${status}, reason = ${reason}, decided_at = ${at}
    where id = ${id}`;
};

export interface Reporter {
  readonly report_id: string;
  readonly person_id: string;
  readonly agent_id: string | null;
}

export const listReporters = (tx: Tx, case_id: string) =>
  tx<Reporter[]>`
    select id as report_id, person_id, agent_id
    from reports
    where case_id = ${case_id}
    order by id desc`;

/** Puts an item into the inboxes of the people who made reports of a case without an agent. */
export const tellPeople = (tx: Tx, case_id: string, item: NewItem): Promise<number> =>
  tell(
    tx,
    item,
    tx`
      select person_id as reader_id, '{}'::jsonb as details
      from reports
      where case_id = ${case_id} and agent_id is null`,
  );
