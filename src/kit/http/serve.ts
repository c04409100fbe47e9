import type { Logger } from 'pino';
import { common_faults, type Fault, isFault, refuse } from '../fault.js';
import type { Keeper } from '../idempotency.js';
import type { Limiter, Taken, Window } from '../limits.js';
import { describeError } from '../log.js';
import type { Address } from './address.js';
import {
  applyLimits,
  type Finish,
  makeAnswerChecker,
  refuseThrown,
  showGivenBack,
  withEtag,
} from './answer.js';
import { BodyStream } from './body-stream.js';
import { admit, type CompiledRoute, makeCall } from './call.js';
import { anonymous, type Caller, isAdmin } from './caller.js';
import { type Credentials, chooseCredentials } from './credentials.js';
import { key_header, makeKeeping } from './keeping.js';
import type { ResponseCache } from './response-cache.js';
import type { Answer, Reply, Route } from './route.js';
import type { Found, Match } from './router.js';
import type { Asked, BodyRead, Talk } from './talk.js';

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
    const not_admitted = admit(route as Route, caller, link_url());
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
