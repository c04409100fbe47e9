import { common_faults, type Fault, refuse } from '../fault.js';
import { sha256 } from '../hash.js';
import { type Claim, keepAll } from '../idempotency.js';
import type { Tx } from '../pg/client.js';
import { type Caller, isAdmin } from './caller.js';
import type { Answer, Context, Route } from './route.js';
import { type Check, compileCheck, compileQuery, type QueryReader, sayFirst } from './validate.js';

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

export interface CallParts {
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

export class Call implements Context {
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
export const admit = (route: Route, caller: Caller, link_url: string): Fault | null => {
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
    return refuse(common_faults.AGENT_NOT_LINKED, {
      message: `Link this agent to a verified human at ${link_url}, then try again.`,
      extra: { link_url },
    });
  }
  return null;
};

/** Checks what was sent; the context for the handler, or the first fault. */
export const makeCall = <D>(compiled: CompiledRoute<D>, parts: CallParts): Call | Fault => {
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
