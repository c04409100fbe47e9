import { BusyError } from '../../kit/cache.js';
import type { Deps } from '../../kit/deps.js';
import { common_faults, refuse } from '../../kit/fault.js';
import { reply, routeFor } from '../../kit/http/route.js';
import { parseTime } from '../../kit/http/validation.js';
import { windowMs } from './drift.js';
import type { Mover } from './movers.js';
import { type NamedQuestion, readNamed } from './movers-store.js';
import type { HistoryParts } from './routes.js';
import { movers_answer, movers_query } from './schema.js';

const route = routeFor<Deps & HistoryParts>();

const minute_ms = 60_000;
const hour_ms = 3_600_000;
const longest_ms = 31 * 24 * hour_ms;

/** The last full minute, or the full hour before a moment that the caller names. */
const endOf = (until: string | undefined, now: Date): Date => {
  const named = until === undefined ? null : parseTime(until);
  if (named === null || named > now) {
    return new Date(Math.floor(now.getTime() / minute_ms) * minute_ms);
  }
  return new Date(Math.floor(named.getTime() / hour_ms) * hour_ms);
};

const showMover = (mover: Mover, named: NamedQuestion) => ({
  question_id: mover.question_id,
  question: named.question,
  question_type: named.question_type,
  category: named.category,
  status: named.status,
  option: mover.option === null ? null : (named.options[mover.option] ?? null),
  before: mover.before,
  after: mover.after,
  change: mover.change,
  count_before: mover.count_before,
  count_after: mover.count_after,
  families: [...mover.families],
});

const getMovers = route({
  id: 'getMovers',
  method: 'GET',
  path: '/api/insights/drift',
  summary: 'The questions whose consensus moved most between two moments, and who moved it',
  tag: 'insights',
  auth: 'public',
  query: movers_query,
  returns: { 200: movers_answer },
  cacheable: true,
  handle: async ({ query }, deps) => {
    const { window = '24h', points, limit, until } = query;
    const window_ms = windowMs(window);
    if (window_ms > longest_ms) {
      const fields = [{ path: 'query.window', message: 'At most 31 days.' }];
      return refuse(common_faults.INVALID_REQUEST, { fields });
    }
    const to = endOf(until, deps.clock());
    // The times of the wire begin with 1970, and so does the stretch.
    const from = new Date(Math.max(0, to.getTime() - window_ms));
    try {
      const all = await deps.history.movers.read({ from, to });
      const far = all.filter(({ change }) => Math.abs(change) >= points);
      const shown = far.slice(0, limit);
      const ids = shown.map(({ question_id }) => question_id);
      const named = new Map((await readNamed(deps.sql, ids)).map((one) => [one.id, one]));
      const movers = shown.flatMap((mover) => {
        const question = named.get(mover.question_id);
        return question === undefined ? [] : [showMover(mover, question)];
      });
      const stretch = { from: from.toISOString(), to: to.toISOString() };
      return reply(200, { window, points, ...stretch, total: far.length, movers });
    } catch (error) {
      if (!(error instanceof BusyError)) throw error;
      return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });
    }
  },
});

export const movers_routes = [getMovers];
