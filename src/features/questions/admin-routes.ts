import { Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { nullable } from '../../kit/http/openapi.js';
import { type Answer, type Context, reply, routeFor } from '../../kit/http/route.js';
import { adminName } from '../audit/index.js';
import { type TaxonomyParts, taxonomy_faults } from '../taxonomy/index.js';
import { type Created, createQuestion } from './actions.js';
import { importQuestions } from './import-routes.js';
import {
  changeQuestion,
  closeQuestion,
  dropDraft,
  publishQuestion,
  reopenQuestion,
  type Step,
} from './life.js';
import { readListing } from './listing.js';
import { askOf, type Backstage, readBackstage } from './lists-store.js';
import {
  admin_list_query,
  admin_question_schema,
  question_answer,
  question_draft,
  question_edit,
  question_faults,
  question_params,
  reopen_body,
} from './schema.js';
import type { QuestionCache } from './store.js';
import { type QuestionRow, readQuestion, toWire } from './store.js';

type Needs = Deps & TaxonomyParts & { readonly questions: QuestionCache };
const route = routeFor<Needs>();
const tag = 'questions';

const place_faults = Object.values(taxonomy_faults);
const draft_faults = [
  question_faults.INVALID_OPTIONS,
  question_faults.INVALID_DATES,
  ...place_faults,
];
const one_question = {
  tag,
  auth: 'admin',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
} as const;
const step_faults = [question_faults.QUESTION_NOT_FOUND, question_faults.INVALID_TRANSITION];
const one_step = {
  ...one_question,
  ...({ method: 'POST', keeps: 'inside' } as const),
  returns: { 200: question_answer },
  faults: step_faults,
};

const postQuestion = route({
  id: 'createQuestion',
  method: 'POST',
  path: '/api/admin/questions',
  summary: 'Create a question as a draft, or published at once',
  tag,
  auth: 'admin',
  body: question_draft,
  returns: { 201: question_answer, 200: question_answer },
  faults: draft_faults,
  keeps: 'inside',
  handle: async (ctx, deps) => {
    const answer = ({ row, created }: Created) =>
      reply(created ? 201 : 200, { question: toWire(row) });
    const made = await createQuestion(deps, ctx.body, {
      admin: adminName(ctx.caller),
      act: 'question.create',
      keep: (tx, made) => ctx.keep(tx, answer(made)),
    });
    return isFault(made) ? made : answer(made);
  },
});

const toAdminWire = (row: QuestionRow, backstage: Backstage | undefined) => ({
  ...toWire(row),
  author_id: row.author_id,
  author_name: backstage?.author_name ?? null,
  published_at: backstage?.published_at?.toISOString() ?? null,
  closed_at: backstage?.closed_at?.toISOString() ?? null,
  voided_at: backstage?.voided_at?.toISOString() ?? null,
});

const getAdminQuestions = route({
  id: 'listAdminQuestions',
  method: 'GET',
  path: '/api/admin/questions',
  summary: 'Questions in every status, with their authors; status=draft is what waits for review',
  tag,
  auth: 'admin',
  query: admin_list_query,
  returns: {
    200: Type.Object({
      total: Type.Integer(),
      questions: Type.Array(admin_question_schema),
      next_cursor: nullable(Type.String()),
    }),
  },
  faults: place_faults,
  handle: async ({ query }, deps) => {
    const unknown = await deps.taxonomy.checkQuery(query);
    if (unknown !== null) return unknown;
    const ask = askOf(query, 'admin');
    const listing = await readListing(deps, '/api/admin/questions', { ask, query });
    if (isFault(listing)) return listing;
    const { total, rows, next_cursor, headers } = listing;
    const backstage = await readBackstage(
      deps.sql,
      rows.map(({ id }) => id),
    );
    const by_id = new Map(backstage.map((one) => [one.id, one]));
    const questions = rows.map((row) => toAdminWire(row, by_id.get(row.id)));
    return reply(200, { total, questions, next_cursor }, headers);
  },
});

const getAdminQuestion = route({
  ...one_question,
  id: 'getAdminQuestion',
  method: 'GET',
  path: '/api/admin/questions/{id}',
  summary: 'A question in any status, drafts included',
  returns: { 200: Type.Object({ question: admin_question_schema }) },
  faults: [question_faults.QUESTION_NOT_FOUND],
  handle: async ({ params }, { sql }) => {
    const row = await readQuestion(sql, params.id);
    if (row === undefined) return refuse(question_faults.QUESTION_NOT_FOUND);
    const [backstage] = await readBackstage(sql, [row.id]);
    return reply(200, { question: toAdminWire(row, backstage) });
  },
});

const stepAnswer = (row: QuestionRow) => reply(200, { question: toWire(row) });

const stepOf = (ctx: Context): Step => ({
  admin: adminName(ctx.caller),
  keep: (tx, row) => ctx.keep(tx, stepAnswer(row)),
});

/** What was done to a question, after this process has forgotten how it was. */
const answerStep = async (
  deps: Needs,
  id: string,
  step: Promise<QuestionRow | Fault>,
): Promise<Answer> => {
  const row = await step;
  if (isFault(row)) return row;
  deps.questions.forget(id);
  return stepAnswer(row);
};

const patchQuestion = route({
  ...one_question,
  id: 'updateQuestion',
  method: 'PATCH',
  path: '/api/admin/questions/{id}',
  summary: 'Edit a question: all of a draft, afterwards what no forecast depends on',
  body: question_edit,
  returns: { 200: question_answer },
  faults: [
    question_faults.QUESTION_NOT_FOUND,
    question_faults.QUESTION_NOT_EDITABLE,
    ...draft_faults,
  ],
  handle: async (ctx, deps) => {
    const { params, body } = ctx;
    const known = Object.keys(question_edit.properties);
    if (!Object.keys(body).some((name) => known.includes(name))) {
      const message = `Send at least one of ${known.join(', ')}.`;
      return refuse(common_faults.INVALID_REQUEST, { message });
    }
    const step = changeQuestion(deps, params.id, { ...stepOf(ctx), edit: body });
    return answerStep(deps, params.id, step);
  },
});

const publish = route({
  ...one_step,
  id: 'publishQuestion',
  path: '/api/admin/questions/{id}/publish',
  summary: 'Publish a draft',
  handle: (ctx, deps) =>
    answerStep(deps, ctx.params.id, publishQuestion(deps, ctx.params.id, stepOf(ctx))),
});

const close = route({
  ...one_step,
  id: 'closeQuestion',
  path: '/api/admin/questions/{id}/close',
  summary: 'Close an open question before its time',
  handle: (ctx, deps) =>
    answerStep(deps, ctx.params.id, closeQuestion(deps, ctx.params.id, stepOf(ctx))),
});

const reopen = route({
  ...one_step,
  id: 'reopenQuestion',
  path: '/api/admin/questions/{id}/reopen',
  summary: 'Open a closed question again, with a later closes_at',
  body: reopen_body,
  faults: [...step_faults, question_faults.INVALID_DATES],
  handle: (ctx, deps) => {
    const { params, body } = ctx;
    const step = reopenQuestion(deps, params.id, { ...stepOf(ctx), body });
    return answerStep(deps, params.id, step);
  },
});

const removeDraft = route({
  ...one_question,
  id: 'deleteQuestion',
  method: 'DELETE',
  path: '/api/admin/questions/{id}',
  summary: 'Delete a draft, such as a suggestion that is rejected',
  returns: {
    200: Type.Object({ message: Type.String(), deleted: Type.Boolean(), id: Type.String() }),
  },
  faults: step_faults,
  query: Type.Object({ reason: Type.Optional(Type.String({ maxLength: 500 })) }),
  handle: async (ctx, deps) => {
    const { params, query } = ctx;
    const reason = query.reason ?? null;
    const row = await dropDraft(deps, params.id, { ...stepOf(ctx), reason });
    if (isFault(row)) return row;
    deps.questions.forget(params.id);
    return reply(200, { message: 'Draft deleted.', deleted: true, id: row.id });
  },
});

export const admin_routes = [
  postQuestion,
  getAdminQuestions,
  importQuestions,
  getAdminQuestion,
  patchQuestion,
  removeDraft,
  publish,
  close,
  reopen,
];
