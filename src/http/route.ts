import type { Static, TObject, TSchema } from '@sinclair/typebox';
import type { Sql, Tx } from '../db/client.js';
import { type Fault, type FaultDef, isFault } from '../kit/fault.js';
import { sha256 } from '../kit/ids.js';
import { BodyStream, type StreamParts } from './body.js';
import { type Refusals, type Request, readTrace, requestId } from './call.js';
import { anonymous, type Caller } from './caller.js';
import type { Deprecation } from './deprecation.js';

/**
 * A route is one value. From it come the handler's types, the compiled validator, the OpenAPI
 * operation, the API reference, the tests of every route with every kind of caller, and the check
 * that every real answer matches `returns`. Handlers take the process's `deps` as an argument, so a
 * route value can be imported and read without starting anything.
 */

/**
 * The callers that are admitted. `linked`: an agent linked to a verified human. `member`: a linked
 * agent or a verified human. `either`: any agent or human. `admin`: everybody else sees 404.
 */
export type Auth = 'public' | 'agent' | 'linked' | 'human' | 'either' | 'member' | 'admin';

export type Method = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

export interface Reply {
  readonly kind: 'reply';
  readonly status: number;
  /** Objects are sent as JSON. Text, bytes and streams need a `content_type`. */
  readonly body: unknown;
  readonly content_type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The ETag of the body, if it is known already. Otherwise it is made from the body. */
  readonly etag?: string;
}

export type Answer = Reply | Fault;

type StaticOf<S> = S extends TSchema ? Static<S> : Record<string, never>;
type StaticBody<S> = S extends TSchema ? Static<S> : undefined;

/** The right to carry out a call with an Idempotency-Key, held by one request at a time. */
export interface Claim {
  readonly scope: string;
  readonly key: string;
  readonly lease_id: string;
  /** Seals the answer for storage: it may contain a secret that is shown only once. */
  seal(answer: Answer): Buffer;
  /** See `storeInTransaction`. */
  store(tx: Tx, answer: Answer): Promise<void>;
  /** The answer that a transaction stored, or null. */
  stored: Answer | null;
}

/** A call in progress: the request, its validated parts and its caller. */
export class Context<P = unknown, Q = unknown, B = unknown, C extends Caller = Caller> {
  readonly request: Request;
  readonly request_id: string;
  /** The request id and the trace ids, for log lines. */
  readonly log_ids: Readonly<Record<string, string>>;
  params = {} as P;
  query = {} as Q;
  body = undefined as B;
  caller = anonymous as C;
  /** The claim of a call with an Idempotency-Key, for `storeInTransaction` in a group commit. */
  claim: Claim | null = null;
  /** Headers of the answer so far. */
  readonly headers: [name: string, value: string][] = [];

  constructor(request: Request) {
    this.request = request;
    this.request_id = requestId(request.header('x-request-id'));
    this.log_ids = { request_id: this.request_id, ...readTrace(request.header('traceparent')) };
  }

  get ip(): string {
    return this.request.address.text;
  }

  /** SHA-256 (hex) of the raw body; empty if there is no body. */
  get body_digest(): string {
    const { raw_body } = this.request;
    return raw_body.length === 0 ? '' : sha256(raw_body, 'hex');
  }

  /** Returns a header by its lower-case name, or an empty string. */
  header(name: string): string {
    return this.request.header(name);
  }

  /** Calls `listener` once if the client goes away before it has its answer. */
  onGone(listener: () => void): void {
    this.request.onGone?.(listener);
  }

  /**
   * Stores the answer under the call's Idempotency-Key in the transaction of its effect. Does
   * nothing without a key. Make it the last statement, so that other calls do not wait for long.
   */
  async storeAnswer(tx: Tx, answer: Answer): Promise<void> {
    await this.claim?.store(tx, answer);
  }

  /**
   * Does the work of a call in one transaction and stores the answer there. If the answer is a
   * refusal that must be stored, it is stored later, as for calls without a transaction.
   */
  write(sql: Sql, work: (tx: Tx) => Promise<Answer>): Promise<Answer> {
    return sql.begin(async (tx) => {
      const answer = await work(tx);
      if (!isFault(answer)) await this.storeAnswer(tx, answer);
      return answer;
    });
  }
}

/**
 * When a POST or PATCH route stores the answer to a call with an Idempotency-Key. `inside`: in the
 * transaction of its effect, by `ctx.storeAnswer` or `storeInTransaction`. `after`: when the
 * handler has returned, for calls without an effect or with the same effect each time. `never`: the
 * call is a read, so a key makes no difference.
 */
type StoresAnswer = 'inside' | 'after' | 'never';

