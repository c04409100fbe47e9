import type { Db, Sql } from '../../db/client.js';
import { readTotal } from '../../db/rows.js';
import { keyOf, type TopicRef } from '../../socket/frames.js';
import type { LogSpan } from '../../socket/session.js';
import type { EventFilter, FilterMembers } from './filter.js';
import type { LogEntry } from './log-entry.js';
import { entryColumns } from './store.js';
import { me_prefix } from './topics.js';

/** Finds the events that match topics and filters, in SQL, for every transport. */

const sqlOf = (db: Db) => db``;
type Fragment = ReturnType<typeof sqlOf>;

/** A typed SQL expression for each member of a filter; null lets everything pass. */
type FilterSql = Readonly<Record<keyof FilterMembers, Fragment>>;

/**
 * The same rules as `passesFilter`. JSON is parsed last, only for events that pass the other
 * conditions.
 */
export const passesSql = (db: Db, filter: FilterSql): Fragment => {
  const { events, question_ids, categories, model_family, min_confidence } = filter;
  return db`(
    (${events} is null or e.event = any (${events}))
    and (${question_ids} is null or e.question_id = any (${question_ids}))
    and (${categories} is null or e.category = any (${categories}))
    and case
      when ${model_family} is null then true
      else e.body::json #>> '{data,model_family}' = any (${model_family})
    end
    and case
      when ${min_confidence} is null then true
      when json_typeof(e.body::json #> '{data,confidence}') = 'number'
        then (e.body::json #>> '{data,confidence}')::numeric >= ${min_confidence}
      else false
    end
  )`;
};

/** A topic from `resolveTopic`, with an optional filter from `readFilter`. */
export type LogTopic = Pick<TopicRef, 'topic' | 'filter'>;

/**
 * SQL condition for events that are on at least one of the topics. `all` means every public event.
 */
const topicsSql = (sql: Db, refs: readonly LogTopic[]) => {
  const topics = refs.map(({ topic }) => topic);
  const named = (prefix: string): string[] =>
    topics.filter((topic) => topic.startsWith(prefix)).map((topic) => topic.slice(prefix.length));
  return sql`(
    audience_id = any (${named(me_prefix)}::uuid[])
    or audience_id is null and (
      ${topics.includes('all')}
      or question_id = any (${named('question:')}::uuid[])
      or category = any (${named('category:')}::text[])
      or subcategory = any (${named('subcategory:')}::text[])
      or agent_id = any (${named('agent:')}::uuid[])
    )
  )`;
};

const filterSql = (sql: Db, { shown }: EventFilter) => {
  const texts = (list: string[] | undefined) => sql`${list ?? null}::text[]`;
  return passesSql(sql, {
    events: texts(shown.events),
    question_ids: sql`${shown.question_ids ?? null}::uuid[]`,
    categories: texts(shown.categories),
    model_family: texts(shown.model_family),
    min_confidence: sql`${shown.min_confidence ?? null}::numeric`,
  });
};

/** Groups topics by their filter. Each group becomes its own condition. */
const groupByFilter = <T extends LogTopic>(refs: readonly T[]): readonly (readonly T[])[] => {
  const groups = new Map<string, T[]>();
  for (const ref of refs) {
    const key = ref.filter?.key ?? '';
    groups.set(key, [...(groups.get(key) ?? []), ref]);
  }
  return [...groups.values()];
};

const groupSql = (sql: Db, group: readonly LogTopic[], is_filtered: boolean) => {
  const of_topics = topicsSql(sql, group);
  const filter = is_filtered ? (group[0]?.filter as EventFilter | undefined) : undefined;
  return filter === undefined ? of_topics : sql`(${of_topics} and ${filterSql(sql, filter)})`;
};

/** With more groups than this, SQL does not apply the filters, so it finds too many events. */
const max_groups = 8;

const matching = (
  sql: Db,
  refs: readonly LogTopic[],
  { after, until }: Pick<LogSpan, 'after' | 'until'>,
) => {
  const by_filter = groupByFilter(refs);
  const is_filtered = by_filter.length <= max_groups;
  const groups = is_filtered ? by_filter : [refs];
  const any = groups.reduce(
    (all, group) => sql`${all} or ${groupSql(sql, group, is_filtered)}`,
    sql`false`,
  );
  return sql`from events e where "offset" > ${after} and "offset" <= ${until} and (${any})`;
};

/** Returns the matching events of the span, in order, at most `span.limit`. */
export const readMatching = (sql: Db, refs: readonly LogTopic[], span: LogSpan) => sql<LogEntry[]>`
  select ${entryColumns(sql)}
  ${matching(sql, refs, span)}
  order by "offset"
  limit ${span.limit}`;

/** Counts the matching events of the span, up to `span.limit`. */
export const countMatching = (sql: Db, refs: readonly LogTopic[], span: LogSpan) =>
  readTotal(sql<{ total: number }[]>`
    select count(*)::integer as total
    from (select 1 ${matching(sql, refs, span)} limit ${span.limit}) as one`);

/** Returns the offset of the `span.limit`-th newest matching event; null if there are fewer. */
export const nthNewest = async (
  sql: Sql,
  refs: readonly LogTopic[],
  span: LogSpan,
): Promise<number | null> => {
  const [row] = await sql<{ offset: number }[]>`
    select "offset"
    ${matching(sql, refs, span)}
    order by "offset" desc
    limit 1 offset ${span.limit - 1}`;
  return row?.offset ?? null;
};

/**
 * Returns the offset of the newest event of each topic, keyed by `keyOf`. Topics without events are
 * left out.
 */
export const readNewest = async (
  sql: Sql,
  refs: readonly TopicRef[],
  span: Pick<LogSpan, 'after' | 'until'>,
): Promise<ReadonlyMap<string, number>> => {
  const newest = new Map<string, number>();
  for (const group of groupByFilter(refs)) {
    const rows = await sql<{ topic: string; newest: number }[]>`
      select topic, max("offset") as newest
      from (
        select
          "offset",
          unnest(
            case
              when audience_id is not null then array['me:' || audience_id]
              else array[
                'all', 'question:' || question_id, 'category:' || category,
                'subcategory:' || subcategory, 'agent:' || agent_id
              ]
            end
          ) as topic
        ${matching(sql, group, span)}
      ) as placed
      where topic = any (${group.map(({ topic }) => topic)}::text[])
      group by topic`;
    const by_topic = new Map(group.map((ref) => [ref.topic, ref]));
    for (const row of rows) newest.set(keyOf(by_topic.get(row.topic) as TopicRef), row.newest);
  }
  return newest;
};
