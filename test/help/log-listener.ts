import { createClient, type Stream } from '../../src/client/node.js';
import type { Teardown } from './stores.js';

/**
 * Follows the whole log by the client library. Nothing that the library puts right passes
 * unnoticed: repeats and holes are told of.
 */

export interface HeardEvent {
  readonly offset: number;
  readonly id: string;
  readonly event: string;
}

export interface LogListener {
  /** In order of arrival. */
  readonly heard: readonly HeardEvent[];
  /** Holes, repeats, gaps and errors, as sentences. */
  readonly odd: readonly string[];
  /** Codes with which connections ended so far. */
  readonly ends: readonly number[];
}

/** Listens until the test ends; fulfilled when the first subscription is live. */
export const listenToLog = async (t: Teardown, port: number): Promise<LogListener> => {
  const heard: HeardEvent[] = [];
  const odd: string[] = [];
  const ends: number[] = [];
  const client = createClient({ base_url: `http://127.0.0.1:${port}`, backoff_ms: 500 });
  t.teardown(() => client.close());
  const stream = await new Promise<Stream<'all'>>((resolve, reject) => {
    const opened = client.stream({
      topics: ['all'],
      after: 0,
      onItem({ offset, id, event }) {
        const last = heard.at(-1)?.offset ?? 0;
        if (offset !== last + 1) odd.push(`after ${last} came ${offset}`);
        heard.push({ offset, id, event });
      },
      onGap: (gap) => void odd.push(JSON.stringify(gap)),
      onStatus(status) {
        if (status.status === 'waiting') ends.push(status.code);
        if (status.status === 'live') resolve(opened);
      },
    });
    opened.done.catch((error: Error) => {
      odd.push(error.message);
      reject(error);
    });
  });
  return {
    heard,
    ends,
    get odd() {
      const { repeats, holes } = stream.faults;
      return repeats + holes === 0 ? odd : [...odd, `${repeats} repeats and ${holes} holes`];
    },
  };
};
