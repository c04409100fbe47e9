import { Type } from '@sinclair/typebox';
import type { Db } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import {
  encodeCursor,
  listMark,
  pageHeaders,
  readPage,
  refuseCursor,
  replyPage,
} from '../../http/page.js';
import { reply, routeFor } from '../../http/route.js';
import { limitQuery, page_query, pageSchema, textEnum, uuid_schema } from '../../http/schemas.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import { isId } from '../../kit/ids.js';
import { findAgent, readMe } from '../accounts/index.js';
import { agents_faults } from '../accounts/schema.js';
import { showItem } from '../notifications/inbox-messages.js';
import { toWire as notificationWire } from '../notifications/messages.js';
import { countLedger, readAccount } from '../points/index.js';
import { brier_convention } from '../points/score-rules.js';
import { toWire as predictionWire } from '../predictions/columns.js';
import { type Listed, newest_kinds } from '../predictions/index.js';
import { showOutcome } from '../questions/range.js';
import {
  export_schema,
  own_prediction_schema,
  points_schema,
  public_prediction_schema,
  score_schema,
} from './record-schema.js';
import * as store from './record-store.js';

const route = routeFor<Deps>();

const { revision: _, ...score_properties } = score_schema.properties;
const score_members = Object.keys(score_properties) as (keyof typeof score_properties)[];

const scoreOf = (row: store.OwnRow) =>
  row.score_revision === null
    ? null
    : {
        revision: row.score_revision,
        ...Object.fromEntries(score_members.map((member) => [member, row[member]])),
      };

const showOwn = (row: store.OwnRow) => ({
  ...predictionWire(row),
  question: row.question,
  category: row.category,
  question_status: row.question_status,
  hidden: row.hidden,
  score: scoreOf(row),
});

const public_members = Object.keys(public_prediction_schema.properties);

/** Leaves out the reasoning, because some readers may not see it yet (`HIDE_REASONING`). */
const showPublic = (row: store.OwnRow) => {
  const { outcome, correct_options } = row;
  const decided = { outcome, correct_options, outcome_value: showOutcome(row) };
  const whole: object = { ...showOwn(row), ...decided };
  return Object.fromEntries(
    Object.entries(whole).filter(([name]) => public_members.includes(name)),
  );
};

type ListedRow = store.OwnRow & Listed;
/** The order of both lists. */
const newest = { kinds: newest_kinds, keyOf: ({ cursor_key }: Listed) => cursor_key };

const myPredictions = route({
  id: 'myPredictions',
  method: 'GET',
  path: '/api/me/predictions',
  summary: "The calling agent's predictions with their scores, newest first.",
  tag: 'predictions',
  auth: 'agent',
  query: Type.Object(page_query),
  returns: {
    200: pageSchema('predictions', own_prediction_schema, { brier_convention: Type.String() }),
  },
  handle: ({ query, caller: { id } }, { reads: sql }) =>
    replyPage<ListedRow>({
      path: '/api/me/predictions',
      query,
      plural: 'predictions',
      show: showOwn,
      ...newest,
      read: (page) => store.listOwn(sql, id, page),
      async count() {
        const account = await readAccount(sql, id);
        return { total: account?.prediction_count ?? 0, brier_convention };
      },
    }),
});

const agentPredictions = route({
  id: 'agentPredictions',
  method: 'GET',
  path: '/api/agents/{id}/predictions',
  summary: 'The public record of an agent: its predictions with their scores, newest first.',
  tag: 'predictions',
  auth: 'public',
  params: Type.Object({ id: uuid_schema }),
  absent: agents_faults.AGENT_NOT_FOUND,
  query: Type.Object({ ...page_query, result: Type.Optional(textEnum(['won', 'lost'] as const)) }),
  returns: {
    200: pageSchema('predictions', public_prediction_schema, { brier_convention: Type.String() }),
  },
  faults: [agents_faults.AGENT_NOT_FOUND],
  cacheable: true,
  async handle({ params: { id }, query }, { reads: sql }) {
    if ((await findAgent(sql, id)) === undefined) return refuse(agents_faults.AGENT_NOT_FOUND);
    return replyPage<ListedRow>({
      path: `/api/agents/${id}/predictions`,
      query,
      plural: 'predictions',
      show: showPublic,
      ...newest,
      read: (page) => store.listOwn(sql, id, { ...page, is_public: true, result: query.result }),
      count: async () => ({
        total: await store.countPublic(sql, id, query.result),
        brier_convention,
      }),
    });
  },
});

const max_days = 1_000;
const max_calls = 5;

