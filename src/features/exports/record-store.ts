import type { Static, TSchema } from '@sinclair/typebox';
import type { Db } from '../../db/client.js';
import { readTotal } from '../../db/rows.js';
import type { PageRequest } from '../../http/page.js';
import { isShown, listOldestInbox, type NotificationRow } from '../notifications/index.js';
import type { LedgerRow } from '../points/index.js';
import { type PredictionRow, read_sql as prediction_sql } from '../predictions/columns.js';
import { forecastKey, type Listed, readNewest } from '../predictions/index.js';
import type {
  comment_schema,
  dispute_schema,
  own_follow_schema,
  score_schema,
  suggestion_schema,
  vote_schema,
  webhook_schema,
} from './record-schema.js';

/** The record of one agent. Rows have the same members as the responses, with times as `Date`. */

type Score = Static<typeof score_schema>;

export interface OwnRow extends PredictionRow, Omit<Score, 'revision' | 'resolved_at'> {
  readonly question: string;
  readonly category: string;
  readonly question_status: string;
  readonly outcome: boolean | null;
  readonly correct_options: readonly string[] | null;
  readonly outcome_value: number | null;
  readonly hidden: boolean;
  /** Revision of the decision that determines the score; null without a score. */
  readonly score_revision: number | null;
  readonly resolved_at: Date;
}

const selectOwn = (db: Db) => db`
  select
    ${db.unsafe(prediction_sql)}, g.name as agent_name, g.model, q.options, q.question_type,
    q.options[p.selected_option + 1] as selected_option, p.upvotes, p.downvotes, q.question, q.category,
    q.status as question_status, q.outcome, q.correct_options, q.outcome_value, p.hidden_at is not null as hidden,
    s.revision as score_revision,
    s.forecast, s.correct, s.brier, s.log_score, s.baseline, s.crps, s.relative, s.skill, s.net, s.resolved_at,
    ${forecastKey(db)}
  from entries e
  join predictions p on p.question_id = e.question_id and p.agent_id = e.agent_id
  join agents g on g.id = p.agent_id
  join questions q on q.id = p.question_id
  left join scores s on s.question_id = p.question_id and s.agent_id = p.agent_id`;

export type Result = 'won' | 'lost';
interface OwnQuery {
  readonly is_public?: boolean;
  readonly result?: Result | undefined;
}

/** SQL condition: the scored prediction won, or lost, points. Without a `result`, all pass. */
const hasResult = (db: Db, result: Result | undefined) =>
  result === undefined
    ? db``
    : db`and exists (
      select
      from scores s
      where s.question_id = p.question_id and s.agent_id = p.agent_id
        and ${result === 'won' ? db`s.net > 0` : db`s.net < 0`})`;

/** Lists predictions, newest first. Reads one row more than the page. */
export const listOwn = (
  db: Db,
  agent_id: string,
  { is_public = false, result, ...page }: PageRequest & OwnQuery,
): Promise<readonly (OwnRow & Listed)[]> =>
  readNewest(
    db,
    page,
    ({ ending, order }) => db<(OwnRow & { forecast_key: string })[]>`
      with entries as (
        select p.agent_id, p.question_id
        from predictions p
        where p.agent_id = ${agent_id}
          ${is_public ? db`and p.hidden_at is null` : db``} ${hasResult(db, result)}
          ${ending}
      )
      ${selectOwn(db)} ${order}`,
  );

export const countPublic = (db: Db, agent_id: string, result?: Result) =>
  readTotal(db<{ total: number }[]>`
    select count(*)::integer as total
    from predictions p
    where p.agent_id = ${agent_id} and p.hidden_at is null ${hasResult(db, result)}`);

/**
 * Returns the points won or lost by scored predictions, per UTC day of the resolution, oldest
 * first.
 */
export const listDays = (db: Db, agent_id: string, most: number) => db<
  { readonly date: string; readonly net: number; readonly resolved: number }[]
>`
  select to_char(day, 'YYYY-MM-DD') as date, net, resolved
  from (
    select
      (resolved_at at time zone 'UTC')::date as day, sum(net)::integer as net,
      count(*)::integer as resolved
    from scores
    where agent_id = ${agent_id}
    group by 1
    order by 1 desc
    limit ${most}
  ) newest
  order by day`;

export interface CallRow {
  readonly prediction_id: string;
  readonly question_id: string;
  readonly question: string;
  readonly forecast: number | null;
  readonly net: number;
  readonly resolved_at: Date;
}

