import type { State, StateSource } from './states.js';

export interface PolledOptions {
  readonly resolve: StateSource['resolve'];
  /** How it stands; null while there is nothing to show. */
  readonly read: (topic: string) => Promise<State['data'] | null> | State['data'] | null;
  readonly every_ms: number;
  /** That of the hub. */
  readonly touch: (topic: string) => void;
}

interface Watched {
  readonly timer: NodeJS.Timeout;
  text: string;
  version: number;
}

/**
 * A state topic whose source tells nobody of its changes: it is looked at again and again, while
 * somebody listens. Versions are times, so they grow from process to process too.
 */
export const makePolledSource = (options: PolledOptions): StateSource => {
  const { resolve, read, every_ms, touch } = options;
  const watched = new Map<string, Watched>();
  return {
    resolve,
    watch(topic) {
      const timer = setInterval(touch, every_ms, topic);
      timer.unref();
      watched.set(topic, { timer, text: '', version: 0 });
    },
    unwatch(topic) {
      clearInterval(watched.get(topic)?.timer);
      watched.delete(topic);
    },
    async read(topic) {
      const data = await read(topic);
      if (data === null) return null;
      const seen = watched.get(topic);
      if (seen === undefined) return { version: Date.now(), data };
      const text = JSON.stringify(data);
      if (text !== seen.text) seen.version = Math.max(seen.version + 1, Date.now());
      seen.text = text;
      return { version: seen.version, data };
    },
  };
};
