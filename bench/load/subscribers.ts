import net from 'node:net';
import { nowMs } from './fanout-events.js';
import { type Histogram, makeHistogram } from './histogram.js';
import { type FrameReader, makeFrameReader, makeTextFrame } from './ws-frames.js';

/**
 * Many websocket subscribers in one process that cost as little as they can: plain sockets into one
 * shared buffer. Of most, only the lengths of frames are read; one of `sample_every` is read in
 * full, for the time each event took and for its place in the sequence.
 */
export interface SubscribeJob {
  readonly port: number;
  readonly path: string;
  readonly count: number;
  /** Sockets opened at the same time. */
  readonly at_once: number;
  /** A text frame that is sent once the socket is open; none when empty. */
  readonly hello: string;
  /** A frame that begins so means the socket is ready. */
  readonly ready: string;
  /** Answered by `pong`: the heartbeat of a protocol above websockets. */
  readonly ping?: { readonly text: string; readonly pong: string };
  readonly sample_every: number;
}

/** Shorter frames are heartbeats and answers. */
export const least_event_bytes = 256;

export interface Subscribed {
  /** Event frames since `start`. */
  readonly delivered: number;
  readonly bytes: number;
  readonly reads: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly max_ms: number;
  readonly sampled: number;
  /** Sockets that ended, and places where a sampled one missed an event. */
  readonly ended: number;
  readonly holes: number;
}

interface Subscriber {
  readonly socket: net.Socket;
  readonly reader: FrameReader;
  is_open: boolean;
  is_ready: boolean;
  last: number;
}

/** Members of the data of an event by which it is measured. */
const stamps = /"n":(\d+),"at":([\d.]+)/;
const per_address = 150;

const handshake = (job: SubscribeJob, n: number): string =>
  [
    `GET ${job.path} HTTP/1.1`,
    `Host: 127.0.0.1:${job.port}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${Buffer.alloc(16, n % 256).toString('base64')}`,
    // A service that counts sockets by address sees many addresses.
    `X-Forwarded-For: 10.1.${Math.floor(n / per_address) >> 8}.${Math.floor(n / per_address) & 255}`,
    '',
    '',
  ].join('\r\n');

interface Group {
  readonly all: Subscriber[];
  /** What is read is looked at before the next read. */
  readonly shared: Buffer;
  readonly sums: Record<'delivered' | 'bytes' | 'reads' | 'ended' | 'holes', number>;
  latencies: Histogram;
  closing: boolean;
}

const takeSampled = ({ sums, latencies }: Group, subscriber: Subscriber, text: string): void => {
  const found = stamps.exec(text);
  if (found === null) return;
  const n = Number(found[1]);
  if (subscriber.last >= 0 && n !== subscriber.last + 1) sums.holes += 1;
  subscriber.last = n;
  latencies.record((nowMs() - Number(found[2])) * 1_000);
};

const openOne = (group: Group, job: SubscribeJob, n: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const { all, shared, sums } = group;
    const is_sampled = n % job.sample_every === 0;
    let said = '';
    const onText = (text: string): void => {
      if (!subscriber.is_ready) said = text.slice(0, 200);
      if (text.startsWith(job.ready)) {
        subscriber.is_ready = true;
        resolve();
      } else if (text === job.ping?.text) socket.write(makeTextFrame(job.ping.pong));
      else if (is_sampled) takeSampled(group, subscriber, text);
    };
    const onFrame = (length: number): void => {
      if (length >= least_event_bytes) sums.delivered += 1;
    };
    const onRead = (read: number): boolean => {
      sums.bytes += read;
      sums.reads += 1;
      subscriber.is_open ||= reader.open(shared.subarray(0, read), () => {
        if (job.hello !== '') socket.write(makeTextFrame(job.hello));
      });
      if (subscriber.is_open) reader.read(shared, read);
      return true;
    };
    const socket = net.connect({
      port: job.port,
      host: '127.0.0.1',
      noDelay: true,
      onread: { buffer: shared, callback: onRead },
    });
    const wants_text = (length: number): boolean => is_sampled || length < least_event_bytes;
    const reader = makeFrameReader({ onFrame, onText, wants_text });
    const subscriber: Subscriber = { socket, reader, is_open: false, is_ready: false, last: -1 };
    all.push(subscriber);
    socket.write(handshake(job, n));
    socket.on('error', (error) => {
      said ||= error.message;
    });
    socket.on('close', () => {
      if (!group.closing) sums.ended += 1;
      reject(new Error(`A subscriber was sent away before it was ready: ${said}`));
    });
  });

export const makeSubscribers = () => {
  const sums = { delivered: 0, bytes: 0, reads: 0, ended: 0, holes: 0 };
  const shared = Buffer.alloc(262_144);
  const group: Group = { all: [], shared, sums, latencies: makeHistogram(), closing: false };
  const { all } = group;
  return {
    /** Opens all, some at a time, and waits until they are ready. */
    async open(job: SubscribeJob): Promise<void> {
      let next = 0;
      const openSome = async (): Promise<void> => {
        while (next < job.count) {
          next += 1;
          await openOne(group, job, next - 1);
        }
      };
      await Promise.all(Array.from({ length: job.at_once }, openSome));
    },
    /** Measures from now on. */
    start(): void {
      group.latencies = makeHistogram();
      Object.assign(sums, { delivered: 0, bytes: 0, reads: 0, ended: 0, holes: 0 });
      for (const subscriber of all) subscriber.last = -1;
    },
    delivered: () => sums.delivered,
    stop: (): Subscribed => ({
      ...sums,
      p50_ms: group.latencies.quantile(0.5) / 1_000,
      p99_ms: group.latencies.quantile(0.99) / 1_000,
      max_ms: group.latencies.max_us / 1_000,
      sampled: group.latencies.count,
    }),
    close(): void {
      group.closing = true;
      for (const { socket } of all.splice(0)) socket.destroy();
    },
  };
};
