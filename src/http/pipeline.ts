import type { Logger } from 'pino';
import { common_faults, type Fault, isFault, refuse } from '../kit/fault.js';
import { describeError } from '../kit/log.js';
import { BodyStream } from './body.js';
import { answerOnce, findEnded, type Idempotency, key_header } from './idempotency.js';
import type { Limiter, Taken, Window } from './limits.js';
import { applyLimits, type Finish, refuseThrown, showGivenBack, withEtag } from './reply.js';
import { type Address, type BodyRead, exchange_counters, type Request } from './request.js';
import type { ResponseCache } from './response-cache.js';
import {
  type Answer,
  anonymous,
  type Caller,
  type Context,
  type Found,
  isAdmin,
  type Reply,
  type Route,
} from './route.js';
import { compileCheck, compileQuery, sayFirst } from './validation.js';

/**
 * From a request to its answer, over HTTP and over the socket: route → caller → limits →
 * validation → Idempotency-Key → handler → answer. There is exactly one answer.
 *
 * A 304 costs no limit: its place is taken like any other, so that nobody gets work done beyond the
 * limits, and is given back before the answer goes out.
 */

export interface ServeOptions<D> {
  readonly deps: D;
  readonly log: Logger;
  readonly limiter: Limiter;
  readonly link_url: () => string;
  /** May answer without a promise: a cached key costs no turn of the event loop. */
  readonly authenticate: (credentials: Credentials) => Caller | Fault | Promise<Caller | Fault>;
  /** Without it the header `Idempotency-Key` is not looked at. */
  readonly idempotency?: Idempotency;
  readonly cache: ResponseCache;
  readonly windowsOf: (route: Route<D>, caller: Caller, address: Address) => readonly Window[];
  /** Gets the errors that handlers throw. */
  readonly onThrown?: (error: unknown) => void;
}

export const isRead = ({ method }: Pick<Request, 'method'>): boolean =>
  method === 'GET' || method === 'HEAD';

export const compileRoute = <D>(route: Route<D>) => ({
  route,
  checkParams: route.params === undefined ? null : compileCheck(route.params, 'params'),
  readQuery: route.query === undefined ? null : compileQuery(route.query),
  checkBody: route.body === undefined ? null : compileCheck(route.body, 'body'),
});

type CompiledRoute<D> = ReturnType<typeof compileRoute<D>>;
type FoundRoute<D> = Extract<Found<CompiledRoute<D>>, { kind: 'route' }>;

/** The credentials of a request; empty where it has none. */
export interface Credentials {
  readonly api_key: string;
  readonly authorization: string;
  readonly admin_key: string;
}

export const no_credentials: Credentials = { api_key: '', authorization: '', admin_key: '' };

/**
 * Of what was sent, the one credential that a route uses. Clients set their headers once and send
 * them with every call, so a credential that a route does not need is not looked at: the admin key
 * counts for the routes of admins, and for others only where it came alone. A key together with a
 * Bearer token would be two callers; only where the key is what the call is about, the token says
 * who acts.
 */
export const chooseCredentials = (
  { auth, takes_key }: Pick<Route, 'auth' | 'takes_key'>,
  sent: Credentials,
): Credentials | Fault => {
  const { api_key, authorization, admin_key } = sent;
  if (auth === 'admin' && admin_key !== '') return { api_key: '', authorization: '', admin_key };
  if (api_key !== '' && authorization !== '') {
    if (!takes_key) return refuse(common_faults.AMBIGUOUS_AUTH);
    return { api_key: '', authorization, admin_key: '' };
  }
  const comes_alone = admin_key === '' || (api_key === '' && authorization === '');
  return comes_alone ? sent : { api_key, authorization, admin_key: '' };
};

const key_in_query = /(?:^|[=&])sk_[A-Za-z0-9]{20,}/;

