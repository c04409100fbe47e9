import { setTimeout as pause } from 'node:timers/promises';

/** Reads the log over HTTP in pages. Everything else is compared with it. */

const page_size = 100;

/** Waits if the service asks for it. Throws on any other refusal. */
export const getJson = async (url, headers = {}) => {
  for (let tries = 0; ; tries += 1) {
    const answer = await fetch(url, {
      headers,
      redirect: 'manual',
      signal: AbortSignal.timeout(70_000),
    });
    const text = await answer.text();
    if (answer.ok) return { body: JSON.parse(text), headers: answer.headers, text };
    const asked_s = Number(answer.headers.get('retry-after'));
    const wait_s = asked_s > 0 ? asked_s : 1;
    if (![429, 503].includes(answer.status) || tries === 10) {
      throw new Error(`${url} is answered with ${answer.status}: ${text.slice(0, 300)}`);
    }
    await pause(Math.min(wait_s, 60) * 1_000);
  }
};

export const readState = async (url) => {
  const { body } = await getJson(`${url}/api/events?after=0&limit=1`);
  return { head: body.head, oldest: body.oldest };
};

/** Events after `after` up to and including `until`. */
export async function* readEvents(url, { after, until, query = '' }) {
  let next = after;
  while (next < until) {
    const address = `${url}/api/events?after=${next}&limit=${page_size}${query}`;
    const { body } = await getJson(address);
    if (body.gap !== null) throw new Error(`${address} has a gap: ${JSON.stringify(body.gap)}`);
    for (const event of body.events) if (event.offset <= until) yield event;
    if (body.next <= next) throw new Error(`${address} does not go on: next is ${body.next}`);
    next = body.next;
  }
}

export const readAll = async (url, part) => {
  const events = [];
  for await (const event of readEvents(url, part)) events.push(event);
  return events;
};

/** The offset of the last event that a follower gets: the newest public event up to `until`. */
export const findLast = async (url, { after, until }) => {
  for (let from = until; from > after; ) {
    from = Math.max(after, from - page_size);
    const last = (await readAll(url, { after: from, until })).at(-1);
    if (last !== undefined) return last.offset;
  }
  return after;
};
