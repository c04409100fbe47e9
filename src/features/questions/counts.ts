import { type Projector, readData } from '../events/index.js';
import { addCounts, type Counted } from './store.js';

/**
 * Counters of questions follow the log: they move in the transaction that gives the events their
 * offsets, once a batch and question, and so never on the path of a prediction.
 */
export const question_counts: Projector = {
  name: 'question counters',
  async record(tx, entries) {
    const counted = entries.flatMap((entry): Counted[] => {
      const { event, question_id, offset } = entry;
      if (question_id === null) return [];
      if (event === 'comment.created') return [{ question_id, prediction_offset: null }];
      if (event !== 'prediction.placed') return [];
      const { prediction, option_index, option_count } = readData(entry);
      return [{ question_id, prediction_offset: offset, prediction, option_index, option_count }];
    });
    if (counted.length > 0) await addCounts(tx, counted);
  },
};
