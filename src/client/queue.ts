import type { LogEvent, StateUpdate } from './types.js';

/**
 * What waits for its reader: events in their order, and for each state topic the newest state,
 * whose place in the line is that of the first one that was not read yet.
 */
export class Queue {
  readonly #items: (LogEvent | { readonly topic: string })[] = [];
  readonly #states = new Map<string, StateUpdate>();
  #events = 0;

  /** Events only: states are bounded by their topics. */
  get events(): number {
    return this.#events;
  }

  push(event: LogEvent): void {
    this.#events += 1;
    this.#items.push(event);
  }

  put(state: StateUpdate): void {
    if (!this.#states.has(state.topic)) this.#items.push({ topic: state.topic });
    this.#states.set(state.topic, state);
  }

  clear(): void {
    this.#items.length = 0;
    this.#states.clear();
    this.#events = 0;
  }

  shift(): LogEvent | StateUpdate | undefined {
    const item = this.#items.shift();
    if (item === undefined) return undefined;
    if ('op' in item) {
      this.#events -= 1;
      return item;
    }
    const state = this.#states.get(item.topic);
    this.#states.delete(item.topic);
    return state;
  }
}
