import { isPortOpenAt, makeAddressRules } from './addresses.js';
import { type Answered, type Call, failedAs, makeConnections } from './connection.js';
import { makeResolve, type Resolve, type Vetted, vetName } from './resolve.js';
import { parseTarget, type Target, type TargetProblem } from './target.js';

/**
 * An HTTP client for addresses that strangers chose. Each call reads the address by fixed rules,
 * looks the name up itself, refuses it when any answer is not public, connects to the address that
 * was vetted and to no other, follows no redirect, uses no proxy from the environment, reads a few
 * KB of the answer and ends within one wall clock. It never throws: what went wrong is one code.
 */

export interface Outcome extends Answered {
  readonly latency_ms: number;
}

export interface ClientLimits {
  /** Over lookup, connect, handshake, headers and body. */
  readonly wall_ms: number;
  readonly connect_ms: number;
  readonly lookup_ms: number;
  /** How much of an answer is read before the connection is destroyed. */
  readonly answer_bytes: number;
  /** How much of that is kept. */
  readonly kept_bytes: number;
  readonly keep_ms: number;
}

export const client_limits: ClientLimits = {
  wall_ms: 10_000,
  connect_ms: 3_000,
  lookup_ms: 2_000,
  answer_bytes: 4_096,
  kept_bytes: 1_024,
  keep_ms: 15_000,
};

export interface ClientOptions {
  /** Ranges that may be reached although they are not public; IP literals inside them too. */
  readonly allow_cidrs: readonly string[];
  readonly ca_pem?: string;
  /** http as well as https. */
  readonly allow_plain?: boolean;
  readonly limits?: Partial<ClientLimits>;
  /** Name servers, `address` or `address:port`; those of the system when absent or empty. */
  readonly dns_servers?: readonly string[];
  /** Another source of addresses; what it says is vetted like any answer. */
  readonly resolve?: Resolve;
}

export interface GuardedClient {
  parse(url: string): Target | TargetProblem;
  /** Looks the target's name up and judges every address. */
  vet(target: Target): Promise<Vetted>;
  /** Vets and calls. The same call may reach the receiver twice when a kept connection breaks. */
  post(call: Call): Promise<Outcome>;
  /** A call that changes nothing at its target. */
  look(call: Call & { readonly method: 'HEAD' | 'GET' }): Promise<Outcome>;
  /** Lets go of kept connections. */
  close(): void;
}

/** A name with more addresses is tried at this many of them. */
const most_addresses = 3;

export const createGuardedClient = (options: ClientOptions): GuardedClient => {
  const limits: ClientLimits = { ...client_limits, ...options.limits };
  const rules = makeAddressRules(options.allow_cidrs);
  const { dns_servers: servers = [] } = options;
  const resolve = options.resolve ?? makeResolve({ timeout_ms: limits.lookup_ms, servers });
  const connections = makeConnections(limits, options.ca_pem);

  const judgeLiteral = (name: string): Vetted =>
    rules.mayReach(name)
      ? { kind: 'vetted', addresses: [name] }
      : { kind: 'refused', code: 'address_refused' };
  const vet = async (target: Target): Promise<Vetted> => {
    const vetted = target.is_literal
      ? judgeLiteral(target.name)
      : await vetName(target.name, { rules, resolve, timeout_ms: limits.lookup_ms });
    if (vetted.kind === 'refused') return vetted;
    return vetted.addresses.every((address) => isPortOpenAt(address, target.port))
      ? vetted
      : { kind: 'refused', code: 'address_refused' };
  };

  /** Tries the vetted addresses in turn until one is connected to; they share `connect_ms`. */
  const sendInTurn = async (
    call: Call,
    addresses: readonly string[],
    ends_ms: number,
  ): Promise<Answered> => {
    const tried = addresses.slice(0, most_addresses);
    const connect_ms = limits.connect_ms / tried.length;
    let last = failedAs('connect_failed');
    for (const address of tried) {
      if (performance.now() >= ends_ms) return failedAs('timeout');
      last = await connections.exchange(call, { address, ends_ms, connect_ms });
      if (last.error !== 'connect_failed' && last.error !== 'connect_timeout') return last;
    }
    return last;
  };

  const send = async (call: Call): Promise<Outcome> => {
    const started_ms = performance.now();
    const ends_ms = started_ms + (call.wall_ms ?? limits.wall_ms);
    const vetted = await vet(call.target);
    const answered =
      vetted.kind === 'refused'
        ? failedAs(vetted.code)
        : await sendInTurn(call, vetted.addresses, ends_ms);
    return { ...answered, latency_ms: Math.round(performance.now() - started_ms) };
  };

  return {
    parse: (url) => parseTarget(url, rules, options.allow_plain),
    vet,
    post: send,
    look: send,
    close: () => connections.destroy(),
  };
};
