import { makeCache, makeLoader } from '../../kit/cache.js';
import type { Deps } from '../../kit/deps.js';
import type { Db, Tx } from '../../kit/pg/client.js';
import type { NewQuestion } from './rules.js';
import { whyNotOpen } from './rules.js';
import type { QuestionStatus, QuestionWire } from './schema.js';

/** Questions in Postgres: rows, new ones, counters. Lists and transitions have their own files. */

export interface QuestionRow extends NewQuestion {
  readonly id: string;
  readonly status: QuestionStatus;
  readonly outcome: boolean | null;
  readonly correct_options: readonly string[] | null;
  readonly resolution_note: string | null;
  readonly resolved_at: Date | null;
  readonly revision: number;
  readonly author_id: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly prediction_count: number;
  readonly comment_count: number;
  readonly yes_count: number;
  readonly no_count: number;
  readonly option_counts: readonly number[];
}

export const toWire = (row: QuestionRow): QuestionWire => ({
  id: row.id,
  question_id: row.id,
  question: row.question,
  description: row.description,
  category: row.category,
  subcategory: row.subcategory,
  tags: [...row.tags],
  question_type: row.question_type,
  options: [...row.options],
  status: row.status,
  timeframe: row.timeframe,
  weight: row.weight,
  opens_at: row.opens_at.toISOString(),
  closes_at: row.closes_at.toISOString(),
  resolution_date: row.resolution_date.toISOString(),
  resolution_source: row.resolution_source,
  resolution_url: row.resolution_url,
  source: row.source,
  source_id: row.source_id,
  outcome: row.outcome,
  correct_options: row.correct_options === null ? null : [...row.correct_options],
  resolution_note: row.resolution_note,
  resolved_at: row.resolved_at?.toISOString() ?? null,
  revision: row.revision,
  prediction_count: row.prediction_count,
  comment_count: row.comment_count,
  yes_count: row.yes_count,
  no_count: row.no_count,
  option_counts: row.options.map((option, index) => ({
    option,
    count: row.option_counts[index] ?? 0,
  })),
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
});

/** The columns of a `QuestionRow`, of `questions q` and `question_counts c`. */
export const questionColumns = (db: Db) => db`
  q.id, q.question, q.description, q.category, q.subcategory, q.tags, q.question_type, q.options,
  q.status, q.timeframe, q.weight, q.opens_at, q.closes_at, q.resolution_date,
  q.resolution_source, q.resolution_url, q.source, q.source_id, q.outcome, q.correct_options,
  q.resolution_note, q.resolved_at, q.revision, q.author_id, q.created_at, q.updated_at,
  coalesce(c.prediction_count, 0) as prediction_count,
  coalesce(c.comment_count, 0) as comment_count,
  coalesce(c.yes_count, 0) as yes_count,
  coalesce(c.no_count, 0) as no_count,
  coalesce(c.option_counts, '{}') as option_counts`;

export const readQuestion = async (db: Db, id: string): Promise<QuestionRow | undefined> => {
  const [row] = await db<QuestionRow[]>`
    select ${questionColumns(db)}
    from questions q
    left join question_counts c on c.question_id = q.id
    where q.id = ${id}`;
  return row;
};

/** A question, and how far its predictions were numbered when it was read; 0: it had none. */
export interface NumberedQuestion extends QuestionRow {
  readonly last_seq: number;
}

/** In no order; none for an id that there is not. */
const readQuestions = (db: Db, ids: readonly string[]): Promise<NumberedQuestion[]> => db<
  NumberedQuestion[]
>`
  select ${questionColumns(db)}, s.seq as last_seq
  from questions q
  join question_seqs s on s.question_id = q.id
  left join question_counts c on c.question_id = q.id
  where q.id = any (${ids}::uuid[])`;

interface Inserted {
  readonly id: string;
  readonly created: boolean;
}

