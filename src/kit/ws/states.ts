import { createHash } from 'node:crypto';
import { type Fault, isFault } from '../fault.js';
import type { Caller } from '../http/route.js';
import { describeError } from '../log.js';
import { withDeadline } from '../service.js';
import { type Core, sendText } from './core.js';
import { makeFrame, type TopicRef } from './frames.js';
import type { Session } from './session.js';

/**
 * State topics: their listeners want to know how things stand, not how they came about. A feature
 * gives a `StateSource` to `states` of the hub's options and calls `hub.touch(topic)` whenever
 * something may have changed; everything else is done here:
 *
 *   subscribe ──▶ snapshot ──▶ delta ──▶ delta …      at most one a `state_gap_ms`, the latest wins
 *                    ▲            │
 *                    └── reads too slowly: skipped, and a snapshot once it has read on
 *
 * A delta names the version it follows (`from`) and holds the members of the data that are
 * different now; one that is gone is null. All listeners of a topic are sent the same text. Nothing
 * is queued: a socket that has not read is sent the newest state later, and one read of the source
 * serves all. Snapshots, and every `hash_every`-th delta, carry a hash of the whole state, by which
 * a client finds out whether it has put it together rightly.
 */
export interface StateSource {
  /** What the name means to this caller; null when it is not a topic of this source. */
  readonly resolve: (label: string, caller: Caller) => TopicRef | Fault | null;
  /** How it stands now; null while there is nothing to show. Asked once for all listeners. */
  readonly read: (topic: string) => State | null | Promise<State | null>;
  /** The first listener came, the last one went: for a source that has to follow something. */
  readonly watch?: (topic: string) => void;
  readonly unwatch?: (topic: string) => void;
}

