import { faultsOf } from '../../src/http/openapi.js';
import type { Route } from '../../src/http/route.js';
import { makeRouter } from '../../src/http/route.js';
import { common_faults, type FaultDef } from '../../src/kit/fault.js';
import { findAnswerProblem } from '../help/answers.js';
import type { Answered } from '../help/app.js';
import type { FuzzRequest } from './fuzz-requests.js';

/** Finds the problem with the answer to a fuzzed request. */

/** Short enough to read, whole enough to send again. */
export const describeRequest = ({ method, path, headers, body, as }: FuzzRequest): string =>
  JSON.stringify({
    method,
    path,
    headers,
    as,
    body: body?.toString('utf8').slice(0, 2_000) ?? null,
  });

const general_faults = Object.values(common_faults);

/** The native parser answers by itself to a head that reaches it in two parts; see `garbage`. */
const isOfParser = ({ status, headers }: Answered): boolean =>
  (status === 505 || status === 431) && headers.get('x-request-id') === null;

/** The problem with an answer, or null; the faults are those of the route that answers. */
export const makeFuzzCheck = (routes: readonly Route[]) => {
  const router = makeRouter(routes.map((route) => ({ route, entry: route })));
  /** It may be another route than the one that was meant. */
  const faultsAt = ({ method, path }: FuzzRequest): readonly FaultDef[] => {
    const found = router.find(method.toUpperCase(), path.replace(/\?.*$/s, ''));
    return found.kind === 'route' ? faultsOf(found.entry) : [];
  };
  return (request: FuzzRequest, answer: Answered): string | null => {
    if (isOfParser(answer)) return null;
    const known = [...faultsAt(request), ...general_faults];
    const problem = request.method === 'HEAD' ? null : findAnswerProblem(answer, known);
    return problem ?? (answer.status >= 500 ? String(answer.status) : null);
  };
};
