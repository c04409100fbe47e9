import type { PageAsk } from '../../kit/page.js';
import type { Db } from '../../kit/pg/client.js';
import type { NotificationRow } from '../notifications/index.js';
import type { LedgerRow } from '../points/index.js';
import type { PredictionRow } from '../predictions/index.js';

/** What one agent has in the record. */

export interface OwnRow extends PredictionRow {
  readonly question: string;
  readonly category: string;
  readonly question_status: string;
  readonly hidden: boolean;
  readonly revision: number | null;
  readonly forecast: number;
  readonly correct: boolean;
  readonly brier: number;
  readonly log_score: number;
  readonly baseline: number;
  readonly relative: number | null;
  readonly net: number;
  readonly resolved_at: Date;
}

const selectOwn = (db: Db) => db`
  select
    p.id, p.question_id, p.agent_id, g.name as agent_name, g.model, p.model_family, p.prediction,
    p.probability, p.confidence, q.options[p.selected_option + 1] as selected_option, q.options,
    p.probabilities, p.reasoning, p.citations, p.resolution_protocol,
    p.prior_probability, p.prior_basis, p.upvotes, p.downvotes, p.created_at, q.question,
    q.category, q.status as question_status, p.hidden_at is not null as hidden, s.revision,
    s.forecast, s.correct, s.brier, s.log_score, s.baseline, s.relative, s.net, s.resolved_at
  from entries e
  join predictions p on p.question_id = e.question_id and p.agent_id = e.agent_id
  join agents g on g.id = p.agent_id
  join questions q on q.id = p.question_id
  left join scores s on s.question_id = p.question_id and s.agent_id = p.agent_id`;

/** Newest first; one row more than the page, to know whether it ends. */
export const listOwn = (db: Db, agent_id: string, ask: PageAsk): Promise<OwnRow[]> =>
  db<OwnRow[]>`
    with entries as (
      select agent_id, question_id
      from predictions
      where agent_id = ${agent_id}
        and (${ask.after === null} or id < ${(ask.after?.[0] ?? null) as string | null}::uuid)
      order by id desc
      offset ${ask.offset}
      limit ${ask.limit + 1}
    )
    ${selectOwn(db)} order by p.id desc`;

/** Rows after one of them, oldest first; one more than asked for. */
export interface PageAfter {
  readonly after: string | null;
  readonly limit: number;
}

export const readOwnAfter = (db: Db, agent_id: string, page: PageAfter): Promise<OwnRow[]> =>
  db<OwnRow[]>`
    with entries as (
      select agent_id, question_id
      from predictions
      where agent_id = ${agent_id} and (${page.after === null} or id > ${page.after}::uuid)
      order by id
      limit ${page.limit + 1}
    )
    ${selectOwn(db)} order by p.id`;

export const readEntriesAfter = (db: Db, agent_id: string, page: PageAfter): Promise<LedgerRow[]> =>
  db<LedgerRow[]>`
    select id, reason, amount, balance_after, subject_id, question_id, created_at
    from ledger
    where agent_id = ${agent_id} and (${page.after === null} or id > ${page.after}::uuid)
    order by id
    limit ${page.limit + 1}`;

export interface HookRow {
  readonly id: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly active: boolean;
  readonly disabled_reason: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

export const listHooks = (db: Db, agent_id: string): Promise<HookRow[]> => db<HookRow[]>`
  select id, url, events, active, disabled_reason, created_at, updated_at
  from webhooks
  where owner_kind = 'agent' and owner_id = ${agent_id}
  order by created_at, id`;

export interface CommentRow {
  readonly id: string;
  readonly question_id: string;
  readonly prediction_id: string | null;
  readonly parent_id: string | null;
  readonly content: string;
  readonly upvotes: number;
  readonly hidden: boolean;
  readonly created_at: Date;
}

export const readCommentsAfter = (
  db: Db,
  agent_id: string,
  page: PageAfter,
): Promise<CommentRow[]> =>
  db<CommentRow[]>`
    select
      id, question_id, prediction_id, parent_id, content, upvotes,
      hidden_at is not null as hidden, created_at
    from comments
    where agent_id = ${agent_id} and (${page.after === null} or id > ${page.after}::uuid)
    order by id
    limit ${page.limit + 1}`;

export interface DisputeRow {
  readonly id: string;
  readonly question_id: string;
  readonly reason: string;
  readonly evidence_urls: readonly string[];
  readonly status: string;
  readonly created_at: Date;
}

/** Only who predicted on a question can dispute it. */
export const readDisputes = (
  db: Db,
  agent_id: string,
  question_ids: readonly string[],
): Promise<DisputeRow[]> =>
  db<DisputeRow[]>`
    select id, question_id, reason, evidence_urls, status, created_at
    from disputes
    where question_id = any (${question_ids as string[]}::uuid[]) and agent_id = ${agent_id}
    order by id`;

export interface VoteRow {
  /** Of what was voted on. */
  readonly id: string;
  readonly kind: 'prediction' | 'comment';
  readonly question_id: string;
  readonly value: number;
  readonly created_at: Date;
}

export const readVotesAfter = (db: Db, agent_id: string, page: PageAfter): Promise<VoteRow[]> =>
  db<VoteRow[]>`
    select subject_id as id, kind, question_id, value, created_at
    from votes
    where agent_id = ${agent_id} and (${page.after === null} or subject_id > ${page.after}::uuid)
    order by subject_id
    limit ${page.limit + 1}`;

export interface SuggestionRow {
  readonly id: string;
  readonly question: string;
  readonly description: string;
  readonly category: string;
  readonly options: readonly string[];
  readonly status: string;
  readonly created_at: Date;
}

export const readSuggestionsAfter = (
  db: Db,
  agent_id: string,
  page: PageAfter,
): Promise<SuggestionRow[]> =>
  db<SuggestionRow[]>`
    select id, question, description, category, options, status, created_at
    from questions
    where author_id = ${agent_id} and (${page.after === null} or id > ${page.after}::uuid)
    order by id
    limit ${page.limit + 1}`;

export const readNotificationsAfter = (
  db: Db,
  agent_id: string,
  page: PageAfter,
): Promise<NotificationRow[]> =>
  db<NotificationRow[]>`
    select
      n.id, n.kind, n.question_id, q.question, n.subject_id, n.details, n.created_at, n.read_at
    from notifications n
    left join questions q on q.id = n.question_id
    where n.agent_id = ${agent_id} and (${page.after === null} or n.id > ${page.after}::uuid)
    order by n.id
    limit ${page.limit + 1}`;
