import { setTimeout as pause } from 'node:timers/promises';
import WebSocket from 'ws';
import { readEvents } from './log.mjs';

/** The simplest possible follower: it remembers the newest offset, and reconnects after it. */

const again_ms = 50;

/** URL of the websocket. */
export const socketUrl = (url) => `${url.replace(/^http/, 'ws')}/ws`;

/**
 * Calls `take` with each event until `take` returns true. Resolves with statistics about the run.
 * Gaps are filled over HTTP from `pages_url`. Rejects on an error frame, and on a wrong `prev`.
 */
export const follow = async ({
  url,
  pages_url = url,
  topics,
  filter,
  after,
  take,
  onOpen,
  signal,
}) => {
  const seen = { connections: 0, gaps: [], ticks: [] };
  let last = after;
  /** The newest offset of the topic. Null if unknown. */
  let newest = null;
  let is_done = false;
  const deliver = (event) => {
    if (event.offset <= last) throw new Error(`offset ${event.offset} comes after ${last}`);
    last = event.offset;
    is_done = take(event) === true;
  };
  const fill = async (until) => {
    const query = topics[0] === 'all' ? '' : `&topic=${topics.join(',')}`;
    for await (const event of readEvents(pages_url, { after: last, until, query })) {
      if (!is_done) deliver(event);
    }
    last = Math.max(last, until);
    newest = null;
  };
  const connectOnce = () =>
    new Promise((resolve, reject) => {
      const socket = new WebSocket(socketUrl(url), { perMessageDeflate: false });
      seen.connections += 1;
      let work = Promise.resolve();
      const end = () => socket.terminate();
      signal?.addEventListener('abort', end);
      const fail = (error) => {
        socket.terminate();
        reject(error);
      };
      const onFrame = async (frame) => {
        if (is_done) return;
        if (frame.op === 'error') throw new Error(`refused: ${JSON.stringify(frame)}`);
        if (frame.op === 'tick') seen.ticks.push(frame);
        if (frame.op === 'gap') {
          seen.gaps.push(frame);
          await fill(frame.until);
        }
        if (is_done) socket.terminate();
        if (frame.op !== 'event' || is_done) return;
        if (newest !== null && frame.prev > newest) {
          throw new Error(`${frame.offset} has prev ${frame.prev}, and ${newest} came before it`);
        }
        newest = frame.offset;
        deliver(frame);
        if (is_done) socket.terminate();
      };
      socket.on('open', () => {
        const wanted = filter === undefined ? {} : { filter };
        socket.send(JSON.stringify({ op: 'subscribe', topics, after: last, ...wanted }));
        onOpen?.(socket);
      });
      socket.on('message', (text) => {
        work = work.then(() => onFrame(JSON.parse(String(text)))).catch(fail);
      });
      socket.on('error', () => undefined);
      // A cut during the upgrade is treated like any other cut.
      socket.on('unexpected-response', (_, answer) => {
        if (answer.statusCode === 429 || answer.statusCode >= 500) socket.terminate();
        else fail(new Error(`the upgrade is answered with ${answer.statusCode}`));
      });
      socket.on('close', (code) => {
        signal?.removeEventListener('abort', end);
        const is_final = code >= 4000 && code < 4100;
        if (is_final) fail(new Error(`closed with ${code}`));
        else work.then(resolve);
      });
    });
  const isOver = () => is_done || signal?.aborted;
  while (!isOver()) {
    await connectOnce();
    if (!isOver()) await pause(again_ms);
  }
  return seen;
};
