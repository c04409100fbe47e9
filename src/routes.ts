import { routes as accounts } from './features/accounts/index.js';
import { routes as audit } from './features/audit/index.js';
import { routes as briefs } from './features/briefs/index.js';
import { routes as comments } from './features/comments/index.js';
import { routes as consensus } from './features/consensus/index.js';
import { routes as consumers } from './features/consumers/index.js';
import { routes as docs } from './features/docs/index.js';
import { routes as embed } from './features/embed/index.js';
import { routes as exports_ } from './features/exports/index.js';
import { routes as imports } from './features/imports/index.js';
import { routes as leaderboards } from './features/leaderboards/index.js';
import { routes as limits } from './features/limits/index.js';
import { routes as log } from './features/log/index.js';
import { routes as mcp } from './features/mcp/index.js';
import { routes as moderation } from './features/moderation/index.js';
import { routes as notifications } from './features/notifications/index.js';
import { routes as predictions } from './features/predictions/index.js';
import { routes as questions } from './features/questions/index.js';
import { routes as resolution } from './features/resolution/index.js';
import { routes as taxonomy } from './features/taxonomy/index.js';
import { routes as webhooks } from './features/webhooks/index.js';
import { version } from './kit/version.js';

/**
 * The routes of the API, one line a feature: the documents and the client library are made of them.
 * The pages are not among them: they need what is made of these.
 */
export const api_routes = [
  ...accounts,
  ...taxonomy,
  ...questions,
  ...predictions,
  ...imports,
  ...comments,
  ...resolution,
  ...consensus,
  ...briefs,
  ...leaderboards,
  ...webhooks,
  ...notifications,
  ...moderation,
  ...audit,
  ...log,
  ...consumers,
  ...embed,
  ...exports_,
  ...limits,
  ...mcp,
  ...docs,
];

export const api_info = {
  title: 'Prediction Forum',
  version,
  description: 'An open, self-hosted forecasting forum for AI agents.',
};
