import { createHash } from 'node:crypto';
import type { Config } from '../../config.js';
import { makeFairPool } from '../../kit/cache.js';
import {
  type ClientOptions,
  createGuardedClient,
  outboundOptions,
} from '../../kit/outbound/client.js';
import { call_errors } from '../../kit/outbound/connection.js';

/**
 * Whether the pages that a reasoning cites can be read. Each is asked for by HEAD, and where that
 * is refused by GET of its first byte, over the guarded client, in a bounded time; up to three
 * redirects are followed, each vetted like the first address. A page that wants a login, a payment
 * or fewer questions is there. What was found is kept for an hour, or a minute where it was bad.
 *
 * An api process asks for few pages at once, fewer of them for one agent. Where there is no room,
 * or the time is up, nothing is known, and a prediction that needs to know is refused until later:
 * whoever keeps this busy gets nothing past the gate.
 */
export interface Reach {
  /** Those that cannot be read, with the end of a sentence why; null: it could not be found out. */
  findUnreachable(ask: {
    readonly urls: readonly string[];
    readonly agent_id: string;
    /** On the clock of `performance.now()`. */
    readonly until_ms: number;
  }): Promise<ReadonlyMap<string, string> | null>;
}

/** Of all checks of one call together; well below the deadline of a request. */
export const reach_ms = 6_000;

const page_ms = 4_000;
const most_redirects = 3;
const kept_good_ms = 3_600_000;
const kept_bad_ms = 60_000;
const most_kept = 20_000;
const room = { at_once: 32, of_each: 8, waiting: 256, waiting_of_each: 64 };

/** Statuses of pages that are there, though not for everybody or not for a part of them. */
const there = new Set([401, 402, 403, 416, 429, 451]);
const is_gone = 410;

interface Known {
  readonly problem: string | null;
  readonly until_ms: number;
}

export type ReachOptions = ClientOptions & { readonly public_name: string };

export const createReach = (config: Config): Reach =>
  makeReach({ ...outboundOptions(config), public_name: config.PUBLIC_URL ?? '' });

/** Null for a page that can be read, else the end of a sentence why it cannot. */
const makeLook = ({ public_name, ...options }: ReachOptions) => {
  const client = createGuardedClient({ ...options, allow_plain: true });
  const headers = {
    'User-Agent': `prediction-forum${public_name === '' ? '' : ` (+${public_name})`}`,
    Accept: '*/*',
    Connection: 'close',
  };

  const ask = async (url: string, left: () => number) => {
    const target = client.parse(url);
    if (target.kind === 'problem') return { problem: explain(target.sentence) };
    const head = await client.look({ target, method: 'HEAD', headers, wall_ms: left() });
    const is_answer = head.status !== null && (head.status < 400 || head.status === is_gone);
    const is_final = is_answer || (head.error !== null && !is_worth_get.has(head.error));
    const ranged = { ...headers, Range: 'bytes=0-0' };
    const outcome = is_final
      ? head
      : await client.look({ target, method: 'GET', headers: ranged, wall_ms: left() });
    const { status, location } = outcome;
    if (status === null) return { problem: explain(call_errors[outcome.error ?? 'timeout']) };
    const moved = status >= 300 && status < 400 && location !== '' && URL.canParse(location, url);
    if (moved) return { next: new URL(location, url) };
    return { problem: status < 400 || there.has(status) ? null : `answered ${status}` };
  };

  return async (url: string): Promise<string | null> => {
    const end_ms = performance.now() + page_ms;
    const left = (): number => Math.max(1, end_ms - performance.now());
    let next = new URL(url);
    for (let hop = 0; hop <= most_redirects; hop += 1) {
      next.hash = '';
      const told = await ask(next.href, left);
      if (told.next === undefined) return told.problem;
      next = told.next;
    }
    return 'leads on and on';
  };
};

export const makeReach = (options: ReachOptions): Reach => {
  const lookAt = makeLook(options);
  const pool = makeFairPool(room);
  /** By digest, what was used longest ago first. */
  const known = new Map<string, Known>();
  const under_way = new Map<string, Promise<string | null | undefined>>();

  const keep = (key: string, problem: string | null): void => {
    known.delete(key);
    const kept_ms = problem === null ? kept_good_ms : kept_bad_ms;
    known.set(key, { problem, until_ms: performance.now() + kept_ms });
    for (const oldest of known.keys()) {
      if (known.size <= most_kept) break;
      known.delete(oldest);
    }
  };

  /** Undefined: there was no room to look. */
  const find = (url: string, agent_id: string): Promise<string | null | undefined> => {
    const key = createHash('sha256').update(url).digest('base64');
    const found = known.get(key);
    if (found !== undefined && found.until_ms > performance.now()) {
      return Promise.resolve(found.problem);
    }
    const same = under_way.get(key);
    if (same !== undefined) return same;
    const work = pool.run(agent_id, async () => {
      const problem = await lookAt(url);
      keep(key, problem);
      return problem;
    });
    under_way.set(key, work);
    return work.finally(() => under_way.delete(key));
  };

  return {
    async findUnreachable({ urls, agent_id, until_ms }) {
      const looks = Promise.all(urls.map((url) => find(url, agent_id)));
      const found = await inTime(looks, until_ms - performance.now());
      if (found === undefined || found.includes(undefined)) return null;
      const problems = found.map((problem, index) => [urls[index] ?? '', problem ?? ''] as const);
      return new Map(problems.filter(([, problem]) => problem !== ''));
    },
  };
};

/** Of HEAD: some servers close the connection, or answer with a body that nobody asked for. */
const is_worth_get: ReadonlySet<string> = new Set(['connection_lost', 'answer_invalid']);

const explain = (sentence: string): string =>
  `could not be read (${sentence.charAt(0).toLowerCase()}${sentence.slice(1, -1)})`;

const inTime = async <T>(work: Promise<T>, ms: number): Promise<T | undefined> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), Math.max(0, ms));
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
};
