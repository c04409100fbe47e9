import type { Static, TObject, TSchema } from '@sinclair/typebox';
import type { Fault, FaultDef } from '../fault.js';
import type { Claim } from '../idempotency.js';
import type { Tx } from '../pg/client.js';
import type { Prepared } from './body.js';
import { BodyStream, type StreamParts } from './body.js';
import type { CacheRule } from './response-cache.js';

/**
 * A route is one value. From it come the handler's types, the compiled validator, the OpenAPI
 * operation, the table of routes, the route × principal test matrix and the check that every real
 * answer matches `returns`. Handlers take the process's `deps` as an argument, so a route
 * value can be imported and read without starting anything.
 */

/**
 * Who may call. `linked`: an agent linked to a verified human. `member`: a linked agent or a human.
 * `either`: any agent or human. `admin`: everybody else sees 404.
 */
export type Auth = 'public' | 'agent' | 'linked' | 'human' | 'either' | 'member' | 'admin';

export type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

export interface Reply {
  readonly kind: 'reply';
  readonly status: number;
  /** An object is sent as JSON; text, bytes, a stream or a `Prepared` with `content_type`. */
  readonly body: unknown;
  readonly content_type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of the body as it stands, where it is known already; else it is made from the body. */
  readonly etag?: string;
}

export type Answer = Reply | Fault;

type StaticOf<S> = S extends TSchema ? Static<S> : Record<string, never>;
type StaticBody<S> = S extends TSchema ? Static<S> : undefined;

export interface Context<P = unknown, Q = unknown, B = unknown, C extends Caller = Caller> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly caller: C;
  readonly request_id: string;
  readonly ip: string;
  /** SHA-256 (hex) of the raw body; empty for a call without one. */
  readonly body_digest: string;
  /** The claim of a call that came with an Idempotency-Key, for `keepAll` in a group commit. */
  readonly claim: Claim | null;
  /** A header by its lower-case name; empty when absent. */
  header(name: string): string;
  /** Calls back, once, when the client goes away before it has its answer. */
  onGone(listener: () => void): void;
  /**
   * Stores the answer under the call's Idempotency-Key in the transaction of its effect; does
   * nothing without a key. The last statement of the transaction, so that nobody waits for long.
   * Not to be destructured.
   */
  keep(tx: Tx, answer: Answer): Promise<void>;
}

/**
 * Where a POST route keeps the answer to a call with an Idempotency-Key. `inside`: in the
 * transaction of its effect, by `ctx.keep` or `keepAll`. `after`: mount stores it when the handler
 * is done; for what has no effect, or has the same one when it is done again.
 */
type Keeps = 'inside' | 'after';

type CallerOf<A extends Auth> = A extends 'agent' | 'linked'
  ? Extract<Caller, { kind: 'agent' }>
  : A extends 'human'
    ? Extract<Caller, { kind: 'human' }>
    : A extends 'either' | 'member'
      ? Extract<Caller, { kind: 'agent' | 'human' }>
      : Caller;

interface RouteDef<
  D,
  A extends Auth,
  P extends TObject | undefined,
  Q extends TObject | undefined,
  B extends TSchema | undefined,
> {
  /** Unique, lowerCamelCase: the OpenAPI `operationId`. */
  readonly id: string;
  readonly method: Method;
  /** With parameters in braces: `/api/questions/{id}`. */
  readonly path: string;
  readonly summary: string;
  /** The feature, as OpenAPI tag. */
  readonly tag: string;
  readonly auth: A;
  /** Names of the rate limits that count this call, beside the ones that count every call. */
  readonly limits?: readonly string[];
  readonly params?: P;
  /** The refusal for parameters that cannot name anything, such as an id that is no UUID. */
  readonly absent?: FaultDef;
  readonly query?: Q;
  readonly body?: B;
  /** What each success status carries; a schema of `null` means no body. */
  readonly returns: Readonly<Record<number, TSchema | null>>;
  /** Largest body in bytes, where it is not the usual 64 KiB. */
  readonly body_limit?: number;
  /** Longest that the answer may take, where that is longer than the usual deadline. */
  readonly longest_ms?: number;
  /** True: the answer is a stream that ends when the client goes; see `replyStream`. */
  readonly is_endless?: boolean;
  /** True: the answer carries an ETag and If-None-Match is honoured. */
  readonly cacheable?: boolean;
  /** A cacheable response that the response cache keeps for anonymous callers. */
  readonly cache?: CacheRule<StaticOf<P>>;
  /** Media type of the success answer where it is not JSON. */
  readonly produces?: string;
  /** Further media types in which it can be had, by `Accept` or a parameter. */
  readonly also_produces?: readonly string[];
  readonly faults?: readonly FaultDef[];
  /** True: a key in the query is not refused; for an address where old clients send it so. */
  readonly allows_key_in_query?: boolean;
  /** POST only; `after` where it is not named. */
  readonly keeps?: Keeps;
  /** True: the call ends the credentials it is made with, and its repeat is known by them. */
  readonly ends_credentials?: boolean;
  /**
   * True: an agent key may come beside the Bearer token. The token says who acts, the key what the
   * call is about, and the body may be left out.
   */
  readonly takes_key?: boolean;
  /** False: left out of the OpenAPI document and the tables (development pages). */
  readonly documented?: boolean;
  handle(
    ctx: Context<StaticOf<P>, StaticOf<Q>, StaticBody<B>, CallerOf<A>>,
    deps: D,
  ): Answer | Promise<Answer>;
}

