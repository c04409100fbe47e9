import { readFileSync } from 'node:fs';
import type { Config } from '../../config.js';
import {
  isPortOpenAt,
  makeAddressRules,
  makeResolve,
  type Resolve,
  type Vetted,
  vetName,
} from './addresses.js';
import {
  type Answered,
  type Call,
  type CallErrorCode,
  type ClientLimits,
  client_limits,
  failedAs,
  makeConnections,
} from './connection.js';
import { parseTarget, type Target, type TargetProblemCode } from './target.js';

/**
 * An HTTP client for addresses that strangers chose. Each call parses the address by fixed rules,
 * looks the name up itself and refuses it if any answer is not public. It connects only to the
 * vetted addresses, follows no redirect, uses no proxy from the environment, reads a few KB of the
 * response and ends within one time limit. It never throws: each failure is a code.
 */

/** True if the target itself breaks the rules. Any other failure may be temporary. */
export const isRefusal = (code: CallErrorCode | TargetProblemCode | null): boolean =>
  code === 'invalid_url' ||
  code === 'https_required' ||
  code === 'target_refused' ||
  code === 'address_refused';

export interface Outcome extends Answered {
  readonly latency_ms: number;
  /**
   * True if the call failed without a status long after its deadline. Then this process was
   * stalled, and may have missed a status.
   */
  readonly stood_still: boolean;
}

export interface ClientOptions {
  /** Ranges that may be reached although they are not public. A URL may contain such an address. */
  readonly allow_cidrs: readonly string[];
  readonly ca_pem?: string;
  /** Allows http as well as https. */
  readonly allow_plain?: boolean;
  readonly limits?: Partial<ClientLimits>;
  /** Name servers, `address` or `address:port`. If absent or empty, the system's are used. */
  readonly dns_servers?: readonly string[];
  /** Replaces the name servers. Its answers are vetted too. */
  readonly resolve?: Resolve;
}

/** Returns the client options for calls to addresses that strangers chose. */
export const outboundOptions = (config: Config): ClientOptions => ({
  allow_cidrs: config.WEBHOOK_ALLOW_CIDRS,
  dns_servers: config.WEBHOOK_DNS_SERVERS,
  ...(config.WEBHOOK_CA_FILE === undefined
    ? {}
    : { ca_pem: readFileSync(config.WEBHOOK_CA_FILE, 'utf8') }),
});

/** If a name has more addresses than this, the others are not tried. */
const max_addresses = 3;

export type GuardedClient = ReturnType<typeof createGuardedClient>;

export const createGuardedClient = (options: ClientOptions) => {
  const limits: ClientLimits = { ...client_limits, ...options.limits };
  const rules = makeAddressRules(options.allow_cidrs);
  const resolve = options.resolve ?? makeResolve(limits.lookup_ms, options.dns_servers ?? []);
  const connections = makeConnections(limits, options.ca_pem);

  /**
   * Looks up the target's name and judges every address. An IP literal in the URL is judged like
   * the only answer of a lookup.
   */
  const vet = async ({ name, is_literal, port }: Target): Promise<Vetted> => {
    const lookUp: Resolve = is_literal ? async () => [name] : resolve;
    const vetted = await vetName(name, { rules, resolve: lookUp, timeout_ms: limits.lookup_ms });
    if (vetted.kind === 'refused') return vetted;
    return vetted.addresses.every((address) => isPortOpenAt(address, port))
      ? vetted
      : { kind: 'refused', code: 'address_refused' };
  };

  /** Tries the vetted addresses in turn until one connects. All tries share `connect_ms`. */
  const sendInTurn = async (
    call: Call,
    addresses: readonly string[],
    ends_ms: number,
  ): Promise<Answered> => {
    const tried = addresses.slice(0, max_addresses);
    const connect_ms = limits.connect_ms / tried.length;
    let last = failedAs('connect_failed');
    for (const address of tried) {
      if (performance.now() >= ends_ms) return failedAs('timeout');
      last = await connections.exchange(call, { address, ends_ms, connect_ms });
      if (last.error !== 'connect_failed' && last.error !== 'connect_timeout') return last;
    }
    return last;
  };

  /** Vets the target and sends the call, twice if a reused connection breaks. */
  const send = async (call: Call): Promise<Outcome> => {
    const started_ms = performance.now();
    const ends_ms = started_ms + (call.wall_ms ?? limits.wall_ms);
    const vetted = await vet(call.target);
    const answered =
      vetted.kind === 'refused'
        ? failedAs(vetted.code)
        : await sendInTurn(call, vetted.addresses, ends_ms);
    const now_ms = performance.now();
    const stood_still =
      answered.status === null && answered.error !== null && now_ms > ends_ms + 1_000;
    return { ...answered, stood_still, latency_ms: Math.round(now_ms - started_ms) };
  };

  return {
    parse: (url: string) => parseTarget(url, rules, options.allow_plain),
    vet,
    post: send,
    /** Sends a call that changes nothing at the receiver. */
    look: (call: Call & { readonly method: 'HEAD' | 'GET' }) => send(call),
    /** Closes the connections. */
    close: () => connections.destroy(),
  };
};
