import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { Caller } from '../http/route.js';
import { type Fault, isFault } from '../kit/fault.js';
import { describeError } from '../kit/log.js';
import { withDeadline } from '../kit/service.js';
import { makeFrame, type TopicRef } from './frames.js';
import type { HubLimits } from './hub.js';
import type { Session } from './session.js';

/**
 * State topics: their subscribers want to know how things stand, not how they came about. A feature
 * gives a `StateSource` to `states` of the hub's options and calls `hub.touch(topic)` whenever
 * something may have changed; everything else is done here:
 *
 *   subscribe ──▶ snapshot ──▶ delta ──▶ delta …      at most one a `state_gap_ms`, the latest wins
 *                    ▲            │
 *                    └── reads too slowly: skipped, and a snapshot once it has read on
 *
 * A delta names the version it follows (`from`) and holds the members of the data that are
 * different now; one that is gone is null. All subscribers of a topic are sent the same text.
 * Nothing is queued: a socket that has not read is sent the newest state later, and one read of the
 * source serves all. Snapshots, and every `hash_every`-th delta, carry a hash of the whole state,
 * by which a client finds out whether it has put it together rightly.
 */
export interface StateSource {
  /** What the name means to this caller; null when it is not a topic of this source. */
  readonly resolve: (label: string, caller: Caller) => TopicRef | Fault | null;
  /** How it stands now; null while there is nothing to show. Asked once for all subscribers. */
  readonly read: (topic: string) => State | null | Promise<State | null>;
  /** The first subscriber came, the last one went: for a source that has to follow something. */
  readonly watch?: (topic: string) => void;
  readonly unwatch?: (topic: string) => void;
}

export interface State {
  /** Another number than before whenever the data are different; the offset in the log, say. */
  readonly version: number;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface StateRef extends TopicRef {
  readonly source: StateSource;
}

const hash_every = 32;
/** Unread bytes above which a socket gets no state. */
const unread_most = 65_536;
const read_deadline_ms = 5_000;
const after_error_ms = 1_000;

/** A state topic that has subscribers. */
interface Shown {
  readonly ref: StateRef;
  readonly sessions: Set<Session>;
  /** Sessions that do not have the state that is shown: new ones and slow ones. */
  readonly behind: Set<Session>;
  state: State | null;
  deltas: number;
  /** When it was last read. */
  read_ms: number;
  timer: NodeJS.Timeout | null;
  reading: boolean;
  touched: boolean;
}

/**
 * The first 16 hex digits of SHA-256 over the JSON of the data, its members sorted by name. Members
 * that are null are left out: in a delta they cannot be told from those that are gone.
 */
export const hashState = (data: State['data']): string => {
  const there = Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null));
  const sorted = JSON.stringify(there, (_, value) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return createHash('sha256').update(sorted).digest('hex').slice(0, 16);
};

/** Members of `to` that are different, and null for those that are gone; null when none is. */
export const diffState = (from: State['data'], to: State['data']) => {
  const set: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(to)) {
    if (JSON.stringify(value) !== JSON.stringify(from[name])) set[name] = value;
  }
  for (const name of Object.keys(from)) if (!Object.hasOwn(to, name)) set[name] = null;
  return Object.keys(set).length === 0 ? null : set;
};

const hasRead = (session: Session): boolean =>
  (session.ws?.getBufferedAmount() ?? 0) <= unread_most;

/** The delta to the next state; '' when there is none or the first state is still to be sent. */
const advance = (shown: Shown, next: State): string => {
  const { state, ref } = shown;
  if (state === null) {
    shown.state = next;
    return '';
  }
  const set = diffState(state.data, next.data);
  if (set === null) return '';
  shown.state = next;
  shown.deltas += 1;
  const hash = shown.deltas % hash_every === 0 ? hashState(next.data) : undefined;
  const { version } = next;
  return makeFrame('delta', undefined, {
    topic: ref.label,
    version,
    from: state.version,
    set,
    hash,
  });
};

const send = ({ ref, state, sessions, behind }: Shown, delta: string): void => {
  for (const session of sessions) {
    if (delta === '' || behind.has(session)) continue;
    if (hasRead(session)) session.send(delta);
    else behind.add(session);
  }
  if (behind.size === 0 || state === null) return;
  const { version, data } = state;
  const hash = hashState(data);
  const snapshot = makeFrame('snapshot', undefined, { topic: ref.label, version, data, hash });
  for (const session of behind) {
    if (!hasRead(session)) continue;
    behind.delete(session);
    session.send(snapshot);
  }
};