/** A route with its schemas forgotten: what mount, OpenAPI and the tables work with. */
export interface Route<D = never> {
  readonly id: string;
  readonly method: Method;
  readonly path: string;
  readonly summary: string;
  readonly tag: string;
  readonly auth: Auth;
  readonly limits: readonly string[];
  readonly params: TObject | undefined;
  readonly absent: FaultDef | undefined;
  readonly query: TObject | undefined;
  readonly body: TSchema | undefined;
  readonly returns: Readonly<Record<number, TSchema | null>>;
  readonly body_limit: number | undefined;
  readonly longest_ms: number | undefined;
  readonly is_endless: boolean;
  readonly cacheable: boolean;
  readonly cache: CacheRule<never> | undefined;
  readonly produces: string | undefined;
  readonly also_produces: readonly string[];
  readonly faults: readonly FaultDef[];
  readonly allows_key_in_query: boolean;
  readonly keeps: Keeps;
  readonly ends_credentials: boolean;
  readonly takes_key: boolean;
  readonly documented: boolean;
  handle(ctx: Context, deps: D): Answer | Promise<Answer>;
}

/**
 * `const route = routeFor<Needs>()` once a feature, then `route({...})` for each route: the
 * schemas are inferred, and `Needs` says which parts of the process's deps the handlers use.
 */
export const routeFor =
  <D>() =>
  <
    A extends Auth,
    P extends TObject | undefined = undefined,
    Q extends TObject | undefined = undefined,
    B extends TSchema | undefined = undefined,
  >(
    def: RouteDef<D, A, P, Q, B>,
  ): Route<D> => ({
    id: def.id,
    method: def.method,
    path: def.path,
    summary: def.summary,
    tag: def.tag,
    auth: def.auth,
    limits: def.limits ?? [],
    params: def.params,
    absent: def.absent,
    query: def.query,
    body: def.body,
    returns: def.returns,
    body_limit: def.body_limit,
    longest_ms: def.longest_ms,
    is_endless: def.is_endless ?? false,
    cacheable: def.cacheable ?? false,
    cache: def.cache,
    produces: def.produces,
    also_produces: def.also_produces ?? [],
    faults: def.faults ?? [],
    allows_key_in_query: def.allows_key_in_query ?? false,
    keeps: def.keeps ?? 'after',
    ends_credentials: def.ends_credentials ?? false,
    takes_key: def.takes_key ?? false,
    documented: def.documented ?? true,
    handle: def.handle as unknown as Route<D>['handle'],
  });

/** A success answer; `body` undefined with status 204. */
export const reply = (
  status: number,
  body: unknown,
  headers?: Readonly<Record<string, string>>,
): Reply => ({ kind: 'reply', status, body, ...(headers === undefined ? {} : { headers }) });

/** A success answer that is not made from an object: a page, a feed, a picture. */
export const replyRaw = (
  content_type: string,
  body: string | Uint8Array,
  headers?: Readonly<Record<string, string>>,
): Reply => ({
  kind: 'reply',
  status: 200,
  body,
  content_type,
  ...(headers === undefined ? {} : { headers }),
});

/** A success answer that was made once for everybody; see `Prepared`. */
export const replyPrepared = (
  content_type: string,
  body: Prepared,
  headers: Readonly<Record<string, string>> = {},
): Reply => ({ kind: 'reply', status: 200, body, content_type, headers });

/** A success answer that is made piece by piece, at the pace of its reader and in flat memory. */
export const replyStream = (
  content_type: string,
  parts: StreamParts,
  headers?: Readonly<Record<string, string>>,
): Reply => ({
  kind: 'reply',
  status: 200,
  body: new BodyStream(parts),
  content_type,
  ...(headers === undefined ? {} : { headers }),
});

