import { common_faults, type Fault, refuse } from '../kit/fault.js';
import { describeError } from '../kit/log.js';
import { checkAnswers } from './checked.js';
import { compileRoute, isRead, makeRespond, refuseBusy, type ServeOptions } from './pipeline.js';
import { type Finish, makeFinish, sendOptions } from './reply.js';
import {
  commonHeaders,
  exchange_counters,
  HttpCall,
  type HttpParts,
  makeAddressReader,
  type Request,
  type TemplatedApp,
} from './request.js';
import { Context, type Found, makeRouter, type Route } from './route.js';

/**
 * Serves route values over HTTP by uWebSockets.js, and to calls over the socket. Nothing in here
 * may throw into uWS, and every request gets one answer before the deadline.
 */

interface MountOptions<D> extends ServeOptions<D> {
  readonly routes: readonly Route<D>[];
  /** Tests: an answer that is not what its route says becomes a 500. */
  readonly check_answers?: boolean;
  readonly trusted_proxies: readonly string[];
  /** Clients reach the service by TLS alone; answers tell browsers to remember that. */
  readonly only_https?: boolean;
  /** Longest a request may take; then the client gets 503. */
  readonly deadline_ms?: number;
}

/** A call that has arrived as a whole, and that adds itself to `open`. */
export interface WholeCall extends Request {
  /** Set here: the credentials of the caller may end with it. */
  ends_credentials: boolean;
  /** Whether its body has more bytes than this. */
  exceeds(limit: number): boolean;
}

export type Mounted = ReturnType<typeof mount<never>>;

const usual_body_limit = 65_536;

const bodyLimitOf = (found: Found<{ readonly route: Pick<Route, 'body_limit'> }>): number =>
  (found.kind === 'route' ? found.entry.route.body_limit : undefined) ?? usual_body_limit;

const lateFault = ({ awaits_body }: Request): Fault =>
  awaits_body ? refuse(common_faults.REQUEST_TIMEOUT) : refuseBusy();

/** Answers 503 to requests open for longer than the deadline; 408 when the client is late. */
const startSweeper = (open: Set<Request>, deadline_ms: number, finish: Finish) =>
  setInterval(() => {
    const now_ms = performance.now();
    for (const request of open) {
      const { started_ms, longest_ms = deadline_ms, is_streaming = false } = request;
      if (now_ms - started_ms < deadline_ms) break;
      if (is_streaming || now_ms - started_ms < longest_ms) continue;
      exchange_counters.expired += 1;
      finish(new Context(request), lateFault(request));
    }
  }, 500).unref();

export const mount = <D>(app: TemplatedApp, options: MountOptions<D>) => {
  const { log, deadline_ms = 10_000, trusted_proxies } = options;
  const routes = options.check_answers ? options.routes.map(checkAnswers) : options.routes;
  const router = makeRouter(routes.map((route) => ({ route, entry: compileRoute(route) })));
  const finish = makeFinish(log);
  const parts: HttpParts = {
    open: new Set(),
    readAddress: makeAddressReader(trusted_proxies),
    common_headers: commonHeaders(options.only_https ?? false),
  };
  const respond = makeRespond({ ...options, finish });
  let draining = false;

  const serve = (request: HttpCall, ctx: Context): void => {
    const { method, path } = request;
    const found = router.find(method, path);
    if (request.headers_too_large) {
      finish(ctx, refuse(common_faults.HEADERS_TOO_LARGE));
    } else if (method === 'OPTIONS' && found.kind === 'wrong_method') {
      sendOptions(ctx, found.allow);
    } else if (found.kind !== 'route' || isRead(request)) {
      void respond(ctx, found);
    } else {
      request.receiveBody(bodyLimitOf(found), (is_here) => {
        if (is_here) void respond(ctx, found);
        else finish(ctx, refuse(common_faults.BODY_TOO_LARGE));
      });
    }
  };

  app.any('/*', (res, req) => {
    let request: HttpCall | undefined;
    try {
      const is_get = req.getCaseSensitiveMethod() === 'GET';
      if (is_get && !draining && options.cache.answer(res, req, parts.common_headers)) return;
      request = new HttpCall(res, req, parts);
      const ctx = new Context(request);
      if (draining) finish(ctx, refuseBusy());
      else serve(request, ctx);
    } catch (error) {
      log.error(describeError(error), 'http: the request handler threw');
      request?.abandon();
    }
  });

  const sweeper = startSweeper(parts.open, deadline_ms, finish);
  return {
    /** Requests without an answer, oldest first. */
    open: parts.open,
    /** Answers a call that did not come over HTTP. */
    call(request: WholeCall): void {
      const ctx = new Context(request);
      const found = router.find(request.method, request.path);
      if (found.kind === 'route') {
        request.ends_credentials = found.entry.route.ends_credentials;
      }
      if (draining) finish(ctx, refuseBusy());
      else if (!request.exceeds(bodyLimitOf(found))) void respond(ctx, found);
      else finish(ctx, refuse(common_faults.BODY_TOO_LARGE));
    },
    /** Refuses new requests with 503 while the open ones finish. */
    startDraining(): void {
      draining = true;
    },
    stop: (): void => clearInterval(sweeper),
  };
};
