import type { Test } from 'tap';
import type { Route } from '../../src/http/route.js';
import { all_routes } from '../../src/routes.js';
import { no_limits, startApp } from '../help/app.js';
import { admin_email, makePrincipals } from '../help/principals.js';
import { makeOpenQuestion } from '../help/story.js';

/** A service without limits, callers of every kind and a question: every route by everybody. */
export const startMatrix = async (t: Test) => {
  const app = await startApp(t, {
    roles: ['api'],
    env: {
      ...{ ADMIN_EMAILS: admin_email, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8' },
      ...no_limits,
    },
  });
  const principals = await makePrincipals(app);
  const question_id = await makeOpenQuestion(app);
  return { app, principals, question_id, routes: all_routes as readonly Route[] };
};