/** Who makes a call, as far as a route needs to know. Credentials themselves never get this far. */

interface Anonymous {
  readonly kind: 'anonymous';
}

export interface AgentCaller {
  readonly kind: 'agent';
  readonly id: string;
  readonly name: string;
  readonly model: string;
  readonly model_family: string;
  /** The verified human this agent is linked to; null while it is not linked. */
  readonly owner_id: string | null;
}

export interface HumanCaller {
  readonly kind: 'human';
  readonly id: string;
  readonly email_verified: boolean;
  readonly is_admin: boolean;
  /** When the session ends. */
  readonly expires_at: Date;
}

/** Holder of the `ADMIN_KEY`. A human admin stays a `HumanCaller` with `is_admin`. */
interface AdminCaller {
  readonly kind: 'admin';
}

export type Caller = Anonymous | AgentCaller | HumanCaller | AdminCaller;

export const anonymous: Anonymous = { kind: 'anonymous' };

export const isAdmin = (caller: Caller): boolean =>
  caller.kind === 'admin' || (caller.kind === 'human' && caller.is_admin);

/** The name under which limits and logs count this caller; null for nobody in particular. */
export const callerKey = (caller: Caller): string | null =>
  caller.kind === 'agent' || caller.kind === 'human' ? caller.id : null;

/**
 * Finds the route of a path. The same router serves HTTP and calls over the websocket, so that a
 * path means the same at both doors. Static segments win over parameters; a trailing slash is
 * ignored; parameters are percent-decoded.
 */

export interface Match<T> {
  readonly entry: T;
  readonly params: Record<string, string>;
}

export type Found<T> =
  | { readonly kind: 'route'; readonly match: Match<T> }
  | { readonly kind: 'wrong_method'; readonly allow: readonly string[] }
  | { readonly kind: 'bad_path' }
  | { readonly kind: 'nothing' };

interface Node<T> {
  readonly statics: Map<string, Node<T>>;
  param: Node<T> | undefined;
  readonly entries: Map<Method, { readonly names: readonly string[]; readonly entry: T }>;
}

const makeNode = <T>(): Node<T> => ({ statics: new Map(), param: undefined, entries: new Map() });

interface Router<T> {
  find(method: string, path: string): Found<T>;
}

const walk = <T>(
  node: Node<T>,
  segments: readonly string[],
  at: number,
  values: string[],
): Node<T> | undefined => {
  if (at === segments.length) return node.entries.size > 0 ? node : undefined;
  const segment = segments[at] as string;
  const direct = node.statics.get(segment);
  if (direct !== undefined) {
    const found = walk(direct, segments, at + 1, values);
    if (found !== undefined) return found;
  }
  if (node.param === undefined || segment === '') return undefined;
  values.push(segment);
  const found = walk(node.param, segments, at + 1, values);
  if (found === undefined) values.pop();
  return found;
};

const decode = (text: string): string | null => {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
};

export const makeRouter = <T>(
  entries: readonly { readonly route: Pick<Route, 'method' | 'path'>; readonly entry: T }[],
): Router<T> => {
  const root = makeNode<T>();
  for (const { route, entry } of entries) {
    let node = root;
    const names: string[] = [];
    for (const segment of route.path.split('/').slice(1)) {
      if (segment.startsWith('{')) {
        names.push(segment.slice(1, -1));
        node.param ??= makeNode();
        node = node.param;
      } else {
        let next = node.statics.get(segment);
        if (next === undefined) {
          next = makeNode();
          node.statics.set(segment, next);
        }
        node = next;
      }
    }
    if (node.entries.has(route.method))
      throw new Error(`two routes for ${route.method} ${route.path}`);
    node.entries.set(route.method, { names, entry });
  }
  return {
    find(method, path) {
      const segments = path.split('/');
      segments.shift();
      if (segments.length > 1 && segments[segments.length - 1] === '') segments.pop();
      const values: string[] = [];
      const node = walk(root, segments, 0, values);
      if (node === undefined) return { kind: 'nothing' };
      const hit = node.entries.get((method === 'HEAD' ? 'GET' : method) as Method);
      if (hit === undefined) {
        const allow: string[] = [...node.entries.keys()];
        if (allow.includes('GET')) allow.push('HEAD');
        return { kind: 'wrong_method', allow: [...allow, 'OPTIONS'] };
      }
      const params: Record<string, string> = {};
      for (let index = 0; index < values.length; index += 1) {
        const value = decode(values[index] as string);
        if (value === null || value.includes('\0')) return { kind: 'bad_path' };
        params[hit.names[index] as string] = value;
      }
      return { kind: 'route', match: { entry: hit.entry, params } };
    },
  };
};
