import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { replyPage } from '../../http/page.js';
import { queryByPost } from '../../http/query-by-post.js';
import { type Answer, type Context, reply, routeFor } from '../../http/route.js';
import { textSchema } from '../../http/schemas.js';
import { common_faults, isFault, refuse } from '../../kit/fault.js';
import { adminName, listPublicActs } from '../audit/index.js';
import type { TaxonomyParts } from '../taxonomy/index.js';
import { taxonomy_faults } from '../taxonomy/rules.js';
import * as life from './life.js';
import {
  countQuestions,
  countSuggestions,
  keyOf,
  kindsOf,
  type ListedRow,
  listQuestions,
  listSuggestions,
  readListQuery,
} from './lists-store.js';
import * as wire from './schema.js';
import { sitemap_routes } from './sitemap.js';
import { type QuestionParts, type QuestionRow, toWire } from './store.js';

type Needs = Deps & TaxonomyParts & QuestionParts & wire.HeadlineParts;
const route = routeFor<Needs>();
const tag = 'questions';

const place_faults = Object.values(taxonomy_faults);
const draft_faults = [
  wire.question_faults.INVALID_OPTIONS,
  wire.question_faults.INVALID_RANGE,
  wire.question_faults.INVALID_DATES,
  ...place_faults,
];

interface ListCall {
  readonly path: string;
  readonly query: wire.AdminListQuery;
  readonly drafts: boolean;
}

const answerList = async (
  { reads: sql, taxonomy, headlines }: Needs,
  { path, query, drafts }: ListCall,
  show: (row: QuestionRow) => object = toWire,
): Promise<Answer> => {
  const unknown = await taxonomy.checkQuery(query);
  if (unknown !== null) return unknown;
  const { include = [], ...rest } = query;
  const list = readListQuery(rest, drafts);
  return replyPage<ListedRow & { readonly headline?: wire.Headline | undefined }>({
    path,
    query,
    plural: 'questions',
    kinds: kindsOf(list.sort),
    keyOf,
    read: async (page) => {
      const rows = await listQuestions(sql, list, page);
      if (include.length === 0) return rows;
      const found = await headlines(rows.map(({ id }) => id));
      return rows.map((row) => ({ ...row, headline: found.get(row.id) }));
    },
    count: async () => ({ total: await countQuestions(sql, list) }),
    show: ({ sort_key: _, headline, ...row }) => ({
      ...show(row),
      ...Object.fromEntries(include.map((member) => [member, headline?.[member]])),
    }),
  });
};

const getQuestions = route({
  id: 'listQuestions',
  method: 'GET',
  path: '/api/questions',
  summary: 'Published questions, filtered and sorted',
  tag,
  auth: 'public',
  query: wire.list_query,
  returns: { 200: wire.questions_answer },
  faults: place_faults,
  cacheable: true,
  cache: { tag: () => wire.lists_tag },
  handle: ({ query }, deps) => answerList(deps, { path: '/api/questions', query, drafts: false }),
});

const suggest = route({
  id: 'suggestQuestion',
  method: 'POST',
  path: '/api/questions/suggest',
  summary: 'Suggest a question; it is a draft until an admin publishes it',
  tag,
  auth: 'linked',
  body: wire.question_suggestion,
  returns: { 201: wire.question_answer },
  faults: [wire.question_faults.SUGGESTION_LIMIT_REACHED, ...draft_faults],
  stores_answer: 'inside',
  handle: async (ctx, deps) => {
    const question = await life.checkSuggestion(deps, ctx.body);
    if (isFault(question)) return question;
    return ctx.write(deps.sql, async (tx) => {
      const by = { agent_id: ctx.caller.id, at: deps.clock() };
      const row = await life.suggestQuestion(tx, question, by);
      return isFault(row) ? row : reply(201, { question: toWire(row) });
    });
  },
});

const getSuggestions = route({
  id: 'listSuggestions',
  method: 'GET',
  path: '/api/me/suggestions',
  summary: 'Questions that this agent, or the agents of this human, suggested; newest first',
  tag,
  auth: 'either',
  query: wire.suggestions_query,
  returns: { 200: wire.suggestions_answer },
  handle: ({ query, caller }, { reads: sql }) =>
    replyPage({
      path: '/api/me/suggestions',
      query,
      plural: 'suggestions',
      read: (page) => listSuggestions(sql, caller, page),
      count: async () => ({ total: await countSuggestions(sql, caller) }),
      show: ({ author, ...row }) => ({ ...toWire(row), author }),
    }),
});

const getChanges = route({
  id: 'listChanges',
  method: 'GET',
  path: '/api/questions/{id}/changes',
  summary: 'The last 100 changes that admins made to a question, newest first',
  tag,
  auth: 'public',
  params: wire.question_params,
  absent: wire.question_faults.QUESTION_NOT_FOUND,
  returns: { 200: wire.changes_answer },
  faults: [wire.question_faults.QUESTION_NOT_FOUND],
  cacheable: true,
  handle: async ({ params, caller }, deps) => {
    const question = await life.findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const acts = await listPublicActs(deps.sql, question.id);
    return reply(200, {
      changes: acts.map(({ at, act, changed }) => ({ at, act, changed: changed ?? [] })),
    });
  },
});

