import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import { readAddressText } from '../../kit/http/request.js';
import { type Caller, callerKey } from '../../kit/http/route.js';
import { makeCounts } from '../../kit/ws/connections.js';
import { ws_faults } from '../../kit/ws/frames.js';
import { default_limits } from '../../kit/ws/hub.js';
import type { Revoked, Told } from '../events/index.js';
import { type StreamLimits, stream_limits } from './stream.js';
import { createLogWatch, type LogWatch, type WatchOptions } from './watch.js';

/** What the routes of the log need: one value for each api process. */
export interface LogDoors {
  readonly watch: LogWatch;
  readonly visitors: Visitors;
  readonly limits: StreamLimits;
  /** After the follower, and before the server listens. */
  start(head: number): Promise<void>;
  /** Feed this to the follower. */
  onEvents(batch: readonly Told[]): void;
  /** Ends every stream and every wait; those that come later end at once. */
  drain(): void;
  isDraining(): boolean;
}

export interface LogParts {
  readonly log_doors: LogDoors;
}

/** A connection that stays open. */
export interface Visitor {
  readonly caller: Caller;
  /** Text of the address. */
  readonly ip: string;
  /** SHA-256 of its key in hex; null without one. A person has nothing of its own in the log. */
  readonly credential: string | null;
  /** Its key no longer holds. */
  readonly onRevoked: (fault: Fault) => void;
}

/** How many one caller and one address may have, and that a key which is revoked ends its own. */
export interface Visitors {
  /** Lets one in; what it returns lets it go again. */
  enter(visitor: Visitor): (() => void) | Fault;
  onRevoked(revoked: Revoked): void;
  count(): number;
}

const createVisitors = (): Visitors => {
  const { connections_key, connections_ip } = default_limits;
  const inside = new Set<Visitor>();
  const by_key = makeCounts();
  const by_address = makeCounts();
  return {
    enter(visitor) {
      const address = readAddressText(visitor.ip).limit_key;
      const key = callerKey(visitor.caller);
      const key_is_full = key !== null && by_key.of(key) >= connections_key;
      if (key_is_full || by_address.of(address) >= connections_ip) {
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
    onRevoked(revoked) {
      for (const { credential, onRevoked } of inside) {
        const ended = credential === null ? undefined : revoked.get(credential);
        if (ended === 'revoked') onRevoked(refuse(common_faults.INVALID_API_KEY));
        if (ended === 'suspended') onRevoked(refuse(common_faults.ACCOUNT_SUSPENDED));
      }
    },
    count: () => inside.size,
  };
};

export type DoorOptions = WatchOptions & { readonly limits?: Partial<StreamLimits> };

const oldest_every_ms = 60_000;

export const createLogDoors = (options: DoorOptions): LogDoors => {
  const watch = createLogWatch(options);
  let timer: NodeJS.Timeout | undefined;
  let draining = false;
  return {
    watch,
    visitors: createVisitors(),
    limits: { ...stream_limits, ...options.limits },
    async start(head) {
      watch.begin(head);
      await watch.refreshOldest();
      timer = setInterval(() => watch.refreshOldest(), oldest_every_ms);
      timer.unref();
    },
    onEvents: (batch) => watch.onEvents(batch),
    drain() {
      draining = true;
      clearInterval(timer);
      watch.end();
    },
    isDraining: () => draining,
  };
};
