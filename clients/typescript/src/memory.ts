import type { Frame } from './link.js';
import type { LogEvent, StateUpdate } from './types.js';

/** What a stream remembers: the order of its events, its states, and what waits for a reader. */

/**
 * Which events of a stream are new, and whether one is missing. Offsets grow within each topic, and
 * each event names the one before it there; an event on two topics comes twice.
 */
export class Order {
  /** The newest offset up to which a topic is complete; absent while it is not known. */
  readonly #proven = new Map<string, number>();
  /** Handed on, and above the least that is proven. */
  readonly #seen = new Set<number>();
  /** The newest offset handed on or proven to be no more than that; null at the beginning. */
  cursor: number | null;

  constructor(
    readonly topics: readonly string[],
    after: number | undefined,
  ) {
    this.cursor = after ?? null;
    if (after !== undefined) this.proveAll(after);
  }

  /** `known`: from another topic. `hole`: the event `prev` of this topic has not come. */
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

  /** The event has come, on this topic. */
  take(topic: string, offset: number): void {
    this.#proven.set(topic, offset);
    this.cursor = Math.max(this.cursor ?? 0, offset);
    if (this.topics.length > 1) this.#seen.add(offset);
  }

  /** Everything up to here has come on all topics. */
  proveAll(offset: number): void {
    for (const topic of this.topics) {
      this.#proven.set(topic, Math.max(offset, this.#proven.get(topic) ?? 0));
    }
    this.cursor = Math.max(this.cursor ?? 0, offset);
    for (const seen of this.#seen) if (seen <= offset) this.#seen.delete(seen);
  }

  /** True when this topic goes on after what has come. */
  isBehind(topic: string, head: number): boolean {
    return head > (this.#proven.get(topic) ?? head);
  }

  /** Events up to `until` are known to be missing; without it, up to the next that comes. */
  forgive(topic: string, until: number | undefined): void {
    if (until === undefined) this.#proven.delete(topic);
    else this.take(topic, until);
  }

  /** The log is another one than it was: it goes on after this offset. */
  rewind(offset: number): void {
    this.#seen.clear();
    this.#proven.clear();
    this.cursor = null;
    this.proveAll(offset);
  }

  /** From where to ask again when a topic has a hole; what has come is known again by itself. */
  floor(): number | null {
    return this.#proven.size === 0 ? this.cursor : Math.min(...this.#proven.values());
  }
}

/**
 * Puts states together: a snapshot, then deltas that each follow the version before. What does not
 * fit is asked for anew.
 */

type Members = Readonly<Record<string, unknown>>;

export class States {
  readonly #now = new Map<string, StateUpdate>();
  readonly #renew: (topic: string) => void;

  /** `renew` subscribes to the topic again, for a snapshot. */
  constructor(renew: (topic: string) => void) {
    this.#renew = renew;
  }

  /** The state after this frame; null while there is none that is known to be right. */
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

  /** The connection is another one: snapshots come by themselves. */
  reset(): void {
    this.#now.clear();
  }
}

/**
 * What waits for its reader: events in their order, and for each state topic the newest state,
 * whose place in the line is that of the first one that was not read yet.
 */
export class Queue {
  readonly #items: (LogEvent | StateUpdate)[] = [];
  #events = 0;

  /** Events only: states are bounded by their topics. */
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
