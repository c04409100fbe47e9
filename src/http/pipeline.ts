import type { Logger } from 'pino';
import { QueueFullError } from '../db/group-commit.js';
import {
  common_faults,
  type Fault,
  faultBody,
  isFault,
  refuse,
  refuseFields,
} from '../kit/fault.js';
import { describeError } from '../kit/log.js';
import { isOutage } from '../kit/outage.js';
import { namedTypes, preferredType } from './accept.js';
import { BodyStream, etagOf, matchesEtag } from './body.js';
import {
  type Address,
  type BodyRead,
  commonHeaders,
  exchange_counters,
  isHeaderText,
  makeAddressReader,
  type Outgoing,
  type Request,
  request_durations,
} from './call.js';
import { type Caller, callerKey, isAdmin, whyNoMember } from './caller.js';
import { type Authenticate, identify, isCrossOrigin } from './credentials.js';
import { deprecationHeaders } from './deprecation.js';
import { answerOnce, findEnded, type Idempotency, key_header } from './idempotency.js';
import { applyLimits, type Limiter, showGivenBack, type Taken, type Window } from './limits.js';
import type { ResponseCache } from './response-cache.js';
import {
  type Answer,
  Context,
  type Found,
  makeRouter,
  type Reply,
  type Route,
  takesKey,
} from './route.js';
import { HttpCall, type HttpParts, type TemplatedApp } from './uws.js';
import { compileCheck, compileQuery } from './validation.js';

/**
 * Takes a request, over HTTP (uWebSockets.js) or the socket, to its one answer: route → caller →
 * limits → validation → Idempotency-Key → handler → answer. Nothing in here may throw into uWS, and
 * every request is answered before the deadline.
 *
 * A 304 does not count against limits. At first it is counted like any other call, so that no
 * client gets work done beyond the limits. The count is taken back before the answer goes out.
 */

export interface MountOptions<D> {
  readonly routes: readonly Route<D>[];
  readonly deps: D;
  readonly log: Logger;
  readonly limiter: Limiter;
  /** Base URL for links, without a trailing slash. */
  readonly public_url: () => string;
  /** Renders a fault as a page, for browsers. */
  readonly faultPage?: (fault: Fault, request: Request, request_id: string) => Reply;
  readonly authenticate: Authenticate;
  /** Refuses a request whose signature is wrong. Returns null if there is nothing to check. */
  readonly checkSignature?: (request: Request, caller: Caller) => Promise<Fault | null> | null;
  /** If this is missing, the header `Idempotency-Key` is ignored. */
  readonly idempotency?: Idempotency;
  readonly cache: ResponseCache;
  readonly windowsOf: (route: Route<D>, caller: Caller, address: Address) => readonly Window[];
  /** Gets the errors that handlers throw. */
  readonly onThrown?: (error: unknown) => void;
  /** Called before the answer to a write that was carried out. */
  readonly onWritten?: () => void;
  /** Called for every call of a route, before the answer goes out. */
  readonly onAnswered?: (caller: Caller, route: Route<D>, answer: Reply | Fault) => void;
  readonly trusted_proxies: readonly string[];
  /** True if clients reach the service only over TLS. Answers then tell browsers so. */
  readonly only_https?: boolean;
  /** Maximum time for a request. After it the client gets 503. */
  readonly deadline_ms?: number;
}

/** A call that has arrived completely. Sockets add their calls to `open` themselves. */
export interface WholeCall extends Request {
  /** Set by `call`: true if the call may make the credentials of its caller invalid. */
  ends_credentials: boolean;
  /** Returns true if the body has more than `limit` bytes. */
  exceeds(limit: number): boolean;
}

export type Mounted = ReturnType<typeof mount<never>>;

const usual_body_limit = 65_536;

const bodyLimitOf = (found: Found<{ readonly route: Pick<Route, 'body_limit'> }>): number =>
  (found.kind === 'route' ? found.entry.route.body_limit : undefined) ?? usual_body_limit;

/**
 * Returns true if a refusal is shown as a page: at a page's address, unless the client prefers
 * another type; for other HTML or an unknown address outside `/api/`, only if it accepts HTML.
 */
const showsPage = (
  { path, headers }: Request,
  found: Found<{ readonly route: Pick<Route, 'is_page' | 'produces' | 'also_produces'> }>,
): boolean => {
  const { accept = '' } = headers;
  const isForBrowsers = (): boolean => namedTypes(accept).includes('text/html');
  if (found.kind !== 'route') return !path.startsWith('/api/') && isForBrowsers();
  const { is_page, produces, also_produces } = found.entry.route;
  if (!is_page) return produces === 'text/html' && isForBrowsers();
  return preferredType(accept, ['text/html', ...also_produces]) === 'text/html';
};

