import type { Deps } from '../../kit/deps.js';
import { isFault } from '../../kit/fault.js';
import { reply, routeFor } from '../../kit/http/route.js';
import { makePage, pageHeaders, readPage } from '../../kit/page.js';
import { findVisible, question_faults, question_params } from '../questions/index.js';
import { debates_page, discussions_page, discussions_query, list_query } from './schema.js';
import {
  countDebates,
  countDiscussions,
  countThreads,
  flatKey,
  listDebates,
  listDiscussions,
  readThreads,
  topKey,
  toWire,
} from './store.js';
import { growTrees, shown_of_thread } from './threads.js';

const route = routeFor<Deps>();
const tag = 'comments';

const getDebates = route({
  id: 'listDebates',
  method: 'GET',
  path: '/api/questions/{id}/debates',
  summary: 'Threads with a reply as trees, most upvoted first',
  tag,
  auth: 'public',
  params: question_params,
  absent: question_faults.QUESTION_NOT_FOUND,
  query: list_query,
  returns: { 200: debates_page },
  faults: [question_faults.QUESTION_NOT_FOUND],
  cacheable: true,
  async handle({ params, query, caller }, deps) {
    const question = await findVisible(deps, params.id, caller);
    if (isFault(question)) return question;
    const ask = readPage(query, ['number', 'id']);
    if (isFault(ask)) return ask;
    const [found, total] = await Promise.all([
      listDebates(deps.sql, question.id, ask),
      countDebates(deps.sql, question.id),
    ]);
    const { rows: roots, next_cursor } = makePage(found, ask.limit, topKey);
    const ids = roots.map(({ id }) => id);
    const [rows, counts] = await Promise.all([
      readThreads(deps.sql, question.id, ids, shown_of_thread),
      countThreads(deps.sql, question.id, ids),
    ]);
    const count_of = new Map(counts.map(({ root_id, count }) => [root_id, count]));
    const debates = growTrees(roots, rows).map((tree) => {
      const comment_count = count_of.get(tree.id) ?? 1;
      return { ...tree, comment_count, truncated: comment_count > shown_of_thread };
    });
    const path = `/api/questions/${question.id}/debates`;
    return reply(200, { total, debates, next_cursor }, pageHeaders(path, query, next_cursor));
  },
});

const getDiscussions = route({
  id: 'listDiscussions',
  method: 'GET',
  path: '/api/discussions',
  summary: 'Threads on all questions: latest, most upvoted (top), or most upvoted with replies',
  tag,
  auth: 'public',
  query: discussions_query,
  returns: { 200: discussions_page },
  cacheable: true,
  async handle({ query }, { sql }) {
    const tab = query.tab ?? 'latest';
    const ask = readPage(query, tab === 'latest' ? ['id'] : ['number', 'id']);
    if (isFault(ask)) return ask;
    const [rows, total] = await Promise.all([
      listDiscussions(sql, tab, ask),
      countDiscussions(sql, tab),
    ]);
    const page = makePage(rows, ask.limit, tab === 'latest' ? flatKey : topKey);
    const discussions = page.rows.map((row) =>
      Object.assign(toWire(row), { question: row.question }),
    );
    return reply(
      200,
      { tab, total, discussions, next_cursor: page.next_cursor },
      pageHeaders('/api/discussions', query, page.next_cursor),
    );
  },
});

export const discussion_routes = [getDebates, getDiscussions];