/** The caller of the route, or why the credentials are refused. */
const identify = (
  { query, headers }: Request,
  route: Pick<Route, 'auth' | 'takes_key' | 'allows_key_in_query'>,
  authenticate: ServeOptions<never>['authenticate'],
): Caller | Fault | Promise<Caller | Fault> => {
  const api_key = headers['x-api-key'] ?? '';
  const authorization = headers['authorization'] ?? '';
  const admin_key = headers['x-admin-key'] ?? '';
  if (query !== '' && !route.allows_key_in_query && key_in_query.test(query)) {
    return refuse(common_faults.KEY_IN_QUERY);
  }
  if (api_key === '' && authorization === '' && admin_key === '') return anonymous;
  const chosen = chooseCredentials(route, { api_key, authorization, admin_key });
  return isFault(chosen) ? chosen : authenticate(chosen);
};

/** Null when the caller may use the route, else why not. */
const admit = (route: Route, caller: Caller, linkUrl: () => string): Fault | null => {
  const { auth } = route;
  if (auth === 'public') return null;
  if (auth === 'admin') return isAdmin(caller) ? null : refuse(common_faults.NOT_FOUND);
  if (caller.kind === 'anonymous' || caller.kind === 'admin') {
    const message = 'Log in and send your token as Authorization: Bearer.';
    return refuse(common_faults.MISSING_AUTH, auth === 'human' ? { message } : {});
  }
  if (caller.kind === 'human') {
    return auth === 'agent' || auth === 'linked' ? refuse(common_faults.AGENTS_ONLY) : null;
  }
  if (auth === 'human') return refuse(common_faults.HUMANS_ONLY);
  if ((auth === 'linked' || auth === 'member') && caller.owner_id === null) {
    const link_url = linkUrl();
    return refuse(common_faults.AGENT_NOT_LINKED, {
      message: `Link this agent to a verified human at ${link_url}, then try again.`,
      extra: { link_url },
    });
  }
  return null;
};

const none_read: BodyRead = { ok: true, value: undefined };
const empty_read: BodyRead = { ok: true, value: {} };

const readBodyFor = ({ body, takes_key }: Route, request: Request): BodyRead => {
  if (body === undefined) return none_read;
  return takes_key && request.raw_body.length === 0 ? empty_read : request.readBody();
};

/** Checks the parts of the request and puts them into the context; the first fault, or null. */
const readParts = (
  ctx: Context,
  { route, checkParams, readQuery, checkBody }: CompiledRoute<never>,
  params: unknown,
): Fault | null => {
  const body = readBodyFor(route, ctx.request);
  if (!body.ok) return body.fault;
  if (checkParams !== null && checkParams(params) !== null) {
    return refuse(route.absent ?? common_faults.NOT_FOUND);
  }
  ctx.params = params;
  ctx.body = body.value;
  const query = readQuery === null ? { value: {} } : readQuery(ctx.request.query);
  if ('fields' in query) {
    const { fields } = query;
    return refuse(common_faults.INVALID_REQUEST, { message: sayFirst('query', fields), fields });
  }
  ctx.query = query.value;
  const fields = checkBody === null ? null : checkBody(body.value);
  if (fields === null) return null;
  return refuse(common_faults.INVALID_REQUEST, { message: sayFirst('body', fields), fields });
};

/** Makes the first piece; false where nothing can be sent in pieces. HEAD has none. */
const openStream = async (request: Request, body: BodyStream): Promise<boolean> => {
  request.onGone?.(() => body.close());
  if (request.stream === undefined) body.close();
  else if (request.method !== 'HEAD') await body.open();
  return request.stream !== undefined;
};

/** Whether an answer to this is for everybody, and may be kept. */
const isForAll = ({ request, caller }: Context): boolean =>
  request.stream !== undefined && request.method === 'GET' && caller.kind === 'anonymous';

