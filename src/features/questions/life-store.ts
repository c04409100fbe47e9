import type { Db, Tx } from '../../kit/pg/client.js';
import type { NewQuestion } from './rules.js';
import type { QuestionStatus } from './schema.js';

/**
 * The transitions of a question in Postgres. Each is one update that names the status it starts
 * from, so that of any number of calls at once exactly one finds it: the others wait for its row,
 * see the new status and change nothing. A transition tells whether it took place.
 */

/**
 * Takes the question's row; false when there is none. Predictions of the moment hold it shared, one
 * batch after the other, so that it can take longer to get than most locks.
 */
export const lockQuestion = async (tx: Tx, id: string): Promise<boolean> => {
  await tx`set local lock_timeout = '3s'`;
  const rows = await tx`select id from questions where id = ${id} for no key update`;
  return rows.length === 1;
};

export interface Opening {
  readonly id: string;
  readonly opens_at: Date;
  readonly timeframe: string;
  readonly at: Date;
}

/** draft → open. */
export const setOpen = async (tx: Tx, opening: Opening): Promise<boolean> => {
  const { id, opens_at, timeframe, at } = opening;
  const rows = await tx`
    update questions
    set
      status = 'open',
      opens_at = ${opens_at},
      timeframe = ${timeframe},
      published_at = ${at},
      updated_at = ${at}
    where id = ${id} and status = 'draft'
    returning id`;
  return rows.length === 1;
};

/** open → closed. */
export const setClosed = async (tx: Tx, id: string, at: Date): Promise<boolean> => {
  const rows = await tx`
    update questions
    set status = 'closed', closed_at = ${at}, updated_at = ${at}
    where id = ${id} and status = 'open'
    returning id`;
  return rows.length === 1;
};

export interface Reopening {
  readonly id: string;
  readonly closes_at: Date;
  readonly resolution_date: Date;
  readonly timeframe: string;
  readonly at: Date;
}

/** closed → open with a later closing time, which is announced anew. */
export const setReopened = async (tx: Tx, reopening: Reopening): Promise<boolean> => {
  const { id, closes_at, resolution_date, timeframe, at } = reopening;
  const rows = await tx`
    update questions
    set
      status = 'open',
      closes_at = ${closes_at},
      resolution_date = ${resolution_date},
      timeframe = ${timeframe},
      closed_at = null,
      closing_soon_at = null,
      updated_at = ${at}
    where id = ${id} and status = 'closed' and closes_at < ${closes_at}
    returning id`;
  return rows.length === 1;
};

export interface Resolution {
  readonly id: string;
  /** Of a binary question; null for a multi question. */
  readonly outcome: boolean | null;
  /** Texts of the right options of a multi question; null for a binary one. */
  readonly correct_options: readonly string[] | null;
  readonly note: string | null;
  readonly at: Date;
}

/** closed → resolved and resolved → resolved, each with a revision of its own. */
export const setResolved = async (tx: Tx, resolution: Resolution): Promise<boolean> => {
  const { id, outcome, correct_options, note, at } = resolution;
  const rows = await tx`
    update questions
    set
      status = 'resolved',
      outcome = ${outcome},
      correct_options = ${correct_options as string[] | null}::text[],
      resolution_note = ${note},
      resolved_at = ${at},
      revision = revision + 1,
      updated_at = ${at}
    where id = ${id} and status in ('closed', 'resolved')
    returning id`;
  return rows.length === 1;
};

export interface Voiding {
  readonly id: string;
  readonly note: string | null;
  readonly at: Date;
}

/** open | closed → voided; the revision counts it like a resolution. */
export const setVoided = async (tx: Tx, { id, note, at }: Voiding): Promise<boolean> => {
  const rows = await tx`
    update questions
    set
      status = 'voided',
      resolution_note = ${note},
      voided_at = ${at},
      revision = revision + 1,
      updated_at = ${at}
    where id = ${id} and status in ('open', 'closed')
    returning id`;
  return rows.length === 1;
};

/** Only a draft goes without a trace. */
export const deleteDraft = async (tx: Tx, id: string): Promise<boolean> => {
  const rows = await tx`delete from questions where id = ${id} and status = 'draft' returning id`;
  if (rows.length === 1) await tx`delete from question_counts where question_id = ${id}`;
  return rows.length === 1;
};

export interface Change {
  readonly id: string;
  /** The status that the change was judged by. */
  readonly status: QuestionStatus;
  readonly question: Omit<NewQuestion, 'source' | 'source_id'>;
  readonly at: Date;
}

/** Writes an edited question; a new closing time is announced anew. */
export const updateQuestion = async (tx: Tx, change: Change): Promise<boolean> => {
  const { id, status, question, at } = change;
  const rows = await tx`
    update questions
    set
      ${tx({ ...question, tags: question.tags as string[], options: question.options as string[] })},
      closing_soon_at = case
        when closes_at = ${question.closes_at} then closing_soon_at
      end,
      updated_at = ${at}
    where id = ${id} and status = ${status}
    returning id`;
  if (rows.length === 0) return false;
  if (status === 'draft') {
    await tx`
      update question_counts
      set option_counts = ${question.options.map(() => 0)}::integer[]
      where question_id = ${id}`;
  }
  return true;
};

const day_ms = 86_400_000;
const isSoon = (db: Db, now: Date) => db`
  status = 'open'
  and closing_soon_at is null
  and closes_at > ${now}
  and closes_at <= ${new Date(now.getTime() + day_ms)}`;

export interface Closing {
  readonly id: string;
  readonly question: string;
  readonly closes_at: Date;
}

/** Marks an open question that closes within a day, once for each closing time it gets. */
export const markSoon = async (tx: Tx, id: string, now: Date) => tx<Closing[]>`
  update questions
  set closing_soon_at = ${now}
  where id = ${id} and ${isSoon(tx, now)}
  returning id, question, closes_at`;

/** The same for up to `most` questions; safe with any number of timers. */
export const markManySoon = async (tx: Tx, now: Date, most: number) => tx<Closing[]>`
  update questions
  set closing_soon_at = ${now}
  where closing_soon_at is null and id in (
    select id
    from questions
    where ${isSoon(tx, now)}
    order by closes_at
    limit ${most}
    for no key update skip locked
  )
  returning id, question, closes_at`;

/** open → closed for up to `most` questions whose time is up; safe with any number of timers. */
export const closeDue = async (tx: Tx, now: Date, most: number) =>
  tx<{ id: string; question: string; closed_at: Date }[]>`
    update questions
    set status = 'closed', closed_at = ${now}, updated_at = ${now}
    where status = 'open' and id in (
      select id
      from questions
      where status = 'open' and closes_at <= ${now}
      order by closes_at
      limit ${most}
      for no key update skip locked
    )
    returning id, question, closed_at`;

/**
 * Drafts of an author that can still be published. One suggestion of an author at a time, so that
 * the count is exact.
 */
export const countDraftsLocked = async (tx: Tx, author_id: string, now: Date): Promise<number> => {
  await tx`select pg_advisory_xact_lock(hashtextextended(${`suggest ${author_id}`}, 0))`;
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count
    from questions
    where author_id = ${author_id} and status = 'draft' and closes_at > ${now}`;
  return row?.count ?? 0;
};
