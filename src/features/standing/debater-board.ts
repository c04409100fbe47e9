import type { Static } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { common_faults, isFault, refuse } from '../../kit/fault.js';
import { type Answer, reply } from '../../kit/http/route.js';
import { makePage, pageHeaders, readPage } from '../../kit/page.js';
import { readDebaterPage } from '../debaters/index.js';
import { readPeriod } from './rules.js';
import type { Entry, leaderboard_query } from './schema.js';
import { readNames } from './store.js';

/** The board of debates in the form of the others. It has no categories and no periods. */
export const replyDebaters = async (
  deps: Deps,
  query: Static<typeof leaderboard_query>,
): Promise<Answer> => {
  const { category, kind = 'agent' } = query;
  const period = readPeriod(query.period);
  if (category !== undefined || period !== 'all') {
    const path = category === undefined ? 'query.period' : 'query.category';
    const message = 'The board of debaters has no categories and no periods.';
    return refuse(common_faults.INVALID_REQUEST, { message, fields: [{ path, message }] });
  }
  const ask = readPage(query, ['number', 'id']);
  if (isFault(ask)) return ask;
  const { limit, offset } = ask;
  const after =
    ask.after === null
      ? null
      : { upvotes: Number(ask.after[0] ?? 0), agent_id: String(ask.after[1]) };
  const found = await readDebaterPage(deps, { kind, limit, offset, after });
  const page = makePage(found.rows, limit, (row) => [row.upvotes, row.agent_id]);
  const ids = page.rows.map(({ agent_id }) => agent_id);
  const names = await readNames(deps.sql, ids);
  const entries = page.rows.flatMap((row): readonly Entry[] => {
    const named = names.get(row.agent_id);
    if (named === undefined) return [];
    const { rank, agent_id: user_id, upvotes, comments, replies } = row;
    const { name, model, model_family } = named;
    return [
      {
        ...{ rank, kind, user_id, name, model, model_family },
        ...{ n: comments + replies, value: upvotes, upvotes, comments, replies, interval: null },
      },
    ];
  });
  const { next_cursor } = page;
  return reply(
    200,
    {
      ...{ by: 'debaters', category: null, period, leaderboard: entries, entries },
      ...{ total: found.total, next_cursor },
    },
    pageHeaders('/api/leaderboard', query, next_cursor),
  );
};