/** From the whole request to its answer; rejects only for bugs and outages. */
const makeResponder = <D>(options: ServeOptions<D>) => {
  const { deps, limiter, authenticate, windowsOf, link_url } = options;
  const { idempotency, cache } = options;

  const makeAnswer = (ctx: Context, route: Route<D>): Answer | Promise<Answer> => {
    const { request, params } = ctx;
    const handle = () => route.handle(ctx, deps);
    const is_keyed = route.method === 'POST' && request.headers[key_header] !== undefined;
    if (is_keyed && idempotency !== undefined) {
      return answerOnce(ctx, { route, idempotency }, handle);
    }
    const { cache: rule, query } = route;
    if (rule === undefined || !isForAll(ctx)) return handle();
    return cache.share(request, { rule, params, query }, handle);
  };

  return async (ctx: Context, { entry, params }: FoundRoute<D>): Promise<Reply | Fault> => {
    const { request } = ctx;
    const { route } = entry;
    const caller = await identify(request, route, authenticate);
    if (!isFault(caller)) ctx.caller = caller;
    const windows = windowsOf(route, ctx.caller, request.address);
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
    const refused = admit(route, caller, link_url) ?? readParts(ctx, entry, params);
    if (refused !== null) return refused;
    const answer = await makeAnswer(ctx, route);
    if (isFault(answer)) return answer;
    if (answer.body instanceof BodyStream && !(await openStream(request, answer.body))) {
      return refuse(common_faults.HTTP_ONLY);
    }
    const outgoing = withEtag(ctx, route, answer);
    if (outgoing.status === 304 && taken !== null) {
      // Before the answer goes out, so that its receiver has its place in the limits again.
      showGivenBack(ctx, windows, await limiter.giveBack(windows, taken));
    }
    return outgoing;
  };
};

const admin_path = { auth: 'admin', takes_key: false, allows_key_in_query: false } as const;

/** A path without a route, or with another method: admin paths do not tell even that. */
const respondUnrouted = async (
  { request }: Context,
  allow: readonly string[] | null,
  authenticate: ServeOptions<never>['authenticate'],
): Promise<Fault> => {
  if (allow === null) return refuse(common_faults.NOT_FOUND);
  if (request.path.startsWith('/api/admin')) {
    const caller = await identify(request, admin_path, authenticate);
    if (isFault(caller) || !isAdmin(caller)) return refuse(common_faults.NOT_FOUND);
  }
  return refuse(common_faults.METHOD_NOT_ALLOWED, {
    message: `This address takes ${allow.join(', ')}.`,
    headers: { Allow: allow.join(', ') },
  });
};

/**
 * Writes that may be open at once in a process; one more is refused at once with 503, so that those
 * that are admitted are answered soon however many more are sent.
 */
const most_open_writes = 512;

export const refuseBusy = (): Fault =>
  refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });

/** Answers a call by what was found for its path; never throws, never rejects. */
export const makeRespond = <D>(options: ServeOptions<D> & { readonly finish: Finish }) => {
  const { log, finish, authenticate } = options;
  const respond = makeResponder(options);
  let open_writes = 0;

  const answer = async (ctx: Context, found: Found<CompiledRoute<D>>): Promise<Reply | Fault> => {
    try {
      if (found.kind !== 'route') {
        const allow = found.kind === 'wrong_method' ? found.allow : null;
        return await respondUnrouted(ctx, allow, authenticate);
      }
      ctx.request.longest_ms = found.entry.route.longest_ms;
      return await respond(ctx, found);
    } catch (error) {
      options.onThrown?.(error);
      return refuseThrown(error, ctx, log);
    }
  };

  return async (ctx: Context, found: Found<CompiledRoute<D>>): Promise<void> => {
    const is_write = found.kind === 'route' && !isRead(ctx.request);
    if (is_write && open_writes >= most_open_writes) {
      exchange_counters.shed += 1;
      finish(ctx, refuseBusy());
      return;
    }
    if (is_write) open_writes += 1;
    const outgoing = await answer(ctx, found);
    if (is_write) open_writes -= 1;
    try {
      finish(ctx, outgoing);
    } catch (error) {
      log.error({ request_id: ctx.request_id, ...describeError(error) }, 'http: answer failed');
      ctx.headers.length = 0;
      finish(ctx, refuse(common_faults.INTERNAL));
    }
  };
};
