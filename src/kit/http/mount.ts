import { common_faults, type Fault, refuse } from '../fault.js';
import { describeError } from '../log.js';
import {
  type CompiledRoute,
  compileRoute,
  makeServer,
  type ServeOptions,
  type Server,
} from './pipeline.js';
import { type Finish, makeFinish, sendOptions } from './reply.js';
import type { Headers, TemplatedApp } from './request.js';
import {
  type Asked,
  commonHeaders,
  commonLines,
  type Desk,
  Exchange,
  exchange_counters,
  makeAddressReader,
  startTalk,
  type Talk,
} from './request.js';
import type { Route } from './route.js';
import { type Found, makeRouter } from './route.js';

/**
 * The doors of the route values: HTTP over uWebSockets.js, and `call` for whoever else carries
 * calls. What is only HTTP is here: the exchange (abort handler, copies) comes first, then the
 * body, then what is the same for all. Nothing in here may throw into uWS, and everybody gets one
 * answer before the deadline.
 */

export interface MountOptions<D> extends ServeOptions<D> {
  readonly routes: readonly Route<D>[];
  readonly trusted_proxies: readonly string[];
  /** Clients reach it by TLS alone, and browsers are told to remember that. */
  readonly only_https?: boolean;
  /** Longest a request may take; then the client gets 503. */
  readonly deadline_ms?: number;
}

/** A call that is here as a whole, and that adds itself to what is open. */
export interface WholeCall extends Asked {
  /** Set here: the credentials of whoever calls may end with it. */
  ends_credentials: boolean;
  /** Whether its body has more bytes than this. */
  exceeds(limit: number): boolean;
}

export interface Mounted {
  /** What has no answer yet, oldest first. */
  readonly open: Set<Asked>;
  /** Answers a call that came through another door. */
  call(asked: WholeCall): void;
  /** Refuses new requests with 503 while the open ones finish. */
  startDraining(): void;
  stop(): void;
}

const usual_body_limit = 65_536;

/**
 * Writes that may be open at once in a process; one more is refused at once with 503, so that those
 * that are admitted are answered soon however many more are sent.
 */
const most_open_writes = 512;

const bodyLimitOf = (found: Found<{ readonly route: Pick<Route, 'body_limit'> }>): number =>
  (found.kind === 'route' ? found.match.entry.route.body_limit : undefined) ?? usual_body_limit;

const lateFault = ({ awaits_body }: Asked): Fault =>
  awaits_body
    ? refuse(common_faults.REQUEST_TIMEOUT)
    : refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });

/** Answers 503 to what has been open for longer than the deadline; 408 when the client is late. */
const startSweeper = (open: Set<Asked>, deadline_ms: number, finish: Finish) => {
  const timer = setInterval(() => {
    const now_ms = performance.now();
    for (const asked of open) {
      const { started_ms, longest_ms = deadline_ms, is_streaming = false } = asked;
      if (now_ms - started_ms < deadline_ms) break;
      if (is_streaming || now_ms - started_ms < longest_ms) continue;
      exchange_counters.expired += 1;
      finish(startTalk(asked), lateFault(asked));
    }
  }, 500);
  timer.unref();
  return timer;
};

const makeDesk = (trusted_proxies: readonly string[], common_headers: Headers): Desk => ({
  open: new Set(),
  readAddress: makeAddressReader(trusted_proxies),
  common_lines: commonLines(common_headers),
});

type AnswerCall<D> = (talk: Talk, found: Found<CompiledRoute<D>>) => void;

/** Answers, but for writes beyond `most_open_writes`. */
const boundWrites = <D>(server: Server<D>, refuseWrite: (talk: Talk) => void): AnswerCall<D> => {
  let open_writes = 0;
  return (talk, found) => {
    const { method } = talk.asked;
    if (found.kind !== 'route' || method === 'GET' || method === 'HEAD') {
      void server.answer(talk, found);
    } else if (open_writes >= most_open_writes) {
      exchange_counters.shed += 1;
      refuseWrite(talk);
    } else {
      open_writes += 1;
      void server.answer(talk, found).finally(() => {
        open_writes -= 1;
      });
    }
  };
};

export const mount = <D>(app: TemplatedApp, options: MountOptions<D>): Mounted => {
  const { routes, log, deadline_ms = 10_000, trusted_proxies } = options;
  const entries = routes.map((route) => ({ route: route as Route, entry: compileRoute(route) }));
  const router = makeRouter(entries);
  const finish = makeFinish(log);
  const common_headers = commonHeaders(options.only_https ?? false);
  const server = makeServer({ ...options, finish });
  const desk = makeDesk(trusted_proxies, common_headers);
  let draining = false;

  const refuseAway = (talk: Talk): void =>
    finish(talk, refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } }));

  const answer = boundWrites(server, refuseAway);

  const serve = (exchange: Exchange, talk: Talk): void => {
    const { method, path } = exchange;
    const found = router.find(method, path);
    if (exchange.headers_too_large) {
      finish(talk, refuse(common_faults.HEADERS_TOO_LARGE));
    } else if (method === 'OPTIONS' && found.kind === 'wrong_method') {
      sendOptions(talk, found.allow);
    } else if (found.kind !== 'route' || method === 'GET' || method === 'HEAD') {
      void server.answer(talk, found);
    } else {
      exchange.receiveBody(bodyLimitOf(found), (is_here) => {
        if (is_here) answer(talk, found);
        else finish(talk, refuse(common_faults.BODY_TOO_LARGE));
      });
    }
  };

  app.any('/*', (res, req) => {
    let exchange: Exchange | undefined;
    try {
      const is_get = req.getCaseSensitiveMethod() === 'GET';
      if (is_get && !draining && options.cache.answer(res, req, common_headers)) return;
      exchange = new Exchange(res, req, desk);
      const talk = startTalk(exchange);
      if (draining) refuseAway(talk);
      else serve(exchange, talk);
    } catch (error) {
      log.error(describeError(error), 'http: the request handler threw');
      exchange?.abandon();
    }
  });

  const sweeper = startSweeper(desk.open, deadline_ms, finish);
  return {
    open: desk.open,
    call(asked) {
      const talk = startTalk(asked);
      const found = router.find(asked.method, asked.path);
      if (found.kind === 'route') {
        asked.ends_credentials = found.match.entry.route.ends_credentials;
      }
      if (draining) refuseAway(talk);
      else if (!asked.exceeds(bodyLimitOf(found))) answer(talk, found);
      else finish(talk, refuse(common_faults.BODY_TOO_LARGE));
    },
    startDraining() {
      draining = true;
    },
    stop() {
      clearInterval(sweeper);
    },
  };
};
