import { setTimeout as wait } from 'node:timers/promises';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { WebSocket } from 'ws';
import { createClient } from '#client/node.js';
import type { Sql } from '../../src/db/client.js';
import type { Teardown } from '../help/stores.js';

/**
 * Careful clients that follow the log while parts are killed. When a connection ends, they
 * reconnect and request everything after their last offset. Each stores the events that it
 * received, and describes anything that no client should see: holes, repeats, gaps.
 */

/** A subscription. With `min_confidence`, predictions of lower confidence are left out. */
export interface Wish {
  readonly topic: string;
  readonly min_confidence?: number;
}

interface HeardEvent {
  readonly offset: number;
  readonly id: string;
}

export interface Listener {
  readonly name: string;
  readonly wish: Wish;
  /** In order of arrival. */
  readonly heard: HeardEvent[];
  readonly odd: string[];
  /** Number of connections that ended. */
  ends: number;
  /** The api processes that its sockets were connected to. */
  readonly nodes: Set<string>;
}

const again_ms = 50;

/** Resolves or rejects when the connection ends. */
type Connect = (listener: Listener, signal: AbortSignal) => Promise<void>;

const makeListener = (name: string, wish: Wish): Listener => ({
  name,
  wish,
  heard: [],
  odd: [],
  ends: 0,
  nodes: new Set(),
});

/** Opens one connection after another until the test ends. */
const listen = (t: Teardown, name: string, wish: Wish, connect: Connect): Listener => {
  const listener = makeListener(name, wish);
  const ended = new AbortController();
  const run = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      await connect(listener, ended.signal).catch(() => undefined);
      listener.ends += 1;
      await wait(again_ms);
    }
  };
  const running = run();
  t.teardown(() => {
    ended.abort();
    return running;
  });
  return listener;
};

/** Uses the client library. Repeats and holes that the library corrects count as odd too. */
const listenByLibrary = (t: Teardown, url: string): Listener => {
  const listener = makeListener('client library', { topic: 'all' });
  const { heard, odd } = listener;
  const client = createClient({ base_url: url, backoff_ms: 500 });
  t.teardown(() => client.close());
  const stream = client.stream({
    topics: ['all'],
    after: 0,
    onItem: (event) => void heard.push(event),
    onGap: (gap) => void odd.push(JSON.stringify(gap)),
    onStatus({ status }) {
      if (status === 'waiting') listener.ends += 1;
    },
  });
  stream.done.catch((error: Error) => void odd.push(error.message));
  return Object.defineProperty(listener, 'odd', {
    get() {
      const { repeats, holes } = stream.faults;
      return repeats + holes === 0 ? odd : [...odd, `${repeats} repeats and ${holes} holes`];
    },
  });
};

const request = async (url: string, init: RequestInit): Promise<Response> => {
  const response = await fetch(url, init);
  if (response.status !== 200) throw new Error(`status ${response.status}`);
  return response;
};

const byLongPoll =
  (url: string): Connect =>
  async ({ heard, odd }, ended) => {
    for (;;) {
      const signal = AbortSignal.any([ended, AbortSignal.timeout(20_000)]);
      const after = heard.at(-1)?.offset ?? 0;
      const response = await request(`${url}/api/events?after=${after}&limit=100&wait=2`, {
        signal,
      });
      const page = (await response.json()) as { events: HeardEvent[]; gap: unknown };
      if (page.gap !== null) odd.push(`a gap: ${JSON.stringify(page.gap)}`);
      heard.push(...page.events);
    }
  };

const byEventStream =
  (url: string): Connect =>
  async ({ heard, odd }, signal) => {
    const headers = { 'last-event-id': String(heard.at(-1)?.offset ?? 0) };
    const { body } = await request(`${url}/api/stream`, { headers, signal });
    const messages = body
      ?.pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream());
    for await (const { event, data } of messages ?? []) {
      if (event === undefined) heard.push(JSON.parse(data));
      if (event === 'gap') odd.push(`a gap: ${data}`);
    }
  };

