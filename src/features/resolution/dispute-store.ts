import type { Db, Tx } from '../../db/client.js';
import type { PageAsk } from '../../http/page.js';
import type { Disputed, Filing } from './dispute-rules.js';
import type { DisputeStatus, DisputeWire } from './dispute-schema.js';

/**
 * Disputes in Postgres. Locks are taken in this order: the question, then the dispute; so a
 * question is not resolved anew while a dispute of its resolution is being filed.
 */

/** As on the wire; times become texts when they are written as JSON. */
export type DisputeRow = Omit<DisputeWire, 'created_at' | 'decided_at'> & {
  readonly created_at: Date;
  readonly decided_at: Date | null;
};

const columns = (db: Db) => db`
  d.id, d.id as dispute_id, d.question_id, d.agent_id as user_id, g.name as user_name, d.revision,
  d.reason, d.evidence_urls, d.status, d.note, d.new_revision, d.decided_at, d.created_at`;

export const readDispute = async (db: Db, id: string): Promise<DisputeRow | undefined> => {
  const [row] = await db<DisputeRow[]>`
    select ${columns(db)} from disputes d join agents g on g.id = d.agent_id where d.id = ${id}`;
  return row;
};

/** The question as it stays until this transaction ends, and whether the agent predicted on it. */
export const holdQuestion = async (tx: Tx, question_id: string, agent_id: string) => {
  const [row] = await tx<
    (Disputed & { readonly id: string; author_id: string | null; revision: number })[]
  >`
    select
      q.id, q.status, q.author_id, q.resolved_at, q.revision,
      exists (
        select from predictions p where p.question_id = q.id and p.agent_id = ${agent_id}
      ) as has_predicted
    from questions q
    where q.id = ${question_id}
    for share of q`;
  return row;
};

export interface NewDispute extends Filing {
  readonly id: string;
  readonly question_id: string;
  readonly agent_id: string;
  readonly revision: number;
  readonly at: Date;
}

/** False when the agent has an open dispute on the question: the unique index decides. */
export const insertDispute = async (tx: Tx, made: NewDispute): Promise<boolean> => {
  const { id, question_id, agent_id, revision, reason, evidence_urls, at } = made;
  const rows = await tx`
    insert into disputes
      (question_id, id, agent_id, revision, reason, evidence_urls, status, created_at)
    values (
      ${question_id}, ${id}, ${agent_id}, ${revision}, ${reason},
      ${evidence_urls as string[]}::text[], 'open', ${at}
    )
    on conflict (question_id, agent_id) where status = 'open' do nothing
    returning id`;
  return rows.length === 1;
};

/** Locks the question and the dispute, so that of several decisions at once one is made. */
export const lockForDecision = async (tx: Tx, id: string): Promise<DisputeRow | undefined> => {
  await tx`
    select id
    from questions
    where id = (select question_id from disputes where id = ${id})
    for update`;
  await tx`select id from disputes where id = ${id} for update`;
  return readDispute(tx, id);
};

export interface Ending {
  readonly id: string;
  readonly status: Exclude<DisputeStatus, 'open'>;
  readonly note: string | null;
  readonly decided_by: string | null;
  readonly new_revision: number | null;
  readonly at: Date;
}

/** open → withdrawn, upheld or rejected; false when it is not open any more. */
export const endDispute = async (tx: Tx, ending: Ending): Promise<boolean> => {
  const { id, status, note, decided_by, new_revision, at } = ending;
  const rows = await tx`
    update disputes
    set
      status = ${status},
      note = ${note},
      decided_by = ${decided_by},
      decided_at = ${at},
      new_revision = ${new_revision}
    where id = ${id} and status = 'open'
    returning id`;
  return rows.length === 1;
};

export interface DisputeFilter {
  /** Undefined: of all questions. */
  readonly question_id?: string;
  readonly status: DisputeStatus | undefined;
}

const conditions = (db: Db, { question_id, status }: DisputeFilter) => db`
  true
  ${question_id === undefined ? db`` : db`and d.question_id = ${question_id}`}
  ${status === undefined ? db`` : db`and d.status = ${status}`}`;

/** Newest first; one row more than the page. */
export const listDisputes = (db: Db, filter: DisputeFilter, page: PageAsk) =>
  db<DisputeRow[]>`
    select ${columns(db)}
    from disputes d
    join agents g on g.id = d.agent_id
    where ${conditions(db, filter)}
      ${page.after === null ? db`` : db`and d.id < ${page.after[0] as string}::uuid`}
    order by d.id desc
    limit ${page.limit + 1}
    offset ${page.offset}`;

export const countDisputes = async (db: Db, filter: DisputeFilter): Promise<number> => {
  const [row] = await db<{ total: number }[]>`
    select count(*)::int as total from disputes d where ${conditions(db, filter)}`;
  return row?.total ?? 0;
};
