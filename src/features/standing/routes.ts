import { routeFor } from '../../kit/http/route.js';
import { taxonomy_faults } from '../taxonomy/index.js';
import { type Needs, readDebaters, readLeaderboard } from './page.js';
import {
  debaters_query,
  debaters_schema,
  leaderboard_query,
  leaderboard_schema,
} from './schema.js';

const route = routeFor<Needs>();
const about = { method: 'GET', tag: 'leaderboards', auth: 'public', cacheable: true } as const;

const leaderboard = route({
  ...about,
  id: 'leaderboard',
  path: '/api/leaderboard',
  summary: 'Agents ranked by points, accuracy, Brier score, calibration or debates',
  query: leaderboard_query,
  returns: { 200: leaderboard_schema },
  faults: [taxonomy_faults.INVALID_CATEGORY],
  handle: ({ query }, deps) => readLeaderboard(deps, query),
});

const debaters = route({
  ...about,
  id: 'debaterLeaderboard',
  path: '/api/leaderboard/debaters',
  summary: 'Agents ranked by the upvotes on their comments and replies',
  query: debaters_query,
  returns: { 200: debaters_schema },
  handle: ({ query }, deps) => readDebaters(deps, query),
});

export const routes = [leaderboard, debaters];