interface Frame {
  readonly op: string;
  readonly id?: string;
  readonly node?: string;
  readonly offset?: number;
  readonly prev?: number;
  readonly result?: string;
  readonly heads?: Readonly<Record<string, number>>;
}

const take = ({ wish, heard, odd }: Listener, frame: Frame): void => {
  const newest = heard.at(-1)?.offset ?? 0;
  if (frame.op === 'event') {
    const { offset = 0, id = '', prev } = frame;
    if (prev !== newest || offset <= newest) {
      odd.push(`after ${newest} came ${offset}, which follows on ${prev}`);
    }
    heard.push({ offset, id });
  } else if (frame.op === 'tick') {
    const head = frame.heads?.[wish.topic] ?? newest;
    if (head > newest) odd.push(`a tick knows of ${head} after ${newest}`);
  } else if (frame.op === 'gap' || frame.op === 'error' || frame.result === 'gap') {
    odd.push(JSON.stringify(frame));
  }
};

/** Uses a plain websocket, which may subscribe with a filter. */
const bySocket =
  (url: string): Connect =>
  (listener, signal) =>
    new Promise((resolve) => {
      const { topic, min_confidence } = listener.wish;
      const filter = min_confidence === undefined ? {} : { filter: { min_confidence } };
      const ws = new WebSocket(`${url.replace('http', 'ws')}/ws`, {
        perMessageDeflate: false,
        handshakeTimeout: 10_000,
      });
      const end = (): void => ws.terminate();
      signal.addEventListener('abort', end, { once: true });
      ws.on('message', (text) => {
        const frame = JSON.parse(String(text)) as Frame;
        if (frame.op === 'welcome') {
          listener.nodes.add(frame.node ?? '');
          const after = listener.heard.at(-1)?.offset ?? 0;
          ws.send(JSON.stringify({ op: 'subscribe', id: 1, topics: [topic], after, ...filter }));
        }
        take(listener, frame);
      });
      ws.on('error', () => undefined);
      ws.on('close', () => {
        signal.removeEventListener('abort', end);
        resolve();
      });
    });

/** Follows the whole log over every transport, and the requested topics over plain websockets. */
export const startListeners = (
  t: Teardown,
  url: string,
  wishes: readonly Wish[],
): readonly Listener[] => [
  listenByLibrary(t, url),
  listen(t, 'long poll', { topic: 'all' }, byLongPoll(url)),
  listen(t, 'event stream', { topic: 'all' }, byEventStream(url)),
  ...wishes.map((wish) => listen(t, JSON.stringify(wish), wish, bySocket(url))),
];

/** The events of a topic in Postgres. */
const readTopic = (sql: Sql, { topic, min_confidence = -1 }: Wish) => {
  const id = topic === 'all' ? null : topic.slice(topic.indexOf(':') + 1);
  return sql<HeardEvent[]>`
    select "offset", id
    from events
    where audience_id is null
      and (${id}::uuid is null or question_id = ${id}::uuid)
      and (
        ${min_confidence} < 0
        or (body::json #>> '{data,confidence}')::numeric >= ${min_confidence}
      )
    order by "offset"`;
};

/** Describes listeners that did not receive exactly the events in Postgres. */
export const findMisheard = async (
  sql: Sql,
  listeners: readonly Listener[],
): Promise<readonly string[]> => {
  const topics = new Map<string, readonly HeardEvent[]>();
  const found: string[] = [];
  for (const { name, wish, heard, odd } of listeners) {
    const topic = JSON.stringify(wish);
    const held = topics.get(topic) ?? (await readTopic(sql, wish));
    topics.set(topic, held);
    const differs = held.findIndex(({ offset, id }, n) => {
      return heard[n]?.offset !== offset || heard[n]?.id !== id;
    });
    if (heard.length !== held.length) found.push(`${name}: ${heard.length} of ${held.length}`);
    if (differs >= 0) found.push(`${name}: event ${differs + 1} is not that of the log`);
    found.push(...odd.slice(0, 3).map((text) => `${name}: ${text}`));
  }
  return found;
};
