import { setTimeout as wait } from 'node:timers/promises';
import { type EmbeddedStore, type Say, signalProcess } from '../embedded/processes.js';

/** An embedded store that is started again at once, at the same address, whenever it ends. */
export interface KeptStore {
  readonly name: string;
  readonly url: string;
  stop(): Promise<void>;
  /** Ends it without ceremony. */
  kill(): Promise<void>;
}

export interface KeptStoreOptions {
  readonly name: string;
  readonly start: (again: boolean) => Promise<EmbeddedStore>;
  readonly say: Say;
  /** What ends it at once and leaves files that the next start can use. */
  readonly kill_signal: NodeJS.Signals;
}

/** A store that lacks room on its disk is to be back soon after there is some. */
const longest_backoff_ms = 1_000;
const kill_ms = 2_000;

export const keepStore = async (options: KeptStoreOptions): Promise<KeptStore> => {
  const { name, start, say, kill_signal } = options;
  const stopped = new AbortController();
  let store = await start(false);
  const { url } = store;

  const startAgain = async (): Promise<void> => {
    for (let backoff_ms = 50; !stopped.signal.aborted; backoff_ms *= 2) {
      try {
        store = await start(true);
        return say(`${name} runs again.`);
      } catch (error) {
        say(`${name}: ${error instanceof Error ? error.message : error}`);
      }
      const rest_ms = Math.min(backoff_ms, longest_backoff_ms);
      await wait(rest_ms, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  };
  let starting: Promise<void> = Promise.resolve();
  const watch = async (): Promise<void> => {
    for (;;) {
      await store.exited;
      if (stopped.signal.aborted) return;
      say(`${name} ended; it is started again.`);
      starting = startAgain();
      await starting;
    }
  };
  const done = watch();
  return {
    name,
    url,
    async stop() {
      stopped.abort();
      // A start that is under way makes another one to stop.
      await starting;
      await store.stop();
      await done;
    },
    async kill() {
      stopped.abort();
      signalProcess(store.pid, kill_signal);
      await Promise.race([store.exited, wait(kill_ms)]);
      signalProcess(store.pid, 'SIGKILL');
    },
  };
};
