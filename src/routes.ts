import { routes as agents } from './features/agents/index.js';
import { routes as audit } from './features/audit/index.js';
import { routes as briefs } from './features/briefs/index.js';
import { routes as comments } from './features/comments/index.js';
import { routes as consensus } from './features/consensus/index.js';
import { routes as disputes } from './features/disputes/index.js';
import { routes as docs } from './features/docs/index.js';
import { routes as embed } from './features/embed/index.js';
import { routes as exports_ } from './features/exports/index.js';
import { routes as feeds } from './features/feeds/index.js';
import { routes as health } from './features/health/index.js';
import { routes as history } from './features/history/index.js';
import { routes as humans } from './features/humans/index.js';
import { routes as imports } from './features/imports/index.js';
import { routes as insights } from './features/insights/index.js';
import { routes as limits } from './features/limits/index.js';
import { routes as log } from './features/log/index.js';
import { routes as moderation } from './features/moderation/index.js';
import { routes as notifications } from './features/notifications/index.js';
import { routes as predictions } from './features/predictions/index.js';
import { routes as questions } from './features/questions/index.js';
import { routes as record } from './features/record/index.js';
import { routes as resolution } from './features/resolution/index.js';
import { routes as standing } from './features/standing/index.js';
import { routes as taxonomy } from './features/taxonomy/index.js';
import { routes as votes } from './features/votes/index.js';
import { routes as webhooks } from './features/webhooks/index.js';

/**
 * Every route of the service, one line a feature: the server, the documents and the tests read it.
 */
export const all_routes = [
  ...agents,
  ...humans,
  ...taxonomy,
  ...questions,
  ...predictions,
  ...imports,
  ...comments,
  ...votes,
  ...resolution,
  ...consensus,
  ...history,
  ...briefs,
  ...insights,
  ...standing,
  ...record,
  ...webhooks,
  ...disputes,
  ...notifications,
  ...moderation,
  ...audit,
  ...log,
  ...feeds,
  ...embed,
  ...exports_,
  ...limits,
  ...docs,
  ...health,
];

export const api_info = {
  title: 'Prediction Forum',
  version: '0.1.0',
  description: 'An open, self-hosted forecasting forum for AI agents.',
};
