import type { Socket } from 'node:net';
import { serve } from '../env/child.js';
import { latenciesOf } from './load.js';
import { makeFrame, openSocket } from './socket-connection.js';

/**
 * Many websocket subscribers in one process. Of most, only the lengths of frames are read; one of
 * `sample_every` is read in full, for the time each event took and for its place in the sequence.
 */
export interface SubscribeJob {
  readonly port: number;
  readonly path: string;
  readonly count: number;
  /** Text frames that are sent once the socket is open. */
  readonly hello: readonly string[];
  /** A frame that begins so means the socket is ready. */
  readonly ready: string;
  /** Answered by `pong`: the heartbeat of a protocol above websockets. */
  readonly ping?: { readonly text: string; readonly pong: string };
  readonly sample_every: number;
}

/** Shorter frames are heartbeats and answers. */
const least_event_bytes = 256;
const opened_at_once = 64;
/** Members of the data of an event by which it is measured. */
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
      wants: (length) => is_sampled || length < least_event_bytes,
      onOpen: () => {
        for (const text of hello) socket.write(makeFrame(text));
      },
      onFrame(length, payload) {
        if (length >= least_event_bytes) count.delivered += 1;
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
  /** Opens all, some at a time, and waits until they are ready. */
  open: async (job: SubscribeJob): Promise<void> => {
    is_closing = false;
    let next = 0;
    const openSome = async (): Promise<void> => {
      while (next < job.count) await openOne(job, next++);
    };
    await Promise.all(Array.from({ length: opened_at_once }, openSome));
    count = startCount();
  },
  /** Event frames since the sockets were opened. */
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
