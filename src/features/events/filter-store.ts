import type { Db } from '../../kit/pg/client.js';

/** What a filter lets pass, in SQL: for sockets, pages and streams, and for what webhooks get. */

const sqlOf = (db: Db) => db``;
type Fragment = ReturnType<typeof sqlOf>;

/** Of each member of a filter an expression with its type; null where everything passes. */
export interface FilterSql {
  readonly events: Fragment;
  readonly question_ids: Fragment;
  readonly categories: Fragment;
  readonly model_families: Fragment;
  readonly min_confidence: Fragment;
}

/**
 * Whether event `e` passes; `passesFilter` means the same. JSON is read of those events only that
 * have the right name and place.
 */
export const passesSql = (db: Db, filter: FilterSql): Fragment => {
  const { events, question_ids, categories, model_families, min_confidence } = filter;
  return db`(
    (${events} is null or e.event = any (${events}))
    and (${question_ids} is null or e.question_id = any (${question_ids}))
    and (${categories} is null or e.category = any (${categories}))
    and case
      when ${model_families} is null then true
      else e.body::json #>> '{data,model_family}' = any (${model_families})
    end
    and case
      when ${min_confidence} is null then true
      when json_typeof(e.body::json #> '{data,confidence}') = 'number'
        then (e.body::json #>> '{data,confidence}')::numeric >= ${min_confidence}
      else false
    end
  )`;
};
