import type { LogEntry } from '../features/events/index.js';
import { lists_tag } from '../features/questions/index.js';
import type { HotAnswers } from '../kit/http/hot.js';

/**
 * Drops kept answers as the log says that they are different now. What is about one question goes
 * with every event of it, and is made anew where only figures move. Lists go at once when a
 * question appears or changes its status; for their counters alone they go at most every
 * `counters_ms`, or a busy forum would keep none.
 */
const counters_ms = 100;

export interface Cooling {
  /** Feed this from the follower, after what the answers are made of. */
  onEvents(batch: readonly LogEntry[]): void;
  stop(): void;
}

export const makeCooling = (hot: HotAnswers): Cooling => {
  let head = -1;
  let timer: NodeJS.Timeout | null = null;
  const dropLists = (): void => {
    timer = null;
    hot.drop(lists_tag);
  };

  return {
    onEvents(batch) {
      if (batch[0] !== undefined && batch[0].offset !== head + 1) hot.clear();
      head = batch.at(-1)?.offset ?? head;
      const moved = new Set<string>();
      const other = new Set<string>();
      for (const { question_id, event } of batch) {
        if (question_id === null) continue;
        (event.startsWith('question.') ? other : moved).add(question_id);
      }
      for (const question_id of moved) hot.move(question_id);
      for (const question_id of other) hot.drop(question_id);
      if (other.size > 0) hot.drop(lists_tag);
      else if (moved.size > 0) timer ??= setTimeout(dropLists, counters_ms);
    },
    stop() {
      if (timer !== null) clearTimeout(timer);
    },
  };
};
