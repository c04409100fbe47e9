import { consensus_columns } from '../../../src/features/exports/columns.js';
import { makeContent, rows_a_turn } from '../../../src/features/exports/content.js';
import { consensusLines, moments_a_turn } from '../../../src/features/exports/exports.js';
import type { Format } from '../../../src/features/exports/schema.js';
import { t } from '../../help/tap.js';
import { countTurns } from '../../help/turns.js';

/** An export never builds more than a fixed number of rows in one turn of the event loop. */

const rows = 2_000;
const lineOf = (n: number): string =>
  `${JSON.stringify({
    question_id: '01900000-0000-7000-8003-000000000000',
    question_type: 'binary',
    options: [],
    range_min: null,
    range_max: null,
    prediction_id: String(n),
    revision: 0,
    at: 1_700_000_000_000 + n,
    agent: String(n),
    owner: String(n),
    family: 'gpt',
    side: n % 2,
    value: (n * 37) % 10_001,
    probabilities: null,
    cdf: null,
  })}\n`;

/** Pages that are available at once, so only the export itself gives way to other work. */
async function* pagesOf(rows_a_page: number) {
  for (let n = 0; n < rows; n += rows_a_page) {
    const lines = Array.from({ length: rows_a_page }, (_, k) => lineOf(n + k));
    yield { rows: rows_a_page, text: Buffer.from(lines.join('')) };
  }
}

const readAll = async (pieces: AsyncIterable<unknown>): Promise<void> => {
  for await (const _ of pieces);
};

t.test('a history of the consensus gives way within its pages', async (t) => {
  for (const rows_a_page of [1, 500, rows]) {
    const turns = await countTurns(() => readAll(consensusLines([], pagesOf(rows_a_page))));
    t.ok(turns >= rows / moments_a_turn, `${turns} turns, pages of ${rows_a_page}`);
  }
});

t.test('every format gives way between its pages', async (t) => {
  const subject = {
    name: 'x',
    schema: 'x/1',
    columns: consensus_columns,
    list: 'rows',
    select: () => ({ select: '', settings: {} }),
  };
  for (const format of ['csv', 'ndjson', 'json', 'parquet'] as readonly Format[]) {
    for (const rows_a_page of [1, rows_a_turn]) {
      const pieces = makeContent({ format, subject, for_excel: false }, pagesOf(rows_a_page));
      const turns = await countTurns(() => readAll(pieces));
      t.ok(turns >= rows / rows_a_turn, `${format}: ${turns} turns, pages of ${rows_a_page}`);
    }
  }
});
