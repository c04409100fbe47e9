import type { Db } from '../../db/client.js';
import { entryColumns, type LogEntry } from '../events/index.js';

/** The newest events of the log that feeds tell of; the conditions are those of their indexes. */

const most_entries = 50;

/** Questions published and resolved, of one category or of all. */
export const readNews = (db: Db, category: string | null) => db<LogEntry[]>`
  select ${entryColumns(db)}
  from events
  where event in ('question.created', 'question.resolved')
    and audience_id is null
    ${category === null ? db`` : db`and category = ${category}`}
  order by "offset" desc
  limit ${most_entries}`;

/** The life of one question; predictions and comments are too many for a feed. */
export const readLife = (db: Db, question_id: string) => db<LogEntry[]>`
  select ${entryColumns(db)}
  from events
  where question_id = ${question_id}
    and event in (
      'question.created', 'question.closing_soon', 'question.closed', 'question.resolved',
      'dispute.opened', 'dispute.resolved'
    )
    and audience_id is null
  order by "offset" desc
  limit ${most_entries}`;
