import type { Static } from '@sinclair/typebox';
import type { Db, Fragment, Tx } from '../../db/client.js';
import { firstRow } from '../../db/rows.js';
import type { Deps } from '../../http/deps.js';
import { makeCache, makeLoader } from '../../kit/cache.js';
import { makeId } from '../../kit/ids.js';
import { showOutcome, showRange } from './range.js';
import { type NewQuestion, whyNotOpen } from './rules.js';
import type { question_schema } from './schema.js';

/**
 * Questions in Postgres. Each change locks the question's row before it checks and writes. So
 * concurrent calls run one after another, and each sees the result of the previous one. The timer
 * takes due rows with `skip locked`.
 */

type Counts = 'prediction_count' | 'comment_count' | 'yes_count' | 'no_count';
type Ended = 'outcome' | 'resolution_note' | 'revision';

export interface QuestionRow
  extends NewQuestion,
    Pick<Static<typeof question_schema>, 'id' | 'status' | Ended | Counts> {
  readonly correct_options: readonly string[] | null;
  /** Only if the question asks for a number or a date; see `range.ts`. */
  readonly outcome_value: number | null;
  readonly resolved_at: Date | null;
  /** When the question stopped taking forecasts; null while it takes them. */
  readonly ended_at: Date | null;
  readonly author_id: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly option_counts: readonly number[];
}

/** Returns a question as the API shows it. The times become text in the JSON. */
export const toWire = (row: QuestionRow) => {
  const { author_id: _author, ended_at: _ended, option_counts, ...shown } = row;
  const { range_min: _min, range_max: _max, unit: _, open_min: _a, open_max: _b, ...rest } = shown;
  return {
    ...rest,
    question_id: row.id,
    range: showRange(row),
    outcome_value: showOutcome(row),
    option_counts: row.options.map((option, index) => ({
      option,
      count: option_counts[index] ?? 0,
    })),
  };
};

export const questionColumns = (db: Db) => db`
  q.id, q.question, q.description, q.category, q.subcategory, q.tags, q.question_type, q.options,
  q.range_min, q.range_max, q.unit, q.open_min, q.open_max, q.outcome_value,
  q.status, q.timeframe, q.weight, q.opens_at, q.closes_at, q.resolution_date,
  q.resolution_source, q.resolution_url, q.source, q.source_id, q.outcome, q.correct_options,
  q.resolution_note, q.resolved_at, coalesce(q.closed_at, q.voided_at) as ended_at, q.revision, q.author_id, q.created_at, q.updated_at,
  coalesce(c.prediction_count, 0) as prediction_count,
  coalesce(c.comment_count, 0) as comment_count,
  coalesce(c.yes_count, 0) as yes_count,
  coalesce(c.no_count, 0) as no_count,
  coalesce(c.option_counts, '{}') as option_counts`;

export const readQuestion = (db: Db, id: string) =>
  firstRow(db<QuestionRow[]>`
    select ${questionColumns(db)}
    from questions q
    left join question_counts c on c.question_id = q.id
    where q.id = ${id}`);

const mustRead = async (tx: Tx, id: string): Promise<QuestionRow> => {
  const row = await readQuestion(tx, id);
  if (row === undefined) throw new Error(`question ${id} vanished inside its transaction`);
  return row;
};

export interface Created {
  readonly row: QuestionRow;
  /** False if a question with this source and source_id already exists. */
  readonly created: boolean;
}

/** Stores a draft, or returns the existing question with the same source and source_id. */
export const insertQuestion = async (
  tx: Tx,
  question: NewQuestion,
  author_id: string | null,
): Promise<Created> => {
  const { source, source_id } = question;
  const [added] = await tx<{ id: string }[]>`
    insert into questions ${tx({ id: makeId(), ...question, status: 'draft', author_id })}
    on conflict (source, source_id) where source is not null do nothing
    returning id`;
  if (added !== undefined) {
    await tx`
      insert into question_counts (question_id, option_counts)
      select id, array_fill(0, array[cardinality(options)])
      from questions
      where id = ${added.id}`;
    return { row: await mustRead(tx, added.id), created: true };
  }
  const [known] = await tx<{ id: string }[]>`
    select id from questions where source = ${source} and source_id = ${source_id}`;
  return { row: await mustRead(tx, known!.id), created: false };
};

