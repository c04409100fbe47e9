import type { Db, Tx } from '../../db/client.js';
import { newestFirst, readTotal } from '../../db/rows.js';
import type { Caller } from '../../http/caller.js';
import type { PageRequest } from '../../http/page.js';
import { makeId } from '../../kit/ids.js';
import { normaliseText } from '../../kit/text.js';
import {
  type Act,
  type ActWire,
  type AuditQuery,
  isModeration,
  type ModerationAct,
} from './schema.js';

/** The audit log in Postgres. It only grows: triggers reject everything except inserts. */

/** Returns the stored name of an admin: `admin` for the admin key, otherwise `human:<id>`. */
export const adminName = (caller: Caller): string =>
  caller.kind === 'human' ? `human:${caller.id}` : 'admin';

export interface RecordedAct {
  /** The result of `adminName`. */
  readonly admin: string;
  readonly act: Act;
  /** For example `{ kind: 'question', id }`. The id is a slug if the subject has no UUID. */
  readonly subject: { readonly kind: string; readonly id: string };
  readonly question_id?: string;
  /** At most 5,000 characters. A blank text is stored as null. */
  readonly reason?: string | null;
  /** A few small members that describe the decision or change. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly at: Date;
}

/**
 * Writes one line of the audit log in the transaction of the action, so that actions and lines
 * always match. Call it only if the action changed something. The reason of a moderation act is
 * public.
 */
export const recordAct = async (tx: Tx, made: RecordedAct): Promise<void> => {
  const { admin, act, subject, at } = made;
  const question_id = made.question_id ?? (subject.kind === 'question' ? subject.id : null);
  const reason = normaliseText(made.reason ?? '').trim() || null;
  const details = made.details === undefined ? null : JSON.stringify(made.details);
  await tx`
    insert into audit_log
      (id, at, admin, act, subject_kind, subject_id, question_id, reason, details, is_public)
    values (
      ${makeId()}, ${at}, ${admin}, ${act}, ${subject.kind}, ${subject.id}, ${question_id},
      ${reason}, ${details}::text::jsonb, ${isModeration(act)}
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

export const listActs = (db: Db, query: AuditQuery, page: PageRequest): Promise<ActWire[]> =>
  db<ActWire[]>`
    select id, at, admin, act, subject_kind, subject_id, question_id, reason, details
    from audit_log
    where ${conditions(db, query)}
      ${newestFirst(db, 'id', page)}`;

/** Actions that are public. Only the change and its time are shown, not the admin or the reason. */
const public_acts = [
  'question.publish',
  'question.update',
  'question.close',
  'question.reopen',
  'question.resolve',
  'question.void',
] as const satisfies readonly Act[];
const max_public = 100;

/** Lists the public actions on a question, newest first. */
export const listPublicActs = (db: Db, question_id: string) =>
  db<{ at: Date; act: string; changed: string[] | null }[]>`
    select at, act, details->'changed' as changed
    from audit_log
    where subject_id = ${question_id} and act = any(${[...public_acts]})
    order by id desc
    limit ${max_public}`;

export const countActs = (db: Db, query: AuditQuery) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::int as total from audit_log where ${conditions(db, query)}`);

export interface ModerationRow {
  readonly id: string;
  readonly at: Date;
  readonly act: ModerationAct;
  readonly kind: 'question' | 'prediction' | 'comment' | 'agent';
  readonly question_id: string | null;
  readonly question: string | null;
  readonly reason: string | null;
}

/** Lists the lines of the moderation log. Lines from before there was this log are not public. */
export const listModeration = (db: Db, page: PageRequest) =>
  db<ModerationRow[]>`
    select l.id, l.at, l.act, l.subject_kind as kind, q.id as question_id, q.question, l.reason
    from audit_log l
    left join questions q on q.id = l.question_id and q.status <> 'draft'
    where l.is_public
      ${newestFirst(db, 'l.id', page)}`;

export const countModeration = (db: Db) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::int as total from audit_log where is_public`);
