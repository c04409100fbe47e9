import { setTimeout as wait } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Fault } from '../../kit/fault.js';
import { type Credentials, no_credentials } from '../../kit/http/pipeline.js';
import type { TemplatedApp } from '../../kit/http/request.js';
import { type Address, makeAddressReader } from '../../kit/http/request.js';
import type { Caller } from '../../kit/http/route.js';
import { describeError } from '../../kit/log.js';
import type { Sql } from '../../kit/pg/client.js';
import { type Service, withDeadline } from '../../kit/service.js';
import type { ConnectionCounter } from '../../kit/ws/connections.js';
import { close_codes, type Ops, type TopicRef } from '../../kit/ws/frames.js';
import { type Hub, type HubLimits, type LogSource, mountHub } from '../../kit/ws/hub.js';
import type { Recent } from '../../kit/ws/recent.js';
import type { StateSource } from '../../kit/ws/states.js';
import type { Taxonomy } from '../taxonomy/index.js';
import { readFilter } from './filter.js';
import type { Revoked } from './revocations-store.js';
import { countMatching, nthNewest, readMatching, readNewest, readOldest } from './sockets-store.js';
import { defaultTopics, resolveTopic, Told } from './topics.js';

/** The log at `/ws`: which events go to which sockets, and what they may ask for. */

/** Where `GET /api/events` begins with what a socket did not get. */
const backfill = ({ label, filter }: TopicRef, after: number): string => {
  const query = new URLSearchParams({ topic: label, after: String(after) });
  for (const [name, wanted] of Object.entries(filter?.shown ?? {})) query.set(name, String(wanted));
  return `/api/events?${query}`;
};

/** A token is the key of an agent or the session of a person; keys are known by their beginning. */
const readToken = (token: string): Credentials =>
  token.startsWith('sk_')
    ? { ...no_credentials, api_key: token }
    : { ...no_credentials, authorization: `Bearer ${token}` };

export interface SocketsOptions {
  readonly sql: Sql;
  readonly log: Logger;
  /** Read before the sockets start. */
  readonly taxonomy: Pick<Taxonomy, 'latest'>;
  readonly node: string;
  readonly trusted_proxies: readonly string[];
  readonly authenticate: (credentials: Credentials) => Caller | Fault | Promise<Caller | Fault>;
  /** Whether another connection may be opened at all, as for a request; else everybody may. */
  readonly admit?: (address: Address) => Promise<Fault | null>;
  /** Ops beside those of every socket. */
  readonly ops?: Ops;
  /** Where the log stands at the start; asked once, when the sockets start. */
  readonly head: () => number;
  /** Counts connections over all processes. */
  readonly connections: ConnectionCounter;
  readonly limits?: Partial<HubLimits>;
  /** The newest events, shared with the other doors of the process. */
  readonly recent: Recent<Told>;
  /** Topics that are a state. */
  readonly states?: readonly StateSource[];
}

export interface Sockets extends Service {
  /** Feed this to the follower. */
  onEvents(batch: readonly Told[]): void;
  /** Closes the sockets that were opened with these credentials. */
  onRevoked(revoked: Revoked): void;
  readonly hub: Hub;
}

const oldest_every_ms = 60_000;

const endings = [
  { ended: 'revoked', code: close_codes.UNAUTHENTICATED, reason: 'credential revoked' },
  { ended: 'suspended', code: close_codes.FORBIDDEN, reason: 'account suspended' },
] as const;

/** Mounts `/ws`. Start it after the follower, and before the server listens. */
export const mountSockets = (app: TemplatedApp, options: SocketsOptions): Sockets => {
  const { sql, log, taxonomy } = options;
  let oldest = 1;
  const source: LogSource = {
    oldest: () => oldest,
    count: (refs, span) => countMatching(sql, refs, span),
    read: async (refs, span) =>
      (await readMatching(sql, refs, span)).map((entry) => new Told(entry)),
    nthNewest: (refs, span) => nthNewest(sql, refs, span),
    newest: (refs, span) => readNewest(sql, refs, span),
  };
  const hub = mountHub(app, {
    path: '/ws',
    node: options.node,
    log,
    readAddress: makeAddressReader(options.trusted_proxies),
    authenticate: options.authenticate,
    readToken,
    resolveTopic: (label, caller) => resolveTopic(label, caller, taxonomy.latest()),
    readFilter: (given) => readFilter(given, { pillars: taxonomy.latest(), path: 'filter' }),
    defaultTopics,
    source,
    recent: options.recent,
    backfill,
    ...(options.admit === undefined ? {} : { admit: options.admit }),
    connections: options.connections,
    ...(options.limits === undefined ? {} : { limits: options.limits }),
    ...(options.ops === undefined ? {} : { ops: options.ops }),
    ...(options.states === undefined ? {} : { states: options.states }),
  });
  let timer: NodeJS.Timeout | undefined;

  const refreshOldest = async (): Promise<void> => {
    oldest = await withDeadline(readOldest(sql), 10_000, 'Reading the oldest offset');
  };

  return {
    name: 'sockets',
    hub,
    onEvents: (batch) => hub.publish(batch),
    onRevoked(revoked) {
      for (const { ended, code, reason } of endings) {
        const matches = (_: Caller, credential: string | null): boolean =>
          credential !== null && revoked.get(credential) === ended;
        hub.closeWhere({ matches, code, reason });
      }
    },
    async start() {
      await refreshOldest();
      hub.begin(options.head());
      const keep = (): void => {
        refreshOldest().catch((error) => log.warn(describeError(error), 'sockets: no oldest'));
      };
      timer = setInterval(keep, oldest_every_ms);
      timer.unref();
    },
    async stop() {
      clearInterval(timer);
      await hub.drain();
      // Close frames are on their way; a client that does not answer them is cut.
      await wait(50);
      hub.close();
    },
  };
};
