import type { Frame } from './link.js';
import type { StateUpdate } from './types.js';

/**
 * Puts states together: a snapshot, then deltas that each follow the version before. What does not
 * fit, or has another hash than the service's, is asked for anew.
 */

type Members = Readonly<Record<string, unknown>>;

const sortMembers = (_: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value;

/**
 * The first 16 hex digits of SHA-256 over the JSON of the data, its members sorted by name and
 * those that are null left out; undefined where the platform gives no hashes (a page over plain
 * HTTP).
 */
export const hashState = async (data: Members): Promise<string | undefined> => {
  const subtle = globalThis.crypto?.subtle;
  if (subtle === undefined) return undefined;
  const there = Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null));
  const text = new TextEncoder().encode(JSON.stringify(there, sortMembers));
  const digest = new Uint8Array(await subtle.digest('SHA-256', text));
  return Array.from(digest.slice(0, 8), (byte) => byte.toString(16).padStart(2, '0')).join('');
};

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
      if (known.version !== frame['from']) return this.#refuse(topic);
      data = { ...known.data, ...(frame['set'] as Members) };
    }
    const state: StateUpdate = { op: 'state', topic, version, data };
    this.#now.set(topic, state);
    if (typeof frame['hash'] === 'string') this.#check(state, frame['hash']);
    return state;
  }

  /** The connection is another one: snapshots come by themselves. */
  reset(): void {
    this.#now.clear();
  }

  #refuse(topic: string): null {
    this.#now.delete(topic);
    this.#renew(topic);
    return null;
  }

  #check(state: StateUpdate, wanted: string): void {
    hashState(state.data)
      .then((hash) => {
        // What was put together since stands on what is checked here.
        if (hash !== undefined && hash !== wanted && this.#now.has(state.topic)) {
          this.#refuse(state.topic);
        }
      })
      .catch(() => undefined);
  }
}