/** Returns the scored predictions that won the most points, or lost the most. */
export const listCalls = (
  db: Db,
  agent_id: string,
  { result, most }: { readonly result: Result; readonly most: number },
) => db<CallRow[]>`
  select s.prediction_id, s.question_id, q.question, s.forecast, s.net, s.resolved_at
  from scores s
  join predictions p on p.question_id = s.question_id and p.agent_id = s.agent_id
  join questions q on q.id = s.question_id
  where s.agent_id = ${agent_id} and p.hidden_at is null
    and ${result === 'won' ? db`s.net > 0` : db`s.net < 0`}
  order by ${result === 'won' ? db`s.net desc` : db`s.net`}, s.prediction_id
  limit ${most}`;

/** Selects a page of one agent's list: the rows after the one with the id `after`, oldest first. */
export interface ListQuery {
  readonly agent_id: string;
  readonly after: string | null;
  readonly limit: number;
}

type Dated<S extends TSchema> = Omit<Static<S>, 'created_at'> & { readonly created_at: Date };

const after = (db: Db, { agent_id, after: id }: ListQuery, column = 'id') => db`
  agent_id = ${agent_id} and (${id === null} or ${db(column)} > ${id}::uuid)`;

/** The lists that are read in pages. The `id` of their rows gives the order. */
export const lists = {
  transactions: (db: Db, query: ListQuery) => db<LedgerRow[]>`
    select id, reason, amount, balance_after, subject_id, question_id, created_at
    from ledger
    where ${after(db, query)}
    order by id
    limit ${query.limit}`,

  predictions: (db: Db, query: ListQuery) => db<OwnRow[]>`
    with entries as (
      select agent_id, question_id
      from predictions
      where ${after(db, query)}
      order by id
      limit ${query.limit}
    )
    ${selectOwn(db)} order by p.id`,

  comments: (db: Db, query: ListQuery) => db<Dated<typeof comment_schema>[]>`
    select
      id, question_id, prediction_id, parent_id, content, upvotes,
      hidden_at is not null as hidden, created_at
    from comments
    where ${after(db, query)}
    order by id
    limit ${query.limit}`,

  /** Ordered by the id of the prediction or comment that got the vote. */
  votes: (db: Db, query: ListQuery) => db<Dated<typeof vote_schema>[]>`
    select subject_id as id, kind, question_id, value, created_at
    from votes
    where ${after(db, query, 'subject_id')}
    order by subject_id
    limit ${query.limit}`,

  suggestions: (db: Db, query: ListQuery) => db<Dated<typeof suggestion_schema>[]>`
    select id, question, description, category, options, status, created_at
    from questions
    where author_id = ${query.agent_id} and (${query.after === null} or id > ${query.after}::uuid)
    order by id
    limit ${query.limit}`,

  notifications: (db: Db, query: ListQuery) => db<NotificationRow[]>`
    select
      n.id, n.kind, n.question_id, q.question, n.subject_id, n.details, n.created_at, n.read_at
    from notifications n
    left join questions q on q.id = n.question_id
    where n.agent_id = ${query.agent_id} and (${query.after === null} or n.id > ${query.after}::uuid)
      and ${isShown(db)}
    order by n.id
    limit ${query.limit}`,

  follows: (db: Db, query: ListQuery) => db<Dated<typeof own_follow_schema>[]>`
    select id, kind, subject, move_points, created_at
    from follows
    where follower_id = ${query.agent_id} and (${query.after === null} or id > ${query.after}::uuid)
    order by id
    limit ${query.limit}`,

  inbox: (db: Db, { agent_id, after, limit }: ListQuery) =>
    listOldestInbox(db, agent_id, { after, limit }),
};

export const listHooks = (db: Db, agent_id: string) => db<Dated<typeof webhook_schema>[]>`
  select id, url, events, active, disabled_reason, created_at, updated_at
  from webhooks
  where owner_kind = 'agent' and owner_id = ${agent_id}
  order by created_at, id`;

/** Only an agent that predicted on a question can dispute it. */
export const readDisputes = (db: Db, agent_id: string, question_ids: readonly string[]) =>
  db<Dated<typeof dispute_schema>[]>`
    select id, question_id, reason, evidence_urls, status, created_at
    from disputes
    where question_id = any (${question_ids as string[]}::uuid[]) and agent_id = ${agent_id}
    order by id`;
