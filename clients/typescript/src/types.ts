import type { Fault, Gap } from './errors.js';
import type { Events, Operations } from './wire.js';

/** What callers of the library write and get. */

export type OperationId = keyof Operations;

type Sent<Name extends string, S> = S extends undefined
  ? unknown
  : Record<never, never> extends S
    ? { readonly [K in Name]?: S }
    : { readonly [K in Name]: S };

/** `params`, `query` and `body` of an operation, as far as it has them. */
export type Input<Id extends OperationId> = Sent<'params', Operations[Id]['params']> &
  Sent<'query', Operations[Id]['query']> &
  Sent<'body', Operations[Id]['body']>;

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** For one try. */
  readonly timeout_ms?: number;
  /** For all tries together. */
  readonly patience_ms?: number;
  /** Made by the client for each POST where it is not given; the same for all its tries. */
  readonly idempotency_key?: string;
}

export type CallArguments<Id extends OperationId> =
  Record<never, never> extends Input<Id>
    ? [input?: Input<Id> & CallOptions]
    : [input: Input<Id> & CallOptions];

/** The answer; rejects with `Refused`, `NoAnswer` or the reason of the signal. */
export type Call = <Id extends OperationId>(
  id: Id,
  ...input: CallArguments<Id>
) => Promise<Operations[Id]['returns']>;

export type Outcome<Id extends OperationId> =
  | {
      readonly ok: true;
      readonly status: number;
      readonly body: Operations[Id]['returns'];
      /** True: an earlier call with the same key had this effect and this answer. */
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

/** One event of the log; `event` tells what `data` holds. */
export type LogEvent = {
  readonly [E in EventName]: Said<E> & {
    readonly op: 'event';
    /** The first of the stream's topics on which it came; unknown for some that were read later. */
    readonly topic?: string;
    readonly prev?: number;
  };
}[EventName];

/** One event that a member of a durable consumer has. */
export type Delivery = {
  readonly [E in EventName]: Said<E> & {
    /** How often it was delivered, this time included. */
    readonly deliveries: number;
    /** It is done; false when the member did not have it any more. */
    readonly ack: () => Promise<boolean>;
    /** Gives it back, with the later ones of its question; it comes again after so long. */
    readonly release: (delay_seconds?: number) => Promise<void>;
    /** Keeps it longer: for the usual time, or so many seconds from now. False if the lease has ended. */
    readonly extend: (seconds?: number) => Promise<boolean>;
  };
}[EventName];

export interface ConsumeOptions {
  /** The name of the durable consumer. */
  readonly consumer: string;
  /** Any name that no other worker has. */
  readonly member: string;
  /** Events of one take, 10 by default; they are to be done within `ack_wait_seconds`. */
  readonly limit?: number;
  readonly signal?: AbortSignal;
  /** Gets what is no longer kept, and the iteration goes on; without this it ends with `StreamGap`. */
  readonly onGap?: (gap: Gap) => void;
}

/** How things stand on a state topic; of several in a row only the newest is handed out. */
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

/** Narrows what comes on topics of the log. */
export interface Filter {
  readonly events?: readonly EventName[];
  readonly question_ids?: readonly string[];
  readonly categories?: readonly string[];
  readonly model_family?: NonNullable<Operations['listEvents']['query']['model_family']>;
  readonly min_confidence?: number;
}

export type StreamStatus =
  | { readonly status: 'connecting' }
  /** Subscribed: everything up to `head` has been sent or will be. */
  | { readonly status: 'live'; readonly head: number; readonly result: string }
  /** The connection ended; the next one comes in `wait_ms`. */
  | {
      readonly status: 'waiting';
      readonly wait_ms: number;
      readonly why: string;
      /** Why it was closed; 0 where it was given up from here. */
      readonly code: number;
    };

/** What came between two offsets is not what the log has there. */
export interface Mismatch {
  /** Up to here everything was right, or was reported before. */
  readonly after: number;
  readonly until: number;
  /** Digests at `until`: of what came, of the process that sent it, and of the record. */
  readonly came: string;
  readonly tick: string | null;
  readonly record: string | null;
  /**
   * Who is wrong, by the record. `stream`: something was lost, changed or repeated on its way from
   * the node. `node`: it has itself a wrong view of the log. `tick`: only its tick is wrong.
   * `unknown`: the record could not be read.
   */
  readonly wrong: 'stream' | 'node' | 'tick' | 'unknown';
}

/** One part of the log as it came over two transports. */
export interface Comparison {
  readonly after: number;
  readonly until: number;
  /** Digests at `until`, each from that of the record at `after`. */
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
  /** Everything after this offset, then what happens; without it and `last` only the latter. */
  readonly after?: number;
  /** So many events that were, then what happens. */
  readonly last?: number;
  /** Reads over HTTP what is too much for a replay, of up to 50 topics; else see `onGap`. */
  readonly backfill?: boolean;
  /** Events that wait for their reader; above it the stream stands still at the service. */
  readonly buffer?: number;
  readonly signal?: AbortSignal;
  /** Instead of iterating; the next item comes when what this returns is fulfilled. */
  readonly onItem?: (item: Item<T>) => unknown;
  /** Gets what is missing, and the stream goes on after it; without this it ends. */
  readonly onGap?: (gap: Gap) => void;
  readonly onStatus?: (status: StreamStatus) => void;
  /**
   * For the topic `all` without a filter: the digest of what comes is compared with that of the log,
   * at each tick and each thousand, and this gets every part that differs.
   */
  readonly onMismatch?: (mismatch: Mismatch) => void;
}
