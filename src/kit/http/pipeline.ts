import type { Logger } from 'pino';
import { common_faults, type Fault, isFault, refuse } from '../fault.js';
import {
  type CallToClaim,
  type Claim,
  ClaimLostError,
  isKept,
  type Keeper,
  keepAll,
} from '../idempotency.js';
import { sha256 } from '../ids.js';
import type { Limiter, Taken, Window } from '../limits.js';
import { describeError } from '../log.js';
import type { Tx } from '../pg/client.js';
import { BodyStream } from './body.js';
import {
  applyLimits,
  type Finish,
  makeAnswerChecker,
  refuseThrown,
  showGivenBack,
  withEtag,
} from './reply.js';
import type { Address, Asked, BodyRead, Talk } from './request.js';
import type { ResponseCache } from './response-cache.js';
import type { Answer, Context, Found, Match, Reply, Route } from './route.js';
import { anonymous, type Caller, isAdmin } from './route.js';
import {
  type Check,
  compileCheck,
  compileQuery,
  type QueryReader,
  sayFirst,
} from './validation.js';

/**
 * What HTTP requests and calls over the websocket share: a route with its validators compiled, who
 * is admitted to it, and the context that its handler gets.
 */

export interface CompiledRoute<D> {
  readonly route: Route<D>;
  readonly checkParams: Check | null;
  readonly readQuery: QueryReader | null;
  readonly checkBody: Check | null;
}

export const compileRoute = <D>(route: Route<D>): CompiledRoute<D> => ({
  route,
  checkParams: route.params === undefined ? null : compileCheck(route.params, 'params'),
  readQuery: route.query === undefined ? null : compileQuery(route.query),
  checkBody: route.body === undefined ? null : compileCheck(route.body, 'body'),
});

interface CallParts {
  readonly params: unknown;
  readonly query_text: string;
  readonly body: unknown;
  readonly raw_body: Uint8Array | string;
  readonly caller: Caller;
  readonly request_id: string;
  readonly ip: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly onGone: (listener: () => void) => void;
}

class Call implements Context {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly caller: Caller;
  readonly request_id: string;
  readonly ip: string;
  readonly onGone: (listener: () => void) => void;
  /** Set by mount once the key of the call is claimed. */
  claim: Claim | null = null;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #raw_body: Uint8Array | string;

  constructor(parts: CallParts, query: unknown) {
    this.params = parts.params;
    this.query = query;
    this.body = parts.body;
    this.caller = parts.caller;
    this.request_id = parts.request_id;
    this.ip = parts.ip;
    this.onGone = parts.onGone;
    this.#headers = parts.headers;
    this.#raw_body = parts.raw_body;
  }