/**
 * Locks a question until the end of the transaction. Batches of predictions hold this lock one
 * after another, so the wait can be longer than for most locks.
 */
export const lockQuestion = async (tx: Tx, id: string): Promise<QuestionRow | undefined> => {
  await tx`set local lock_timeout = '3s'`;
  const rows = await tx`select id from questions where id = ${id} for no key update`;
  return rows.length === 0 ? undefined : mustRead(tx, id);
};

type StepTime = 'published_at' | 'closed_at' | 'closing_soon_at' | 'voided_at';

/** Changes a locked question, and returns the changed row. */
export const updateQuestion = async (
  tx: Tx,
  id: string,
  change: Partial<QuestionRow> & Partial<Record<StepTime, Date | null>>,
): Promise<QuestionRow> => {
  await tx`update questions set ${tx(change)} where id = ${id}`;
  return mustRead(tx, id);
};

/** Records, before a reopening, when the question was closed. Scores ignore this period. */
export const noteClosedTime = async (tx: Tx, id: string, until: Date): Promise<void> => {
  await tx`
    insert into closed_times (question_id, from_at, to_at)
    select id, least(closed_at, closes_at), ${until}::timestamptz
    from questions
    where id = ${id} and least(closed_at, closes_at) < ${until}
    on conflict (question_id, from_at) do update set to_at = excluded.to_at`;
};

/** Resets the counters of a draft whose options changed. It has no predictions yet. */
export const resetCounts = async (tx: Tx, id: string, options: number): Promise<void> => {
  await tx`
    update question_counts
    set option_counts = array_fill(0, array[${options}::integer])
    where question_id = ${id}`;
};

export const deleteDraft = async (tx: Tx, id: string): Promise<void> => {
  await tx`delete from questions where id = ${id} and status = 'draft'`;
  await tx`delete from question_counts where question_id = ${id}`;
};

/** Maximum number of questions that one turn of the timer closes or announces. */
export const max_per_turn = 200;

export type Ending = Pick<QuestionRow, 'id' | 'question' | 'closes_at'>;

/** Changes questions that are due. Skips questions that another transaction has locked. */
const changeDue = async (tx: Tx, set: Fragment, due: Fragment) => tx<Ending[]>`
  update questions
  set ${set}
  where id in (
    select id
    from questions
    where status = 'open' and ${due}
    order by closes_at
    limit ${max_per_turn}
    for no key update skip locked
  )
  returning id, question, closes_at`;

/** Marks questions that close within a day (all, or only `id`), once per closing time. */
export const markSoon = (tx: Tx, id: string | null, now: Date) =>
  changeDue(
    tx,
    tx`closing_soon_at = ${now}`,
    tx`
      closing_soon_at is null
      and closes_at > ${now}
      and closes_at <= ${new Date(now.getTime() + 86_400_000)}
      ${id === null ? tx`` : tx`and id = ${id}`}`,
  );

/** open → closed for questions whose closing time has passed. */
export const closeDue = (tx: Tx, now: Date) =>
  changeDue(
    tx,
    tx`status = 'closed', closed_at = ${now}, updated_at = ${now}`,
    tx`closes_at <= ${now}`,
  );

/** Locks the author, and counts the author's drafts that can still be published. */
export const countDraftsLocked = async (tx: Tx, author_id: string, now: Date): Promise<number> => {
  await tx`select pg_advisory_xact_lock(hashtextextended(${`suggest ${author_id}`}, 0))`;
  const [row] = await tx<{ count: number }[]>`
    select count(*)::int as count
    from questions
    where author_id = ${author_id} and status = 'draft' and closes_at > ${now}`;
  return row?.count ?? 0;
};

/** How one event changes the counts: a comment, a prediction, or a forecast added or removed. */
export interface Counted {
  readonly question_id: string;
  readonly comments?: 1;
  readonly predictions?: 1;
  /** 1 adds the forecast that the other members describe, and -1 removes it. */
  readonly forecasts?: 1 | -1;
  /** Offset of the event, if it is a prediction or a revision. */
  readonly offset?: number;
  readonly [forecast: string]: unknown;
}