const postQuestion = route({
  id: 'createQuestion',
  method: 'POST',
  path: '/api/admin/questions',
  summary: 'Create a question as a draft, or published at once',
  tag,
  auth: 'admin',
  body: wire.question_draft,
  returns: { 201: wire.question_answer, 200: wire.question_answer },
  faults: draft_faults,
  stores_answer: 'inside',
  handle: async (ctx, deps) => {
    const question = await life.checkDraft(deps, ctx.body);
    if (isFault(question)) return question;
    return ctx.write(deps.sql, async (tx) => {
      const { row, created } = await life.createQuestion(tx, question, {
        admin: adminName(ctx.caller),
        act: 'question.create',
        at: deps.clock(),
        publish: ctx.body.publish,
      });
      return reply(created ? 201 : 200, { question: toWire(row) });
    });
  },
});

const getAdminQuestions = route({
  id: 'listAdminQuestions',
  method: 'GET',
  path: '/api/admin/questions',
  summary: 'All questions, with their authors; status=draft lists those waiting for review',
  tag,
  auth: 'admin',
  query: wire.admin_list_query,
  returns: { 200: wire.admin_questions_answer },
  faults: place_faults,
  handle: ({ query }, deps) =>
    answerList(deps, { path: '/api/admin/questions', query, drafts: true }, (row) => ({
      ...toWire(row),
      author_id: row.author_id,
    })),
});

const one_question = {
  tag,
  auth: 'admin',
  params: wire.question_params,
  absent: wire.question_faults.QUESTION_NOT_FOUND,
} as const;
const step_faults = [
  wire.question_faults.QUESTION_NOT_FOUND,
  wire.question_faults.INVALID_TRANSITION,
];
const one_step = {
  ...one_question,
  ...({ method: 'POST', stores_answer: 'inside' } as const),
  returns: { 200: wire.question_answer },
  faults: step_faults,
};

/** Takes a step. After the commit, this process removes its cached copy of the question. */
const answerStep = async <B>(
  ctx: Context<{ readonly id: string }, unknown, B>,
  deps: Needs,
  step: life.Step<B>,
): Promise<Answer> => {
  const { id } = ctx.params;
  const answer = await ctx.write(deps.sql, async (tx) => {
    const call = { id, body: ctx.body, admin: adminName(ctx.caller), clock: deps.clock };
    const row = await life.takeStep(tx, step, call);
    return isFault(row) ? row : reply(200, { question: toWire(row) });
  });
  deps.questions.forget(id);
  return answer;
};

const patchQuestion = route({
  ...one_question,
  id: 'updateQuestion',
  method: 'PATCH',
  path: '/api/admin/questions/{id}',
  summary: 'Edit a question; once published, only fields that no forecast depends on',
  body: wire.question_edit,
  returns: { 200: wire.question_answer },
  faults: [
    wire.question_faults.QUESTION_NOT_FOUND,
    wire.question_faults.QUESTION_NOT_EDITABLE,
    ...draft_faults,
  ],
  handle: async (ctx, deps) => {
    const known = Object.keys(wire.question_edit.properties);
    if (!Object.keys(ctx.body).some((name) => known.includes(name))) {
      const message = `Send at least one of ${known.join(', ')}.`;
      return refuse(common_faults.INVALID_REQUEST, { message });
    }
    // Loads the taxonomy before the row is locked, so that no lock is held during this read.
    await deps.taxonomy.read();
    return answerStep(ctx, deps, life.edit(deps));
  },
});

const publish = route({
  ...one_step,
  id: 'publishQuestion',
  path: '/api/admin/questions/{id}/publish',
  summary: 'Publish a draft',
  handle: (ctx, deps) => answerStep(ctx, deps, life.publish),
});

const close = route({
  ...one_step,
  id: 'closeQuestion',
  path: '/api/admin/questions/{id}/close',
  summary: 'Close an open question early, before closes_at',
  handle: (ctx, deps) => answerStep(ctx, deps, life.close),
});

const reopen = route({
  ...one_step,
  id: 'reopenQuestion',
  path: '/api/admin/questions/{id}/reopen',
  summary: 'Open a closed question again, with a later closes_at',
  body: wire.reopen_body,
  faults: [...step_faults, wire.question_faults.INVALID_DATES],
  handle: (ctx, deps) => answerStep(ctx, deps, life.reopen),
});

const removeDraft = route({
  ...one_question,
  id: 'deleteQuestion',
  method: 'DELETE',
  path: '/api/admin/questions/{id}',
  summary: 'Delete a draft, or reject a suggestion',
  returns: {
    200: Type.Object({ message: Type.String(), deleted: Type.Boolean(), id: Type.String() }),
  },
  faults: step_faults,
  query: Type.Object({ reason: Type.Optional(textSchema({ maxLength: 500 })) }),
  handle: async ({ params, query, caller }, deps) => {
    const { reason = null } = query;
    const call = { id: params.id, admin: adminName(caller), reason, body: { reason } };
    const row = await deps.sql.begin((tx) =>
      life.takeStep(tx, life.drop, { ...call, clock: deps.clock }),
    );
    if (isFault(row)) return row;
    deps.questions.forget(params.id);
    return reply(200, { message: 'Draft deleted.', deleted: true, id: row.id });
  },
});

export const routes = [
  ...sitemap_routes,
  getQuestions,
  queryByPost(getQuestions, 'queryQuestions'),
  getChanges,
  suggest,
  getSuggestions,
  postQuestion,
  getAdminQuestions,
  queryByPost(getAdminQuestions, 'queryAdminQuestions'),
  patchQuestion,
  removeDraft,
  publish,
  close,
  reopen,
];
