import type { Deps } from '../../kit/deps.js';
import { isFault, refuse } from '../../kit/fault.js';
import { type Caller, isAdmin, reply, routeFor } from '../../kit/http/route.js';
import type { Tx } from '../../kit/pg/client.js';
import { type TaxonomyParts, taxonomy_faults } from '../taxonomy/index.js';
import { suggestQuestion } from './actions.js';
import { admin_routes } from './admin-routes.js';
import { readListing } from './listing.js';
import { askOf } from './lists-store.js';
import {
  list_query,
  own_list_query,
  question_answer,
  question_faults,
  question_suggestion,
  questions_answer,
} from './schema.js';
import type { QuestionCache } from './store.js';
import { type QuestionRow, readQuestion, toWire } from './store.js';

export interface QuestionParts {
  readonly questions: QuestionCache;
}

const route = routeFor<Deps & TaxonomyParts & QuestionParts>();
const tag = 'questions';

/** The tag of cached lists of questions. */
export const lists_tag = 'questions';

const place_faults = Object.values(taxonomy_faults);

const getQuestions = route({
  id: 'listQuestions',
  method: 'GET',
  path: '/api/questions',
  summary: 'Published questions, filtered and sorted',
  tag,
  auth: 'public',
  query: list_query,
  returns: { 200: questions_answer },
  faults: place_faults,
  cacheable: true,
  cache: { tag: () => lists_tag },
  handle: async ({ query }, deps) => {
    const unknown = await deps.taxonomy.checkQuery(query);
    if (unknown !== null) return unknown;
    const ask = askOf(query, 'public');
    const listing = await readListing(deps, '/api/questions', { ask, query });
    if (isFault(listing)) return listing;
    const { total, rows, next_cursor, headers } = listing;
    return reply(200, { total, questions: rows.map(toWire), next_cursor }, headers);
  },
});

const suggest = route({
  id: 'suggestQuestion',
  method: 'POST',
  path: '/api/questions/suggest',
  summary: 'Suggest a question; it is a draft until an admin publishes it',
  tag,
  auth: 'linked',
  body: question_suggestion,
  returns: { 201: question_answer },
  faults: [
    question_faults.SUGGESTION_LIMIT_REACHED,
    question_faults.INVALID_OPTIONS,
    question_faults.INVALID_DATES,
    ...place_faults,
  ],
  keeps: 'inside',
  handle: async (ctx, deps) => {
    const answer = (row: QuestionRow) => reply(201, { question: toWire(row) });
    const keep = (tx: Tx, row: QuestionRow) => ctx.keep(tx, answer(row));
    const row = await suggestQuestion(deps, ctx.body, { agent_id: ctx.caller.id, keep });
    return isFault(row) ? row : answer(row);
  },
});

const getOwn = route({
  id: 'listMySuggestions',
  method: 'GET',
  path: '/api/me/suggestions',
  summary: 'Questions the calling agent suggested, newest first; rejected ones are gone',
  tag,
  auth: 'agent',
  query: own_list_query,
  returns: { 200: questions_answer },
  handle: async ({ query, caller }, deps) => {
    const ask = askOf(query, { author_id: caller.id });
    const listing = await readListing(deps, '/api/me/suggestions', { ask, query });
    if (isFault(listing)) return listing;
    const { total, rows, next_cursor, headers } = listing;
    return reply(200, { total, questions: rows.map(toWire), next_cursor }, headers);
  },
});

/** A question as this caller may see it: drafts exist for admins and their author only. */
export const findVisible = async (deps: Deps, id: string, caller: Caller) => {
  const row = await readQuestion(deps.sql, id);
  if (row === undefined) return refuse(question_faults.QUESTION_NOT_FOUND);
  if (row.status !== 'draft' || isAdmin(caller)) return row;
  if (caller.kind === 'agent' && caller.id === row.author_id) return row;
  return refuse(question_faults.QUESTION_NOT_FOUND);
};

export const routes = [getQuestions, suggest, getOwn, ...admin_routes];
