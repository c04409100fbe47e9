import type { Route } from '../http/route.js';
import { account_routes } from './account.js';
import { admin_routes } from './admin.js';
import { admin_import_routes } from './admin-import.js';
import { admin_people_routes } from './admin-people.js';
import { admin_question_routes } from './admin-questions.js';
import { admin_report_routes } from './admin-reports.js';
import { agent } from './agent.js';
import { agents } from './agents.js';
import { api_reference_pages } from './api-reference.js';
import { assets, icons } from './assets.js';
import { calibration } from './calibration.js';
import { cards } from './cards.js';
import { compare } from './compare.js';
import { data } from './data.js';
import { discovery_routes } from './discovery.js';
import { dispute_routes } from './dispute.js';
import { docs_home } from './docs-home.js';
import { embed_builder } from './embed-builder.js';
import { family } from './family.js';
import { following_routes } from './following.js';
import { guide_pages } from './guide.js';
import { home } from './home.js';
import { inbox_routes } from './inbox.js';
import { insights_pages } from './insights.js';
import { leaderboard_pages } from './leaderboard.js';
import { method } from './method.js';
import { moderation } from './moderation.js';
import { agent_page_routes } from './my-agents.js';
import { delivery_page_routes } from './my-deliveries.js';
import { webhook_page_routes } from './my-webhooks.js';
import { named } from './named.js';
import { outbox } from './outbox.js';
import type { PageDeps } from './page-route.js';
import { prediction } from './prediction.js';
import { question } from './question.js';
import { questions } from './questions.js';
import { report_routes } from './report.js';
import { search } from './search.js';
import { sign_in_routes } from './sign-in.js';
import { unsubscribe_routes } from './unsubscribe.js';

export { makeFaultPage } from './error.js';
export { outbox } from './outbox.js';
export type { PageDeps } from './page-route.js';

/** The routes of all pages for people. */
export const routes: readonly Route<PageDeps>[] = [
  home,
  ...sign_in_routes,
  ...account_routes,
  ...agent_page_routes,
  ...webhook_page_routes,
  ...delivery_page_routes,
  ...inbox_routes,
  ...following_routes,
  ...unsubscribe_routes,
  outbox,
  question,
  questions,
  search,
  prediction,
  ...discovery_routes,
  embed_builder,
  ...admin_routes,
  ...admin_question_routes,
  ...admin_people_routes,
  ...admin_import_routes,
  ...admin_report_routes,
  ...report_routes,
  ...dispute_routes,
  moderation,
  named,
  ...cards,
  ...leaderboard_pages,
  agents,
  agent,
  family,
  compare,
  ...insights_pages,
  calibration,
  method,
  data,
  docs_home,
  ...guide_pages,
  ...api_reference_pages,
  assets,
  ...icons,
];
