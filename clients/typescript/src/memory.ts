import type { Frame } from './link.js';
import type { LogEvent, StateUpdate } from './types.js';

/** The memory of a stream: the order of its events, its states, and the unread items. */

/**
 * Decides which events of a stream are new, and whether one is missing. Offsets grow within each
 * topic, and each event names its predecessor there. An event on two topics arrives twice.
 */
export class Order {
  /** The newest offset up to which a topic is complete. Absent while unknown. */
  readonly #proven = new Map<string, number>();
  /** Offsets of delivered events above the lowest offset in `#proven`. */
  readonly #seen = new Set<number>();
  /** The newest offset up to which nothing is left to deliver. Null at first. */
  cursor: number | null;

  constructor(
    readonly topics: readonly string[],
    after: number | undefined,
  ) {
    this.cursor = after ?? null;
    if (after !== undefined) this.proveAll(after);
  }

  /** `known`: already received on another topic. `hole`: an earlier event is missing here. */
  judge(
    topic: string,
    offset: number,
    prev: number | undefined,
  ): 'new' | 'known' | 'repeat' | 'hole' {
    const proven = this.#proven.get(topic);
    if (proven !== undefined && offset <= proven) return 'repeat';
    if (proven !== undefined && prev !== undefined && prev > proven) return 'hole';
    if (!this.#seen.has(offset)) return 'new';
    this.#proven.set(topic, offset);
    return 'known';
  }

  /** Records that the event has arrived on this topic. */
  take(topic: string, offset: number): void {
    this.#proven.set(topic, offset);
    this.cursor = Math.max(this.cursor ?? 0, offset);
    if (this.topics.length > 1) this.#seen.add(offset);
  }

  /** Records that everything up to this offset has arrived on all topics. */
  proveAll(offset: number): void {
    for (const topic of this.topics) {
      this.#proven.set(topic, Math.max(offset, this.#proven.get(topic) ?? 0));
    }
    this.cursor = Math.max(this.cursor ?? 0, offset);
    for (const seen of this.#seen) if (seen <= offset) this.#seen.delete(seen);
  }

  /** True if this topic has events after the ones that have arrived. */
  isBehind(topic: string, head: number): boolean {
    return head > (this.#proven.get(topic) ?? head);
  }

  /** Accepts that events are missing: up to `until` if given, otherwise up to the next event. */
  forgive(topic: string, until: number | undefined): void {
    if (until === undefined) this.#proven.delete(topic);
    else this.take(topic, until);
  }

  /** Starts again after this offset, because the log was replaced. */
  rewind(offset: number): void {
    this.#seen.clear();
    this.#proven.clear();
    this.cursor = null;
    this.proveAll(offset);
  }

  /** If a topic has a hole, ask again from this offset. Repeated events are recognised. */
  floor(): number | null {
    return this.#proven.size === 0 ? this.cursor : Math.min(...this.#proven.values());
  }
}

/**
 * Assembles states from snapshots and deltas. Each delta follows the previous version. If a delta
 * does not fit, requests a new snapshot.
 */

type Members = Readonly<Record<string, unknown>>;

export class States {
  readonly #now = new Map<string, StateUpdate>();
  readonly #renew: (topic: string) => void;

  /** `renew` subscribes to the topic again, which sends a snapshot. */
  constructor(renew: (topic: string) => void) {
    this.#renew = renew;
  }

  /** The state after this frame. Null while no correct state is known. */
  take(frame: Frame): StateUpdate | null {
    const topic = String(frame['topic']);
    const version = Number(frame['version']);
    const known = this.#now.get(topic);
    let data = frame['data'] as Members;
    if (frame.op === 'delta') {
      if (known === undefined) return null;
      if (known.version !== frame['from']) {
        this.#now.delete(topic);
        this.#renew(topic);
        return null;
      }
      data = { ...known.data, ...(frame['set'] as Members) };
    }
    const state: StateUpdate = { op: 'state', topic, version, data };
    this.#now.set(topic, state);
    return state;
  }

  /** Forgets all states, because a new connection sends snapshots anyway. */
  reset(): void {
    this.#now.clear();
  }
}

/**
 * Items that wait for their reader: events in order, and the newest state per state topic. A newer
 * state replaces an older one that was not read yet.
 */
export class Queue {
  readonly #items: (LogEvent | StateUpdate)[] = [];
  #events = 0;

  /** Counts events only. The number of states is limited by the topics. */
  get events(): number {
    return this.#events;
  }

  put(item: LogEvent | StateUpdate): void {
    const isOlder = ({ op, topic }: LogEvent | StateUpdate): boolean =>
      op === 'state' && topic === item.topic;
    const at = item.op === 'state' ? this.#items.findIndex(isOlder) : -1;
    if (at !== -1) this.#items[at] = item;
    else this.#items.push(item);
    if (item.op === 'event') this.#events += 1;
  }

  clear(): void {
    this.#items.length = 0;
    this.#events = 0;
  }

  shift(): LogEvent | StateUpdate | undefined {
    const item = this.#items.shift();
    if (item?.op === 'event') this.#events -= 1;
    return item;
  }
}
