import { type LogEntry, type Projector, readData } from '../events/index.js';
import { addCounts, type CountDelta } from './store.js';

/**
 * Counters of questions follow the log: they move in the transaction that gives the events their
 * offsets, once a batch and question, and so never on the path of a prediction.
 */

interface Sums {
  predictions: number;
  comments: number;
  yes: number;
  no: number;
  options: number[];
  prediction_offset: number;
}

const addEntry = (sums: Sums, entry: LogEntry): void => {
  if (entry.event === 'comment.created') {
    sums.comments += 1;
    return;
  }
  const data = readData(entry);
  sums.predictions += 1;
  sums.prediction_offset = entry.offset;
  if (data['prediction'] === true) sums.yes += 1;
  if (data['prediction'] === false) sums.no += 1;
  const option = data['option_index'];
  const count = data['option_count'];
  if (typeof option === 'number' && typeof count === 'number') {
    while (sums.options.length < count) sums.options.push(0);
    sums.options[option] = (sums.options[option] ?? 0) + 1;
  }
};

/** Sums a batch of the log by question. */
export const sumCounts = (entries: readonly LogEntry[]): readonly CountDelta[] => {
  const by_question = new Map<string, Sums>();
  for (const entry of entries) {
    const { event, question_id } = entry;
    if (event !== 'prediction.placed' && event !== 'comment.created') continue;
    if (question_id === null) continue;
    let sums = by_question.get(question_id);
    if (sums === undefined) {
      sums = { predictions: 0, comments: 0, yes: 0, no: 0, options: [], prediction_offset: 0 };
      by_question.set(question_id, sums);
    }
    addEntry(sums, entry);
  }
  return [...by_question].map(([question_id, sums]) => ({ question_id, ...sums }));
};

export const question_counts: Projector = {
  name: 'question counters',
  async record(tx, entries) {
    const deltas = sumCounts(entries);
    if (deltas.length > 0) await addCounts(tx, deltas);
  },
};
