import { normaliseText } from '../kit/text.js';
import type { Db, Fragment } from './client.js';

/**
 * A text that somebody searches for, as a `tsquery`. It is matched with the columns
 * `question_words.words` and `agent_words.words` (see `sql/0013_search.sql`). Typing errors are
 * not tolerated here: the search feature corrects the text first.
 *
 * With `is_prefix`, the last word may be the beginning of a longer one, as in a search field. It is
 * false for a query that is stored and matched with later questions.
 */
export const searchQuery = (db: Db, text: string, { is_prefix = true } = {}): Fragment =>
  // In a subquery, so that Postgres makes the query once and not for each row.
  db`(select search_query(${normaliseText(text)}, ${is_prefix ? db`true` : db`false`}))`;
