import { addEvent, type Digested, thousandOf } from './digest.js';
import type { Stream } from './stream.js';
import type { Call, Comparison, Span, StreamOptions } from './types.js';

/** Compares two transports of one service. */

interface CompareParts {
  readonly call: Call;
  stream(options: StreamOptions<'all'>): Stream<'all'>;
}

/** Maximum number of events in one replay over a socket. */
const max_compared = 10_000;
const page_size = 100;

const readPages = async ({ call }: CompareParts, { after, until }: Span) => {
  const found: Digested[] = [];
  for (let next = after; next < until; ) {
    const page = await call('listEvents', { query: { after: next, limit: page_size } });
    found.push(...(page.events as unknown as readonly Digested[]));
    if (page.next <= next) break;
    next = page.next;
  }
  return found;
};

const readSocket = async ({ stream }: CompareParts, { after, until }: Span) => {
  const found: Digested[] = [];
  let arrive = (): void => undefined;
  const arrival = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  const reading = stream({
    topics: ['all'],
    after,
    buffer: 2 * max_compared,
    onItem: (event) => void found.push(event),
    onGap: () => undefined,
    // In the next turn of the event loop, all earlier events have been delivered.
    onStatus: (now) => now.status === 'live' && now.head >= until && setTimeout(arrive),
  });
  try {
    await Promise.race([arrival, reading.done]);
  } finally {
    reading.close();
  }
  return found;
};

const within = (events: readonly Digested[], { after, until }: Span): readonly Digested[] =>
  events.filter(({ offset }) => offset > after && offset <= until);

/**
 * Reads a part of the log over the socket and over HTTP. Compares both with the record, a thousand
 * events at a time. Returns the parts in which a transport differs from the record.
 */
export const compareTransports = async (
  parts: CompareParts,
  { after, until }: Span,
): Promise<readonly Comparison[]> => {
  if (until <= after || until - after > max_compared) {
    throw new RangeError(`Compare between 1 and ${max_compared} offsets at a time.`);
  }
  const readDigest = async (at: number): Promise<string> =>
    (await parts.call('readDigests', { query: { at, from: at, limit: 1 } })).at.digest;
  const last = await readDigest(until);
  const [socket, http] = await Promise.all([
    readSocket(parts, { after, until }),
    readPages(parts, { after, until }),
  ]);
  const compared: Comparison[] = [];
  let before = await readDigest(after);
  for (let from = after; from < until; ) {
    const span = { after: from, until: Math.min((thousandOf(from) + 1) * 1_000, until) };
    const record = span.until === until ? last : await readDigest(span.until);
    const digestOf = async (events: readonly Digested[]): Promise<string> => {
      let digest = before;
      for (const event of within(events, span)) digest = await addEvent(digest, event);
      return digest;
    };
    const came = { socket: await digestOf(socket), http: await digestOf(http) };
    const differing = (['socket', 'http'] as const).filter((name) => came[name] !== record);
    compared.push({ ...span, record, ...came, differing });
    before = record;
    from = span.until;
  }
  return compared;
};