export interface State {
  /** Another number than before whenever the data are different; the offset in the log, say. */
  readonly version: number;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface States {
  /** The source of this topic, and what the name means; null when it is none of a source. */
  resolve(label: string, caller: Caller): StateRef | Fault | null;
  join(session: Session, ref: StateRef): void;
  leave(session: Session, topic: string): boolean;
  leaveAll(session: Session): void;
  touch(topic: string): void;
  /** The socket has read what it was sent: what it was not sent meanwhile is due. */
  onRead(session: Session): void;
  readonly size: () => number;
}

export interface StateRef extends TopicRef {
  readonly source: StateSource;
}

const hash_every = 32;
/** Unread bytes above which a socket gets no state. */
const unread_most = 65_536;
const read_deadline_ms = 5_000;
const after_error_ms = 1_000;

interface Shown {
  readonly ref: StateRef;
  readonly listeners: Set<Session>;
  /** Listeners that do not have the state that is shown: new ones and slow ones. */
  readonly behind: Set<Session>;
  state: State | null;
  deltas: number;
  turn_ms: number;
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

const snapshotFrame = ({ ref, state }: Shown): string =>
  state === null
    ? ''
    : makeFrame('snapshot', undefined, {
        topic: ref.label,
        version: state.version,
        data: state.data,
        hash: hashState(state.data),
      });

const hasRead = (session: Session): boolean =>
  (session.ws?.getBufferedAmount() ?? 0) <= unread_most;

/** The delta to the next state; '' when there is none or the first state is still to be sent. */
const advance = (shown: Shown, next: State): string => {
  const { state, ref } = shown;
  const set = state === null ? null : diffState(state.data, next.data);
  if (state === null || set === null) {
    if (state === null) shown.state = next;
    return '';
  }
  shown.state = next;
  shown.deltas += 1;
  const hash = shown.deltas % hash_every === 0 ? { hash: hashState(next.data) } : {};
  const members = { topic: ref.label, version: next.version, from: state.version, set, ...hash };
  return makeFrame('delta', undefined, members);
};

const send = (core: Core, shown: Shown, delta: string): void => {
  for (const session of shown.listeners) {
    if (delta === '' || shown.behind.has(session)) continue;
    if (hasRead(session)) sendText(core, session, delta);
    else shown.behind.add(session);
  }
  if (shown.behind.size === 0 || shown.state === null) return;
  const snapshot = snapshotFrame(shown);
  for (const session of shown.behind) {
    if (!hasRead(session)) continue;
    shown.behind.delete(session);
    sendText(core, session, snapshot);
  }
};

interface Showing {
  readonly all: Map<string, Shown>;
  /** Asked for only when something is due: the core holds the states itself. */
  readonly core: () => Core;
}

const read = async (showing: Showing, shown: Shown): Promise<void> => {
  const core = showing.core();
  shown.timer = null;
  shown.turn_ms = performance.now();
  shown.reading = true;
  shown.touched = false;
  try {
    const asked = Promise.resolve(shown.ref.source.read(shown.ref.topic));
    const next = await withDeadline(asked, read_deadline_ms, 'Reading a state');
    if (next !== null) send(core, shown, advance(shown, next));
  } catch (error) {
    core.log.warn(describeError(error), 'ws: could not read a state');
    shown.touched = true;
    shown.turn_ms = performance.now() + after_error_ms;
  }
  shown.reading = false;
  if (shown.touched) schedule(showing, shown);
};

const schedule = (showing: Showing, shown: Shown): void => {
  const { limits, onBug } = showing.core();
  shown.touched = true;
  if (shown.reading || shown.timer !== null || shown.listeners.size === 0) return;
  const due_ms = Math.max(0, shown.turn_ms + limits.state_gap_ms - performance.now());
  shown.timer = setTimeout(() => read(showing, shown).catch(onBug), due_ms);
  shown.timer.unref();
};

const show = ({ all }: Showing, ref: StateRef): Shown => {
  const known = all.get(ref.topic);
  if (known !== undefined) return known;
  const lists = { listeners: new Set<Session>(), behind: new Set<Session>() };
  const turns = { turn_ms: -1e9, timer: null, reading: false, touched: false };
  const shown: Shown = { ref, ...lists, state: null, deltas: 0, ...turns };
  all.set(ref.topic, shown);
  ref.source.watch?.(ref.topic);
  return shown;
};

const leave = ({ all }: Showing, session: Session, topic: string): boolean => {
  const shown = all.get(topic);
  if (!session.states.delete(topic) || shown === undefined) return false;
  shown.listeners.delete(session);
  shown.behind.delete(session);
  if (shown.listeners.size > 0) return true;
  if (shown.timer !== null) clearTimeout(shown.timer);
  all.delete(topic);
  shown.ref.source.unwatch?.(topic);
  return true;
};

const resolveState = (
  sources: readonly StateSource[],
  label: string,
  caller: Caller,
): StateRef | Fault | null => {
  for (const source of sources) {
    const ref = source.resolve(label, caller);
    if (ref !== null) return isFault(ref) ? ref : Object.assign({}, ref, { source });
  }
  return null;
};

export const makeStates = (sources: readonly StateSource[], core: () => Core): States => {
  const showing: Showing = { all: new Map(), core };
  return {
    resolve: (label, caller) => resolveState(sources, label, caller),
    join(session, ref) {
      const shown = show(showing, ref);
      session.states.set(ref.topic, ref.label);
      shown.listeners.add(session);
      shown.behind.add(session);
      schedule(showing, shown);
    },
    leave: (session, topic) => leave(showing, session, topic),
    leaveAll(session) {
      for (const topic of [...session.states.keys()]) leave(showing, session, topic);
    },
    touch(topic) {
      const shown = showing.all.get(topic);
      if (shown !== undefined) schedule(showing, shown);
    },
    onRead(session) {
      for (const topic of session.states.keys()) {
        const shown = showing.all.get(topic);
        if (shown?.behind.has(session)) schedule(showing, shown);
      }
    },
    size: () => showing.all.size,
  };
};
