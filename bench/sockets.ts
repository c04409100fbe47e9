import { setTimeout as delay } from 'node:timers/promises';
import { startChild } from './env/child.js';
import { rssMb } from './env/processes.js';
import { questionId } from './env/seed.js';
import { startForum } from './env/setup.js';
import { type Bench, type BenchContext, figureOf, type Subject } from './frame/bench.js';
import type { SubscribeJob, SubscriberHandlers } from './load/subscriber-process.js';

/**
 * Memory per idle socket: the resident memory of the api process with 10,000 sockets, each with one
 * subscription, minus its memory before the sockets were opened. A process reuses memory from
 * earlier sockets, so the largest round counts. Kernel memory is not included.
 */

const sockets = 10_000;
/** Time for short-lived memory to be released after a burst. */
const settle_ms = 3_000;

export type Dialect = Pick<SubscribeJob, 'path' | 'hello' | 'ready' | 'ping'>;

/** For peers that have no protocol on top of websockets. */
export const plain: Dialect = { path: '/', hello: [], ready: '{"op":"welcome"}' };
/** For the service. */
export const dialectOf = (topic: string): Dialect => ({
  path: '/ws',
  hello: [JSON.stringify({ op: 'subscribe', topics: [topic] })],
  ready: '{"op":"subscribed"',
});

export const startSubscribers = (context: BenchContext) =>
  startChild<SubscriberHandlers>(context, 'load/subscriber-process');

export const bench: Bench = {
  question: `How much memory does each of ${sockets} idle sockets take in the api process?`,
  figures: { kb_a_socket: { of: figureOf('service', 'kb_a_socket'), max: 12 } },
  async prepare(context) {
    const { service } = await startForum(context, {
      agents: 1,
      questions: 1,
      env: { TRUSTED_PROXIES: '127.0.0.1' },
    });
    const group = startSubscribers(context);
    const { port, watched } = service;
    const dialect = dialectOf(`question:${questionId(0)}`);
    const open = (count: number) =>
      group.call('open', { ...dialect, port, count, sample_every: sockets });
    const close = async (): Promise<void> => {
      const { ended } = await group.call('stop');
      await delay(settle_ms);
      if (ended > 0) throw new Error(`${ended} of the sockets ended.`);
    };
    let kb_a_socket = 0;
    const subject: Subject = {
      name: 'service',
      async warmUp() {
        await open(300);
        await close();
      },
      async round() {
        const before_mb = rssMb(watched());
        const started_ms = performance.now();
        await open(sockets);
        const per_second = sockets / ((performance.now() - started_ms) / 1_000);
        await delay(settle_ms);
        const rss_mb = rssMb(watched());
        await close();
        kb_a_socket = Math.max(kb_a_socket, ((rss_mb - before_mb) * 1_024) / sockets);
        return { per_second, rss_mb, kb_a_socket };
      },
    };
    return [() => [subject]];
  },
};
