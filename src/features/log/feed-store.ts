import type { Db } from '../../db/client.js';
import * as events from '../events/index.js';

/** The newest events of the log that feeds tell of; the conditions are those of their indexes. */

const most_entries = 50;

const news_events = [events.question_created, events.question_resolved];
const life_events = [
  ...[events.question_created, events.question_closing_soon, events.question_closed],
  ...[events.question_resolved, events.dispute_opened, events.dispute_resolved],
];

/** Questions published and resolved, of one category or of all. */
export const readNews = (db: Db, category: string | null) => db<events.LogEntry[]>`
  select ${events.entryColumns(db)}
  from events
  where event in (${events.eventNames(db, news_events)})
    and audience_id is null
    ${category === null ? db`` : db`and category = ${category}`}
  order by "offset" desc
  limit ${most_entries}`;

/** The life of one question; predictions and comments are too many for a feed. */
export const readLife = (db: Db, question_id: string) => db<events.LogEntry[]>`
  select ${events.entryColumns(db)}
  from events
  where question_id = ${question_id}
    and event in (${events.eventNames(db, life_events)})
    and audience_id is null
  order by "offset" desc
  limit ${most_entries}`;
