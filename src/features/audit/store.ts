import type { PageAsk } from '../../kit/page.js';
import type { Db, Tx } from '../../kit/pg/client.js';
import type { Act, AuditQuery } from './schema.js';

/** The audit log in Postgres. It only grows: triggers refuse everything but inserts. */

export interface ActRow {
  readonly id: string;
  readonly at: Date;
  readonly admin: string;
  readonly act: Act;
  readonly subject_kind: string;
  readonly subject_id: string;
  readonly question_id: string | null;
  readonly reason: string | null;
  readonly details: Readonly<Record<string, unknown>> | null;
}

export const insertAct = async (tx: Tx, row: ActRow): Promise<void> => {
  const details = row.details === null ? null : JSON.stringify(row.details);
  await tx`
    insert into audit_log
      (id, at, admin, act, subject_kind, subject_id, question_id, reason, details)
    values (
      ${row.id}, ${row.at}, ${row.admin}, ${row.act}, ${row.subject_kind}, ${row.subject_id},
      ${row.question_id}, ${row.reason}, ${details}::text::jsonb
    )`;
};

const conditions = (
  db: Db,
  { act, admin, subject_id, question_id, since, until }: AuditQuery,
) => db`
  true
  ${act === undefined ? db`` : db`and act = ${act}`}
  ${admin === undefined ? db`` : db`and admin = ${admin}`}
  ${subject_id === undefined ? db`` : db`and subject_id = ${subject_id}`}
  ${question_id === undefined ? db`` : db`and question_id = ${question_id}`}
  ${since === undefined ? db`` : db`and at >= ${since}::timestamptz`}
  ${until === undefined ? db`` : db`and at < ${until}::timestamptz`}`;

/** Newest first; one row more than the page. */
export const listActs = (db: Db, query: AuditQuery, page: PageAsk): Promise<ActRow[]> =>
  db<ActRow[]>`
    select id, at, admin, act, subject_kind, subject_id, question_id, reason, details
    from audit_log
    where ${conditions(db, query)}
      ${page.after === null ? db`` : db`and id < ${page.after[0] as string}::uuid`}
    order by id desc
    limit ${page.limit + 1}
    offset ${page.offset}`;

export const countActs = async (db: Db, query: AuditQuery): Promise<number> => {
  const [row] = await db<{ total: number }[]>`
    select count(*)::int as total from audit_log where ${conditions(db, query)}`;
  return row?.total ?? 0;
};
