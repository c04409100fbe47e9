import { setTimeout as delay } from 'node:timers/promises';
import { type Bed, prepareOnBed } from './env/bed.js';
import { startPeer } from './env/peer.js';
import { rssMb } from './env/processes.js';
import { questionId } from './env/seed.js';
import { startServiceTarget } from './env/targets.js';
import { type Bench, figureOf, type Subject } from './frame/types.js';
import { type SubscriberGroup, startSubscribers } from './load/subscriber.js';
import type { SubscribeJob } from './load/subscribers.js';

/**
 * What an idle socket costs in memory: the resident memory of the api process with 10,000 of them,
 * each with one subscription, less that before they came. A process that had as many before has
 * room for them left, so the largest of the rounds counts. What the kernel keeps is not in it.
 */

const sockets = 10_000;
/** Memory that goes away again after a burst is not held against the sockets. */
const settle_ms = 3_000;

interface Target {
  readonly name: string;
  readonly port: number;
  readonly dialect: Pick<SubscribeJob, 'path' | 'hello' | 'ready'>;
  pid(): number;
}

const makeSubject = (group: SubscriberGroup, target: Target): Subject => {
  const { name, port, dialect, pid } = target;
  const open = (count: number): Promise<void> =>
    group.open({ ...dialect, port, count, at_once: 100, sample_every: sockets });
  return {
    name,
    async warmUp() {
      await open(300);
      await group.leave();
      await delay(settle_ms);
    },
    async round() {
      const before_mb = rssMb(pid());
      const started_ms = performance.now();
      await open(sockets);
      const per_second = sockets / ((performance.now() - started_ms) / 1_000);
      await group.start(() => undefined);
      await delay(settle_ms);
      const after_mb = rssMb(pid());
      const { ended } = await group.stop();
      await group.leave();
      await delay(settle_ms);
      if (ended > 0) throw new Error(`${name}: ${ended} of the sockets ended.`);
      const kb_a_socket = ((after_mb - before_mb) * 1_024) / sockets;
      return { per_second, rss_mb: after_mb, kb_a_socket };
    },
  };
};

const startTargets = async (bed: Bed): Promise<readonly Target[]> => {
  await bed.stores.createDatabase('service');
  const { port, groups } = await startServiceTarget(bed, { TRUSTED_PROXIES: '127.0.0.1' });
  const peer = await startPeer(new URL('./peers/fanout-uws.js', import.meta.url), {});
  bed.onClose(peer.stop);
  const hello = JSON.stringify({ op: 'subscribe', topics: [`question:${questionId(0)}`] });
  const service = { path: '/ws', hello, ready: '{"op":"subscribed"' };
  const bare = { path: '/', hello: '', ready: '{"op":"welcome"}' };
  return [
    { name: 'service', port, dialect: service, pid: () => groups.api()[0] ?? 0 },
    { name: 'uws', port: peer.port, dialect: bare, pid: () => peer.pid },
  ];
};

export const idle_sockets: Bench = {
  name: 'sockets',
  question: `How much memory does each of ${sockets} idle sockets take in the api process?`,
  reduce: { kb_a_socket: 'max', rss_mb: 'max' },
  ratios: {},
  figures: { kb_a_socket: figureOf('service', 'kb_a_socket') },
  prepare: prepareOnBed(async (bed) => {
    const group = startSubscribers();
    bed.onClose(group.close);
    const targets = await startTargets(bed);
    const subjects = targets.map((target) => makeSubject(group, target));
    return { stages: [() => ({ subjects })] };
  }),
};
