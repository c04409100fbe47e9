import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import type { Caller } from '../http/caller.js';
import { type Fault, isFault } from '../kit/fault.js';
import { describeError } from '../kit/log.js';
import { withDeadline } from '../kit/service.js';
import { type HubLimits, makeFrame, type TopicRef } from './frames.js';

/**
 * State topics: their subscribers want the current state, not the steps that led to it. A feature
 * passes a `StateSource` in the hub's option `states` and calls `hub.touch(topic)` whenever
 * something may have changed. Everything else is done here:
 *
 *   subscribe ──▶ snapshot ──▶ delta ──▶ delta …    at most one per `state_gap_ms`, the latest wins
 *                    ▲            │
 *                    └── reads too slowly: skipped, and gets a snapshot once it has read on
 *
 * A delta names the version that it follows (`from`) and holds the members of the data that have
 * changed. A removed member is null. All subscribers of a topic are sent the same text. Nothing is
 * queued: a socket that reads slowly is sent the newest state later, and one read of the source
 * serves all. Snapshots, and every `hash_every`-th delta, carry a hash of the whole state. With it
 * a client checks whether it has put the state together correctly.
 */
export interface StateSource {
  /** Returns the topic that a name means to this caller; null if the source has no such topic. */
  readonly resolve: (label: string, caller: Caller) => TopicRef | Fault | null;
  /**
   * Returns the current state; null while there is nothing to show. One read serves all
   * subscribers.
   */
  readonly read: (topic: string) => State | null | Promise<State | null>;
  /** For a source that announces no changes: how often it is read while it has subscribers. */
  readonly every_ms?: number;
}

export interface State {
  /** Changes whenever the data change: an offset of the log, or a time. */
  readonly version: number;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface StateRef extends TopicRef {
  readonly source: StateSource;
}

const hash_every = 32;
/** A socket with more unread bytes than this gets no state. */
const unread_most = 65_536;
const read_deadline_ms = 5_000;
const after_error_ms = 1_000;

/** The parts of a socket that states need. */
export interface StateSubscriber {
  /** The label of each state topic, by topic. */
  readonly states: Map<string, string>;
  send(text: string | Uint8Array): void;
  /** Returns the number of bytes that the client has not read yet. */
  lookUnread(): number;
}

/** A state topic that has subscribers. */
interface Shown {
  readonly ref: StateRef;
  readonly sessions: Set<StateSubscriber>;
  /** Sessions without the current state: new ones and slow ones. */
  readonly behind: Set<StateSubscriber>;
  state: State | null;
  deltas: number;
  /** Time of the last read. */
  read_ms: number;
  /** Time of the next read. */
  due_ms: number;
  timer: NodeJS.Timeout | undefined;
  reading: boolean;
  touched: boolean;
}

/**
 * Returns the first 16 hex digits of SHA-256 over the JSON of the data, with members sorted by
 * name. Null members are left out, because in a delta null means that a member was removed.
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

/** Returns the changed members of `to`, with null for removed ones; null if nothing changed. */
export const diffState = (from: State['data'], to: State['data']) => {
  const set: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(to)) {
    if (JSON.stringify(value) !== JSON.stringify(from[name])) set[name] = value;
  }
  for (const name of Object.keys(from)) if (!Object.hasOwn(to, name)) set[name] = null;
  return Object.keys(set).length === 0 ? null : set;
};

const hasRead = (session: StateSubscriber): boolean => session.lookUnread() <= unread_most;

/** Returns the delta to the next state; '' if nothing changed or this is the first state. */
const advance = (shown: Shown, next: State): string => {
  const { state, ref } = shown;
  const set = state === null ? null : diffState(state.data, next.data);
  if (state !== null && set === null) return '';
  shown.state = next;
  if (state === null) return '';
  shown.deltas += 1;
  const hash = shown.deltas % hash_every === 0 ? hashState(next.data) : undefined;
  const versions = { version: next.version, from: state.version };
  return makeFrame('delta', undefined, { topic: ref.label, ...versions, set, hash });
};

const send = ({ ref, state, sessions, behind }: Shown, delta: string): void => {
  const bytes = Buffer.from(delta);
  for (const session of sessions) {
    if (delta === '' || behind.has(session)) continue;
    if (hasRead(session)) session.send(bytes);
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

  /** Finds the source of a topic and resolves its name; null if no source has this topic. */
  resolve(label: string, caller: Caller): StateRef | Fault | null {
    for (const source of this.sources) {
      const ref = source.resolve(label, caller);
      if (ref !== null) return isFault(ref) ? ref : { ...ref, source };
    }
    return null;
  }

  join(session: StateSubscriber, ref: StateRef): void {
    const shown: Shown = this.#all.get(ref.topic) ?? {
      ref,
      sessions: new Set(),
      behind: new Set(),
      state: null,
      deltas: 0,
      read_ms: -1e9,
      due_ms: 0,
      timer: undefined,
      reading: false,
      touched: false,
    };
    this.#all.set(ref.topic, shown);
    session.states.set(ref.topic, ref.label);
    shown.sessions.add(session);
    shown.behind.add(session);
    this.touch(ref.topic);
  }

  leave(session: StateSubscriber, topic: string): boolean {
    const shown = this.#all.get(topic);
    if (!session.states.delete(topic) || shown === undefined) return false;
    shown.sessions.delete(session);
    shown.behind.delete(session);
    if (shown.sessions.size > 0) return true;
    clearTimeout(shown.timer);
    this.#all.delete(topic);
    return true;
  }

  leaveAll(session: StateSubscriber): void {
    for (const topic of [...session.states.keys()]) this.leave(session, topic);
  }

  /** Call this when the state may have changed. */
  touch(topic: string): void {
    const shown = this.#all.get(topic);
    if (shown !== undefined) this.#schedule(shown, this.core.limits.state_gap_ms);
  }

  /** The client has read the sent data, so the states that it missed are due. */
  onRead(session: StateSubscriber): void {
    for (const topic of session.states.keys()) {
      if (this.#all.get(topic)?.behind.has(session)) this.touch(topic);
    }
  }

  /** Reads the state `gap_ms` after the last read, or earlier if a read is due already. */
  #schedule(shown: Shown, gap_ms: number): void {
    if (shown.reading) {
      shown.touched = true;
      return;
    }
    const due_ms = shown.read_ms + gap_ms;
    if (shown.timer !== undefined && shown.due_ms <= due_ms) return;
    clearTimeout(shown.timer);
    shown.due_ms = due_ms;
    const wait_ms = Math.max(0, due_ms - performance.now());
    shown.timer = setTimeout(() => this.#read(shown).catch(this.core.onBug), wait_ms).unref();
  }

  async #read(shown: Shown): Promise<void> {
    const { source, topic } = shown.ref;
    shown.timer = undefined;
    shown.read_ms = performance.now();
    shown.reading = true;
    shown.touched = false;
    try {
      const state = Promise.resolve(source.read(topic));
      const next = await withDeadline(state, read_deadline_ms, 'Reading a state');
      if (next !== null) send(shown, advance(shown, next));
    } catch (error) {
      this.core.log.warn(describeError(error), 'ws: could not read a state');
      shown.touched = true;
      shown.read_ms = performance.now() + after_error_ms;
    }
    shown.reading = false;
    if (shown.sessions.size === 0) return;
    if (shown.touched) this.#schedule(shown, this.core.limits.state_gap_ms);
    else if (source.every_ms !== undefined) this.#schedule(shown, source.every_ms);
  }
}
