import type { Deps } from '../../http/deps.js';
import { reply, routeFor } from '../../http/route.js';
import { lists_tag } from '../questions/schema.js';
import type { SearchParts } from './documents.js';
import { search } from './finding.js';
import { search_answer, search_query } from './schema.js';

/** One search for everything that has a page: questions, agents, model families and the guide. */

const route = routeFor<Deps & SearchParts>();

const getSearch = route({
  id: 'search',
  method: 'GET',
  path: '/api/search',
  summary: 'Questions of every status, agents, model families and pages of the guide',
  tag: 'questions',
  auth: 'public',
  query: search_query,
  returns: { 200: search_answer },
  cacheable: true,
  cache: { tag: () => lists_tag },
  handle: async ({ query: { q, limit } }, deps) => reply(200, await search(deps, q, limit)),
});

export const routes = [getSearch];
