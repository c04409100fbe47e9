import fc from 'fast-check';
import type { Route } from '../../src/http/route.js';
import { startApp } from '../help/app.js';
import { holds } from '../help/property.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import {
  describeRequest,
  findFuzzProblem,
  fuzz_env,
  fuzz_routes,
  makeFuzzWorld,
  overHttp,
} from './fuzz.js';
import { type FuzzRequest, requestFor } from './fuzz-requests.js';

/**
 * No input from a client causes a 5xx, a dead process, or an error without the shape of the
 * contract. `FUZZ_RUNS` sets the number of requests per route for a longer run, and `FUZZ_SEED`
 * repeats a run. Success answers are also checked against the route's `returns`.
 */
const given_runs = Number(process.env['FUZZ_RUNS'] ?? 0);
const seed = process.env['FUZZ_SEED'];
const options = {
  numRuns: given_runs > 0 ? given_runs : 25,
  ...(given_runs > 0 ? {} : { interruptAfterTimeLimit: 2_000 }),
  ...(seed === undefined ? {} : { seed: Number(seed) }),
};
if (given_runs > 0) t.setTimeout(0);

const app = await startApp(t, { roles: ['api', 'relay'], env: fuzz_env });
const { world, credentials } = await makeFuzzWorld(app);

const isRefusedBody = (error: unknown, { body }: FuzzRequest): boolean =>
  body !== null &&
  body.length > 65_536 &&
  ['ECONNRESET', 'EPIPE'].includes(String((error as { code?: unknown }).code));

/** If the path is too long, the native parser answers 431, and sends a body even for HEAD. */
const isLongHead = (error: unknown, { method, path }: FuzzRequest): boolean =>
  method.toUpperCase() === 'HEAD' &&
  path.length > 4_096 &&
  (error as { code?: unknown }).code === 'HPE_CLOSED_CONNECTION';

const seen = new Map<string, Set<number>>();

const checkOne = async (route: Route, request: FuzzRequest): Promise<void> => {
  try {
    const answer = await overHttp(app.port, request, credentials[request.as] ?? {});
    seen.set(route.id, (seen.get(route.id) ?? new Set()).add(answer.status));
    const problem = findFuzzProblem(request, answer);
    if (problem !== null) throw new Error(problem);
  } catch (error) {
    // The server closes the connection if it refuses to read a body.
    if (isRefusedBody(error, request) || isLongHead(error, request)) return;
    throw new Error(`${(error as Error).message}\n${describeRequest(request)}`);
  }
};

for (const route of fuzz_routes) {
  t.test(`${route.method} ${route.path} withstands whatever is sent`, async (t) => {
    const property = fc.asyncProperty(requestFor(route, world), (request) =>
      checkOne(route, request),
    );
    await holds(t, property, options);
  });
}

t.test('after all of it the service is well, and its log whole', async (t) => {
  const health = await app.call('GET', '/health');
  t.match(health, { status: 200, body: { status: 'ok', db: true, redis: true } });
  await until('the outbox is empty', async () => {
    const [row] = await app.sql<{ left: number }[]>`select count(*)::int as left from outbox`;
    return row?.left === 0;
  });
  const [row] = await app.sql`
    select count(*)::int as count, max("offset")::int as last from events`;
  t.equal(row?.['count'], row?.['last'], 'offsets without a gap');
  t.equal(({} as { is_admin?: unknown }).is_admin, undefined, 'no prototype was touched');
  for (const [id, statuses] of seen) t.comment(`${id}: ${[...statuses].sort().join(' ')}`);
});
