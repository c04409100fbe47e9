import { type Static, Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { type Fault, isFault } from '../../kit/fault.js';
import { reply, routeFor } from '../../kit/http/route.js';
import { isId } from '../../kit/ids.js';
import { encodeCursor, limitQuery, pageHeaders, readPage, refuseCursor } from '../../kit/page.js';
import { readMe } from '../agents/index.js';
import { notificationWire } from '../notifications/index.js';
import { countLedger } from '../points/index.js';
import { brier_convention } from '../scores/index.js';
import type { StandingParts } from '../standing/index.js';
import { export_schema } from './schema.js';
import {
  listHooks,
  type PageAfter,
  readCommentsAfter,
  readDisputes,
  readEntriesAfter,
  readNotificationsAfter,
  readOwnAfter,
  readSuggestionsAfter,
  readVotesAfter,
} from './store.js';
import { ownView } from './views.js';

const route = routeFor<Deps & StandingParts>();

/** Rows of each list on one page: 20 MB when all predictions are of the greatest length. */
const most_rows = 500;

/** Where a list is: before its first row, after a row, or through. */
const beginning = '';
const ended = 'end';

const isPosition = (part: unknown): part is string =>
  part === beginning || part === ended || (typeof part === 'string' && isId(part));

/** The lists that are read in pages, in the order of their positions in the cursor. */
const list_names = [
  'transactions',
  'predictions',
  'comments',
  'votes',
  'suggestions',
  'notifications',
] as const;

/** Where each list is. */
const readPositions = (query: {
  readonly limit: number;
  readonly cursor?: string;
}): readonly string[] | Fault => {
  const ask = readPage(
    query,
    list_names.map(() => 'text' as const),
  );
  if (isFault(ask)) return ask;
  if (ask.after === null) return list_names.map(() => beginning);
  return ask.after.every(isPosition) ? ask.after : refuseCursor();
};

interface Part<R> {
  readonly rows: readonly R[];
  readonly next: string;
}

const readPart = async <R extends { readonly id: string }>(
  read: (page: PageAfter) => Promise<readonly R[]>,
  at: string,
  limit: number,
): Promise<Part<R>> => {
  if (at === ended) return { rows: [], next: ended };
  const fetched = await read({ after: at === beginning ? null : at, limit });
  const rows = fetched.slice(0, limit);
  const last = rows[rows.length - 1];
  return { rows, next: fetched.length > limit && last !== undefined ? last.id : ended };
};

const readParts = async (
  sql: Deps['sql'],
  id: string,
  { at, limit }: { readonly at: readonly string[]; readonly limit: number },
) => {
  const [transactions, predictions, comments, votes, suggestions, notifications] =
    await Promise.all([
      readPart((page) => readEntriesAfter(sql, id, page), at[0] ?? ended, limit),
      readPart((page) => readOwnAfter(sql, id, page), at[1] ?? ended, limit),
      readPart((page) => readCommentsAfter(sql, id, page), at[2] ?? ended, limit),
      readPart((page) => readVotesAfter(sql, id, page), at[3] ?? ended, limit),
      readPart((page) => readSuggestionsAfter(sql, id, page), at[4] ?? ended, limit),
      readPart((page) => readNotificationsAfter(sql, id, page), at[5] ?? ended, limit),
    ]);
  return { transactions, predictions, comments, votes, suggestions, notifications };
};

const timed = <R extends { readonly created_at: Date }>(row: R) => ({
  ...row,
  created_at: row.created_at.toISOString(),
});

const myExport = route({
  id: 'exportMe',
  method: 'GET',
  path: '/api/me/export',
  summary: 'What the service keeps about the calling agent, in pages, oldest first.',
  tag: 'agents',
  auth: 'agent',
  limits: ['exports'],
  query: Type.Object({
    limit: limitQuery(most_rows, most_rows),
    cursor: Type.Optional(Type.String({ maxLength: 512 })),
  }),
  returns: { 200: export_schema },
  handle: async ({ query, caller: { id } }, deps) => {
    const { sql } = deps;
    const at = readPositions(query);
    if (isFault(at)) return at;
    const [me, hooks, transactions, parts] = await Promise.all([
      readMe(deps, id),
      listHooks(sql, id),
      countLedger(sql, id),
      readParts(sql, id, { at, limit: query.limit }),
    ]);
    if (isFault(me)) return me;
    const {
      transactions: entries,
      predictions,
      comments,
      votes,
      suggestions,
      notifications,
    } = parts;
    const question_ids = predictions.rows.map(({ question_id }) => question_id);
    const disputes = await readDisputes(sql, id, question_ids);
    const next = list_names.map((name) => parts[name].next);
    const next_cursor = next.every((one) => one === ended) ? null : encodeCursor(next);
    const whole: Static<typeof export_schema> = {
      format: 'prediction-forum/agent/1',
      exported_at: deps.clock().toISOString(),
      ...me,
      brier_convention,
      webhooks: hooks.map((hook) => ({
        ...timed(hook),
        events: [...hook.events],
        updated_at: hook.updated_at.toISOString(),
      })),
      totals: { transactions, predictions: me.user.prediction_count },
      transactions: entries.rows.map(timed),
      predictions: predictions.rows.map(ownView),
      disputes: disputes.map((row) => ({ ...timed(row), evidence_urls: [...row.evidence_urls] })),
      comments: comments.rows.map(timed),
      votes: votes.rows.map(timed),
      suggestions: suggestions.rows.map((row) => ({ ...timed(row), options: [...row.options] })),
      notifications: notifications.rows.map(notificationWire),
      next_cursor,
    };
    return reply(200, whole, pageHeaders('/api/me/export', query, next_cursor));
  },
});

export const routes = [myExport];
