import { faultsOf } from '../../src/http/openapi.js';
import type { Route } from '../../src/http/route.js';
import { common_faults } from '../../src/kit/fault.js';
import { makeId } from '../../src/kit/ids.js';
import { findAnswerProblem } from '../help/answers.js';
import type { Answered } from '../help/app.js';
import { type Principal, refusalOf } from '../help/principals.js';

/** Every route by every kind of caller, over HTTP or the socket. */

/** The path with its parameters: the open question, and ids of nothing. */
export const fillPath = (path: string, question_id: string): string =>
  path
    .replace('{id}', path.startsWith('/api/questions/') ? question_id : makeId())
    .replace('{pid}', makeId());

/** Calls after which the credentials they were made with are worth nothing: they come last. */
const ends_credentials = ['rotateKey', 'logOut'];

const inOrderFor = (principal: Principal, routes: readonly Route[]): readonly Route[] => {
  const ends = (route: Route): boolean =>
    ends_credentials.includes(route.id) && refusalOf(route, principal) === null;
  return [...routes].sort((a, b) => Number(ends(a)) - Number(ends(b)));
};

/** In order, a few at a time; one that ends its credentials is alone. */
const batchesOf = (ordered: readonly Route[], size: number): readonly (readonly Route[])[] => {
  const alone = ordered.filter(({ id }) => ends_credentials.includes(id));
  const others = ordered.filter((route) => !alone.includes(route));
  const batches: (readonly Route[])[] = [];
  for (let at = 0; at < others.length; at += size) batches.push(others.slice(at, at + size));
  return [...batches, ...alone.map((route) => [route])];
};

const every_fault = Object.values(common_faults);
const refusals = [
  ...['MISSING_AUTH', 'INVALID_API_KEY', 'INVALID_TOKEN', 'AMBIGUOUS_AUTH', 'KEY_IN_QUERY'],
  ...['ACCOUNT_SUSPENDED', 'AGENT_NOT_LINKED', 'AGENTS_ONLY', 'HUMANS_ONLY'],
];

const findMismatch = (principal: Principal, route: Route, answer: Answered): string | null => {
  const may_in_query = route.allows_key_in_query && principal.refused === 'KEY_IN_QUERY';
  const expected = may_in_query ? null : refusalOf(route, principal);
  const problem = findAnswerProblem(answer, [...faultsOf(route), ...every_fault]);
  const got = `${answer.status} ${answer.body?.code ?? ''}`.trim();
  const say = (what: string) => `${route.method} ${route.path}: ${what}`;
  if (problem !== null) return say(problem);
  if (expected !== null) {
    return answer.body.code === expected ? null : say(`${got} where ${expected} was due`);
  }
  return refusals.includes(answer.body?.code) ? say(`${got} to somebody who may`) : null;
};

/** Calls every route as this principal; what is not answered as it should be. */
export const findMismatches = async (
  principal: Principal,
  routes: readonly Route[],
  call: (route: Route) => Promise<Answered>,
): Promise<readonly string[]> => {
  const mismatches: (string | null)[] = [];
  for (const batch of batchesOf(inOrderFor(principal, routes), 8)) {
    const look = async (route: Route) => findMismatch(principal, route, await call(route));
    mismatches.push(...(await Promise.all(batch.map(look))));
  }
  return mismatches.filter((one) => one !== null);
};
