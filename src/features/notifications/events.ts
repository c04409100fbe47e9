import type { Deps } from '../../http/deps.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import type { Projector } from '../events/index.js';
import { type LogEntry, readData, timeOf } from '../events/log-entry.js';
import { dropOldItems } from './inbox-store.js';
import { dropOld, insertNotices, type Notice } from './store.js';

/** Each reply causes exactly one notification, in the transaction that numbers the event. */

const noticeOf = (entry: LogEntry): readonly Notice[] => {
  if (entry.event !== 'comment.reply' || entry.audience_id === null) return [];
  const data = readData(entry);
  return [
    {
      agent_id: entry.audience_id,
      kind: 'comment.reply',
      cause: `event:${entry.id}`,
      ...(entry.question_id === null ? {} : { question_id: entry.question_id }),
      subject_id: String(data['comment_id']),
      details: { replier_name: data['replier_name'] },
      at: new Date(timeOf(entry)),
    },
  ];
};

export const notified_replies: Projector = {
  name: 'notified replies',
  record: (tx, entries) => insertNotices(tx, entries.flatMap(noticeOf)),
};

/** A notification is deleted this long after it was read. */
export const read_life_ms = 30 * 86_400_000;
/** Maximum number of notifications per agent, read or unread. The newest ones stay. */
export const max_kept = 1_000;

/** Limits the notifications of each agent and the items of each inbox. Any number of sweepers may run. */
export const createNotificationSweeper = ({ sql, log, clock }: Deps): Service =>
  makeLoop({
    name: 'notification sweeper',
    log,
    every_ms: 3_600_000,
    turn: async () => {
      const read_before = new Date(clock().getTime() - read_life_ms);
      await dropOld(sql, read_before, max_kept);
      await dropOldItems(sql, read_before, max_kept);
      return 'rest';
    },
  });
