import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { startCutter } from './cutter.mjs';
import { follow } from './follow.mjs';
import { getJson, readAll, readState } from './log.mjs';
import { followSse } from './sse.mjs';

/**
 * Checks each promise of a service's stream. A check gets the service and the newest part of its
 * log, read in pages. If the promise is broken, the check throws. Otherwise it returns its
 * findings, or `skip(why)` if this log cannot test the promise.
 */

class Skipped {
  constructor(why) {
    this.why = why;
  }
}
const skip = (why) => new Skipped(why);

const describe = (event) => (event === undefined ? 'nothing' : `${event.offset} ${event.id}`);

/** Throws at the first difference. `data` must have the same bytes on every transport. */
const expectSame = (got, wanted, what) => {
  for (let at = 0; at < Math.max(got.length, wanted.length); at += 1) {
    const [one, other] = [got[at], wanted[at]];
    if (one?.offset !== other?.offset || one?.id !== other?.id) {
      throw new Error(`${what}: ${describe(one)} where ${describe(other)} is due`);
    }
    for (const name of ['event', 'data', 'timestamp']) {
      if (JSON.stringify(one[name]) !== JSON.stringify(other[name])) {
        throw new Error(`${what}: ${name} of ${one.offset} is different`);
      }
    }
  }
};

const collect = (until) => {
  const events = [];
  const take = (event) => events.push(event) > 0 && event.offset >= until;
  return { events, take };
};

/** Private events leave gaps in the offsets. `checkDigest` finds events that are really missing. */
const checkOrder = async ({ events, after, until }) => {
  const ids = new Set(events.map(({ id }) => id));
  if (ids.size < events.length) throw new Error('an id comes twice');
  events.forEach(({ offset }, at) => {
    const before = events[at - 1]?.offset ?? after;
    if (offset <= before) throw new Error(`${offset} comes after ${before}`);
  });
  return `${events.length} events, ${after + 1} to ${until}`;
};

const digestAt = async (url, offset) => {
  const { body } = await getJson(`${url}/api/events/digest?limit=1&at=${offset}`);
  return body.at.digest;
};

const digestOf = (events, before) =>
  events.reduce((digest, { offset, id, event, data, timestamp }) => {
    const text = `${digest} ${offset} ${id} ${JSON.stringify({ event, data, timestamp })}`;
    return createHash('sha256').update(text).digest('hex');
  }, before);

const checkDigest = async ({ url, events, after, until }) => {
  const [before, wanted] = [await digestAt(url, after), await digestAt(url, until)];
  const digest = digestOf(events, before);
  if (digest !== wanted) throw new Error(`${digest} where ${wanted} is due: something is missing`);
  return `${digest.slice(0, 12)}… at ${until}`;
};

const checkTick = async ({ url }) => {
  const { head } = await readState(url);
  const ending = new AbortController();
  const got = [];
  const tick = await new Promise((resolve, reject) => {
    const onOpen = (socket) =>
      socket.on('message', (text) => {
        const frame = JSON.parse(String(text));
        if (frame.op !== 'tick' || frame.digest === undefined) return;
        resolve(frame);
        ending.abort();
      });
    const take = (event) => void got.push(event);
    const { signal } = ending;
    follow({ url, topics: ['all'], after: head, take, onOpen, signal }).catch(reject);
    setTimeout(() => reject(new Error('no tick for a minute')), 60_000).unref();
  });
  const seen = got.filter(({ offset }) => offset <= tick.head);
  if (digestOf(seen, await digestAt(url, head)) !== tick.digest) {
    throw new Error(`the tick at ${tick.head} has another digest than what came before it`);
  }
  return `${seen.length} events, and a tick at ${tick.head} that agrees`;
};

const checkLines = async ({ url, events, after }) => {
  const most = Math.min(100, events.length);
  const answer = await fetch(`${url}/api/events?after=${after}&limit=${most}&format=ndjson`);
  const lines = (await answer.text()).trim().split('\n');
  expectSame(
    lines.map((line) => JSON.parse(line)),
    events.slice(0, most),
    'as lines',
  );
  return `${most} lines`;
};

const checkSocket = async ({ url, events, after, until }) => {
  const { events: got, take } = collect(until);
  const { connections } = await follow({ url, topics: ['all'], after, take });
  expectSame(got, events, 'over the socket');
  return `${got.length} events over ${connections} connection(s)`;
};

const checkSse = async ({ url, events, after, until }) => {
  const { events: got, take } = collect(until);
  await followSse({ url, after, take });
  expectSame(got, events, 'as server-sent events');
  return `${got.length} events`;
};

const withCuts = async ({ url, random, events }, run) => {
  // About ten cuts, however long the log is.
  const bytes = events.length * 500;
  const cutter = await startCutter(url, { random, most_bytes: Math.max(20_000, bytes / 5) });
  try {
    await run(cutter.url);
    return `${events.length} events through ${cutter.cuts()} cuts`;
  } finally {
    cutter.close();
  }
};

const checkSocketCuts = (service) =>
  withCuts(service, async (cut_url) => {
    const { url, events, after, until } = service;
    const { events: got, take } = collect(until);
    await follow({ url: cut_url, pages_url: url, topics: ['all'], after, take });
    expectSame(got, events, 'over cut sockets');
  });

const checkSseCuts = (service) =>
  withCuts(service, async (cut_url) => {
    const { events, after, until } = service;
    const { events: got, take } = collect(until);
    await followSse({ url: cut_url, after, take });
    expectSame(got, events, 'over cut streams');
  });

