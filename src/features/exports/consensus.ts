import { givenBy } from '../consensus/index.js';
import { makeRun, type Run, type Stated } from '../history/index.js';
import { consensus_columns } from './columns.js';
import type { Lines } from './copy-store.js';
import { type MadeRow, type TextFormat, toLine } from './formats.js';

/** Rows that are made here rather than by Postgres: the consensus after each prediction. */

/** A row of `selectStated`. */
interface StatedRow extends Omit<Stated, 'given'> {
  readonly question_id: string;
  readonly question_type: 'binary' | 'multi';
  readonly options: readonly string[];
  readonly prediction_id: string;
  readonly probabilities: readonly number[] | null;
}

/** Adds a prediction of a question to its run: the consensus as it stood then. */
const addTo = (run: Run, row: StatedRow): MadeRow => {
  const { question_id, question_type, options, prediction_id, probabilities, ...one } = row;
  const is_binary = question_type === 'binary';
  const option = is_binary ? null : one.side;
  const given = givenBy({ option, value: one.value }, probabilities, options.length) ?? [];
  run.add({ given, ...one });
  const { option_probabilities, option_percents, ...moment } = run.read();
  const byOption = (figures: readonly number[]) =>
    is_binary ? null : Object.fromEntries(options.map((name, n) => [name, figures[n] ?? 0]));
  return {
    question_id,
    prediction_id,
    created_at: new Date(one.at).toISOString(),
    ...moment,
    option_probabilities: byOption(option_probabilities),
    option_percents: byOption(option_percents),
  };
};

/** Lines of the consensus from lines of `selectStated`, one question behind the other. */
export async function* consensusLines(
  stated: AsyncIterable<Lines>,
  { line, separator }: Pick<TextFormat, 'line' | 'separator'>,
): AsyncGenerator<Lines> {
  let run: Run | null = null;
  let question_id = '';
  let is_first = true;
  for await (const { rows, text } of stated) {
    const lines = text
      .toString()
      .split('\n')
      .filter((one) => one !== '')
      .map((one) => {
        const row = JSON.parse(one) as StatedRow;
        if (run === null || row.question_id !== question_id) run = makeRun(row);
        question_id = row.question_id;
        return toLine(line, consensus_columns, addTo(run, row));
      });
    const joined = lines.join(separator);
    yield { rows, text: Buffer.from(is_first ? joined : separator + joined) };
    is_first = false;
  }
}
