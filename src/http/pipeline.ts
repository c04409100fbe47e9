import type { Logger } from 'pino';
import { common_faults, type Fault, isFault, refuse } from '../kit/fault.js';
import { describeError } from '../kit/log.js';
import { BodyStream } from './body.js';
import {
  type CallToClaim,
  type Claim,
  ClaimLostError,
  isKept,
  type Keeper,
} from './idempotency.js';
import type { Limiter, Taken, Window } from './limits.js';
import {
  applyLimits,
  type Finish,
  makeAnswerChecker,
  refuseThrown,
  showGivenBack,
  withEtag,
} from './reply.js';
import type { Address, BodyRead, Request } from './request.js';
import type { ResponseCache } from './response-cache.js';
import {
  type Answer,
  anonymous,
  type Caller,
  type Context,
  type Found,
  isAdmin,
  type Match,
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
  /** Keeps the answers of calls with an Idempotency-Key; without it the header is not looked at. */
  readonly keeper?: Keeper;
  readonly cache: ResponseCache;
  readonly windowsOf: (route: Route<D>, caller: Caller, address: Address) => readonly Window[];
  /** Gets the errors that handlers throw. */
  readonly onThrown?: (error: unknown) => void;
  /** Tests: an answer that does not match the route's `returns` becomes a 500. */
  readonly check_answers?: boolean;
}

export const compileRoute = <D>(route: Route<D>) => ({
  route,
  checkParams: route.params === undefined ? null : compileCheck(route.params, 'params'),
  readQuery: route.query === undefined ? null : compileQuery(route.query),
  checkBody: route.body === undefined ? null : compileCheck(route.body, 'body'),
});

export type CompiledRoute<D> = ReturnType<typeof compileRoute<D>>;

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

/**
 * The Idempotency-Key of a call. The request is checked as ever (caller, limits, shape), so that a
 * refusal of those kinds leaves the key free; then the key is claimed, or its answer is replayed;
 * then the handler runs, and its answer is kept or the key is released.
 */
const key_header = 'idempotency-key';
const key_pattern = /^[ -~]{1,255}$/;

const scopeOf = (caller: Caller, address: Address): string => {
  if (caller.kind === 'anonymous') return `address:${address.limit_key}`;
  return caller.kind === 'admin' ? 'admin' : `${caller.kind}:${caller.id}`;
};

const toClaim = (request: Request, route: Route, scope: string): CallToClaim => {
  const { path, query, raw_body } = request;
  const key = request.header('x-api-key');
  return {
    scope,
    raw_body,
    route: route.id,
    key: request.header(key_header),
    target: `${path}?${query}${route.takes_key ? `\n${key}` : ''}`,
    credential: route.ends_credentials ? `${key}\n${request.header('authorization')}` : null,
  };
};

const replay = (answer: Answer): Answer => ({
  ...answer,
  headers: { ...answer.headers, 'Idempotency-Replayed': 'true' },
});

const refuseRunning = (): Fault =>
  refuse(common_faults.IDEMPOTENCY_IN_PROGRESS, { headers: { 'Retry-After': '1' } });

const refuseKey = (): Fault => {
  const message = 'Idempotency-Key has 1 to 255 printable ASCII characters.';
  const fields = [{ path: `header.${key_header}`, message: '1 to 255 printable ASCII characters' }];
  return refuse(common_faults.INVALID_REQUEST, { message, fields });
};

/** Tests: why a route did not keep its answer as it says it does. */
const findUnkept = ({ keeps }: Route, claim: Claim, answer: Answer): string | null => {
  // A repeat has no effect of its own.
  if (isFault(answer) || answer.headers?.['Idempotency-Replayed'] !== undefined) return null;
  if (keeps === 'after') return null;
  if (claim.kept === null) return 'kept no answer in its transaction';
  return JSON.stringify(claim.kept) === JSON.stringify(answer) ? null : 'kept another answer';
};

interface Keyed {
  readonly keeper: Keeper;
  readonly route: Route;
  /** Tests: the answer must have been kept as the route says. */
  readonly check: boolean;
}

/** The handler's answer, or the first one when this request had one already. */
const answerOnce = async (
  ctx: Context,
  { keeper, route, check }: Keyed,
  handle: () => Making,
): Promise<Answer> => {
  const { request, caller } = ctx;
  if (!key_pattern.test(request.header(key_header))) return refuseKey();
  const claimed = await keeper.claim(toClaim(request, route, scopeOf(caller, request.address)));
  if (claimed.kind === 'replay') return replay(claimed.answer);
  if (claimed.kind === 'mismatch') return refuse(common_faults.IDEMPOTENCY_MISMATCH);
  if (claimed.kind === 'running') return refuseRunning();
  const { claim } = claimed;
  ctx.claim = claim;
  try {
    const answer = await handle();
    if (!isKept(answer)) await keeper.release(claim);
    else if (isFault(answer) || claim.kept === null) await keeper.keepAfter(claim, answer);
    const problem = check ? findUnkept(route, claim, answer) : null;
    if (problem !== null) throw new Error(`${route.id} ${problem}`);
    return answer;
  } catch (error) {
    // Where the commit took effect after all, the answer is there and stays.
    await keeper.release(claim);
    if (error instanceof ClaimLostError) return refuseRunning();
    throw error;
  }
};

