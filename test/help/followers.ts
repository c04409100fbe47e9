import { setTimeout as wait } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { Sql } from '../../src/db/client.js';
import type { Teardown } from './stores.js';

/**
 * Clients that follow one topic each, as careful ones do: when a connection ends they make another
 * and ask for everything after the newest event they have. Each keeps the offsets it was sent and
 * what was odd: an event that does not follow on the one before, a gap, a tick that knows of more.
 */

export interface Wish {
  readonly topic: string;
  readonly min_confidence?: number;
}

export interface Follower {
  readonly wish: Wish;
  readonly offsets: readonly number[];
  readonly odd: readonly string[];
  /** The nodes that it was connected to, in order. */
  readonly nodes: readonly string[];
  /** Codes with which its connections ended. */
  readonly ends: readonly number[];
}

interface Frame {
  readonly op: string;
  readonly node?: string;
  readonly offset?: number;
  readonly prev?: number;
  readonly result?: string;
  readonly heads?: Readonly<Record<string, number>>;
}

const again_ms = 50;

interface Following extends Follower {
  readonly offsets: number[];
  readonly odd: string[];
  readonly nodes: string[];
  readonly ends: number[];
}

const take = (one: Following, frame: Frame): void => {
  const newest = one.offsets.at(-1) ?? 0;
  if (frame.op === 'event') {
    const { offset = 0, prev } = frame;
    if (prev !== newest || offset <= newest) {
      one.odd.push(`after ${newest} came ${offset}, which follows on ${prev}`);
    }
    one.offsets.push(offset);
  } else if (frame.op === 'tick') {
    const head = frame.heads?.[one.wish.topic] ?? newest;
    if (head > newest) one.odd.push(`a tick knows of ${head} after ${newest}`);
  } else if (frame.op === 'gap' || frame.op === 'error' || frame.result === 'gap') {
    one.odd.push(JSON.stringify(frame));
  }
};

/** One connection from its beginning to its end. */
const followOnce = (
  one: Following,
  url: string,
  { onOpen, onLive }: { onOpen: (ws: WebSocket) => void; onLive: () => void },
): Promise<void> =>
  new Promise((resolve) => {
    const ws = new WebSocket(url, { perMessageDeflate: false, handshakeTimeout: 10_000 });
    onOpen(ws);
    ws.on('message', (text) => {
      const frame = JSON.parse(String(text)) as Frame;
      if (frame.op === 'welcome') {
        const { topic, min_confidence } = one.wish;
        const filter = min_confidence === undefined ? {} : { filter: { min_confidence } };
        const after = one.offsets.at(-1) ?? 0;
        one.nodes.push(frame.node ?? '');
        ws.send(JSON.stringify({ op: 'subscribe', id: 1, topics: [topic], after, ...filter }));
      } else if (frame.op === 'subscribed') onLive();
      take(one, frame);
    });
    ws.on('error', () => undefined);
    ws.on('close', (code) => {
      one.ends.push(code);
      resolve();
    });
  });

/** Follows until the test ends; fulfilled when all first subscriptions are live. */
export const followTopics = async (
  t: Teardown,
  port: number,
  wishes: readonly Wish[],
): Promise<readonly Follower[]> => {
  const url = `ws://127.0.0.1:${port}/ws`;
  const open = new Set<WebSocket>();
  let ended = false;
  const runs: Promise<void>[] = [];
  const follow = async (wish: Wish): Promise<Follower> => {
    const one: Following = { wish, offsets: [], odd: [], nodes: [], ends: [] };
    await new Promise<void>((onLive) => {
      const run = async (): Promise<void> => {
        while (!ended) {
          let current: WebSocket | undefined;
          const onOpen = (ws: WebSocket): void => {
            current = ws;
            open.add(ws);
          };
          await followOnce(one, url, { onOpen, onLive });
          open.delete(current as WebSocket);
          if (!ended) await wait(again_ms);
        }
      };
      runs.push(run());
    });
    return one;
  };
  t.teardown(async () => {
    ended = true;
    for (const ws of open) ws.terminate();
    await Promise.all(runs);
  });
  return Promise.all(wishes.map(follow));
};

/** What Postgres holds of a topic. */
const readTruth = async (sql: Sql, { topic, min_confidence = -1 }: Wish): Promise<number[]> => {
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
export const findAstray = async (
  sql: Sql,
  followers: readonly Follower[],
): Promise<readonly string[]> => {
  const truths = new Map<string, string>();
  const found: string[] = [];
  for (const { wish, offsets, odd } of followers) {
    const name = JSON.stringify(wish);
    const truth = truths.get(name) ?? JSON.stringify(await readTruth(sql, wish));
    truths.set(name, truth);
    if (JSON.stringify(offsets) !== truth) found.push(`${name}: ${offsets.length} events differ`);
    if (odd.length > 0) found.push(`${name}: ${odd.slice(0, 2).join('; ')}`);
  }
  return found;
};
