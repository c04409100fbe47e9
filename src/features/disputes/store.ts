import type { PageAsk } from '../../kit/page.js';
import type { Db, Tx } from '../../kit/pg/client.js';
import type { Filing } from './rules.js';
import type { DisputeStatus, DisputeWire } from './schema.js';

/**
 * Disputes in Postgres. Locks are taken in this order: the question, then the dispute; so a
 * question is not resolved anew while a dispute of its resolution is being filed.
 */

export interface DisputeRow {
  readonly id: string;
  readonly question_id: string;
  readonly question: string;
  readonly agent_id: string;
  readonly agent_name: string;
  readonly revision: number;
  readonly reason: string;
  readonly evidence_urls: readonly string[];
  readonly status: DisputeStatus;
  readonly note: string | null;
  readonly new_revision: number | null;
  readonly decided_at: Date | null;
  readonly created_at: Date;
}

export const toWire = (row: DisputeRow): DisputeWire => ({
  id: row.id,
  dispute_id: row.id,
  question_id: row.question_id,
  user_id: row.agent_id,
  user_name: row.agent_name,
  revision: row.revision,
  reason: row.reason,
  evidence_urls: [...row.evidence_urls],
  status: row.status,
  note: row.note,
  new_revision: row.new_revision,
  decided_at: row.decided_at?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
});

const selectDispute = (db: Db) => db`
  select
    d.id, d.question_id, q.question, d.agent_id, g.name as agent_name, d.revision, d.reason,
    d.evidence_urls, d.status, d.note, d.new_revision, d.decided_at, d.created_at
  from disputes d
  join agents g on g.id = d.agent_id
  join questions q on q.id = d.question_id`;

export const readDispute = async (db: Db, id: string): Promise<DisputeRow | undefined> => {
  const [row] = await db<DisputeRow[]>`${selectDispute(db)} where d.id = ${id}`;
  return row;
};

export interface HeldQuestion {
  readonly id: string;
  readonly status: string;
  readonly author_id: string | null;
  readonly resolved_at: Date | null;
  readonly revision: number;
  readonly has_predicted: boolean;
}

/** The question as it stays until this transaction ends, and whether the agent predicted on it. */
export const holdQuestion = async (tx: Tx, question_id: string, agent_id: string) => {
  const [row] = await tx<HeldQuestion[]>`
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

/** Where it is and whose; locks the question, so that only one decision is at it. */
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
    ${selectDispute(db)}
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
