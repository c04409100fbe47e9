import { setTimeout as wait } from 'node:timers/promises';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { WebSocket } from 'ws';
import { createClient, type Stream } from '../../src/client/node.js';
import type { Sql } from '../../src/db/client.js';
import type { Teardown } from '../help/stores.js';

/**
 * Careful clients that follow the log while things are killed: when a connection ends they make
 * another one and ask for everything after the last offset they have. Each keeps what it was sent,
 * and as sentences what no client should see: holes, repeats, gaps.
 */

export interface HeardEvent {
  readonly offset: number;
  readonly id: string;
}

/** Follows the whole log. */
export interface Listener {
  readonly name: string;
  /** In order of arrival. */
  readonly heard: readonly HeardEvent[];
  readonly odd: readonly string[];
  /** How many connections ended. */
  ends(): number;
}

const again_ms = 50;

/** By the client library, whose own repairs (repeats and holes) count as odd too. */
const listenByLibrary = async (t: Teardown, url: string): Promise<Listener> => {
  const heard: HeardEvent[] = [];
  const odd: string[] = [];
  let ends = 0;
  const client = createClient({ base_url: url, backoff_ms: 500 });
  t.teardown(() => client.close());
  const stream = await new Promise<Stream<'all'>>((resolve, reject) => {
    const opened = client.stream({
      topics: ['all'],
      after: 0,
      onItem: (event) => void heard.push(event),
      onGap: (gap) => void odd.push(JSON.stringify(gap)),
      onStatus({ status }) {
        if (status === 'waiting') ends += 1;
        if (status === 'live') resolve(opened);
      },
    });
    opened.done.catch((error: Error) => {
      odd.push(error.message);
      reject(error);
    });
  });
  return {
    name: 'client library',
    heard,
    ends: () => ends,
    get odd() {
      const { repeats, holes } = stream.faults;
      return repeats + holes === 0 ? odd : [...odd, `${repeats} repeats and ${holes} holes`];
    },
  };
};

/** One request after the other, each from the last offset, until the test ends. */
const listenByHttp = (
  t: Teardown,
  name: string,
  once: (heard: HeardEvent[], odd: string[], signal: AbortSignal) => Promise<void>,
): Listener => {
  const heard: HeardEvent[] = [];
  const odd: string[] = [];
  const ended = new AbortController();
  let ends = 0;
  const run = async (): Promise<void> => {
    while (!ended.signal.aborted) {
      try {
        await once(heard, odd, ended.signal);
      } catch {
        ends += 1;
        await wait(again_ms);
      }
    }
  };
  const running = run();
  t.teardown(async () => {
    ended.abort();
    await running;
  });
  return { name, heard, odd, ends: () => ends };
};

const request = async (url: string, init: RequestInit): Promise<Response> => {
  const response = await fetch(url, init);
  if (response.status !== 200) throw new Error(`status ${response.status}`);
  return response;
};

const listenByLongPoll = (t: Teardown, url: string): Listener =>
  listenByHttp(t, 'long poll', async (heard, odd, signal) => {
    const after = heard.at(-1)?.offset ?? 0;
    const limits = [signal, AbortSignal.timeout(20_000)];
    const response = await request(`${url}/api/events?after=${after}&limit=100&wait=2`, {
      signal: AbortSignal.any(limits),
    });
    const page = (await response.json()) as { events: HeardEvent[]; gap: unknown };
    if (page.gap !== null) odd.push(`a gap: ${JSON.stringify(page.gap)}`);
    heard.push(...page.events);
  });

const listenByEventStream = (t: Teardown, url: string): Listener =>
  listenByHttp(t, 'event stream', async (heard, odd, signal) => {
    const headers = { 'last-event-id': String(heard.at(-1)?.offset ?? 0) };
    const { body } = await request(`${url}/api/stream`, { headers, signal });
    const messages = body
      ?.pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream());
    for await (const { event, data } of messages ?? []) {
      if (event === undefined) heard.push(JSON.parse(data));
      if (event === 'gap') odd.push(`a gap: ${data}`);
    }
  });

/** Follows the whole log in every way there is. */
export const listenToLog = async (t: Teardown, url: string): Promise<readonly Listener[]> => [
  await listenByLibrary(t, url),
  listenByLongPoll(t, url),
  listenByEventStream(t, url),
];

/** What a follower subscribes to on a bare websocket. */
export interface Wish {
  readonly topic: string;
  readonly min_confidence?: number;
}