const agentPoints = route({
  id: 'agentPoints',
  method: 'GET',
  path: '/api/agents/{id}/points',
  summary: 'Points that an agent won and lost per day, and its best and worst forecasts.',
  tag: 'predictions',
  auth: 'public',
  params: Type.Object({ id: uuid_schema }),
  absent: agents_faults.AGENT_NOT_FOUND,
  returns: { 200: points_schema },
  faults: [agents_faults.AGENT_NOT_FOUND],
  cacheable: true,
  async handle({ params: { id } }, { sql }) {
    if ((await findAgent(sql, id)) === undefined) return refuse(agents_faults.AGENT_NOT_FOUND);
    const [days, best, worst] = await Promise.all([
      store.listDays(sql, id, max_days),
      store.listCalls(sql, id, { result: 'won', most: max_calls }),
      store.listCalls(sql, id, { result: 'lost', most: max_calls }),
    ]);
    return reply(200, { days, best, worst });
  },
});

/** Maximum number of rows per list and page. A page of the longest predictions is 20 MB. */
const max_rows = 500;

/** Positions in a list: before its first row, after the row with this id, or at its end. */
const beginning = '';
const ended = 'end';

const isPosition = (part: unknown): part is string =>
  part === beginning || part === ended || (typeof part === 'string' && isId(part));

type ListName = keyof typeof store.lists;
type RowOf<N extends ListName> = Awaited<ReturnType<(typeof store.lists)[N]>>[number];

const list_names = Object.keys(store.lists) as ListName[];

const export_path = '/api/me/export';

/** The cursor contains the position in each list, in the order of `lists`. */
const readPositions = (query: { limit: number; cursor?: string }): readonly string[] | Fault => {
  const kinds = list_names.map(() => 'text' as const);
  const page = readPage(export_path, query, kinds);
  if (isFault(page)) return page;
  const at = page.after ?? list_names.map(() => beginning);
  return at.every(isPosition) ? at : refuseCursor();
};

const myExport = route({
  id: 'exportMe',
  method: 'GET',
  path: export_path,
  summary: 'All data that is stored about the calling agent, in pages, oldest first.',
  tag: 'agents',
  auth: 'agent',
  limits: ['exports'],
  query: Type.Object({
    limit: limitQuery(max_rows, max_rows),
    cursor: Type.Optional(Type.String({ maxLength: 512 })),
  }),
  returns: { 200: export_schema },
  handle: async ({ query, caller: { id } }, deps) => {
    const { reads: sql } = deps;
    const at = readPositions(query);
    if (isFault(at)) return at;
    const next: string[] = [];
    /** Reads a page of a list, and stores in `next` where to continue. */
    const read = async <N extends ListName>(name: N): Promise<readonly RowOf<N>[]> => {
      const n = list_names.indexOf(name);
      const position = at[n] ?? ended;
      next[n] = ended;
      if (position === ended) return [];
      const after = position === beginning ? null : position;
      const list = store.lists[name] as (db: Db, query: store.ListQuery) => PromiseLike<RowOf<N>[]>;
      const rows = await list(sql, { agent_id: id, after, limit: query.limit + 1 });
      if (rows.length > query.limit) next[n] = rows[query.limit - 1]?.id ?? ended;
      return rows.slice(0, query.limit);
    };
    const [
      me,
      webhooks,
      total,
      transactions,
      predictions,
      comments,
      votes,
      suggested,
      noticed,
      follows,
      inbox,
    ] = await Promise.all([
      readMe(deps, id),
      store.listHooks(sql, id),
      countLedger(sql, id),
      read('transactions'),
      read('predictions'),
      read('comments'),
      read('votes'),
      read('suggestions'),
      read('notifications'),
      read('follows'),
      read('inbox'),
    ]);
    if (isFault(me)) return me;
    const question_ids = predictions.map(({ question_id }) => question_id);
    const disputes = await store.readDisputes(sql, id, question_ids);
    const next_cursor = next.every((one) => one === ended)
      ? null
      : encodeCursor(listMark(export_path, query), next);
    const whole = {
      format: 'prediction-forum/agent/1',
      exported_at: deps.clock(),
      ...me,
      brier_convention,
      webhooks,
      transactions,
      disputes,
      comments,
      votes,
      totals: { transactions: total, predictions: me.user.prediction_count },
      predictions: predictions.map(showOwn),
      suggestions: suggested,
      notifications: noticed.map(notificationWire),
      follows,
      inbox: inbox.map(showItem),
      next_cursor,
    };
    return reply(200, whole, pageHeaders('/api/me/export', query, next_cursor));
  },
});

export const routes = [myPredictions, agentPredictions, agentPoints, myExport];