const lateFault = ({ awaits_body }: Request): Fault =>
  awaits_body ? refuse(common_faults.REQUEST_TIMEOUT) : refuseBusy();

/** Answers 503 to requests past their deadline, or 408 if the client is slow to send its body. */
const startSweeper = (open: Set<Request>, deadline_ms: number, finish: Finish) =>
  setInterval(() => {
    const now_ms = performance.now();
    for (const request of open) {
      const { started_ms, longest_ms = deadline_ms, is_streaming = false } = request;
      if (now_ms - started_ms < deadline_ms) break;
      if (is_streaming || now_ms - started_ms < longest_ms) continue;
      exchange_counters.expired += 1;
      finish(new Context(request), lateFault(request));
      request.giveUp?.();
    }
  }, 500).unref();

export const mount = <D>(app: TemplatedApp, options: MountOptions<D>) => {
  const { log, deadline_ms = 10_000, trusted_proxies } = options;
  const router = makeRouter(options.routes.map((route) => ({ route, entry: compileRoute(route) })));
  const finish = makeFinish(log, options.faultPage);
  const parts: HttpParts = {
    open: new Set(),
    readAddress: makeAddressReader(trusted_proxies),
    common_headers: commonHeaders(options.only_https ?? false),
  };
  const respond = makeRespond(options, finish);
  let draining = false;

  const serve = (request: HttpCall, ctx: Context): void => {
    const { method, path } = request;
    const found = router.find(method, path);
    request.shows_page = showsPage(request, found);
    if (found.kind === 'route') request.refusals = found.entry.route.refusals;
    if (draining) {
      finish(ctx, refuseBusy());
    } else if (request.headers_too_large) {
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
      serve(request, new Context(request));
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
      // Inner calls of a page belong to a request that was already admitted.
      if (draining && request.is_inner !== true) finish(ctx, refuseBusy());
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

/**
 * Maximum number of open writes in a process. Further writes are refused at once with 503, so that
 * admitted writes are answered soon under any load.
 */
const max_open_writes = 512;

const refuseBusy = (): Fault =>
  refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });

/** Answers a call with the route that was found for it. Never throws and never rejects. */
const makeRespond = <D>(options: MountOptions<D>, finish: Finish) => {
  const { log } = options;
  const respond = makeResponder(options);
  let open_writes = 0;

  const answer = async (ctx: Context, found: Found<CompiledRoute<D>>): Promise<Reply | Fault> => {
    try {
      if (found.kind !== 'route') {
        const allow = found.kind === 'wrong_method' ? found.allow : null;
        return await respondUnrouted(ctx, allow, options);
      }
      ctx.request.longest_ms = found.entry.route.longest_ms;
      return await respond(ctx, found);
    } catch (error) {
      options.onThrown?.(error);
      return refuseThrown(error, ctx, log);
    }
  };

  return async (ctx: Context, found: Found<CompiledRoute<D>>): Promise<void> => {
    const is_write = found.kind === 'route' && !found.entry.route.waits && !isRead(ctx.request);
    if (is_write && open_writes >= max_open_writes) {
      exchange_counters.shed += 1;
      finish(ctx, refuseBusy());
      return;
    }
    if (is_write) open_writes += 1;
    const outgoing = await answer(ctx, found);
    if (is_write) {
      open_writes -= 1;
      if (!isFault(outgoing)) options.onWritten?.();
    }
    if (found.kind === 'route') options.onAnswered?.(ctx.caller, found.entry.route, outgoing);
    try {
      finish(ctx, outgoing);
    } catch (error) {
      log.error({ ...ctx.log_ids, ...describeError(error) }, 'http: the answer could not be sent');
      ctx.headers.length = 0;
      finish(ctx, refuse(common_faults.INTERNAL));
    }
  };
};

const admin_path = {
  ...({ auth: 'admin', takes_key: false, takes_key_as_token: false } as const),
  allows_key_in_query: false,
  is_page: false,
};

/** Refuses a path that has no route, or not for this method. Only admins learn of admin paths. */
const respondUnrouted = async (
  { request }: Context,
  allow: readonly string[] | null,
  options: Parameters<typeof identify>[2],
): Promise<Fault> => {
  if (allow === null) return refuse(common_faults.NOT_FOUND);
  if (request.path.startsWith('/api/admin')) {
    const caller = await identify(request, admin_path, options);
    if (isFault(caller) || !isAdmin(caller)) return refuse(common_faults.NOT_FOUND);
  }
  return refuse(common_faults.METHOD_NOT_ALLOWED, {
    message: `This address supports only ${allow.join(', ')}.`,
    headers: { Allow: allow.join(', ') },
  });
};

/** Returns null if the caller may use the route, otherwise the refusal. */
const admit = (route: Route, caller: Caller, public_url: string): Fault | null => {
  const { auth } = route;
  if (auth === 'public') return null;
  const must_log_in = route.is_page && caller.kind === 'anonymous';
  if (auth === 'admin' && !must_log_in) {
    return isAdmin(caller) ? null : refuse(common_faults.NOT_FOUND);
  }
  if (caller.kind === 'anonymous' || caller.kind === 'admin') {
    const message = 'Log in first. Programs send the token as Authorization: Bearer.';
    return refuse(common_faults.MISSING_AUTH, auth === 'human' ? { message } : {});
  }
  if (caller.kind === 'human') {
    if (auth === 'agent' || auth === 'linked') return refuse(common_faults.AGENTS_ONLY);
    const why_not = auth === 'member' ? whyNoMember(caller) : null;
    return why_not === null ? null : refuse(why_not);
  }
  if (auth === 'human') return refuse(common_faults.HUMANS_ONLY);
  if ((auth === 'linked' || auth === 'member') && caller.owner_id === null) {
    const link_url = `${public_url}/link`;
    return refuse(common_faults.AGENT_NOT_LINKED, {
      message: `Link this agent to a verified human at ${link_url}, then try again.`,
      extra: { link_url },
    });
  }
  return null;
};

const readBodyFor = ({ body, takes_key, is_page }: Route, request: Request): BodyRead => {
  if (body === undefined) return { value: undefined };
  const encoding = request.header('content-encoding');
  if (!/^(?:identity)?$/i.test(encoding)) {
    const message = `Content-Encoding ${encoding.slice(0, 40)} is not supported. Send the body uncompressed.`;
    const headers = { 'Accept-Encoding': 'identity' };
    return refuse(common_faults.UNSUPPORTED_MEDIA_TYPE, { message, headers });
  }
  if (is_page) return request.readForm?.() ?? refuse(common_faults.HTTP_ONLY);
  return takes_key && request.raw_body.length === 0 ? { value: {} } : request.readBody();
};

/** Checks the parts of the request and stores them in `ctx`. Returns the first fault, or null. */
const readParts = (
  ctx: Context,
  { route, checkParams, readQuery, checkBody }: CompiledRoute<never>,
  params: unknown,
): Fault | null => {
  const body = readBodyFor(route, ctx.request);
  if (isFault(body)) return body;
  if (checkParams !== null && checkParams(params) !== null) {
    return refuse(route.absent ?? common_faults.NOT_FOUND);
  }
  ctx.params = params;
  ctx.body = body.value;
  const query = readQuery === null ? { value: {} } : readQuery(ctx.request.query);
  if ('fields' in query) return refuseFields(query.fields);
  ctx.query = query.value;
  const fields = checkBody === null ? null : checkBody(body.value);
  return fields === null ? null : refuseFields(fields);
};

/** Makes the first piece, unless the method is HEAD. Returns false if no pieces can be sent. */
const openStream = async (request: Request, body: BodyStream): Promise<boolean> => {
  request.onGone?.(() => body.close());
  if (request.stream === undefined) body.close();
  else if (request.method !== 'HEAD') await body.open();
  return request.stream !== undefined;
};

/** Returns true if the answer is the same for everybody and may be cached. */
const isForAll = ({ request, caller }: Context): boolean =>
  request.stream !== undefined && request.method === 'GET' && caller.kind === 'anonymous';

/** Takes a complete request to its answer. Rejects only for bugs and outages. */
const makeResponder = <D>(options: MountOptions<D>) => {
  const { deps, limiter, windowsOf } = options;
  const { idempotency, cache } = options;

  const makeAnswer = (ctx: Context, entry: CompiledRoute<D>): Answer | Promise<Answer> => {
    const { request, params } = ctx;
    const { route, fixed_headers } = entry;
    const handle = () => route.handle(ctx, deps);
    const is_keyed =
      takesKey(route) && !route.is_endless && request.headers[key_header] !== undefined;
    if (is_keyed && idempotency !== undefined) {
      return answerOnce(ctx, { route, idempotency }, handle);
    }
    const { cache: rule, query, is_page } = route;
    if (rule === undefined || !isForAll(ctx)) return handle();
    return cache.share(request, { rule, params, query, is_page, fixed_headers }, handle);
  };

  return async (ctx: Context, { entry, params }: FoundRoute<D>): Promise<Reply | Fault> => {
    const { request } = ctx;
    const { route, fixed_headers } = entry;
    for (const [name, value] of fixed_headers) ctx.headers.push([name, value]);
    const caller = await identify(request, route, options);
    if (!isFault(caller)) ctx.caller = caller;
    const is_free = route.is_unlimited || (request.is_inner === true && isRead(request));
    const windows = is_free ? [] : windowsOf(route, ctx.caller, request.address);
    let taken: Taken | null = null;
    if (windows.length > 0) {
      taken = await limiter.take(windows);
      const exceeded = applyLimits(ctx, windows, taken);
      if (exceeded !== null) return exceeded;
    }
    if (isFault(caller)) {
      const first = await findEnded(request, route, idempotency);
      if (first !== null && !isFault(first)) return withEtag(ctx, route, first);
      return route.auth === 'admin' ? refuse(common_faults.NOT_FOUND) : caller;
    }
    if (route.is_endless && request.stream === undefined) return refuse(common_faults.HTTP_ONLY);
    const public_url = options.public_url();
    if (route.is_page && !isRead(request) && isCrossOrigin(request, public_url)) {
      return refuse(common_faults.CROSS_ORIGIN);
    }
    const refused = admit(route, caller, public_url) ?? readParts(ctx, entry, params);
    if (refused !== null) return refused;
    const missigned = await options.checkSignature?.(request, caller);
    if (missigned != null) return missigned;
    const answer = await makeAnswer(ctx, entry);
    if (isFault(answer)) return answer;
    if (answer.body instanceof BodyStream && !(await openStream(request, answer.body))) {
      return refuse(common_faults.HTTP_ONLY);
    }
    const outgoing = withEtag(ctx, route, answer);
    if (outgoing.status === 304 && taken !== null) {
      // This comes before the answer, so that the client can make another call at once.
      showGivenBack(ctx, windows, await limiter.giveBack(windows, taken));
    }
    return outgoing;
  };
};

const isRead = ({ method }: Pick<Request, 'method'>): boolean =>
  method === 'GET' || method === 'HEAD';

const compileRoute = <D>(route: Route<D>) => ({
  route,
  checkParams: route.params === undefined ? null : compileCheck(route.params, 'params'),
  readQuery: route.query === undefined ? null : compileQuery(route.query),
  checkBody:
    route.body === undefined
      ? null
      : compileCheck(route.body, 'body', { leaves_texts: route.is_page }),
  /** Headers of every answer. */
  fixed_headers: deprecationHeaders(route.deprecated),
});

type CompiledRoute<D> = ReturnType<typeof compileRoute<D>>;
type FoundRoute<D> = Extract<Found<CompiledRoute<D>>, { kind: 'route' }>;

const json_type = 'application/json';

const encode = (outgoing: Reply | Fault, { request, request_id, body: given }: Context) => {
  if (isFault(outgoing)) {
    const body =
      request.refusals?.bodyOf(outgoing, request_id, given) ?? faultBody(outgoing, request_id);
    return { status: outgoing.def.status, body: JSON.stringify(body), content_type: json_type };
  }
  const { status, body, content_type } = outgoing;
  if (content_type !== undefined) {
    return { status, body: body as Outgoing['body'] | BodyStream, content_type };
  }
  if (body === undefined) return { status, body: '', content_type: null };
  return { status, body: JSON.stringify(body), content_type: json_type };
};

const checkHeader = (name: string, value: string): [string, string] => {
  if (!isHeaderText(value))
    throw new Error(`the header ${name} has a character that is not allowed`);
  return [name, value];
};

/** Sends the one answer of a call and writes its log line. */
type Finish = (ctx: Context, outgoing: Reply | Fault) => void;

const makeFinish = (log: Logger, faultPage: MountOptions<never>['faultPage']): Finish => {
  // These lines have no secret fields. A search for secrets would be most of a line's cost.
  const lines = log.child({}, { redact: { paths: [] } });
  return (ctx, answer) => {
    const { request, request_id, log_ids, headers } = ctx;
    const is_page = isFault(answer) && faultPage !== undefined && request.shows_page === true;
    const outgoing = is_page ? faultPage(answer, request, request_id) : answer;
    for (const [name, value] of Object.entries(outgoing.headers ?? {})) {
      headers.push(checkHeader(name, value));
    }
    const { status, body, content_type } = encode(outgoing, ctx);
    if (isFault(outgoing)) headers.push(['Cache-Control', 'no-store']);
    if (status === 401) headers.push(['WWW-Authenticate', 'Bearer realm="prediction-forum"']);
    headers.push(['X-Request-Id', request_id]);
    if (!(body instanceof BodyStream)) {
      const is_sent = request.send({ status, headers, body, content_type });
      writeLine(lines, ctx, status);
      if (!is_sent || request.longest_ms !== undefined || request.is_inner === true) return;
      const seconds = (performance.now() - request.started_ms) / 1_000;
      request_durations.observe({ status: `${Math.floor(status / 100)}xx` }, seconds);
      return;
    }
    Promise.resolve(request.stream?.({ status, headers, content_type }, body))
      .catch((error: unknown) => log.error({ ...log_ids, ...describeError(error) }, 'http: cut'))
      .finally(() => writeLine(lines, ctx, status));
  };
};

const writeLine = (lines: Logger, ctx: Context, status: number): void => {
  if (ctx.request.is_inner === true) return;
  const { method, path, started_ms, socket, aborted } = ctx.request;
  const ms = Math.round((performance.now() - started_ms) * 100) / 100;
  lines.info({
    method,
    path,
    status,
    ms,
    caller: callerKey(ctx.caller) ?? undefined,
    socket,
    aborted: aborted || undefined,
    ...ctx.log_ids,
  });
};

/** Answers a CORS preflight, or OPTIONS in general. */
const sendOptions = (ctx: Context, allow: readonly string[]): void => {
  const requested = ctx.request.header('access-control-request-headers');
  const allowed_headers = /^[\w\-, ]{1,500}$/.test(requested)
    ? requested
    : 'Content-Type, X-API-Key, Authorization, Idempotency-Key, X-Request-Id';
  ctx.request.send({
    status: 204,
    headers: [
      ['Allow', allow.join(', ')],
      ['Access-Control-Allow-Methods', allow.join(', ')],
      ['Access-Control-Allow-Headers', allowed_headers],
      ['Access-Control-Max-Age', '86400'],
      ['X-Request-Id', ctx.request_id],
    ],
    body: '',
    content_type: null,
  });
};

/** Removes headers about one caller from an answer that shared caches may store. */
const dropHeaders = ({ headers }: Context, names: RegExp): void => {
  headers.splice(0, headers.length, ...headers.filter(([name]) => !names.test(name)));
};

/** Adds the ETag of a cacheable answer. Returns 304 without a body if the client has it. */
const withEtag = (ctx: Context, route: Route, outgoing: Reply): Reply => {
  // The page that makes this call gets its own ETag, for everything that the page shows.
  if (ctx.request.is_inner === true) return outgoing;
  const { headers, content_type = 'application/json' } = outgoing;
  const own_rule = headers?.['Cache-Control'];
  const is_anonymous = ctx.caller.kind === 'anonymous';
  if (!route.cacheable || outgoing.status !== 200 || own_rule === 'no-store') {
    if (own_rule === undefined && (!is_anonymous || route.method !== 'GET')) {
      ctx.headers.push(['Cache-Control', 'no-store']);
    }
    return outgoing;
  }
  const { body } = outgoing;
  const sent = (outgoing.content_type === undefined ? JSON.stringify(body) : body) as string;
  const etag = outgoing.etag ?? etagOf(sent);
  if (own_rule?.includes('immutable')) dropHeaders(ctx, /^RateLimit/);
  ctx.headers.push(['ETag', etag]);
  if (own_rule === undefined) {
    // Caches may store the answer, but must revalidate it with its ETag each time.
    ctx.headers.push(['Cache-Control', `${is_anonymous ? 'public' : 'private'}, no-cache`]);
  }
  const kept = headers === undefined ? {} : { headers };
  if (matchesEtag(ctx.request.header('if-none-match'), etag)) {
    return { kind: 'reply', status: 304, body: undefined, ...kept };
  }
  return { kind: 'reply', status: 200, body: sent, content_type, ...kept };
};

/** An error that was thrown is a bug or an outage. The client learns which, and the request id. */
const refuseThrown = (error: unknown, ctx: Context, log: Logger): Fault => {
  const record = { ...ctx.log_ids, path: ctx.request.path, ...describeError(error) };
  if (isOutage(error) || error instanceof QueueFullError) {
    log.warn(record, 'http: a store is unavailable');
    return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });
  }
  log.error(record, 'http: a handler threw');
  return refuse(common_faults.INTERNAL);
};