/** Returns true if the route honours an `Idempotency-Key`. */
export const takesKey = ({
  method,
  stores_answer,
}: Pick<Route, 'method' | 'stores_answer'>): boolean =>
  stores_answer !== 'never' && (method === 'POST' || method === 'PATCH');

type CallerOf<A extends Auth> = A extends 'agent' | 'linked'
  ? Extract<Caller, { kind: 'agent' }>
  : A extends 'human'
    ? Extract<Caller, { kind: 'human' }>
    : A extends 'either' | 'member'
      ? Extract<Caller, { kind: 'agent' | 'human' }>
      : Caller;

export interface CacheRule<P> {
  /** Returns the tag that invalidates a cached response: a question's id, or the tag of lists. */
  readonly tag: (params: P) => string;
}

/** A route without the types of its schemas, for `mount` and OpenAPI. */
export interface Route<D = never> {
  /** Unique, lowerCamelCase: the OpenAPI `operationId`. */
  readonly id: string;
  readonly method: Method;
  /** With parameters in braces: `/api/questions/{id}`. */
  readonly path: string;
  readonly summary: string;
  /** The feature. It is also the tag in the OpenAPI document. */
  readonly tag: string;
  readonly auth: Auth;
  /** Names of rate limits for this call, in addition to the limits that count every call. */
  readonly limits: readonly string[];
  /** True: no limit counts the call. A page with a refusal still needs its style and scripts. */
  readonly is_unlimited: boolean;
  readonly params: TObject | undefined;
  /** The refusal if a parameter cannot name anything, such as an id that is not a UUID. */
  readonly absent: FaultDef | undefined;
  readonly query: TObject | undefined;
  readonly body: TSchema | undefined;
  /** The schema of each success status; `null` means no body. */
  readonly returns: Readonly<Record<number, TSchema | null>>;
  /** Largest body in bytes, if not the usual 64 KiB. */
  readonly body_limit: number | undefined;
  /** Maximum time for the answer, if longer than the usual deadline. */
  readonly longest_ms: number | undefined;
  /** True: the call waits for something to happen, so it does not count as an open write. */
  readonly waits: boolean;
  /** True: the answer is a stream that ends when the client goes away; see `replyStream`. */
  readonly is_endless: boolean;
  /** True: the answer has an ETag, and If-None-Match is honoured. */
  readonly cacheable: boolean;
  /** Set if the response cache stores the answer for anonymous callers. */
  readonly cache: CacheRule<never> | undefined;
  /** Media type of the success answer, if not JSON. */
  readonly produces: string | undefined;
  /** Other media types of the answer, chosen by `Accept` or a parameter. */
  readonly also_produces: readonly string[];
  readonly faults: readonly FaultDef[];
  /** Set if refusals do not have the usual form of the API. */
  readonly refusals: Refusals | undefined;
  /** True: a key in the query is not refused, because old clients of this address send it there. */
  readonly allows_key_in_query: boolean;
  /** Only POST and PATCH routes store answers. */
  readonly stores_answer: StoresAnswer;
  /** True: the call makes its own credentials invalid. A repeat is recognised by them. */
  readonly ends_credentials: boolean;
  /**
   * True: an agent key may come together with the Bearer token. The token names the caller, the key
   * is the subject of the call, and the body may be left out.
   */
  readonly takes_key: boolean;
  /**
   * True: a page for people. Only the session cookie identifies the caller. A body must be a form,
   * and is refused if it comes from another site.
   */
  readonly is_page: boolean;
  /** True: an agent key may come as a Bearer token, as clients of other protocols send it. */
  readonly takes_key_as_token: boolean;
  /** Set if the route is deprecated. The headers of its answers and the documents then say so. */
  readonly deprecated: Deprecation | undefined;
  /** False for development pages: the OpenAPI document and the tables leave the route out. */
  readonly documented: boolean;
  handle(ctx: Context, deps: D): Answer | Promise<Answer>;
}

const defaults = {
  limits: [],
  is_unlimited: false,
  params: undefined,
  absent: undefined,
  query: undefined,
  body: undefined,
  body_limit: undefined,
  longest_ms: undefined,
  waits: false,
  is_endless: false,
  cacheable: false,
  cache: undefined,
  produces: undefined,
  also_produces: [],
  faults: [],
  refusals: undefined,
  allows_key_in_query: false,
  stores_answer: 'after',
  ends_credentials: false,
  takes_key: false,
  takes_key_as_token: false,
  is_page: false,
  deprecated: undefined,
  documented: true,
} as const;

type Typed = 'auth' | 'params' | 'query' | 'body' | 'cache' | 'handle';
type Optional = Exclude<keyof typeof defaults, Typed>;

