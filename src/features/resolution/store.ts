import type { Db, Tx } from '../../kit/pg/client.js';
import type { Decision } from './rules.js';
import type { ResolutionWire } from './schema.js';

/** Decisions about questions, and how far the job is with each. */

export interface ResolutionRow {
  readonly question_id: string;
  readonly revision: number;
  readonly kind: 'resolve' | 'void';
  readonly outcome: boolean | null;
  readonly correct_options: readonly string[] | null;
  readonly note: string | null;
  readonly evidence_urls: readonly string[];
  readonly decided_by: string;
  readonly state: 'running' | 'done';
  readonly cursor_agent: string | null;
  readonly total: number;
  readonly done: number;
  readonly created_at: Date;
  readonly finished_at: Date | null;
}

export const toWire = (row: ResolutionRow): ResolutionWire => ({
  question_id: row.question_id,
  revision: row.revision,
  kind: row.kind,
  outcome: row.outcome,
  correct_options: row.correct_options === null ? null : [...row.correct_options],
  resolution_note: row.note,
  evidence_urls: [...row.evidence_urls],
  decided_by: row.decided_by,
  state: row.state,
  total: row.total,
  done: row.done,
  created_at: row.created_at.toISOString(),
  finished_at: row.finished_at?.toISOString() ?? null,
});

const columns = (db: Db) => db`
  question_id, revision, kind, outcome, correct_options, note, evidence_urls, decided_by, state,
  cursor_agent, total, done, created_at, finished_at`;

/** Newest revision first. */
export const readResolutions = (db: Db, question_id: string): PromiseLike<ResolutionRow[]> =>
  db<ResolutionRow[]>`
    select ${columns(db)}
    from resolutions
    where question_id = ${question_id}
    order by revision desc
    limit 100`;

export const readLatest = async (
  db: Db,
  question_id: string,
): Promise<ResolutionRow | undefined> => {
  const [row] = await db<ResolutionRow[]>`
    select ${columns(db)}
    from resolutions
    where question_id = ${question_id}
    order by revision desc
    limit 1`;
  return row;
};

/** Holds the question against other decisions and against predictions until the commit. */
export const lockQuestion = async (tx: Tx, id: string): Promise<boolean> => {
  const rows = await tx`select id from questions where id = ${id} for update`;
  return rows.length === 1;
};

export interface NewResolution extends Decision {
  readonly question_id: string;
  readonly revision: number;
  readonly decided_by: string;
  readonly at: Date;
}

/**
 * Stores a decision for the job. The question is locked and takes no predictions any more, so the
 * number of its predictions is final.
 */
export const insertResolution = async (tx: Tx, made: NewResolution): Promise<ResolutionRow> => {
  const [row] = await tx<ResolutionRow[]>`
    insert into resolutions (
      question_id, revision, kind, outcome, correct_options, note, evidence_urls, decided_by,
      state, total, created_at
    )
    select
      ${made.question_id}::uuid, ${made.revision}, ${made.kind}, ${made.outcome}::boolean,
      ${made.correct_options as string[] | null}::text[], ${made.note},
      ${made.evidence_urls as string[]}::text[], ${made.decided_by}, 'running', count(*),
      ${made.at}
    from predictions
    where question_id = ${made.question_id}
    returning ${columns(tx)}`;
  if (row === undefined) throw new Error('a decision was not stored');
  return row;
};