/** Adds to the counters. Runs in the transaction that gives the events their offsets. */
export const addCounts = async (tx: Tx, counted: readonly Counted[]): Promise<void> => {
  await tx`
    with given as (
      select *
      from json_to_recordset(${JSON.stringify(counted)}::text::json) as given (
        question_id uuid, comments integer, predictions integer, forecasts integer,
        "offset" bigint, prediction boolean, option_index integer, option_count integer
      )
    ),
    chosen as (
      select question_id, option_index, sum(forecasts)::integer as count
      from given
      where option_index is not null
      group by question_id, option_index
    )
    update question_counts c
    set
      prediction_count = c.prediction_count + d.predictions,
      comment_count = c.comment_count + d.comments,
      yes_count = c.yes_count + d.yes,
      no_count = c.no_count + d.no,
      prediction_offset = greatest(c.prediction_offset, d."offset"),
      option_counts = array(
        select coalesce(c.option_counts[n], 0) + coalesce(o.count, 0)
        from generate_series(1, greatest(cardinality(c.option_counts), d.option_count)) n
        left join chosen o on o.question_id = c.question_id and o.option_index = n - 1
        order by n
      )
    from (
      select
        question_id,
        coalesce(sum(predictions), 0)::integer as predictions,
        coalesce(sum(comments), 0)::integer as comments,
        coalesce(sum(forecasts) filter (where prediction), 0)::integer as yes,
        coalesce(sum(forecasts) filter (where not prediction), 0)::integer as no,
        max("offset") as "offset",
        max(option_count) as option_count
      from given
      group by question_id
    ) d
    where c.question_id = d.question_id
      -- Without this list, Postgres may read all counters instead of using the index.
      and c.question_id = any (${counted.map(({ question_id }) => question_id)}::uuid[])`;
};

/** Returns questions in no particular order. Unknown ids are skipped. */
const readQuestions = (db: Db, ids: readonly string[]): Promise<QuestionRow[]> => db<QuestionRow[]>`
  select ${questionColumns(db)}
  from questions q
  left join question_counts c on c.question_id = q.id
  where q.id = any (${ids}::uuid[])`;

/**
 * Caches questions in an api process, for the checks before a prediction. A copy may be old: the
 * commit checks status and times again under the question's lock, and the other fields in these
 * checks are fixed while a question is open. Only questions that take predictions are cached, so an
 * opening, a reopening or a later close is visible immediately. Status events remove the copy.
 */

type Found = QuestionRow | undefined;

const cached_ms = 30_000;

export type QuestionCache = ReturnType<typeof createQuestionCache>;

export const createQuestionCache = (
  { sql, clock }: Pick<Deps, 'sql' | 'clock'>,
  /** Called for every question that is removed from the cache. */
  onForget: (id: string) => void = () => undefined,
) => {
  // One query at a time. A burst of requests for questions that are not cached shares few queries.
  const options = { most: 200, at_once: 1 };
  const read = makeLoader<Found>(async (ids) => {
    const rows = new Map((await readQuestions(sql, ids)).map((row) => [row.id, row]));
    return ids.map((id) => rows.get(id));
  }, options);
  const isKept = (row: Found): boolean => row !== undefined && whyNotOpen(row, clock()) === null;
  const cache = makeCache<Found>({ most: 20_000, ttl_ms: cached_ms, isKept });
  return {
    /** Reads a question from the database. Calls that arrive together share one query. */
    read: (question_id: string): Promise<Found> => read(question_id.toLowerCase()),
    get(question_id: string): Found | Promise<Found> {
      const id = question_id.toLowerCase();
      // The question may have been extended or reopened since it was cached.
      const known = cache.peek(id);
      if (known !== undefined && !isKept(known)) cache.forget(id);
      return cache.get(id, () => read(id));
    },
    forget(question_id: string) {
      const id = question_id.toLowerCase();
      cache.forget(id);
      onForget(id);
    },
  };
};

export interface QuestionParts {
  readonly questions: QuestionCache;
}
