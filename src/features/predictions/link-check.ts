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
 * Checks that the pages cited in the reasoning can be read. Uses the guarded client and a deadline.
 * Sends HEAD, and if that is refused, GET for the first byte. Follows up to three redirects and
 * vets each like the first URL. A page passes even if it asks for a login, a payment or fewer
 * requests. Good results are cached for an hour, bad results for a minute.
 *
 * An api process fetches few pages at a time, and fewer for one agent. If there is no room or no
 * time left, the result is unknown, and a prediction that needs it is refused for now. So an agent
 * cannot pass the gate by filling the queue.
 */
interface LinkCheckRequest {
  readonly urls: readonly string[];
  readonly agent_id: string;
  /** Deadline on the clock of `performance.now()`. */
  readonly until_ms: number;
}

/** Time for all checks of one call together. Must be well below the deadline of a request. */
export const link_check_ms = 6_000;

const page_ms = 4_000;
const max_redirects = 3;
const kept_good_ms = 3_600_000;
const kept_bad_ms = 60_000;
const max_kept = 20_000;
const room = { at_once: 32, of_each: 8, waiting: 256, waiting_of_each: 64 };

/** Statuses of pages that exist, although this request could not read them. */
const there = new Set([401, 402, 403, 416, 429, 451]);
const is_gone = 410;

interface Found {
  readonly problem: string | null;
  readonly until_ms: number;
}

export type LinkCheckOptions = ClientOptions & { readonly public_name: string };

export const createLinkCheck = (config: Config): LinkCheck =>
  makeLinkCheck({ ...outboundOptions(config), public_name: config.PUBLIC_URL ?? '' });

/** Makes the check of a page. Its result is null, or a problem in words to put after the URL. */
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
    for (let hop = 0; hop <= max_redirects; hop += 1) {
      next.hash = '';
      const probed = await probe(next.href, left);
      if (probed.next === undefined) return probed.problem;
      next = probed.next;
    }
    return 'redirects too many times';
  };
};

export const makeLinkCheck = (options: LinkCheckOptions) => {
  const lookAt = makeLook(options);
  const pool = makeFairPool(room);
  const pages = makeCache<Found | undefined>({
    most: max_kept,
    ttl_ms: kept_good_ms,
    isKept: (found) => found !== undefined,
  });

  /** Returns undefined if there was no room in the queue. */
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
    /** Returns each unreadable page with its problem, or null if the check could not finish. */
    async findUnreachable({ urls, agent_id, until_ms }: LinkCheckRequest) {
      const looks = Promise.all(urls.map((url) => find(url, agent_id)));
      const left_ms = Math.max(0, until_ms - performance.now());
      const found = await withDeadline(looks, left_ms, 'Checking the cited pages').catch(() => []);
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

/** After these errors of HEAD, GET is tried. Some servers close the connection or send a body. */
const is_worth_get: ReadonlySet<string> = new Set(['connection_lost', 'answer_invalid']);

const explain = (sentence: string): string =>
  `could not be read (${sentence.charAt(0).toLowerCase()}${sentence.slice(1, -1)})`;
