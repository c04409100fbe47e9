import type { Db, Tx } from '../../kit/pg/client.js';
import type { TallyStart } from './live-tally.js';
import { givenBy, type QuestionShape, type Said } from './rules.js';

/** The tally of a question from the record, as of the log. */

/**
 * What the log has of a question: its predictions, without those whose event is still in the
 * outbox. One statement sees one state of predictions, outbox and counters.
 */
const logged = (db: Db, question_id: string) => db`
  from predictions p
  where p.question_id = ${question_id}
    and not exists (select from outbox o where o.id = p.event_id)`;

interface CountRow extends Said {
  readonly count: number;
  readonly latest: Date;
  readonly offset: number;
}

/** How often each value is stated by each family, at the head of the log. */
export const readCounts = async (db: Db, question_id: string) => {
  const rows = await db<CountRow[]>`
    select
      p.model_family as family,
      p.prediction as yes,
      p.selected_option as option,
      coalesce(p.probability, p.confidence) as value,
      count(*)::integer as count,
      max(p.created_at) as latest,
      (select "offset" from log_head) as "offset"
    ${logged(db, question_id)}
    group by 1, 2, 3, 4`;
  return { cells: rows, offset: rows[0]?.offset ?? 0, updated_at: latestOf(rows) };
};

const latestOf = (rows: readonly { readonly latest: Date }[]): string | null =>
  rows.length === 0
    ? null
    : new Date(Math.max(...rows.map(({ latest }) => latest.getTime()))).toISOString();

interface StartRow extends Said {
  readonly probabilities: readonly number[] | null;
  readonly owners: string;
  readonly latest: Date;
  readonly offset: number;
}

const placedBefore = (db: Db, question_id: string, before: number) => db`
  and p.event_id in (
    select id
    from events
    where question_id = ${question_id} and event = 'prediction.placed' and "offset" < ${before}
  )`;

/** The tally is as of this offset: that of the newest prediction of the question in the log. */
const countedUntil = (db: Db, question_id: string) => db`
  (select prediction_offset from question_counts where question_id = ${question_id}) as "offset"`;

/** Who stated what, at the newest prediction of the question in the log. */
export const readStart = async (
  db: Db,
  { id: question_id, options }: Pick<QuestionShape, 'id' | 'options'>,
): Promise<TallyStart> => {
  // Owners in one text: a row each would cost several times as much.
  const rows = await db<StartRow[]>`
    select
      p.model_family as family,
      p.prediction as yes,
      p.selected_option as option,
      coalesce(p.probability, p.confidence) as value,
      p.probabilities,
      string_agg(coalesce(p.owner_id, p.agent_id)::text, ' ') as owners,
      max(p.created_at) as latest,
      ${countedUntil(db, question_id)}
    ${logged(db, question_id)}
    group by 1, 2, 3, 4, 5`;
  return {
    said: rows.map(({ family, yes, option, value, probabilities, owners }) => ({
      ...{ family, yes, option, value, owners: owners.split(' ') },
      given: givenBy({ option, value }, probabilities, options.length),
    })),
    offset: rows[0]?.offset ?? 0,
    updated_at: latestOf(rows),
  };
};

export interface StatedRow extends Said {
  readonly probabilities: readonly number[] | null;
  readonly owner: string;
  readonly created_at: Date;
  readonly offset: number;
}

/**
 * The same one by one, in portions that a declared cursor reads: all of them are of one state, and
 * between two of them the caller may rest. With `before` only what stands in the log before that
 * offset, and then the offset is not theirs.
 */
export async function* readStated(
  tx: Tx,
  question_id: string,
  { before, portion }: { readonly before: number | null; readonly portion: number },
): AsyncGenerator<readonly StatedRow[]> {
  await tx`
    declare stated no scroll cursor for
    select
      p.model_family as family,
      p.prediction as yes,
      p.selected_option as option,
      coalesce(p.probability, p.confidence) as value,
      p.probabilities,
      coalesce(p.owner_id, p.agent_id) as owner,
      p.created_at,
      ${countedUntil(tx, question_id)}
    ${logged(tx, question_id)}
      ${before === null ? tx`` : placedBefore(tx, question_id, before)}`;
  for (;;) {
    const rows = await tx<StatedRow[]>`fetch forward ${tx.unsafe(String(portion))} from stated`;
    yield rows;
    if (rows.length < portion) break;
  }
  await tx`close stated`;
}

/** How many predictions the log has of each question. */
export const readLengths = async (
  db: Db,
  question_ids: readonly string[],
): Promise<ReadonlyMap<string, number>> => {
  const rows = await db<{ question_id: string; length: number }[]>`
    select question_id, prediction_count as length
    from question_counts
    where question_id = any (${question_ids}::uuid[])`;
  return new Map(rows.map(({ question_id, length }) => [question_id, length]));
};

/** Ids of the questions that have predictions, in pages. */
export const listPredicted = async (db: Db, after: string, most: number) =>
  db<{ id: string }[]>`
    select question_id as id
    from question_counts
    where prediction_count > 0 and question_id > ${after}
    order by question_id
    limit ${most}`;
