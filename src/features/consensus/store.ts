import { setTimeout as wait } from 'node:timers/promises';
import type { Db, Tx } from '../../kit/pg/client.js';
import {
  type Consensus,
  computeConsensus,
  givenBy,
  type QuestionShape,
  type Said,
} from './rules.js';
import { type Counts, countAll, readCells, type StatedBy } from './tally.js';

/** The tally of a question from the record, as of the log. */

/**
 * What the log has of a question: its predictions, without those whose event is still in the
 * outbox. One statement sees one state of predictions, outbox and counters; the offset is that of
 * the newest prediction of the question in the log.
 */
const said = (db: Db) => db`
  p.model_family as family,
  p.prediction as yes,
  p.selected_option as option,
  coalesce(p.probability, p.confidence) as value,
  p.probabilities`;
const isLogged = (db: Db) => db`not exists (select from outbox o where o.id = p.event_id)`;

interface SaidRow extends Said {
  readonly probabilities: readonly number[] | null;
}

const statedBy = (row: SaidRow, owner: string, options: number): StatedBy => {
  const { family, yes, option, value } = row;
  const given = givenBy(row, row.probabilities, options);
  return { family, yes, option, value, owner, given };
};

export interface Counted extends Counts {
  readonly question_id: string;
  readonly offset: number;
  readonly updated_at: string | null;
}

interface QuestionRow extends Omit<SaidRow, 'family'> {
  readonly question_id: string;
  readonly options: number;
  readonly offset: number;
  /** Null where the question has no predictions. */
  readonly family: string | null;
  readonly owners: string;
  readonly latest: Date | null;
}

/** Who stated what on some questions. Owners in one text: a row each would cost several times. */
export const readCounts = async (
  db: Db,
  question_ids: readonly string[],
): Promise<readonly Counted[]> => {
  const rows = await db<QuestionRow[]>`
    select
      q.id as question_id,
      cardinality(q.options) as options,
      coalesce(max(c.prediction_offset), 0) as "offset",
      ${said(db)},
      string_agg(coalesce(p.owner_id, p.agent_id)::text, ' ') as owners,
      max(p.created_at) as latest
    from questions q
    left join question_counts c on c.question_id = q.id
    left join predictions p on p.question_id = q.id and ${isLogged(db)}
    where q.id = any (${question_ids as string[]}::uuid[])
    group by q.id, 4, 5, 6, 7, 8`;
  const by_question = new Map<string, QuestionRow[]>();
  for (const row of rows) {
    by_question.set(row.question_id, [...(by_question.get(row.question_id) ?? []), row]);
  }
  return [...by_question].map(([question_id, some]) => {
    const placed = some.filter((row): row is QuestionRow & SaidRow => row.family !== null);
    const all = placed.flatMap((row) =>
      row.owners.split(' ').map((owner) => statedBy(row, owner, row.options)),
    );
    const latest_ms = Math.max(...placed.map(({ latest }) => latest?.getTime() ?? 0));
    const updated_at = placed.length === 0 ? null : new Date(latest_ms).toISOString();
    const offset = placed.length === 0 ? 0 : (some[0]?.offset ?? 0);
    return { question_id, ...countAll(all), offset, updated_at };
  });
};

export interface StatedRow extends SaidRow {
  readonly owner: string;
  readonly created_at: Date;
  readonly offset: number;
}

/**
 * The predictions of a question one by one, in portions that a declared cursor reads: all of them
 * are of one state, and between two of them the caller may rest. With `before` only what stands in
 * the log before that offset, and then the offset is not theirs.
 */
export async function* readStated(
  tx: Tx,
  question_id: string,
  { before, portion }: { readonly before: number | null; readonly portion: number },
): AsyncGenerator<readonly StatedRow[]> {
  const placed_before = tx`
    and p.event_id in (
      select id
      from events
      where question_id = ${question_id} and event = 'prediction.placed' and "offset" < ${before}
    )`;
  await tx`
    declare stated no scroll cursor for
    select
      ${said(tx)},
      coalesce(p.owner_id, p.agent_id) as owner,
      p.created_at,
      (
        select prediction_offset from question_counts where question_id = ${question_id}
      ) as "offset"
    from predictions p
    where p.question_id = ${question_id}
      and ${isLogged(tx)}
      ${before === null ? tx`` : placed_before}`;
  for (;;) {
    const rows = await tx<StatedRow[]>`fetch forward ${tx.unsafe(String(portion))} from stated`;
    yield rows;
    if (rows.length < portion) break;
  }
  await tx`close stated`;
}

/** Predictions that are read at a time; then the cores are left to others for a moment. */
const portion = 1_000;
const rest_ms = 10;

/**
 * The consensus from the record for someone who can wait; with `before` as it was before that
 * offset of the log. However many predictions a question has, those who predict meanwhile do not
 * notice.
 */
export const readInPortions = async (
  tx: Tx,
  question: QuestionShape,
  before: number | null = null,
): Promise<Consensus> => {
  const all: StatedBy[] = [];
  let [offset, latest_ms] = [0, 0];
  for await (const rows of readStated(tx, question.id, { before, portion })) {
    for (const row of rows) {
      all.push(statedBy(row, row.owner, question.options.length));
      offset = row.offset;
      latest_ms = Math.max(latest_ms, row.created_at.getTime());
    }
    if (rows.length === portion) await wait(rest_ms);
  }
  const updated_at = all.length === 0 ? null : new Date(latest_ms).toISOString();
  return computeConsensus(question, readCells(countAll(all).cells, { offset, updated_at }));
};

/** Ids of the questions that have predictions, in pages. */
export const listPredicted = async (db: Db, after: string, most: number) =>
  db<{ id: string }[]>`
    select question_id as id
    from question_counts
    where prediction_count > 0 and question_id > ${after}
    order by question_id
    limit ${most}`;

/** The options of questions, in their order. */
export const readOptions = async (
  db: Db,
  question_ids: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> => {
  const rows = await db<{ id: string; options: string[] }[]>`
    select id, options from questions where id = any (${question_ids as string[]}::uuid[])`;
  return new Map(rows.map(({ id, options }) => [id, options]));
};