/** Filters that this part of the log can test, each with the events that pass it. */
const filtersOf = (events) => {
  const names = [...new Set(events.map(({ event }) => event))];
  const [question] = events.flatMap(({ data }) => data.question_id ?? []);
  const families = events.flatMap(({ data }) => data.model_family ?? []);
  return [
    ...names.slice(0, 2).map((name) => [{ events: [name] }, ({ event }) => event === name]),
    ...(question === undefined
      ? []
      : [[{ question_ids: [question] }, ({ data }) => data.question_id === question]]),
    ...families
      .slice(0, 1)
      .map((family) => [{ model_family: [family] }, ({ data }) => data.model_family === family]),
  ];
};

const checkFilters = async ({ url, events, after }) => {
  const seen = [];
  for (const [filter, passes] of filtersOf(events)) {
    const wanted = events.filter(passes);
    if (wanted.length === 0) continue;
    const last = wanted.at(-1).offset;
    const { events: got, take } = collect(last);
    await follow({ url, topics: ['all'], filter, after, take });
    expectSame(got, wanted, `with ${JSON.stringify(filter)}`);
    const query = Object.entries(filter).map(([name, values]) => `&${name}=${values.join(',')}`);
    const pages = await readAll(url, { after, until: last, query: query.join('') });
    expectSame(pages, wanted, `in pages with ${JSON.stringify(filter)}`);
    seen.push(`${Object.keys(filter)} ${wanted.length}`);
  }
  return seen.length === 0 ? skip('no event that a filter could keep') : seen.join(', ');
};

const checkEpoch = async ({ url, until }) => {
  const ahead = until + 1_000_000_000;
  const { body } = await getJson(`${url}/api/events?after=${ahead}&limit=1`);
  if (body.gap?.reason !== 'epoch') throw new Error(`over HTTP: ${JSON.stringify(body.gap)}`);
  const ending = new AbortController();
  const frame = await new Promise((resolve, reject) => {
    const onOpen = (socket) =>
      socket.on('message', (text) => {
        const got = JSON.parse(String(text));
        if (got.op !== 'gap' && got.op !== 'subscribed') return;
        resolve(got);
        socket.close();
        ending.abort();
      });
    const take = () => true;
    follow({ url, topics: ['all'], after: ahead, take, onOpen, signal: ending.signal }).catch(
      reject,
    );
  });
  if (frame.reason !== 'epoch') throw new Error(`over the socket: ${JSON.stringify(frame)}`);
  return 'an offset that the log never had is a gap with reason epoch';
};

const checkFar = async ({ url, head, oldest }) => {
  const after = Math.max(0, oldest - 2);
  if (head - after <= 10_000 && oldest === 1) return skip('the log is short enough for a replay');
  const from = Math.max(after, oldest - 1);
  const wanted = await readAll(url, { after: from, until: Math.min(head, after + 2_000) });
  const last = wanted.at(-1)?.offset;
  if (last === undefined) return skip('what is oldest is private');
  const { events: got, take } = collect(last);
  const { gaps } = await follow({ url, topics: ['all'], after: from, take });
  expectSame(got, wanted, 'from far behind');
  return `${gaps.length} gap(s) said, ${got.length} events read over HTTP`;
};

const idle_ms = 2_000;

const checkSlow = async ({ url, events, after, until }) => {
  const { events: got, take } = collect(until);
  let pauses = 0;
  const onOpen = (socket) => {
    socket.once('message', () => {
      socket.pause();
      pauses += 1;
      setTimeout(() => socket.resume(), idle_ms);
    });
  };
  const { gaps } = await follow({ url, topics: ['all'], after, take, onOpen });
  expectSame(got, events, 'to a reader that paused');
  return `${got.length} events after ${pauses} pause(s) of ${idle_ms} ms, ${gaps.length} gap(s)`;
};

const live_ms = 10_000;

const checkLive = async ({ url }) => {
  const { head } = await readState(url);
  const got = [];
  const ends_ms = performance.now() + live_ms;
  const ending = new AbortController();
  const take = (event) =>
    got.push(event) > 0 && (performance.now() > ends_ms || got.length === 500);
  const following = follow({ url, topics: ['all'], after: head, take, signal: ending.signal });
  await Promise.race([following, pause(live_ms)]);
  ending.abort();
  if (got.length === 0) return skip(`nothing happened for ${live_ms / 1_000} s`);
  const wanted = await readAll(url, { after: head, until: got.at(-1).offset });
  expectSame(got, wanted, 'live');
  return `${got.length} events as they happened`;
};

const checkWait = async ({ url }) => {
  const { head } = await readState(url);
  const begin_ms = performance.now();
  const { body } = await getJson(`${url}/api/events?after=${head}&limit=100&wait=5`);
  const waited_ms = performance.now() - begin_ms;
  if (body.events.length === 0 && waited_ms < 4_000) throw new Error('it did not wait');
  if (body.events.length > 0 && body.events[0].offset <= head) {
    throw new Error(`${body.events[0].offset}, which is not behind ${head}`);
  }
  return `${body.events.length} event(s) after ${Math.round(waited_ms)} ms`;
};

export const checks = {
  'offsets in order, ids without a repeat': checkOrder,
  'the digest is that of the events': checkDigest,
  'lines are the events of the page': checkLines,
  'the socket replays the same events': checkSocket,
  'server-sent events are the same': checkSse,
  'a socket that is cut goes on behind its cursor': checkSocketCuts,
  'a stream that is cut goes on behind Last-Event-ID': checkSseCuts,
  'filters keep what they say, and prev counts what passes': checkFilters,
  'an offset that never was is a gap': checkEpoch,
  'what is too much for a replay is said, and to be had over HTTP': checkFar,
  'a slow reader loses nothing': checkSlow,
  'live events are those of the pages': checkLive,
  'the digest of a tick is that of what came before it': checkTick,
  'a call that waits is answered by the next event': checkWait,
};

export { Skipped };
