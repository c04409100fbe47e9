import type { Socket } from 'node:net';
import { serve } from '../env/child.js';
import { latenciesOf } from './load.js';
import { makeFrame, openSocket } from './socket-connection.js';

/**
 * Many websocket subscribers in one process. For most of them only frame lengths are read. One in
 * `sample_every` is read in full, to check the latency and the order of its events.
 */
export interface SubscribeJob {
  readonly port: number;
  readonly path: string;
  readonly count: number;
  /** Text frames to send once the socket is open. */
  readonly hello: readonly string[];
  /** A frame that starts with this text means that the socket is ready. */
  readonly ready: string;
  /** A heartbeat of some protocols on top of websockets: `pong` answers `text`. */
  readonly ping?: { readonly text: string; readonly pong: string };
  readonly sample_every: number;
}

/** Shorter frames are heartbeats and answers. */
const min_event_bytes = 256;
const opened_at_once = 64;
/** Members of the event data that are used for measuring. */
const measured = /"n":(\d+),"at":([\d.]+)/;

const startCount = () => ({ delivered: 0, ended: 0, holes: 0, latencies_ms: [] as number[] });
let count = startCount();
let sockets: Socket[] = [];
let is_closing = false;

const takeSampled = (text: string, last: number): number => {
  const found = measured.exec(text);
  if (found === null) return last;
  const n = Number(found[1]);
  if (last >= 0 && n !== last + 1) count.holes += 1;
  count.latencies_ms.push(performance.timeOrigin + performance.now() - Number(found[2]));
  return n;
};

const openOne = (job: SubscribeJob, n: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const { port, path, hello, ready, ping } = job;
    const is_sampled = n % job.sample_every === 0;
    let last = -1;
    const socket = openSocket({
      port,
      path,
      n,
      wants: (length) => is_sampled || length < min_event_bytes,
      onOpen: () => {
        for (const text of hello) socket.write(makeFrame(text));
      },
      onFrame(length, payload) {
        if (length >= min_event_bytes) count.delivered += 1;
        if (payload === undefined) return;
        const text = payload.toString();
        if (text.startsWith(ready)) resolve();
        else if (text === ping?.text) socket.write(makeFrame(ping.pong));
        else if (is_sampled) last = takeSampled(text, last);
      },
      onClose(why) {
        if (!is_closing) count.ended += 1;
        reject(new Error(`A subscriber ended before it was ready: ${why}`));
      },
    });
    sockets.push(socket);
  });

const handlers = {
  /** Opens all sockets, a few at a time, and waits until they are ready. */
  open: async (job: SubscribeJob): Promise<void> => {
    is_closing = false;
    let next = 0;
    const openSome = async (): Promise<void> => {
      while (next < job.count) await openOne(job, next++);
    };
    await Promise.all(Array.from({ length: opened_at_once }, openSome));
    count = startCount();
  },
  /** Event frames received since the sockets were opened. */
  delivered: (): number => count.delivered,
  /** Closes the sockets. */
  stop: () => {
    const { latencies_ms, ...sums } = count;
    is_closing = true;
    for (const socket of sockets) socket.destroy();
    sockets = [];
    return { ...sums, ...latenciesOf(latencies_ms) };
  },
};
export type SubscriberHandlers = typeof handlers;
serve(handlers);
