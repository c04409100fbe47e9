import { setTimeout as wait } from 'node:timers/promises';
import type { Sql } from '../../db/client.js';
import { makeAddressReader } from '../../http/call.js';
import type { Caller } from '../../http/caller.js';
import { type Credentials, no_credentials } from '../../http/credentials.js';
import type { Deps } from '../../http/deps.js';
import type { TemplatedApp } from '../../http/uws.js';
import { makeLoop } from '../../kit/loop.js';
import { type Service, withDeadline } from '../../kit/service.js';
import { close_codes, type TopicRef } from '../../socket/frames.js';
import { mountHub } from '../../socket/hub.js';
import type { Recent } from '../../socket/recent.js';
import type { HubOptions, LogSource } from '../../socket/session.js';
import type { Taxonomy } from '../taxonomy/index.js';
import type { Pillar } from '../taxonomy/rules.js';
import { readFilter, refuseUnknown } from './filter.js';
import { countMatching, nthNewest, readMatching, readNewest } from './matching-store.js';
import { findNarrowing, findPlacing } from './narrowing.js';
import { type Revoked, readRevocations } from './revocations-store.js';
import { defaultTopics, PublishedEvent, resolveTopic } from './topics.js';

/** The log at `/ws`: decides which events a socket gets and which requests it may make. */

/** Returns the `GET /api/events` address from which a client can read the events that it missed. */
const backfill = ({ label, filter }: TopicRef, after: number): string => {
  const query = new URLSearchParams({ topic: label, after: String(after) });
  for (const [name, wanted] of Object.entries(filter?.shown ?? {})) query.set(name, String(wanted));
  return `/api/events?${query}`;
};

/** A token is an agent's API key or a person's session. Keys are recognized by their prefix. */
const readToken = (token: string): Credentials =>
  token.startsWith('sk_')
    ? { ...no_credentials, api_key: token }
    : { ...no_credentials, authorization: `Bearer ${token}` };

type Passed =
  | 'node'
  | 'log'
  | 'authenticate'
  | 'admit'
  | 'ops'
  | 'connections'
  | 'limits'
  | 'states'
  | 'digestAt'
  | 'origin';

interface SocketsOptions extends Pick<HubOptions, Passed> {
  readonly sql: Sql;
  /** The taxonomy must be loaded before the sockets start. */
  readonly taxonomy: Pick<Taxonomy, 'latest'>;
  readonly trusted_proxies: readonly string[];
  /** Offset of the newest event. Read once, when the sockets start. */
  readonly head: () => number;
  readonly oldest: () => number;
  /** The newest events. All event streams and long polls of the process share them. */
  readonly recent: Recent<PublishedEvent>;
}

const endings = [
  { ended: 'revoked', code: close_codes.UNAUTHENTICATED, reason: 'credential revoked' },
  { ended: 'suspended', code: close_codes.FORBIDDEN, reason: 'account suspended' },
] as const;

const frame_members = ['op', 'id', 'topics', 'after', 'last', 'filter'];

/**
 * Reads the filter of a subscribe frame. Refuses unknown members that look like a filter or a
 * position.
 */
const readFrameFilter = (frame: { readonly filter?: unknown }, pillars: readonly Pillar[]) => {
  const unknown = [
    ...findNarrowing(frame, frame_members),
    ...findPlacing(frame, frame_members),
  ].map((path) => ({ path, message: 'is not known here: use topics, filter, after or last' }));
  const refused = refuseUnknown('frame', unknown);
  if (refused !== null) return refused;
  if (frame.filter === undefined) return null;
  return readFilter(frame.filter, { pillars, path: 'filter' });
};

/** Mounts `/ws`. Start it after the follower and before the server listens. */
export const mountSockets = (app: TemplatedApp, options: SocketsOptions) => {
  const { sql, taxonomy, trusted_proxies, head, oldest, ...passed } = options;
  const source: LogSource = {
    oldest,
    count: (refs, span) => countMatching(sql, refs, span),
    read: async (refs, span) =>
      (await readMatching(sql, refs, span)).map((entry) => new PublishedEvent(entry)),
    nthNewest: (refs, span) => nthNewest(sql, refs, span),
    newest: (refs, span) => readNewest(sql, refs, span),
  };
  const hub = mountHub(app, {
    ...passed,
    path: '/ws',
    readAddress: makeAddressReader(trusted_proxies),
    readToken,
    resolveTopic: (label, caller) => resolveTopic(label, caller, taxonomy.latest()),
    readFilter: (frame) => readFrameFilter(frame, taxonomy.latest()),
    defaultTopics,
    source,
    backfill,
  });
  return {
    name: 'sockets',
    hub,
    onEvents: (batch: readonly PublishedEvent[]): void => hub.publish(batch),
    onRevoked(revoked: Revoked): void {
      for (const { ended, code, reason } of endings) {
        const matches = (_: Caller, credential: string | null): boolean =>
          credential !== null && revoked.get(credential) === ended;
        hub.closeWhere({ matches, code, reason });
      }
    },
    async start(): Promise<void> {
      hub.begin(head());
    },
    async stop(): Promise<void> {
      await hub.drain();
      // Gives clients time to answer the close frames before their connections are cut.
      await wait(50);
      hub.close();
    },
  };
};

export interface RevocationListeners {
  /** Called several times for each revocation. */
  readonly onRevoked: (revoked: Revoked) => void;
  /**
   * Called with the digests of credentials that became invalid or changed in the last seconds, or
   * with null if some may have been missed. At `asked_ms`, no other credential had changed.
   */
  readonly onRead: (digests: ReadonlySet<string> | null, asked_ms: number) => void;
}

/** After a longer gap between two readings, some rows may already be too old to be read. */
const max_gap_ms = 5_000;

/**
 * Checks twice a second which credentials are no longer valid. Within a second, every api process
 * closes the sockets, streams and waits that used them, and drops the callers that it cached for
 * them.
 */
export const createRevocationWatch = (
  { sql, log }: Pick<Deps, 'sql' | 'log'>,
  { onRevoked, onRead }: RevocationListeners,
): Service => {
  let read_ms = Number.NEGATIVE_INFINITY;
  return makeLoop({
    name: 'revocations',
    log,
    every_ms: 500,
    async turn() {
      const asked_ms = performance.now();
      const reading = readRevocations(sql);
      const { revoked, changed } = await withDeadline(reading, 10_000, 'Reading revocations');
      onRead(asked_ms - read_ms > max_gap_ms ? null : changed, asked_ms);
      read_ms = asked_ms;
      if (revoked.size > 0) onRevoked(revoked);
      return 'rest';
    },
  });
};
