import { type LogEntry, type Projector, readData } from '../events/index.js';
import { insertNotices, type Notice } from './store.js';

/**
 * Replies are told in the transaction that gives their event its offset: an event is handed over
 * once, and so its author is told once.
 */

const noticeOf = (entry: LogEntry): readonly Notice[] => {
  if (entry.event !== 'comment.reply' || entry.audience_id === null) return [];
  const data = readData(entry);
  const { timestamp } = JSON.parse(entry.body) as { timestamp: string };
  return [
    {
      agent_id: entry.audience_id,
      kind: 'comment.reply',
      cause: `event:${entry.id}`,
      ...(entry.question_id === null ? {} : { question_id: entry.question_id }),
      subject_id: String(data['comment_id']),
      details: { replier_name: data['replier_name'] },
      at: new Date(timestamp),
    },
  ];
};

export const notified_replies: Projector = {
  name: 'notified replies',
  record: (tx, entries) => insertNotices(tx, entries.flatMap(noticeOf)),
};
