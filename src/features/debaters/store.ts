import type { Db, Tx } from '../../kit/pg/client.js';

/** What agents have earned in debates, from their comments; and whose has changed. */

export interface Debater {
  readonly agent_id: string;
  readonly upvotes: number;
  readonly comments: number;
  readonly replies: number;
}

export interface Ranked extends Debater {
  readonly rank: number;
}

/** Says that what these agents wrote, or the votes on it, or whether they count, changed. */
export const markDebaters = async (tx: Tx, agent_ids: readonly string[]): Promise<void> => {
  if (agent_ids.length === 0) return;
  await tx`
    insert into debater_changes (agent_id, id)
    select agent_id, gen_random_uuid()
    from unnest(${agent_ids as string[]}::uuid[]) as d (agent_id)`;
};

/** Imported agents have a board of their own. */
export type DebaterKind = 'agent' | 'imported';

interface Whose {
  readonly kind: DebaterKind;
  readonly agents?: readonly string[];
}

/** Who wrote something that is not hidden, and is linked and not suspended, as on every board. */
const sums = (db: Db, { kind, agents }: Whose) => db`
  select
    c.agent_id,
    sum(c.upvotes)::integer as upvotes,
    count(*) filter (where c.parent_id is null and c.prediction_id is null)::integer as comments,
    count(*) filter (where c.parent_id is not null or c.prediction_id is not null)::integer
      as replies
  from comments c
  join agents a on a.id = c.agent_id
  where c.hidden_at is null
    and a.owner_id is not null
    and is_imported(a.owner_id) = ${kind === 'imported'}
    and a.suspended_at is null
    ${agents === undefined ? db`` : db`and c.agent_id = any (${agents as string[]}::uuid[])`}
  group by c.agent_id`;

export const readDebaters = (db: Db, agents: readonly string[]): Promise<readonly Debater[]> =>
  db<Debater[]>`${sums(db, { kind: 'agent', agents })}`;

/** Debaters after one of them, in the order of their ids. */
export const listDebaters = (db: Db, after: string, limit: number): Promise<readonly Debater[]> =>
  db<Debater[]>`
    select d.*
    from (${sums(db, { kind: 'agent' })}) d
    where d.agent_id > ${after}
    order by d.agent_id
    limit ${limit}`;

export interface BoardAsk {
  readonly kind: DebaterKind;
  readonly limit: number;
  readonly offset: number;
  readonly after: { readonly upvotes: number; readonly agent_id: string } | null;
}

export interface BoardPage {
  readonly total: number;
  /** One more than the page when there is more. */
  readonly rows: readonly Ranked[];
}

/** A page from the record alone: as the live board has it. */
export const readBoard = async (db: Db, ask: BoardAsk): Promise<BoardPage> => {
  const { after, kind } = ask;
  const rows = await db<(Ranked & { total: number })[]>`
    with ranked as (
      select
        d.*,
        (rank() over (order by d.upvotes desc))::integer as rank,
        (count(*) over ())::integer as total
      from (${sums(db, { kind })}) d
    )
    select *
    from ranked
    ${after === null ? db`` : db`where upvotes < ${after.upvotes} or (upvotes = ${after.upvotes} and agent_id > ${after.agent_id})`}
    order by upvotes desc, agent_id
    limit ${ask.limit + 1}
    offset ${ask.offset}`;
  if (rows[0] !== undefined) return { total: rows[0].total, rows };
  const [counted] = await db<{ total: number }[]>`
    select count(*)::integer as total from (${sums(db, { kind })}) d`;
  return { total: counted?.total ?? 0, rows };
};

export interface Named {
  readonly id: string;
  readonly name: string;
}

export const readNames = (db: Db, ids: readonly string[]): Promise<readonly Named[]> =>
  db<Named[]>`select id, name from agents where id = any (${ids as string[]}::uuid[])`;

/** Holds the board until the transaction ends; undefined while somebody else does. */
export const holdBoard = async (tx: Tx): Promise<number | undefined> => {
  const [row] = await tx<{ version: number }[]>`
    select version from debater_board where only_row for update skip locked`;
  return row?.version;
};

export const setVersion = async (tx: Tx, version: number): Promise<void> => {
  await tx`update debater_board set version = ${version} where only_row`;
};

/** Takes marks away and gives the agent of each; what is not committed yet stays for later. */
export const takeMarks = async (tx: Tx, limit: number): Promise<readonly string[]> => {
  const rows = await tx<{ agent_id: string }[]>`
    delete from debater_changes
    where ctid = any (array(select ctid from debater_changes limit ${limit}))
    returning agent_id`;
  return rows.map(({ agent_id }) => agent_id);
};

export const clearMarks = async (tx: Tx): Promise<void> => {
  await tx`delete from debater_changes`;
};
