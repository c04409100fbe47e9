import type { Db } from '../../db/client.js';
import { groupBy } from '../../kit/group-by.js';
import {
  type Consensus,
  computeConsensus,
  givenBy,
  no_tally,
  type QuestionShape,
  type Said,
} from './rules.js';
import { type Counted, countAll, readCells } from './tally.js';

/** The tally of a question from the record, as of the log. */

interface CountRow extends Omit<Said, 'family'> {
  readonly question_id: string;
  readonly options: number;
  readonly offset: number;
  /** Null where the question has no predictions. */
  readonly family: string | null;
  readonly probabilities: readonly number[] | null;
  readonly owners: string;
  readonly latest: Date | null;
}

/**
 * What the log has of some questions: their predictions, without those whose event is still in the
 * outbox; with `before` only what stands in the log before that offset. One statement sees one
 * state of predictions, outbox and counters; the offset is that of the newest prediction counted.
 * Owners come in one text: a row each would cost several times as much.
 */
export const readCounts = async (
  db: Db,
  question_ids: readonly string[],
  before: number | null = null,
): Promise<readonly Counted[]> => {
  const logged_before = db`
    from events e
    where e.question_id = q.id and e.event = 'prediction.placed' and e."offset" < ${before}`;
  const rows = await db<CountRow[]>`
    select
      q.id as question_id,
      cardinality(q.options) as options,
      ${
        before === null
          ? db`coalesce(max(c.prediction_offset), 0)`
          : db`(select coalesce(max(e."offset"), 0) ${logged_before})`
      } as "offset",
      p.model_family as family,
      p.prediction as yes,
      p.selected_option as option,
      coalesce(p.probability, p.confidence) as value,
      p.probabilities,
      string_agg(coalesce(p.owner_id, p.agent_id)::text, ' ') as owners,
      max(p.created_at) as latest
    from questions q
    left join question_counts c on c.question_id = q.id
    left join predictions p on p.question_id = q.id
      and not exists (select from outbox o where o.id = p.event_id)
      ${before === null ? db`` : db`and p.event_id in (select e.id ${logged_before})`}
    where q.id = any (${question_ids as string[]}::uuid[])
    group by q.id, 4, 5, 6, 7, 8`;
  return [...groupBy(rows, ({ question_id }) => question_id)].map(([question_id, some]) => {
    const all = some.flatMap(({ family, yes, option, value, probabilities, options, owners }) => {
      if (family === null) return [];
      const given = givenBy({ option, value }, probabilities, options);
      return owners.split(' ').map((owner) => ({ family, yes, option, value, owner, given }));
    });
    const latest_ms = Math.max(...some.map(({ latest }) => latest?.getTime() ?? 0));
    const updated_at = all.length === 0 ? null : new Date(latest_ms).toISOString();
    const offset = all.length === 0 ? 0 : (some[0]?.offset ?? 0);
    return { question_id, ...countAll(all), offset, updated_at };
  });
};

/** From the record; with `before` as it was before that offset of the log. */
export const readConsensus = async (
  db: Db,
  question: QuestionShape,
  before: number | null = null,
): Promise<Consensus> => {
  const [counted] = await readCounts(db, [question.id], before);
  return computeConsensus(
    question,
    counted === undefined ? no_tally : readCells(counted.cells, counted),
  );
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
