import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { type Answered, startApp } from '../help/app.js';
import { holds } from '../help/property.js';
import { asAnswered, type CallSocket, openCalls } from '../help/socket-calls.js';
import { t } from '../help/tap.js';
import {
  describeRequest,
  type FuzzExchange,
  findFuzzProblem,
  fuzz_env,
  fuzz_routes,
  makeFuzzWorld,
} from './fuzz.js';
import { type FuzzRequest, requestFor } from './fuzz-requests.js';

/**
 * Sends the fuzzed requests of `fuzz.test.ts` as calls. For any content of a frame, the result is a
 * reply, an error frame or a close code. `FUZZ_RUNS` and `FUZZ_SEED` work as in that file. The
 * short form always sends the same requests, because the HTTP test looks for new ones.
 */
const given_runs = Number(process.env['FUZZ_RUNS'] ?? 0);
const seed = process.env['FUZZ_SEED'];
const options = {
  numRuns: given_runs > 0 ? given_runs : 4,
  ...(given_runs > 0 ? {} : { interruptAfterTimeLimit: 500 }),
  ...(seed === undefined && given_runs > 0 ? {} : { seed: Number(seed ?? 1) }),
};
if (given_runs > 0) t.setTimeout(0);

const app = await startApp(t, { roles: ['api'], env: fuzz_env });

const sockets = new Map<string, CallSocket>();

/** The socket with these credentials. Null if they are refused. */
const socketOf = async (
  port: number,
  credentials: Readonly<Record<string, string>>,
): Promise<CallSocket | null> => {
  const name = JSON.stringify(credentials);
  const known = sockets.get(name);
  if (known !== undefined && known.ws.readyState === known.ws.OPEN) return known;
  const socket = await openCalls(t, port, credentials);
  const welcomed = socket.ask('{"op":"ping","id":0}', 0).then(
    () => true,
    () => false,
  );
  if (!(await welcomed)) return null;
  sockets.set(name, socket);
  return socket;
};

const nothing: Answered = {
  status: 0,
  headers: new Headers({ 'x-request-id': 'none', 'access-control-allow-origin': '*' }),
  body: {},
};

/** The body is inserted unchanged, even if that makes the frame invalid. */
const frameOf = ({ method, path, headers, body }: FuzzRequest, id: number): Buffer => {
  const call = { op: 'call', id, route: `${method} ${path}`, headers };
  const head = JSON.stringify(call).slice(0, -1);
  if (body === null) return Buffer.from(`${head}}`);
  return Buffer.concat([Buffer.from(`${head},"body":`), body, Buffer.from('}')]);
};

const seen = new Map<string, number>();
const count = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1);

const overSocket: FuzzExchange = async (port, request, credentials) => {
  const socket = await socketOf(port, credentials);
  if (socket === null) return nothing;
  const frame = frameOf(request, socket.nextId());
  const first = await socket.askAnything(frame).catch(() => null);
  // An invalid frame has no id, and closes the socket.
  if (first === null || (first.op === 'error' && first['id'] === undefined)) {
    const code = await socket.closed;
    count(`close ${code}`);
    // The library itself closes the connection on invalid UTF-8, and on frames above 96 KiB.
    const expected = isUtf8(frame) && frame.length <= 98_304 ? [4000, 4001] : [1006];
    if (!expected.includes(code)) throw new Error(`closed with ${code}`);
    return nothing;
  }
  count(first.op === 'reply' ? `${first['status']}` : `${first['code']}`);
  const answer = asAnswered(first);
  if (first.op === 'error') answer.headers.set('x-request-id', 'none');
  return answer;
};

const { world, credentials } = await makeFuzzWorld(app);

for (const route of fuzz_routes) {
  t.test(`${route.method} ${route.path} withstands whatever is called`, async (t) => {
    const property = fc.asyncProperty(requestFor(route, world), async (request) => {
      const answer = await overSocket(app.port, request, credentials[request.as] ?? {});
      const problem = findFuzzProblem(request, answer);
      if (problem !== null) throw new Error(`${problem}\n${describeRequest(request)}`);
    });
    await holds(t, property, options);
  });
}

t.test('after all of it the service is well', async (t) => {
  const health = await app.call('GET', '/health');
  t.match(health, { status: 200, body: { status: 'ok', db: true, redis: true } });
  t.comment(JSON.stringify(Object.fromEntries(seen)));
});