export interface Follower {
  readonly wish: Wish;
  readonly offsets: number[];
  readonly odd: string[];
  /** The nodes that it was connected to, in order. */
  readonly nodes: string[];
}

interface Frame {
  readonly op: string;
  readonly node?: string;
  readonly offset?: number;
  readonly prev?: number;
  readonly result?: string;
  readonly heads?: Readonly<Record<string, number>>;
}

const take = ({ wish, offsets, odd }: Follower, frame: Frame): void => {
  const newest = offsets.at(-1) ?? 0;
  if (frame.op === 'event') {
    const { offset = 0, prev } = frame;
    if (prev !== newest || offset <= newest) {
      odd.push(`after ${newest} came ${offset}, which follows on ${prev}`);
    }
    offsets.push(offset);
  } else if (frame.op === 'tick') {
    const head = frame.heads?.[wish.topic] ?? newest;
    if (head > newest) odd.push(`a tick knows of ${head} after ${newest}`);
  } else if (frame.op === 'gap' || frame.op === 'error' || frame.result === 'gap') {
    odd.push(JSON.stringify(frame));
  }
};

/** One connection from its beginning to its end. */
const followOnce = (
  follower: Follower,
  ws: WebSocket,
  onLive: (follower: Follower) => void,
): Promise<void> =>
  new Promise((resolve) => {
    const { min_confidence, topic } = follower.wish;
    ws.on('message', (text) => {
      const frame = JSON.parse(String(text)) as Frame;
      if (frame.op === 'welcome') {
        follower.nodes.push(frame.node ?? '');
        const filter = min_confidence === undefined ? {} : { filter: { min_confidence } };
        const after = follower.offsets.at(-1) ?? 0;
        ws.send(JSON.stringify({ op: 'subscribe', id: 1, topics: [topic], after, ...filter }));
      } else if (frame.op === 'subscribed') onLive(follower);
      take(follower, frame);
    });
    ws.on('error', () => undefined);
    ws.on('close', () => resolve());
  });

/** Follows until the test ends; fulfilled when all first subscriptions are live. */
export const followTopics = async (
  t: Teardown,
  port: number,
  wishes: readonly Wish[],
): Promise<readonly Follower[]> => {
  const open = new Set<WebSocket>();
  const runs: Promise<void>[] = [];
  let ended = false;
  t.teardown(async () => {
    ended = true;
    for (const ws of open) ws.terminate();
    await Promise.all(runs);
  });
  const run = async (wish: Wish, onLive: (follower: Follower) => void): Promise<void> => {
    const follower: Follower = { wish, offsets: [], odd: [], nodes: [] };
    while (!ended) {
      const options = { perMessageDeflate: false, handshakeTimeout: 10_000 };
      const ws = new WebSocket(`ws://127.0.0.1:${port}/ws`, options);
      open.add(ws);
      await followOnce(follower, ws, onLive);
      open.delete(ws);
      if (!ended) await wait(again_ms);
    }
  };
  return Promise.all(
    wishes.map((wish) => new Promise<Follower>((onLive) => runs.push(run(wish, onLive)))),
  );
};

/** What Postgres holds of a topic. */
const readTopic = async (sql: Sql, { topic, min_confidence = -1 }: Wish): Promise<number[]> => {
  const id = topic === 'all' ? null : topic.slice(topic.indexOf(':') + 1);
  const rows = await sql<{ offset: number }[]>`
    select "offset"
    from events
    where audience_id is null
      and (${id}::uuid is null or question_id = ${id}::uuid)
      and (
        ${min_confidence} < 0
        or (body::json #>> '{data,confidence}')::integer >= ${min_confidence}
      )
    order by "offset"`;
  return rows.map(({ offset }) => offset);
};

/** Followers that were not sent exactly what Postgres holds, as sentences. */
export const compareFollowers = async (
  sql: Sql,
  followers: readonly Follower[],
): Promise<string[]> => {
  const held = new Map<string, string>();
  const found: string[] = [];
  for (const { wish, offsets, odd } of followers) {
    const name = JSON.stringify(wish);
    const wanted = held.get(name) ?? JSON.stringify(await readTopic(sql, wish));
    held.set(name, wanted);
    if (JSON.stringify(offsets) !== wanted) found.push(`${name}: ${offsets.length} events differ`);
    if (odd.length > 0) found.push(`${name}: ${odd.slice(0, 2).join('; ')}`);
  }
  return found;
};
