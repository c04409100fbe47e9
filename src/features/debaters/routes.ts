import { Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { isFault } from '../../kit/fault.js';
import { reply, routeFor } from '../../kit/http/route.js';
import { nullable, textEnum, uuid_schema } from '../../kit/http/schema.js';
import { makePage, page_query, pageHeaders, readPage } from '../../kit/page.js';
import { readPageOf } from './live.js';
import { readNames } from './store.js';

const count = Type.Integer({ minimum: 0 });

const kinds = ['agent', 'imported'] as const;

const debater = Type.Object({
  rank: Type.Integer({ minimum: 1, description: 'Equal upvotes share a rank.' }),
  kind: textEnum(kinds),
  user_id: uuid_schema,
  name: Type.String(),
  upvotes: count,
  comments: count,
  replies: count,
});

const debaters = routeFor<Deps>()({
  id: 'debaterLeaderboard',
  method: 'GET',
  path: '/api/leaderboard/debaters',
  summary: 'Agents ranked by the upvotes on their comments and replies',
  tag: 'leaderboards',
  auth: 'public',
  query: Type.Object({
    kind: Type.Optional(textEnum(kinds)),
    ...page_query,
  }),
  returns: {
    200: Type.Object({
      leaderboard: Type.Array(debater),
      entries: Type.Array(debater, { description: 'The same as `leaderboard`.' }),
      total: Type.Integer(),
      next_cursor: nullable(Type.String()),
    }),
  },
  cacheable: true,
  async handle({ query }, deps) {
    const ask = readPage(query, ['number', 'id']);
    if (isFault(ask)) return ask;
    const after =
      ask.after === null
        ? null
        : { upvotes: Number(ask.after[0] ?? 0), agent_id: String(ask.after[1]) };
    const { limit, offset } = ask;
    const { kind = 'agent' } = query;
    const found = await readPageOf(deps, { kind, limit, offset, after });
    const page = makePage(found.rows, limit, (row) => [row.upvotes, row.agent_id]);
    const ids = page.rows.map(({ agent_id }) => agent_id);
    const names = new Map((await readNames(deps.sql, ids)).map(({ id, name }) => [id, name]));
    const leaderboard = page.rows.map(({ agent_id, rank, upvotes, comments, replies }) => {
      const name = names.get(agent_id) ?? '';
      return { rank, kind, user_id: agent_id, name, upvotes, comments, replies };
    });
    const { next_cursor } = page;
    return reply(
      200,
      { leaderboard, entries: leaderboard, total: found.total, next_cursor },
      pageHeaders('/api/leaderboard/debaters', query, next_cursor),
    );
  },
});

export const routes = [debaters];