/** The answer to the call by which these credentials ended; null when there is none. */
const findEnded = async (
  request: Request,
  route: Route,
  keeper: Keeper | undefined,
): Promise<Answer | null> => {
  if (keeper === undefined || !route.ends_credentials) return null;
  if (!key_pattern.test(request.header(key_header))) return null;
  const answer = await keeper.findEnded(toClaim(request, route, ''));
  return answer === null ? null : replay(answer);
};

type Making = Answer | Promise<Answer>;

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

/** Tests: throws where an answer is not what its route says. */
const makeChecked = async (
  route: Route,
  findMismatch: ReturnType<typeof makeAnswerChecker>,
  handle: () => Making,
): Promise<Answer> => {
  const made = await handle();
  const mismatch = isFault(made) ? null : findMismatch(route, made);
  if (mismatch === null) return made;
  throw new Error(`${route.id} does not return what it says: ${mismatch}`);
};

/** From the whole request to its answer; rejects only for bugs and outages. */
const makeResponder = <D>(options: ServeOptions<D>) => {
  const { deps, limiter, authenticate, windowsOf, link_url } = options;
  const { keeper, cache, check_answers: check = false } = options;
  const findMismatch = check ? makeAnswerChecker() : null;

  /** No async function in between: a promise that passes another one on costs every call. */
  const makeAnswer = (ctx: Context, route: Route<D>): Making => {
    const { request, params } = ctx;
    const plain = route as Route;
    const handle = (): Making => route.handle(ctx, deps);
    const make = findMismatch === null ? handle : () => makeChecked(plain, findMismatch, handle);
    const is_keyed = route.method === 'POST' && request.headers[key_header] !== undefined;
    if (keeper !== undefined && is_keyed) {
      return answerOnce(ctx, { keeper, route: plain, check }, make);
    }
    const { cache: rule, query } = plain;
    if (rule === undefined || !isForAll(ctx)) return make();
    return cache.share(request, { rule, params, query }, make);
  };

  return async (ctx: Context, match: Match<CompiledRoute<D>>): Promise<Reply | Fault> => {
    const { request } = ctx;
    const { route } = match.entry;
    const plain = route as Route;
    const pending = identify(request, route, authenticate);
    const caller = pending instanceof Promise ? await pending : pending;
    if (!isFault(caller)) ctx.caller = caller;
    const windows = windowsOf(route, ctx.caller, request.address);
    let taken: Taken | null = null;
    if (windows.length > 0) {
      taken = await limiter.take(windows);
      const exceeded = applyLimits(ctx, windows, taken);
      if (exceeded !== null) return exceeded;
    }
    if (isFault(caller)) {
      const first = await findEnded(request, plain, keeper);
      if (first !== null && !isFault(first)) return withEtag(ctx, plain, first);
      return route.auth === 'admin' ? refuse(common_faults.NOT_FOUND) : caller;
    }
    if (route.is_endless && request.stream === undefined) return refuse(common_faults.HTTP_ONLY);
    const refused =
      admit(plain, caller, link_url) ??
      readParts(ctx, match.entry as CompiledRoute<never>, match.params);
    if (refused !== null) return refused;
    const making = makeAnswer(ctx, route);
    const answer = making instanceof Promise ? await making : making;
    if (isFault(answer)) return answer;
    if (answer.body instanceof BodyStream && !(await openStream(request, answer.body))) {
      return refuse(common_faults.HTTP_ONLY);
    }
    const outgoing = withEtag(ctx, plain, answer);
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

/** Answers a call by what was found for its path; never throws, never rejects. */
export type Respond<D> = (ctx: Context, found: Found<CompiledRoute<D>>) => Promise<void>;

export const makeRespond = <D>(
  options: ServeOptions<D> & { readonly finish: Finish },
): Respond<D> => {
  const { log, finish, authenticate } = options;
  const respond = makeResponder(options);
  return async (ctx, found) => {
    let outgoing: Reply | Fault;
    try {
      if (found.kind === 'route') {
        ctx.request.longest_ms = found.match.entry.route.longest_ms;
        outgoing = await respond(ctx, found.match);
      } else {
        const allow = found.kind === 'wrong_method' ? found.allow : null;
        outgoing = await respondUnrouted(ctx, allow, authenticate);
      }
    } catch (error) {
      options.onThrown?.(error);
      outgoing = refuseThrown(error, ctx, log);
    }
    try {
      finish(ctx, outgoing);
    } catch (error) {
      log.error({ request_id: ctx.request_id, ...describeError(error) }, 'http: answer failed');
      ctx.headers.length = 0;
      finish(ctx, refuse(common_faults.INTERNAL));
    }
  };
};
