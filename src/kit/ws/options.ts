import type { Logger } from 'pino';
import type { Fault } from '../fault.js';
import type { Credentials } from '../http/pipeline.js';
import type { Address, AddressReader } from '../http/request.js';
import type { Caller } from '../http/route.js';
import type { Filter, Publication, TopicRef } from './frames.js';
import type { Ops } from './ops.js';
import type { Recent } from './recent.js';
import type { Seats } from './seats.js';
import type { StateSource } from './states.js';

/** What a hub is told by the feature that mounts it. */

export interface HubLimits {
  readonly frames_per_s: number;
  readonly frames_burst: number;
  readonly frame_bytes: number;
  /** Calls of one socket that may wait for their answers. */
  readonly calls: number;
  /** Topics of all sockets of a caller, and of one socket without a credential. */
  readonly topics: number;
  readonly topics_anonymous: number;
  /** Different filters on one topic, in this process. */
  readonly filters: number;
  /** Sockets of a caller and of an address, as `seats` counts them. */
  readonly connections_key: number;
  readonly connections_ip: number;
  readonly lifetime_ms: number;
  /** A socket without a credential must send a first frame within this time. */
  readonly hello_ms: number;
  readonly tick_ms: number;
  /** Shortest time between two states of one topic. */
  readonly state_gap_ms: number;
  /** Unread bytes of one socket above which messages are dropped. */
  readonly backpressure_bytes: number;
  /** The same of all sockets of this process: above it each of them may leave little unread. */
  readonly unread_bytes: number;
  /** How long a socket may leave what was sent unread before it is cut. */
  readonly unread_ms: number;
  /** Events that one subscribe frame may have replayed, and how far back it may look. */
  readonly replay_events: number;
  readonly replay_span: number;
  /** Longest that a replay may take; a client that reads slower than the log grows never ends. */
  readonly replay_ms: number;
  /** How long to wait for an offset that the client has seen and this process has not. */
  readonly ahead_ms: number;
  /** Closing all sockets takes this long at most. */
  readonly drain_ms: number;
}

export const default_limits: HubLimits = {
  frames_per_s: 20,
  frames_burst: 100,
  frame_bytes: 16_384,
  calls: 64,
  topics: 1_000,
  topics_anonymous: 20,
  filters: 1_000,
  connections_key: 20,
  connections_ip: 200,
  lifetime_ms: 4 * 3_600_000,
  hello_ms: 5_000,
  tick_ms: 15_000,
  state_gap_ms: 250,
  backpressure_bytes: 262_144,
  unread_bytes: 134_217_728,
  unread_ms: 10_000,
  replay_events: 10_000,
  replay_span: 100_000,
  replay_ms: 60_000,
  ahead_ms: 5_000,
  drain_ms: 5_000,
};

export interface LogSpan {
  /** Exclusive. */
  readonly after: number;
  /** Inclusive. */
  readonly until: number;
  readonly limit: number;
}

/** The record behind the sockets, for replays. May throw while its store is away. */
export interface LogSource {
  /** Publications of the span that any of the topics lets pass, in order, at most `limit`. */
  read(refs: readonly TopicRef[], span: LogSpan): Promise<readonly Publication[]>;
  /** How many `read` would find, counted no further than `limit`. */
  count(refs: readonly TopicRef[], span: LogSpan): Promise<number>;
  /** The offset of the `limit`-th newest that `read` would find; null when there are fewer. */
  nthNewest(refs: readonly TopicRef[], span: LogSpan): Promise<number | null>;
  /** The offset of the newest of each topic, by `keyOf`; one without events is left out. */
  newest(
    refs: readonly TopicRef[],
    span: Pick<LogSpan, 'after' | 'until'>,
  ): Promise<ReadonlyMap<string, number>>;
  /** The oldest offset still kept. */
  oldest(): number;
}

export interface HubOptions {
  readonly path: string;
  readonly node: string;
  readonly log: Logger;
  readonly limits?: Partial<HubLimits>;
  readonly readAddress: AddressReader;
  /** As for a request; a value of `?token=` arrives as one of the two credentials. */
  readonly authenticate: (credentials: Credentials) => Caller | Fault | Promise<Caller | Fault>;
  /** Splits a `token` into the credential it is. */
  readonly readToken: (token: string) => Credentials;
  /** Counts connections over all processes; without it, those of this one. */
  readonly seats?: Seats;
  /** Whether another connection may be opened at all; without it everybody may. */
  readonly admit?: (address: Address) => Promise<Fault | null>;
  /** The filter that a client asks for; null for one that lets everything pass. */
  readonly readFilter: (given: unknown) => Filter | Fault | null;
  readonly resolveTopic: (label: string, caller: Caller) => TopicRef | Fault;
  /** Topics of a socket with `?token=` that does not subscribe. */
  readonly defaultTopics: (caller: Caller) => readonly TopicRef[];
  readonly source: LogSource;
  /** Where the newest publications are kept; it may be shared. */
  readonly recent: Recent<Publication>;
  /** Topics that are a state; see `states.ts`. */
  readonly states?: readonly StateSource[];
  /** What clients may say beside the ops of every socket; see `ops.ts`. */
  readonly ops?: Ops;
  /** Where a client finds by itself what cannot be replayed. */
  readonly backfill: (ref: TopicRef, after: number) => string;
}