type RouteDef<D, A extends Auth, P, Q, B> = Omit<Route, Typed | Optional> &
  Partial<Pick<Route, Optional>> & {
    readonly auth: A;
    readonly params?: P;
    readonly query?: Q;
    readonly body?: B;
    readonly cache?: CacheRule<StaticOf<P>>;
    handle(
      ctx: Context<StaticOf<P>, StaticOf<Q>, StaticBody<B>, CallerOf<A>>,
      deps: D,
    ): Answer | Promise<Answer>;
  };

/**
 * Write `const route = routeFor<Needs>()` once per feature, then `route({...})` for each route. The
 * schemas are inferred. `Needs` has the parts of the process's deps that the handlers use.
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
  ): Route<D> =>
    ({ ...defaults, ...def }) as unknown as Route<D>;

/** Makes a success answer. `body` is undefined with status 204. */
export const reply = (
  status: number,
  body: unknown,
  headers?: Readonly<Record<string, string>>,
): Reply => ({ kind: 'reply', status, body, ...(headers === undefined ? {} : { headers }) });

/** A picture that is opened directly can neither load nor run anything. */
export const picture_headers = {
  'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  'Cross-Origin-Resource-Policy': 'cross-origin',
};

/** Makes a success answer whose body is not JSON, such as a page, a feed or a picture. */
export const replyRaw = (
  content_type: string,
  body: string | Uint8Array | BodyStream,
  headers?: Readonly<Record<string, string>>,
): Reply => ({ ...reply(200, body, headers), content_type });

/** Makes a success answer piece by piece, at the pace of its reader and in constant memory. */
export const replyStream = (
  content_type: string,
  parts: StreamParts,
  headers?: Readonly<Record<string, string>>,
): Reply => replyRaw(content_type, new BodyStream(parts), headers);

/**
 * Finds the route of a path. The same router serves HTTP and calls over the websocket, so that a
 * path means the same in both. Static segments win over parameters, a trailing slash is ignored,
 * and parameters are percent-decoded.
 */

export type Found<T> =
  | { readonly kind: 'route'; readonly entry: T; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: 'wrong_method'; readonly allow: readonly string[] }
  | { readonly kind: 'nothing' };

interface Node<T> {
  /** The child nodes, by segment. The child for a parameter has the key `any`. */
  readonly next: Map<string, Node<T>>;
  readonly entries: Map<Method, { readonly params: readonly Param[]; readonly entry: T }>;
}

interface Param {
  readonly name: string;
  /** Index of the parameter's segment in the path. */
  readonly at: number;
}

/** The key of a parameter's node. It contains a slash, so no segment can be equal to it. */
const any = '/';

const makeNode = <T>(): Node<T> => ({ next: new Map(), entries: new Map() });

const walk = <T>(node: Node<T>, segments: readonly string[], at: number): Node<T> | undefined => {
  const segment = segments[at];
  if (segment === undefined) return node.entries.size > 0 ? node : undefined;
  const direct = node.next.get(segment);
  const found = direct && walk(direct, segments, at + 1);
  const param = segment === '' ? undefined : node.next.get(any);
  return found ?? (param && walk(param, segments, at + 1));
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
) => {
  const root = makeNode<T>();
  for (const { route, entry } of entries) {
    const { method, path } = route;
    const params: Param[] = [];
    let node = root;
    for (const [at, segment] of path.split('/').slice(1).entries()) {
      const is_param = segment.startsWith('{');
      if (is_param) params.push({ at, name: segment.slice(1, -1) });
      const key = is_param ? any : segment;
      const next = node.next.get(key) ?? makeNode();
      node.next.set(key, next);
      node = next;
    }
    if (node.entries.has(method)) throw new Error(`two routes for ${method} ${path}`);
    node.entries.set(method, { params, entry });
  }
  return {
    find(method: string, path: string): Found<T> {
      const segments = path.split('/').slice(1);
      if (segments.length > 1 && segments.at(-1) === '') segments.pop();
      const node = walk(root, segments, 0);
      if (node === undefined) return { kind: 'nothing' };
      const hit = node.entries.get((method === 'HEAD' ? 'GET' : method) as Method);
      if (hit === undefined) {
        const allow: string[] = [...node.entries.keys()];
        if (allow.includes('GET')) allow.push('HEAD');
        return { kind: 'wrong_method', allow: [...allow, 'OPTIONS'] };
      }
      const params: Record<string, string> = {};
      for (const { name, at } of hit.params) {
        const value = decode(segments[at] as string);
        if (value === null || value.includes('\0')) return { kind: 'nothing' };
        params[name] = value;
      }
      return { kind: 'route', entry: hit.entry, params };
    },
  };
};