/** Stores a draft; with source and source_id known already, gives the question that has them. */
export const insertQuestion = async (
  tx: Tx,
  id: string,
  question: NewQuestion,
  author_id: string | null,
): Promise<Inserted> => {
  const [row] = await tx<{ id: string }[]>`
    insert into questions ${tx({
      id,
      ...question,
      tags: question.tags as string[],
      options: question.options as string[],
      status: 'draft',
      author_id,
    })}
    on conflict (source, source_id) where source is not null do nothing
    returning id`;
  if (row !== undefined) {
    await tx`insert into question_counts (question_id, option_counts)
      values (${id}, ${question.options.map(() => 0)}::integer[])`;
    return { id, created: true };
  }
  const [known] = await tx<{ id: string }[]>`
    select id
    from questions
    where source = ${question.source} and source_id = ${question.source_id}`;
  return { id: known?.id ?? id, created: false };
};

/** What one batch of the log adds to the counters of a question. */
export interface CountDelta {
  readonly question_id: string;
  readonly predictions: number;
  readonly comments: number;
  readonly yes: number;
  readonly no: number;
  /** By index of the option; empty for a binary question. */
  readonly options: readonly number[];
  /** Offset of the newest of the predictions; 0 where there is none. */
  readonly prediction_offset: number;
}

/** Adds to the counters; runs in the transaction that hands the events over. */
export const addCounts = async (tx: Tx, deltas: readonly CountDelta[]): Promise<void> => {
  const sorted = [...deltas].sort((a, b) => (a.question_id < b.question_id ? -1 : 1));
  await tx`
    update question_counts c
    set
      prediction_count = c.prediction_count + d.predictions,
      comment_count = c.comment_count + d.comments,
      yes_count = c.yes_count + d.yes,
      no_count = c.no_count + d.no,
      prediction_offset = greatest(c.prediction_offset, d.prediction_offset)
    from unnest(
      ${sorted.map((d) => d.question_id)}::uuid[],
      ${sorted.map((d) => d.predictions)}::integer[],
      ${sorted.map((d) => d.comments)}::integer[],
      ${sorted.map((d) => d.yes)}::integer[],
      ${sorted.map((d) => d.no)}::integer[],
      ${sorted.map((d) => d.prediction_offset)}::bigint[]
    ) as d (question_id, predictions, comments, yes, no, prediction_offset)
    where c.question_id = d.question_id`;
  for (const { question_id, options } of sorted) {
    if (options.length === 0) continue;
    await tx`
      update question_counts c
      set option_counts = (
        select array_agg(coalesce(c.option_counts[n], 0) + coalesce(d.count, 0) order by n)
        from unnest(${options as number[]}::integer[]) with ordinality as d (count, n)
      )
      where c.question_id = ${question_id}`;
  }
};

/**
 * Questions in the memory of an api process, for the checks before a prediction. The commit checks
 * status and times again under the question's lock, and the rest stands while a question is open,
 * so a copy may be a second old. Only a question that takes predictions is kept, so every process
 * sees at once that one is opened, reopened or closes later; the events of its life drop it.
 */

type Found = NumberedQuestion | undefined;

export interface QuestionCache {
  get(id: string): Found | Promise<Found>;
  forget(id: string): void;
}

export const createQuestionCache = (
  { sql, clock }: Pick<Deps, 'sql' | 'clock'>,
  /** Told of every question that is forgotten. */
  onForget: (id: string) => void = () => undefined,
): QuestionCache => {
  // One reading at a time: what is new to a process comes in rushes.
  const options = { most: 200, at_once: 1 };
  const read = makeLoader<Found>(async (ids) => {
    const rows = new Map((await readQuestions(sql, ids)).map((row) => [row.id, row]));
    return ids.map((id) => rows.get(id));
  }, options);
  const isKept = (row: Found): boolean => row !== undefined && whyNotOpen(row, clock()) === null;
  const cache = makeCache<Found>({ most: 20_000, ttl_ms: 1_000, isKept });
  return {
    get(asked) {
      const id = asked.toLowerCase();
      return cache.get(id, () => read(id));
    },
    forget(asked) {
      const id = asked.toLowerCase();
      cache.forget(id);
      onForget(id);
    },
  };
};
