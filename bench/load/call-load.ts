import type { Socket } from 'node:net';
import { type KeyOptions, readKeys } from './requests.js';
import { openSocket } from './socket-client.js';
import { type LoadOptions, type LoadResult, Tally } from './tally.js';

/**
 * Load on the service by calls over websockets: a closed loop with so many calls in flight. Every
 * agent has its socket, and calls go over the sockets in turn.
 */
export const runCallLoad = async (
  options: LoadOptions & KeyOptions,
  requests: readonly Buffer[],
): Promise<LoadResult> => {
  const keys = readKeys(options);
  const tally = new Tally(options, requests);
  const sockets: Socket[] = [];
  const due_ms = new Float64Array(requests.length);
  let is_over = false;

  const sendNext = (now_ms: number): void => {
    const k = tally.next;
    const request = tally.take();
    if (request === undefined) return;
    due_ms[k] = now_ms;
    sockets[k % sockets.length]!.write(request);
  };

  const onText = (text: string): void => {
    const reply = /^\{"op":"reply","id":(\d+),.*?"status":(\d+)/s.exec(text);
    if (reply === null) {
      if (text.startsWith('{"op":"error"')) tally.odd_answers.push(text.slice(0, 500));
      return;
    }
    const now_ms = performance.now();
    tally.count(Number(reply[2]), due_ms[Number(reply[1])]!, now_ms, () => text);
    if (now_ms < tally.end_ms) sendNext(now_ms);
  };

  const connect = (api_key: string, n: number): Promise<Socket> =>
    new Promise((resolve) => {
      const { port } = options;
      const socket = openSocket({
        ...{ port, path: '/ws', n, api_key, wants: () => true },
        onOpen: () => undefined,
        // The first frame is the welcome.
        onFrame: (_, payload) => {
          onText(payload!.toString());
          resolve(socket);
        },
        onClose(why) {
          if (is_over) return;
          tally.broken += 1;
          tally.odd_answers.push(why);
          resolve(socket);
        },
      });
    });

  for (let at = 0; at < keys.length; at += 64) {
    const some = keys.slice(at, at + 64).map((key, n) => connect(key, at + n));
    sockets.push(...(await Promise.all(some)));
  }
  const result = await tally.measure(() => {
    for (let n = 0; n < options.in_flight; n++) sendNext(tally.start_ms);
  });
  is_over = true;
  const closed = sockets.map((socket) => new Promise((done) => socket.once('close', done)));
  for (const socket of sockets) socket.destroy();
  await Promise.all(closed);
  return result;
};