  get body_digest(): string {
    if (this.#raw_body.length === 0) return '';
    return sha256(this.#raw_body, 'hex');
  }

  header(name: string): string {
    return this.#headers[name] ?? '';
  }

  async keep(tx: Tx, answer: Answer): Promise<void> {
    if (this.claim !== null) await keepAll(tx, [{ claim: this.claim, answer }]);
  }
}

/** Null when the caller may use the route, else why not. */
const admit = (route: Route, caller: Caller, linkUrl: () => string): Fault | null => {
  const { auth } = route;
  if (auth === 'public') return null;
  if (auth === 'admin') return isAdmin(caller) ? null : refuse(common_faults.NOT_FOUND);
  if (caller.kind === 'anonymous' || caller.kind === 'admin') {
    const message =
      auth === 'human' ? 'Log in and send your token as Authorization: Bearer.' : undefined;
    return refuse(common_faults.MISSING_AUTH, message === undefined ? {} : { message });
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

/** Checks what was sent; the context for the handler, or the first fault. */
const makeCall = <D>(compiled: CompiledRoute<D>, parts: CallParts): Call | Fault => {
  const { route, checkParams, readQuery, checkBody } = compiled;
  if (checkParams !== null && checkParams(parts.params) !== null) {
    return refuse(route.absent ?? common_faults.NOT_FOUND);
  }
  let query: unknown = {};
  if (readQuery !== null) {
    const read = readQuery(parts.query_text);
    if ('fields' in read) {
      return refuse(common_faults.INVALID_REQUEST, {
        message: sayFirst('query', read.fields),
        fields: read.fields,
      });
    }
    query = read.value;
  }
  const fields = checkBody === null ? null : checkBody(parts.body);
  if (fields !== null) {
    return refuse(common_faults.INVALID_REQUEST, {
      message: sayFirst('body', fields),
      fields,
    });
  }
  return new Call(parts, query);
};

/** What a caller has sent to say who it is; empty where it sent none. */
export interface Credentials {
  readonly api_key: string;
  readonly authorization: string;
  readonly admin_key: string;
}

export const no_credentials: Credentials = { api_key: '', authorization: '', admin_key: '' };

/**
 * Of what was sent, the one credential that a route uses. Clients set their headers once and send
 * them with every call, so what a route does not need is not looked at: the admin key counts for
 * the routes of admins, and for others only where it came alone. A key together with a Bearer token
 * would be two callers; only where the key is what the call is about, the token says who acts.
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

/**
 * What mount does with an Idempotency-Key. Order: the request is checked as ever (who, limits,
 * shape), so that a refusal of those kinds leaves the key free; then the key is claimed, or its
 * answer is replayed; then the handler runs, and its answer is kept or the key is released.
 */

interface KeyedCall {
  readonly route: Pick<Route, 'id' | 'keeps' | 'ends_credentials' | 'takes_key'>;
  readonly asked: Asked;
  readonly call: Call;
}

interface Keeping {
  /** The handler's answer, or the first one when this request had one already. */
  answerOnce(keyed: KeyedCall, handle: () => Answer | Promise<Answer>): Promise<Answer>;
  /** The answer to the call by which these credentials ended; null when there is none. */
  findEnded(ended: Pick<KeyedCall, 'route' | 'asked'>): Promise<Answer | null>;
}

const key_header = 'idempotency-key';
const key_pattern = /^[ -~]{1,255}$/;

const scopeOf = (caller: Caller, address: Address): string => {
  if (caller.kind === 'anonymous') return `address:${address.limit_key}`;
  return caller.kind === 'admin' ? 'admin' : `${caller.kind}:${caller.id}`;
};

const describe = (
  { route, asked }: Pick<KeyedCall, 'route' | 'asked'>,
  scope: string,
): CallToClaim => ({
  scope,
  raw_body: asked.raw_body,
  route: route.id,
  key: asked.header(key_header),
  target: `${asked.path}?${asked.query}${route.takes_key ? `\n${asked.header('x-api-key')}` : ''}`,
  credential: route.ends_credentials
    ? `${asked.header('x-api-key')}\n${asked.header('authorization')}`
    : null,
});

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

/** Tests: says where a route did not keep its answer as it says it does. */
const findUnkept = ({ route }: KeyedCall, claim: Claim, answer: Reply): string | null => {
  // What was found to be a repeat has no effect of its own.
  if (route.keeps === 'after' || answer.headers?.['Idempotency-Replayed'] !== undefined)
    return null;
  if (claim.kept === null) return 'kept no answer in its transaction';
  return JSON.stringify(claim.kept) === JSON.stringify(answer) ? null : 'kept another answer';
};

const makeKeeping = (keeper: Keeper, check_answers: boolean): Keeping => {
  const settle = async (keyed: KeyedCall, claim: Claim, answer: Answer): Promise<Answer> => {
    if (!isKept(answer)) await keeper.release(claim);
    else if (isFault(answer) || claim.kept === null) await keeper.keepAfter(claim, answer);
    if (check_answers && !isFault(answer)) {
      const problem = findUnkept(keyed, claim, answer);
      if (problem !== null) throw new Error(`${keyed.route.id} ${problem}`);
    }
    return answer;
  };

  return {
    async answerOnce(keyed, handle) {
      const { call, asked } = keyed;
      if (!key_pattern.test(asked.header(key_header))) return refuseKey();
      const claimed = await keeper.claim(describe(keyed, scopeOf(call.caller, asked.address)));
      if (claimed.kind === 'replay') return replay(claimed.answer);
      if (claimed.kind === 'mismatch') return refuse(common_faults.IDEMPOTENCY_MISMATCH);
      if (claimed.kind === 'running') return refuseRunning();
      const { claim } = claimed;
      call.claim = claim;
      try {
        return await settle(keyed, claim, await handle());
      } catch (error) {
        // Where the commit took effect after all, the answer is there and stays.
        await keeper.release(claim);
        if (error instanceof ClaimLostError) return refuseRunning();
        throw error;
      } finally {
        keeper.drop(claim);
      }
    },
    async findEnded(ended) {
      if (!ended.route.ends_credentials) return null;
      if (!key_pattern.test(ended.asked.header(key_header))) return null;
      const answer = await keeper.findEnded(describe(ended, ''));
      return answer === null ? null : replay(answer);
    },
  };
};

/**
 * From what is asked to its answer, for every door: route → who → limits → validation →
 * Idempotency-Key → handler → answer. Whatever a handler does, there is exactly one answer.
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
  /** Hears of what handlers throw. */
  readonly onThrown?: (error: unknown) => void;
  /** Tests: an answer that does not match the route's `returns` becomes a 500. */
  readonly check_answers?: boolean;
}

const key_in_query = /(?:^|[=&])sk_[A-Za-z0-9]{20,}/;

/** Who calls the route: the caller, or why the credentials are refused. */
const identify = (
  { query, headers }: Asked,
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

const none_read: BodyRead = { ok: true, value: undefined };
const empty_read: BodyRead = { ok: true, value: {} };

const readBodyFor = ({ body, takes_key }: Pick<Route, 'body' | 'takes_key'>, asked: Asked) => {
  if (body === undefined) return none_read;
  return takes_key && asked.raw_body.length === 0 ? empty_read : asked.readBody();
};

/** Makes the first piece; false where nothing can be sent in pieces. HEAD has none. */
const openStream = async (asked: Asked, body: BodyStream): Promise<boolean> => {
  asked.onGone?.(() => body.close());
  if (asked.stream === undefined) body.close();
  else if (asked.method !== 'HEAD') await body.open();
  return asked.stream !== undefined;
};

type Making = Answer | Promise<Answer>;

/** Whether an answer to this is for everybody, and may be kept. */
const isForAll = ({ asked, caller }: Talk): boolean =>
  asked.stream !== undefined && asked.method === 'GET' && caller.kind === 'anonymous';

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
  const { keeper, cache, check_answers = false } = options;
  const keeping = keeper === undefined ? null : makeKeeping(keeper, check_answers);
  const findMismatch = check_answers ? makeAnswerChecker() : null;
  return async (talk: Talk, { entry, params }: Match<CompiledRoute<D>>): Promise<Reply | Fault> => {
    const { asked, request_id } = talk;
    const { route } = entry;
    const { address } = asked;
    const pending = identify(asked, route, authenticate);
    const caller = pending instanceof Promise ? await pending : pending;
    if (!isFault(caller)) talk.caller = caller;
    const windows = windowsOf(route, talk.caller, address);
    let taken: Taken | null = null;
    if (windows.length > 0) {
      taken = await limiter.take(windows);
      const exceeded = applyLimits(talk, windows, taken);
      if (exceeded !== null) return exceeded;
    }
    if (isFault(caller)) {
      const first = (await keeping?.findEnded({ route, asked })) ?? null;
      if (first !== null && !isFault(first)) return withEtag(talk, route as Route, first);
      return route.auth === 'admin' ? refuse(common_faults.NOT_FOUND) : caller;
    }
    if (route.is_endless && asked.stream === undefined) return refuse(common_faults.HTTP_ONLY);
    const not_admitted = admit(route as Route, caller, link_url);
    if (not_admitted !== null) return not_admitted;
    const body = readBodyFor(route, asked);
    if (!body.ok) return body.fault;
    const call = makeCall(entry, {
      params,
      query_text: asked.query,
      body: body.value,
      raw_body: asked.raw_body,
      caller,
      request_id,
      ip: address.text,
      headers: asked.headers,
      onGone: (listener) => asked.onGone?.(listener),
    });
    if (isFault(call)) return call;
    const is_keyed = route.method === 'POST' && asked.headers[key_header] !== undefined;
    const handle = (): Making => route.handle(call, deps);
    const make =
      findMismatch === null ? handle : () => makeChecked(route as Route, findMismatch, handle);
    // No async function in between: a promise that passes another one on costs every call.
    let making: Making;
    const { cache: rule, query } = route as Route;
    if (keeping !== null && is_keyed) making = keeping.answerOnce({ route, asked, call }, make);
    else if (rule === undefined || !isForAll(talk)) making = make();
    else making = cache.share(asked, { rule, params, query }, make);
    const answer = making instanceof Promise ? await making : making;
    if (isFault(answer)) return answer;
    if (answer.body instanceof BodyStream && !(await openStream(asked, answer.body))) {
      return refuse(common_faults.HTTP_ONLY);
    }
    const outgoing = withEtag(talk, route as Route, answer);
    if (outgoing.status === 304 && taken !== null) {
      // Before it is answered, so that whoever has the answer has its place in the limits again.
      showGivenBack(talk, windows, await limiter.giveBack(windows, taken));
    }
    return outgoing;
  };
};

const admin_path = { auth: 'admin', takes_key: false, allows_key_in_query: false } as const;

/** A path without a route, or with another method: admin paths do not tell even that. */
const respondUnrouted = async (
  talk: Talk,
  allow: readonly string[] | null,
  authenticate: ServeOptions<never>['authenticate'],
): Promise<Fault> => {
  if (allow === null) return refuse(common_faults.NOT_FOUND);
  if (talk.asked.path.startsWith('/api/admin')) {
    const caller = await identify(talk.asked, admin_path, authenticate);
    if (isFault(caller) || !isAdmin(caller)) return refuse(common_faults.NOT_FOUND);
  }
  return refuse(common_faults.METHOD_NOT_ALLOWED, {
    message: `This address takes ${allow.join(', ')}.`,
    headers: { Allow: allow.join(', ') },
  });
};

export interface Server<D> {
  /** Answers what was found for the path of the talk; never throws, never rejects. */
  answer(talk: Talk, found: Found<CompiledRoute<D>>): Promise<void>;
}

export const makeServer = <D>(
  options: ServeOptions<D> & { readonly finish: Finish },
): Server<D> => {
  const { log, finish, authenticate } = options;
  const respond = makeResponder(options);
  return {
    async answer(talk, found) {
      let outgoing: Reply | Fault;
      try {
        if (found.kind === 'route') {
          talk.asked.longest_ms = found.match.entry.route.longest_ms;
          outgoing = await respond(talk, found.match);
        } else {
          const allow = found.kind === 'wrong_method' ? found.allow : null;
          outgoing = await respondUnrouted(talk, allow, authenticate);
        }
      } catch (error) {
        options.onThrown?.(error);
        outgoing = refuseThrown(error, talk, log);
      }
      try {
        finish(talk, outgoing);
      } catch (error) {
        const { request_id } = talk;
        log.error({ request_id, ...describeError(error) }, 'http: answer failed');
        finish({ ...talk, headers: [] }, refuse(common_faults.INTERNAL));
      }
    },
  };
};
