import type { Sql } from '../../kit/pg/client.js';
import { keyOf, type TopicRef } from '../../kit/ws/frames.js';
import type { LogSpan } from '../../kit/ws/hub.js';
import type { EventFilter } from './filter.js';
import { passesSql } from './filter-store.js';
import type { LogEntry } from './log-entry.js';
import { placesOf } from './topics.js';

/** Reads for the sockets: parts of the log. */

/** The offset of the oldest event still kept; for an empty log, the one that comes next. */
export const readOldest = async (sql: Sql): Promise<number> => {
  const [row] = await sql<{ oldest: number }[]>`
    select coalesce(
      (select "offset" from events order by "offset" limit 1),
      (select "offset" + 1 from log_head)
    ) as oldest`;
  return row?.oldest ?? 1;
};

/** Topics of `resolveTopic`; a filter is one of `readFilter`. */
export type LogTopic = Pick<TopicRef, 'topic' | 'filter'>;

type Fragment = ReturnType<typeof placesSql>;

const placesSql = (sql: Sql, topics: readonly string[]) => {
  const { all, questions, categories, subcategories, agents, audiences } = placesOf(topics);
  return sql`(
    audience_id = any (${audiences as string[]}::uuid[])
    or audience_id is null and (
      ${all}
      or question_id = any (${questions as string[]}::uuid[])
      or category = any (${categories as string[]}::text[])
      or subcategory = any (${subcategories as string[]}::text[])
      or agent_id = any (${agents as string[]}::uuid[])
    )
  )`;
};

const textsSql = (sql: Sql, texts: readonly string[] | null) => sql`${texts as string[]}::text[]`;

const filterSql = (sql: Sql, filter: EventFilter) =>
  passesSql(sql, {
    events: textsSql(sql, filter.events),
    question_ids: sql`${filter.question_ids as string[]}::uuid[]`,
    categories: textsSql(sql, filter.categories),
    model_families: textsSql(sql, filter.model_families),
    min_confidence: sql`${filter.min_confidence}::integer`,
  });

/** Topics by their filters; each group is a condition of its own. */
const groupByFilter = <T extends LogTopic>(refs: readonly T[]): readonly (readonly T[])[] => {
  const groups = new Map<string, T[]>();
  for (const ref of refs) {
    const key = ref.filter?.key ?? '';
    groups.set(key, [...(groups.get(key) ?? []), ref]);
  }
  return [...groups.values()];
};

const groupSql = (sql: Sql, group: readonly LogTopic[]) => {
  const places = placesSql(
    sql,
    group.map(({ topic }) => topic),
  );
  const filter = group[0]?.filter as EventFilter | undefined;
  return filter === undefined ? places : sql`(${places} and ${filterSql(sql, filter)})`;
};

/** With more groups than these the filters are left to the reader, who gets too much. */
const most_groups = 8;

const matching = (
  sql: Sql,
  refs: readonly LogTopic[],
  { after, until }: Pick<LogSpan, 'after' | 'until'>,
) => {
  const groups = groupByFilter(refs);
  const parts: Fragment[] =
    groups.length > most_groups
      ? [
          groupSql(
            sql,
            refs.map(({ topic }) => ({ topic })),
          ),
        ]
      : groups.map((group) => groupSql(sql, group));
  const any = parts.reduce((all, one) => sql`${all} or ${one}`, sql`false`);
  return sql`from events e where "offset" > ${after} and "offset" <= ${until} and (${any})`;
};

/** Events of the span that match, in order, at most `span.limit`. */
export const readMatching = (sql: Sql, refs: readonly LogTopic[], span: LogSpan) => sql<LogEntry[]>`
  select
    "offset", id, event, question_id, agent_id, audience_id, category, subcategory, owner_id, body
  ${matching(sql, refs, span)}
  order by "offset"
  limit ${span.limit}`;

/** How many events of the span match, counted no further than `span.limit`. */
export const countMatching = async (
  sql: Sql,
  refs: readonly LogTopic[],
  span: LogSpan,
): Promise<number> => {
  const [row] = await sql<{ found: number }[]>`
    select count(*)::integer as found
    from (select 1 ${matching(sql, refs, span)} limit ${span.limit}) as one`;
  return row?.found ?? 0;
};

/** The offset of the `span.limit`-th newest event that matches; null when there are fewer. */
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

/** The offset of the newest event of each topic, by `keyOf`; topics without one are left out. */
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
