import { readPages, type Sql, type Tx } from '../../kit/pg/client.js';
import { givenBy, type QuestionShape } from '../consensus/index.js';
import type { Stated } from './run.js';

/** What was stated on a question, read from the record piece by piece. */

/** Predictions in one text: it takes about a millisecond of the event loop to read. */
const piece = 1_000;
/** Texts that are fetched at a time. */
const pieces = 4;

/** Offset of the newest prediction on a question in the log; 0 where there is none. */
export const readOffset = async (sql: Sql, question_id: string): Promise<number> => {
  const [row] = await sql<{ offset: number }[]>`
    select prediction_offset as "offset" from question_counts where question_id = ${question_id}`;
  return row?.offset ?? 0;
};

interface PieceRow {
  readonly lines: string;
  readonly offset: number;
}

/** Predictions of a piece, and the offset of the newest prediction of the question. */
export interface StatedPiece {
  readonly stated: readonly Stated[];
  readonly offset: number;
}

const readLine = (line: string, { question_type, options }: QuestionShape): Stated => {
  const [at, on, states, owner = '', family = '', percents = ''] = line.split(' ');
  const [side, value] = [Number(on), Number(states)];
  const option = question_type === 'binary' ? null : side;
  const probabilities = percents === '' ? null : percents.split(',').map(Number);
  const given = givenBy({ option, value }, probabilities, options.length) ?? [];
  return { at: Number(at), side, value, owner, family, given };
};

/**
 * All predictions of a question that the log has, in the order of their times, and the offset of
 * the newest one: one statement, which sees one state. Those whose event is still in the outbox
 * are left out, as in the consensus; what moderation hid and what was voided stays in, also as
 * there. A row for each would cost the event loop four times as much as these texts.
 */
export const readStated = async function* (
  tx: Tx,
  question: QuestionShape,
): AsyncGenerator<StatedPiece> {
  const rows = tx<PieceRow[]>`
    select
      string_agg(
        (extract(epoch from created_at) * 1000)::bigint || ' ' || side || ' ' || value || ' '
          || owner || ' ' || model_family || ' '
          || coalesce(array_to_string(probabilities, ','), ''),
        E'\n' order by created_at, id
      ) as lines,
      (select prediction_offset from question_counts where question_id = ${question.id})
        as "offset"
    from (
      select
        p.created_at,
        p.id,
        coalesce(p.selected_option, p.prediction::integer) as side,
        coalesce(p.probability, p.confidence) as value,
        coalesce(p.owner_id, p.agent_id) as owner,
        p.model_family,
        p.probabilities,
        (row_number() over (order by p.created_at, p.id) - 1) / ${piece} as piece
      from predictions p
      where p.question_id = ${question.id}
        and not exists (select from outbox o where o.id = p.event_id)
    ) placed
    group by piece
    order by piece`;
  for await (const some of readPages(tx, rows, pieces)) {
    for (const { lines, offset } of some) {
      yield { stated: lines.split('\n').map((line) => readLine(line, question)), offset };
    }
  }
};
