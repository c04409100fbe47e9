import type { Db } from '../../db/client.js';
import * as catalogue from '../events/catalogue.js';
import { entryColumns, eventNames } from '../events/index.js';
import type { LogEntry } from '../events/log-entry.js';

/** Reads the newest log events for feeds. The conditions match partial indexes in Postgres. */

const max_entries = 50;

const news_events = [
  catalogue.question_created,
  catalogue.question_resolved,
  catalogue.question_voided,
];
const life_events = [
  catalogue.question_created,
  catalogue.question_closing_soon,
  catalogue.question_closed,
  catalogue.question_resolved,
  catalogue.question_voided,
  catalogue.question_reopened,
  catalogue.dispute_opened,
  catalogue.dispute_resolved,
];

interface NewsFilter {
  readonly category?: string | undefined;
  /** Set to leave out how questions ended. */
  readonly events?: 'question.created' | undefined;
}

/** Reads the events that publish, resolve or void a question. */
export const readNews = (db: Db, { category, events }: NewsFilter) => db<LogEntry[]>`
  select ${entryColumns(db)}
  from events
  where event in (${eventNames(db, news_events)})
    and audience_id is null
    ${category === undefined ? db`` : db`and category = ${category}`}
    ${events === undefined ? db`` : db`and event = ${events}`}
  order by "offset" desc
  limit ${max_entries}`;

/** Reads the history of one question, without its many predictions and comments. */
export const readLife = (db: Db, question_id: string) => db<LogEntry[]>`
  select ${entryColumns(db)}
  from events
  where question_id = ${question_id}
    and event in (${eventNames(db, life_events)})
    and audience_id is null
  order by "offset" desc
  limit ${max_entries}`;
