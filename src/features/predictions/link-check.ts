import type { Config } from '../../config.js';
import { makeCache, makeFairPool } from '../../kit/cache.js';
import { sha256 } from '../../kit/ids.js';
import {
  type ClientOptions,
  createGuardedClient,
  outboundOptions,
} from '../../kit/outbound/client.js';
import { call_errors } from '../../kit/outbound/connection.js';
import { withDeadline } from '../../kit/service.js';

/**
 * Whether the pages that a reasoning cites can be read. Each is asked for by HEAD, and where that
 * is refused by GET of its first byte, over the guarded client, in a bounded time; up to three
 * redirects are followed, each vetted like the first address. A page that wants a login, a payment
 * or fewer questions is there. What was found is kept for an hour, or a minute where it was bad.
 *
 * An api process asks for few pages at once, fewer of them for one agent. Where there is no room,
 * or the time is up, nothing is known, and a prediction that needs to know is refused until later:
 * an agent that fills the queue gets no prediction past the gate.
 */
interface LinkCheckRequest {
  readonly urls: readonly string[];
  readonly agent_id: string;
  /** On the clock of `performance.now()`. */
  readonly until_ms: number;
}

/** Of all checks of one call together; well below the deadline of a request. */
export const link_check_ms = 6_000;

const page_ms = 4_000;
const most_redirects = 3;
const kept_good_ms = 3_600_000;
const kept_bad_ms = 60_000;
const most_kept = 20_000;
const room = { at_once: 32, of_each: 8, waiting: 256, waiting_of_each: 64 };

/** Statuses of pages that are there, though not for everybody or not for a part of them. */
const there = new Set([401, 402, 403, 416, 429, 451]);
const is_gone = 410;

interface Found {
  readonly problem: string | null;
  readonly until_ms: number;
}

export type LinkCheckOptions = ClientOptions & { readonly public_name: string };

export const createLinkCheck = (config: Config): LinkCheck =>
  makeLinkCheck({ ...outboundOptions(config), public_name: config.PUBLIC_URL ?? '' });

/** Null for a page that can be read, else the end of a sentence why it cannot. */
const makeLook = ({ public_name, ...options }: LinkCheckOptions) => {
  const client = createGuardedClient({ ...options, allow_plain: true });
  const headers = {
    'User-Agent': `prediction-forum${public_name === '' ? '' : ` (+${public_name})`}`,
    Accept: '*/*',
    Connection: 'close',
  };

  const probe = async (url: string, left: () => number) => {
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
      const probed = await probe(next.href, left);
      if (probed.next === undefined) return probed.problem;
      next = probed.next;
    }
    return 'leads on and on';
  };
};

export const makeLinkCheck = (options: LinkCheckOptions) => {
  const lookAt = makeLook(options);
  const pool = makeFairPool(room);
  const pages = makeCache<Found | undefined>({
    most: most_kept,
    ttl_ms: kept_good_ms,
    isKept: (found) => found !== undefined,
  });

  /** Undefined: there was no room to look. */
  const find = async (url: string, agent_id: string): Promise<Found | undefined> => {
    const key = sha256(url, 'base64url');
    if ((pages.peek(key)?.until_ms ?? Infinity) <= performance.now()) pages.forget(key);
    return pages.get(key, () =>
      pool.run(agent_id, async () => {
        const problem = await lookAt(url);
        const kept_ms = problem === null ? kept_good_ms : kept_bad_ms;
        return { problem, until_ms: performance.now() + kept_ms };
      }),
    );
  };

  return {
    /** Those that cannot be read, with the end of a sentence why; null: it could not be found out. */
    async findUnreachable({ urls, agent_id, until_ms }: LinkCheckRequest) {
      const looks = Promise.all(urls.map((url) => find(url, agent_id)));
      const left_ms = Math.max(0, until_ms - performance.now());
      const found = await withDeadline(looks, left_ms, 'Looking at sources').catch(() => []);
      const problems = new Map<string, string>();
      for (const [index, url] of urls.entries()) {
        const one = found[index];
        if (one === undefined) return null;
        if (one.problem !== null) problems.set(url, one.problem);
      }
      return problems;
    },
  };
};
export type LinkCheck = ReturnType<typeof makeLinkCheck>;

/** Of HEAD: some servers close the connection, or answer with a body that nobody asked for. */
const is_worth_get: ReadonlySet<string> = new Set(['connection_lost', 'answer_invalid']);

const explain = (sentence: string): string =>
  `could not be read (${sentence.charAt(0).toLowerCase()}${sentence.slice(1, -1)})`;
