import { setTimeout as wait } from 'node:timers/promises';
import type { HeardEvent } from './log-listener.js';
import { openSse } from './sse-client.js';
import type { Teardown } from './stores.js';

/**
 * Clients follow the whole log over HTTP: when a connection or call ends, they go on after the last
 * offset they have seen.
 */

export interface HttpFollower {
  /** In order of arrival. */
  readonly heard: readonly HeardEvent[];
  /** Holes, repeats and gaps, as sentences. */
  readonly odd: readonly string[];
  /** Connections or calls that ended other than they should. */
  readonly failures: number;
}

interface Follow {
  readonly heard: HeardEvent[];
  readonly odd: string[];
  failures: number;
  ended: boolean;
}

const again_ms = 50;

const take = (follow: Follow, event: HeardEvent): void => {
  const last = follow.heard.at(-1)?.offset ?? 0;
  if (event.offset !== last + 1) follow.odd.push(`after ${last} came ${event.offset}`);
  follow.heard.push(event);
};

/** Runs one connection after the other until the test ends. */
const keepOn = (t: Teardown, once: (follow: Follow) => Promise<void>): HttpFollower => {
  const follow: Follow = { heard: [], odd: [], failures: 0, ended: false };
  const run = async (): Promise<void> => {
    while (!follow.ended) {
      try {
        await once(follow);
      } catch {
        follow.failures += 1;
        await wait(again_ms);
      }
    }
  };
  const running = run();
  t.teardown(async () => {
    follow.ended = true;
    await running;
  });
  return follow;
};

/** By calls that wait for the next event. */
export const followByCalls = (t: Teardown, url: string): HttpFollower =>
  keepOn(t, async (follow) => {
    const after = follow.heard.at(-1)?.offset ?? 0;
    const path = `/api/events?after=${after}&limit=100&wait=2`;
    const answer = await fetch(url + path, { signal: AbortSignal.timeout(20_000) });
    if (answer.status !== 200) throw new Error(`${answer.status}`);
    const page = (await answer.json()) as { events: HeardEvent[]; gap: unknown };
    if (page.gap !== null) follow.odd.push(`a gap: ${JSON.stringify(page.gap)}`);
    for (const event of page.events) take(follow, event);
  });

/** By a stream of server-sent events. */
export const followByStream = (t: Teardown, url: string): HttpFollower =>
  keepOn(t, async (follow) => {
    const last = follow.heard.at(-1)?.offset ?? 0;
    const stream = await openSse(t, `${url}/api/stream`, { 'last-event-id': String(last) });
    if (stream.status !== 200) throw new Error(`${stream.status}`);
    let taken = 0;
    const takeAll = (): void => {
      for (; taken < stream.messages.length; taken += 1) {
        const { name, data } = stream.messages[taken] as (typeof stream.messages)[number];
        if (name === 'gap') follow.odd.push(`a gap: ${JSON.stringify(data)}`);
        if (name === '') take(follow, data);
      }
    };
    const poll = setInterval(() => {
      takeAll();
      if (follow.ended) stream.close();
    }, 20);
    const end = await stream.ended;
    clearInterval(poll);
    takeAll();
    if (end === 'cut') throw new Error('cut');
  });
