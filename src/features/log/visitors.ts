import type { Logger } from 'pino';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { readAddressText } from '../../kit/http/address.js';
import { type Caller, callerKey } from '../../kit/http/caller.js';
import type { Credentials } from '../../kit/http/credentials.js';
import { describeError } from '../../kit/log.js';
import { ws_faults } from '../../kit/ws/frames.js';
import { default_limits } from '../../kit/ws/options.js';

/**
 * Connections that stay open: how many one caller and one address may have, and that a key which
 * no longer holds ends those that were opened with it. A person has nothing of its own in the log,
 * so only keys are looked after.
 */

export interface Visitor {
  readonly caller: Caller;
  /** Text of the address. */
  readonly ip: string;
  readonly api_key: string;
  /** Its key no longer holds. */
  readonly onRevoked: (fault: Fault) => void;
}

export interface Visitors {
  /** Lets one in; what it returns lets it go again. */
  enter(visitor: Visitor): (() => void) | Fault;
  /** Something about this agent changed. */
  onPurge(agent_id: string): void;
  count(): number;
  stop(): void;
}

export interface VisitorOptions {
  readonly log: Logger;
  readonly authenticate: (credentials: Credentials) => Caller | Fault | Promise<Caller | Fault>;
  /** True while `onPurge` is sure to be called for every agent that changes. */
  readonly purges_trusted: () => boolean;
  readonly per_key?: number;
  readonly per_address?: number;
}

const check_every_ms = 700;
const check_anyway_ms = 10_000;

/** Counts by name, up to a most. */
const makeCounts = () => {
  const counts = new Map<string, number>();
  return {
    of: (name: string): number => counts.get(name) ?? 0,
    add(name: string, change: 1 | -1): void {
      const count = (counts.get(name) ?? 0) + change;
      if (count > 0) counts.set(name, count);
      else counts.delete(name);
    },
  };
};

export const createVisitors = (options: VisitorOptions): Visitors => {
  const { log, authenticate, purges_trusted } = options;
  const { per_key = default_limits.connections_key } = options;
  const { per_address = default_limits.connections_ip } = options;
  const inside = new Set<Visitor>();
  const by_key = makeCounts();
  const by_address = makeCounts();
  let checked_ms = performance.now();

  const check = async ({ api_key, caller, onRevoked }: Visitor): Promise<void> => {
    try {
      const who = await authenticate({ api_key, authorization: '', admin_key: '' });
      if (isFault(who)) onRevoked(who);
      else if (callerKey(who) !== callerKey(caller))
        onRevoked(refuse(common_faults.INVALID_API_KEY));
    } catch (error) {
      // Postgres away: nothing can have been revoked either.
      log.debug(describeError(error), 'log: could not check a key');
    }
  };
  const checkAll = (matches: (visitor: Visitor) => boolean): void => {
    for (const visitor of inside) {
      if (visitor.caller.kind === 'agent' && matches(visitor)) check(visitor);
    }
  };
  const timer = setInterval(() => {
    const now_ms = performance.now();
    if (purges_trusted() && now_ms - checked_ms < check_anyway_ms) return;
    checked_ms = now_ms;
    checkAll(() => true);
  }, check_every_ms);
  timer.unref();

  return {
    enter(visitor) {
      const address = readAddressText(visitor.ip).limit_key;
      const key = callerKey(visitor.caller);
      const key_is_full = key !== null && by_key.of(key) >= per_key;
      if (key_is_full || by_address.of(address) >= per_address) {
        const message = 'There are too many connections that wait for events; close one first.';
        return refuse(ws_faults.TOO_MANY_CONNECTIONS, { message, headers: { 'Retry-After': '5' } });
      }
      inside.add(visitor);
      by_address.add(address, 1);
      if (key !== null) by_key.add(key, 1);
      return () => {
        if (!inside.delete(visitor)) return;
        by_address.add(address, -1);
        if (key !== null) by_key.add(key, -1);
      };
    },
    onPurge(agent_id) {
      const isOfAgent = ({ caller }: Visitor): boolean => callerKey(caller) === agent_id;
      checkAll(isOfAgent);
      // Once more for one that was being let in by what was true before.
      setTimeout(() => checkAll(isOfAgent), check_every_ms).unref();
    },
    count: () => inside.size,
    stop: () => clearInterval(timer),
  };
};