interface StatesParts {
  readonly limits: HubLimits;
  readonly log: Logger;
  readonly onBug: (error: unknown) => void;
}

export class States {
  readonly #all = new Map<string, Shown>();

  constructor(
    readonly sources: readonly StateSource[],
    readonly core: StatesParts,
  ) {}

  get size(): number {
    return this.#all.size;
  }

  /** The source of this topic, and what the name means; null when it is none of a source. */
  resolve(label: string, caller: Caller): StateRef | Fault | null {
    for (const source of this.sources) {
      const ref = source.resolve(label, caller);
      if (ref !== null) return isFault(ref) ? ref : { ...ref, source };
    }
    return null;
  }

  join(session: Session, ref: StateRef): void {
    let shown = this.#all.get(ref.topic);
    if (shown === undefined) {
      const lists = { sessions: new Set<Session>(), behind: new Set<Session>() };
      const turns = { read_ms: -1e9, timer: null, reading: false, touched: false };
      shown = { ref, ...lists, state: null, deltas: 0, ...turns };
      this.#all.set(ref.topic, shown);
      ref.source.watch?.(ref.topic);
    }
    session.states.set(ref.topic, ref.label);
    shown.sessions.add(session);
    shown.behind.add(session);
    this.#schedule(shown);
  }

  leave(session: Session, topic: string): boolean {
    const shown = this.#all.get(topic);
    if (!session.states.delete(topic) || shown === undefined) return false;
    shown.sessions.delete(session);
    shown.behind.delete(session);
    if (shown.sessions.size > 0) return true;
    if (shown.timer !== null) clearTimeout(shown.timer);
    this.#all.delete(topic);
    shown.ref.source.unwatch?.(topic);
    return true;
  }

  leaveAll(session: Session): void {
    for (const topic of [...session.states.keys()]) this.leave(session, topic);
  }

  /** The state may be another one now. */
  touch(topic: string): void {
    const shown = this.#all.get(topic);
    if (shown !== undefined) this.#schedule(shown);
  }

  /** The socket has read what it was sent: what it was not sent meanwhile is due. */
  onRead(session: Session): void {
    for (const topic of session.states.keys()) {
      if (this.#all.get(topic)?.behind.has(session)) this.touch(topic);
    }
  }

  #schedule(shown: Shown): void {
    const { limits, onBug } = this.core;
    shown.touched = true;
    if (shown.reading || shown.timer !== null || shown.sessions.size === 0) return;
    const due_ms = Math.max(0, shown.read_ms + limits.state_gap_ms - performance.now());
    shown.timer = setTimeout(() => this.#read(shown).catch(onBug), due_ms);
    shown.timer.unref();
  }

  async #read(shown: Shown): Promise<void> {
    shown.timer = null;
    shown.read_ms = performance.now();
    shown.reading = true;
    shown.touched = false;
    try {
      const asked = Promise.resolve(shown.ref.source.read(shown.ref.topic));
      const next = await withDeadline(asked, read_deadline_ms, 'Reading a state');
      if (next !== null) send(shown, advance(shown, next));
    } catch (error) {
      this.core.log.warn(describeError(error), 'ws: could not read a state');
      shown.touched = true;
      shown.read_ms = performance.now() + after_error_ms;
    }
    shown.reading = false;
    if (shown.touched) this.#schedule(shown);
  }
}

export interface PolledOptions {
  readonly resolve: StateSource['resolve'];
  /** How it stands; null while there is nothing to show. */
  readonly read: (topic: string) => Promise<State['data'] | null> | State['data'] | null;
  readonly every_ms: number;
  /** That of the hub. */
  readonly touch: (topic: string) => void;
}

/**
 * A source that announces no changes: it is read again and again while somebody subscribes.
 * Versions are times, so they grow from process to process too.
 */
export const makePolledSource = ({ resolve, read, every_ms, touch }: PolledOptions) => {
  const timers = new Map<string, NodeJS.Timeout>();
  return {
    resolve,
    watch: (topic) => void timers.set(topic, setInterval(touch, every_ms, topic).unref()),
    unwatch(topic) {
      clearInterval(timers.get(topic));
      timers.delete(topic);
    },
    async read(topic) {
      const data = await read(topic);
      return data === null ? null : { version: Date.now(), data };
    },
  } satisfies StateSource;
};
