import type { Test } from 'tap';
import { faultsOf } from '../../src/http/openapi.js';
import type { Route } from '../../src/http/route.js';
import { common_faults } from '../../src/kit/fault.js';
import { makeId } from '../../src/kit/ids.js';
import { api_routes } from '../../src/routes.js';
import type { Answered } from '../help/app.js';
import { no_limits, startApp } from '../help/app.js';
import { admin_email, makePrincipals, type Principal, refusalOf } from '../help/principals.js';
import { makeOpenQuestion } from '../help/story.js';
import { findAnswerProblem, refusalIn } from './answers.js';

/** Calls every route as every kind of caller, over HTTP or the socket. */

/** The path with the caller's query. All its ids are unknown, except the open question's. */
export const targetOf = ({ path, query }: Route, question_id: string, { send }: Principal) => {
  const filled = path
    .replace('{id}', path.startsWith('/api/questions/') ? question_id : makeId())
    .replace('{pid}', makeId());
  // An export that is admitted costs a thread, so the format is invalid.
  const queries = [
    ...(query?.properties['format'] === undefined ? [] : ['format=none']),
    ...(send.query === undefined ? [] : [send.query]),
  ];
  return queries.length === 0 ? filled : `${filled}?${queries.join('&')}`;
};

/** Calls that revoke their own credentials. They run last. */
const ends_credentials = ['rotateKey', 'logOut'];

const every_fault = Object.values(common_faults);
const refusals = [
  'MISSING_AUTH',
  'INVALID_API_KEY',
  'INVALID_TOKEN',
  'AMBIGUOUS_AUTH',
  'KEY_IN_QUERY',
  'ACCOUNT_SUSPENDED',
  'AGENT_NOT_LINKED',
  'AGENTS_ONLY',
  'HUMANS_ONLY',
];

const findMismatch = (principal: Principal, route: Route, answer: Answered): string | null => {
  const may_in_query = route.allows_key_in_query && principal.refused === 'KEY_IN_QUERY';
  const expected = may_in_query ? null : refusalOf(route, principal);
  const problem = findAnswerProblem(answer, [...faultsOf(route), ...every_fault]);
  const code = refusalIn(answer)?.code;
  const got = `${answer.status} ${code ?? ''}`.trim();
  const say = (what: string) => `${route.method} ${route.path}: ${what}`;
  if (problem !== null) return say(problem);
  if (expected !== null) {
    return code === expected ? null : say(`${got} where ${expected} was due`);
  }
  return refusals.includes(code) ? say(`${got} to somebody who may`) : null;
};

const at_once = 8;

/** Checks every route, a few at a time, because the number of open calls per socket is limited. */
export const lookAtAll = async <T>(
  routes: readonly Route[],
  look: (route: Route) => Promise<T>,
): Promise<T[]> => {
  const found: T[] = [];
  for (let at = 0; at < routes.length; at += at_once) {
    found.push(...(await Promise.all(routes.slice(at, at + at_once).map(look))));
  }
  return found;
};

/** Calls every route as this principal, a few at a time, and returns the unexpected answers. */
export const findMismatches = async (
  principal: Principal,
  routes: readonly Route[],
  call: (route: Route) => Promise<Answered>,
): Promise<readonly string[]> => {
  const look = async (route: Route) => findMismatch(principal, route, await call(route));
  const ends = (route: Route): boolean =>
    ends_credentials.includes(route.id) && refusalOf(route, principal) === null;
  const others = routes.filter((route) => !ends(route));
  const mismatches = await lookAtAll(others, look);
  for (const route of routes.filter(ends)) mismatches.push(await look(route));
  return mismatches.filter((one) => one !== null);
};

/** A service without limits, a question, and callers of every kind. */
export const startMatrix = async (t: Test) => {
  const app = await startApp(t, {
    roles: ['api'],
    env: { ADMIN_EMAILS: admin_email, WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', ...no_limits },
  });
  const principals = await makePrincipals(app);
  const question_id = await makeOpenQuestion(app);
  return { app, principals, question_id, routes: api_routes as readonly Route[] };
};
