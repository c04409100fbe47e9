import type { Claim, Reply, Route } from '../../src/http/route.js';
import { type Check, compileCheck } from '../../src/http/validation.js';
import { common_faults, isFault, refuse } from '../../src/kit/fault.js';

/**
 * Wraps a route so that its success answers are checked against its declaration. If the status,
 * type or shape is wrong, or the answer was not stored as `stores_answer` says, the answer becomes
 * a 500 that states the problem.
 */
export const checkAnswers = <D>(route: Route<D>): Route<D> => {
  const checks = new Map<number, Check>();
  for (const [status, schema] of Object.entries(route.returns)) {
    if (schema !== null)
      checks.set(Number(status), compileCheck(schema, 'answer', { leaves_texts: true }));
  }
  return {
    ...route,
    async handle(ctx, deps) {
      const answer = await route.handle(ctx, deps);
      if (isFault(answer)) return answer;
      const problem =
        findMismatch(route, answer, checks.get(answer.status)) ??
        findUnkept(route, answer, ctx.claim);
      if (problem === null) return answer;
      return refuse(common_faults.INTERNAL, { message: `${route.id}: ${problem}` });
    },
  };
};

const json_type = 'application/json';

const findMismatch = (
  { returns, produces = json_type, also_produces }: Route,
  { status, body, content_type }: Reply,
  check: Check | undefined,
): string | null => {
  if (!(status in returns)) return `status ${status} is not in returns`;
  const type = content_type?.split(';')[0] ?? json_type;
  if (body && ![produces, ...also_produces].includes(type)) return `${type} is not in produces`;
  if (check === undefined || content_type !== undefined) return null;
  // Checks the value as it is sent, so dates are already strings.
  const fields = check(JSON.parse(JSON.stringify(body)));
  return fields === null ? null : fields.map((f) => `${f.path}: ${f.message}`).join('; ');
};

const findUnkept = (
  { stores_answer }: Route,
  answer: Reply,
  claim: Claim | null,
): string | null => {
  // A replayed answer has no effect of its own.
  if (claim === null || answer.headers?.['Idempotency-Replayed'] !== undefined) return null;
  if (stores_answer === 'after') return null;
  if (claim.stored === null) return 'kept no answer in its transaction';
  return JSON.stringify(claim.stored) === JSON.stringify(answer) ? null : 'kept another answer';
};
