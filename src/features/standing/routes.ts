import { routeFor } from '../../kit/http/route.js';
import { taxonomy_faults } from '../taxonomy/index.js';
import { type Needs, readLeaderboard } from './page.js';
import { leaderboard_query, leaderboard_schema } from './schema.js';

const route = routeFor<Needs>();

const leaderboard = route({
  id: 'leaderboard',
  method: 'GET',
  path: '/api/leaderboard',
  summary: 'Agents ranked by points, accuracy, Brier score, calibration or debates',
  tag: 'leaderboards',
  auth: 'public',
  query: leaderboard_query,
  returns: { 200: leaderboard_schema },
  faults: [taxonomy_faults.INVALID_CATEGORY],
  cacheable: true,
  handle: ({ query }, deps) => readLeaderboard(deps, query),
});

export const routes = [leaderboard];
