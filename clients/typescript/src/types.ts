import type { Fault, Gap } from './errors.js';
import type { Events, Operations } from './wire.js';

/** Types that callers of the library write and receive. */

export type OperationId = keyof Operations;

type Sent<Name extends string, S> = S extends undefined
  ? unknown
  : Record<never, never> extends S
    ? { readonly [K in Name]?: S }
    : { readonly [K in Name]: S };

/** `params`, `query` and `body` of an operation, if it has them. */
export type Input<Id extends OperationId> = Sent<'params', Operations[Id]['params']> &
  Sent<'query', Operations[Id]['query']> &
  Sent<'body', Operations[Id]['body']>;

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** Timeout of one try. */
  readonly timeout_ms?: number;
  /** Timeout of all tries together. */
  readonly patience_ms?: number;
  /** The same key for all tries of a call. Default: a new key for each POST and PATCH. */
  readonly idempotency_key?: string;
}

export type CallArguments<Id extends OperationId> =
  Record<never, never> extends Input<Id>
    ? [input?: Input<Id> & CallOptions]
    : [input: Input<Id> & CallOptions];

/** Returns the answer. Rejects with `Refused`, `NoAnswer` or the reason of the signal. */
export type Call = <Id extends OperationId>(
  id: Id,
  ...input: CallArguments<Id>
) => Promise<Operations[Id]['returns']>;

export type Outcome<Id extends OperationId> =
  | {
      readonly ok: true;
      readonly status: number;
      readonly body: Operations[Id]['returns'];
      /** True if an earlier call with the same key had this effect and this answer. */
      readonly replayed: boolean;
    }
  | {
      readonly ok: false;
      readonly status: number;
      readonly fault: Fault<Operations[Id]['faults']>;
    };

export type EventName = keyof Events;

interface Said<E extends EventName> {
  readonly offset: number;
  readonly id: string;
  readonly event: E;
  readonly data: Events[E];
  readonly timestamp: string;
}

/** One event of the log. `event` determines the type of `data`. */
export type LogEvent = {
  readonly [E in EventName]: Said<E> & {
    readonly op: 'event';
    /** The first topic on which the event arrived. Absent if several were read over HTTP. */
    readonly topic?: string;
    readonly prev?: number;
  };
}[EventName];

/** One event that is leased to a member of a durable consumer. */
export type Delivery = {
  readonly [E in EventName]: Said<E> & {
    /** Number of deliveries, including this one. */
    readonly deliveries: number;
    /** Acknowledges the event. Returns false if the member no longer had the event. */
    readonly ack: () => Promise<boolean>;
    /** Releases the event and later events of its question. They come again after the delay. */
    readonly release: (delay_seconds?: number) => Promise<void>;
    /**
     * Extends the lease by the usual time, or to this many seconds from now. Returns false if the
     * lease has expired.
     */
    readonly extend: (seconds?: number) => Promise<boolean>;
  };
}[EventName];

export interface ConsumeOptions {
  /** The name of the durable consumer. */
  readonly consumer: string;
  /** Any name that no other worker uses. */
  readonly member: string;
  /** Events per take. Default: 10. Handle them within `ack_wait_seconds`. */
  readonly limit?: number;
  readonly signal?: AbortSignal;
  /**
   * Called if events are missing because they are no longer stored. The iteration then continues.
   * Without this function, it ends with `StreamGap`.
   */
  readonly onGap?: (gap: Gap) => void;
}

/** The state of a state topic. If several states are unread, only the newest is delivered. */
export interface StateUpdate {
  readonly op: 'state';
  readonly topic: string;
  readonly version: number;
  readonly data: Readonly<Record<string, unknown>>;
}

export type LogTopic =
  | 'all'
  | 'me'
  | `question:${string}`
  | `category:${string}`
  | `subcategory:${string}`
  | `agent:${string}`;
export type StateTopic = 'system' | `consensus:${string}` | `leaderboard:${string}`;
export type Topic = LogTopic | StateTopic;

export const isStateTopic = (topic: string): topic is StateTopic =>
  /^(?:system$|consensus:|leaderboard:)/.test(topic);

/** Events for log topics, states for state topics. */
export type Item<T extends Topic> =
  | ([Extract<T, LogTopic>] extends [never] ? never : LogEvent)
  | ([Extract<T, StateTopic>] extends [never] ? never : StateUpdate);

/** Selects the events on log topics. */
export interface Filter {
  readonly events?: readonly EventName[];
  readonly question_ids?: readonly string[];
  readonly categories?: readonly string[];
  readonly model_family?: NonNullable<Operations['listEvents']['query']['model_family']>;
  readonly min_confidence?: number;
}

export type StreamStatus =
  | { readonly status: 'connecting' }
  /** Subscribed. Everything up to `head` has been sent or will be. */
  | { readonly status: 'live'; readonly head: number; readonly result: string }
  /** The connection ended. The next connection starts in `wait_ms`. */
  | {
      readonly status: 'waiting';
      readonly wait_ms: number;
      readonly why: string;
      /** The close code. 0 if this side gave up the connection. */
      readonly code: number;
    };

/** The events received between two offsets differ from the log. */
export interface Mismatch {
  /** Everything up to here was correct, or was reported before. */
  readonly after: number;
  readonly until: number;
  /** Digests at `until`: of the received events, of the sending process, and of the record. */
  readonly came: string;
  readonly tick: string | null;
  readonly record: string | null;
  /**
   * The part that is wrong, according to the record. `stream`: something was lost, changed or
   * repeated on its way from the api process. `node`: that process has a wrong log. `tick`: only
   * its tick is wrong. `unknown`: the record could not be read.
   */
  readonly wrong: 'stream' | 'node' | 'tick' | 'unknown';
}

/** One part of the log as received over two transports. */
export interface Comparison {
  readonly after: number;
  readonly until: number;
  /** Digests at `until`, each computed from the record's digest at `after`. */
  readonly record: string;
  readonly socket: string;
  readonly http: string;
  readonly differing: readonly ('socket' | 'http')[];
}

export interface Span {
  readonly after: number;
  readonly until: number;
}

export interface StreamOptions<T extends Topic = Topic> {
  readonly topics: readonly T[];
  readonly filter?: Filter;
  /** Delivers everything after this offset, then new events. Default: only new events. */
  readonly after?: number;
  /** Delivers this many past events, then new events. */
  readonly last?: number;
  /** If a replay is too long, reads over HTTP, for up to 50 topics. If not set, see `onGap`. */
  readonly backfill?: boolean;
  /** Maximum number of unread events. At this number, the stream pauses until some are read. */
  readonly buffer?: number;
  readonly signal?: AbortSignal;
  /** Use this callback instead of iterating. The next item waits for the promise it returns. */
  readonly onItem?: (item: Item<T>) => unknown;
  /** Called if events are missing. Then the stream continues. Without `onGap`, it ends. */
  readonly onGap?: (gap: Gap) => void;
  readonly onStatus?: (status: StreamStatus) => void;
  /**
   * For the topic `all` without a filter. Called for every part in which the received events differ
   * from the log. Their digest is compared with the log's at each tick and after every thousand
   * offsets.
   */
  readonly onMismatch?: (mismatch: Mismatch) => void;
}
