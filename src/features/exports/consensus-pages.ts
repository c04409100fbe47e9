import type { Sql } from '../../kit/pg/client.js';
import { givenBy } from '../consensus/index.js';
import { makeRun } from '../history/index.js';
import type { LineKind } from './cells-store.js';
import { consensus_columns } from './columns.js';
import {
  listPredictedQuestions,
  type PredictedQuestion,
  readStatedRows,
  type StatedRow,
} from './consensus-store.js';
import type { Lines } from './content.js';
import type { PredictionAsk } from './predictions-store.js';
import { type MadeRow, toLine } from './rows.js';

/** The consensus of every question after each of its predictions, question by question. */

const rowsOf = function* (
  { id, question_type, options }: PredictedQuestion,
  stated: readonly StatedRow[],
): Generator<MadeRow> {
  const run = makeRun({ question_type, options });
  const is_binary = question_type === 'binary';
  const byOption = (figures: readonly number[]) =>
    is_binary ? null : Object.fromEntries(options.map((option, n) => [option, figures[n] ?? 0]));
  for (const { probabilities, prediction_id, ...one } of stated) {
    const option = is_binary ? null : one.side;
    const given = givenBy({ option, value: one.value }, probabilities, options.length) ?? [];
    run.add({ given, ...one });
    const { option_probabilities, option_percents, ...moment } = run.read();
    yield {
      question_id: id,
      prediction_id,
      created_at: new Date(one.at).toISOString(),
      ...moment,
      option_probabilities: byOption(option_probabilities),
      option_percents: byOption(option_percents),
    };
  }
};

const page_rows = 1_000;

export interface LinesAsk {
  readonly ask: PredictionAsk;
  readonly kind: LineKind;
  readonly separator: string;
}

const toLines = (lines: readonly string[], separator: string): Lines => ({
  rows: lines.length,
  text: Buffer.from(lines.join(separator)),
});

const first_id = '00000000-0000-0000-0000-000000000000';

async function* readQuestions(sql: Sql, ask: PredictionAsk): AsyncGenerator<PredictedQuestion> {
  let after = first_id;
  for (;;) {
    const questions = await listPredictedQuestions(sql, ask, after);
    yield* questions;
    const last = questions.at(-1);
    if (last === undefined) return;
    after = last.id;
  }
}

export async function* readConsensusPages(sql: Sql, parts: LinesAsk): AsyncGenerator<Lines> {
  const { ask, kind, separator } = parts;
  let lines: string[] = [];
  for await (const question of readQuestions(sql, ask)) {
    const stated = await readStatedRows(sql, ask, question.id);
    for (const row of rowsOf(question, stated)) {
      lines.push(toLine(kind, consensus_columns, row));
      if (lines.length < page_rows) continue;
      yield toLines(lines, separator);
      lines = [];
    }
  }
  if (lines.length > 0) yield toLines(lines, separator);
}
