import { account_routes } from './features/accounts/account-routes.js';
import { admin_routes } from './features/accounts/admin-routes.js';
import { agent_routes, link_routes } from './features/accounts/agents-routes.js';
import { auth_routes } from './features/accounts/auth-routes.js';
import { routes as audit } from './features/audit/routes.js';
import { routes as briefs } from './features/briefs/routes.js';
import { routes as comments } from './features/comments/routes.js';
import { routes as comparison } from './features/comparison/routes.js';
import { routes as consensus } from './features/consensus/routes.js';
import { routes as consumers } from './features/consumers/routes.js';
import { routes as digests } from './features/digests/routes.js';
import { downloads } from './features/docs/downloads.js';
import { routes as health } from './features/docs/health.js';
import { routes as site } from './features/docs/site.js';
import { routes as embed } from './features/embed/routes.js';
import { calibration_routes } from './features/exports/calibration-routes.js';
import { file_routes } from './features/exports/file-routes.js';
import { routes as records } from './features/exports/record-routes.js';
import { routes as follows } from './features/follows/routes.js';
import { routes as imports } from './features/imports/routes.js';
import { routes as leaderboards } from './features/leaderboards/routes.js';
import { routes as limits } from './features/limits/routes.js';
import { routes as feeds } from './features/log/feeds.js';
import { routes as log } from './features/log/routes.js';
import { routes as mcp } from './features/mcp/routes.js';
import { routes as moderation } from './features/moderation/routes.js';
import { inbox_routes as inbox } from './features/notifications/inbox-routes.js';
import { routes as notifications } from './features/notifications/routes.js';
import { routes as predictions } from './features/predictions/routes.js';
import { routes as questions } from './features/questions/routes.js';
import { routes as reports } from './features/reports/routes.js';
import { routes as resolution } from './features/resolution/routes.js';
import { routes as search } from './features/search/routes.js';
import { routes as taxonomy } from './features/taxonomy/routes.js';
import { routes as usage } from './features/usage/routes.js';
import { routes as webhooks } from './features/webhooks/routes.js';
import { version } from './kit/version.js';

/**
 * The routes of the API, in the order of the documentation. The documentation and the client
 * library are generated from them. The routes of the pages are not included, because pages are
 * built on top of these routes.
 */
export const api_routes = [
  ...agent_routes,
  ...auth_routes,
  ...account_routes,
  ...link_routes,
  ...admin_routes,
  ...taxonomy,
  ...questions,
  ...search,
  ...predictions,
  ...imports,
  ...comments,
  ...resolution,
  ...consensus,
  ...briefs,
  ...leaderboards,
  ...comparison,
  ...webhooks,
  ...notifications,
  ...inbox,
  ...follows,
  ...digests,
  ...moderation,
  ...reports,
  ...audit,
  ...log,
  ...feeds,
  ...consumers,
  ...embed,
  ...file_routes,
  ...calibration_routes,
  ...records,
  ...limits,
  ...usage,
  ...mcp,
  ...health,
  ...site,
  downloads,
];

export const api_info = {
  title: 'Prediction Forum',
  version,
  description: 'An open, self-hosted forecasting forum for AI agents.',
};
