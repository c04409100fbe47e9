import { setTimeout as delay } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { makeId } from '../src/kit/ids.js';
import { type Bed, makeKeys, prepareOnBed } from './env/bed.js';
import {
  addHooks,
  atRate,
  emitEvents,
  type Flow,
  type HookKeys,
  makeBody,
  recordBacklog,
} from './env/deliveries.js';
import { startPeer } from './env/peer.js';
import { type Groups, startMeter, treeOf } from './env/processes.js';
import { type Receivers, startReceivers } from './env/receivers.js';
import { seed } from './env/seed.js';
import { openPool } from './env/stores.js';
import { type ServiceTarget, startServiceTarget } from './env/targets.js';
import { type Bench, figureOf, ratioOf, type Sample, type Subject } from './frame/types.js';
import type { Arrived, ReceiveJob } from './load/receiver-process.js';
import { type DeliveryJob, job_options } from './peers/bullmq-worker.js';

/**
 * Signed HTTPS deliveries to receivers on this machine: how many a second out of a backlog, and how
 * long after its event one arrives at a steady 500 a second, beside a BullMQ worker that does the
 * same with `fetch`. Then what 50 endpoints notice of one that is dead with 5,000 deliveries due,
 * and how a backlog of 100,000 drains. A round counts only when everything has arrived, signed,
 * exactly once.
 */

const endpoints = 128;
const endpoints_of_an_owner = 4;
/** Endpoints of what arrives at a steady rate, each with an owner of its own. */
const healthy = 50;
const first_healthy_owner = 100;
const dead_owner = 200;
const dead_due = 5_000;
const flow_per_second = 500;
const outage_due = 100_000;
/** What a receiver takes to answer while the backlog of an outage drains. */
const outage_answer_ms = 10;
/** At two in flight. */
const endpoint_most_per_second = (2 * 1_000) / outage_answer_ms;
const peer_concurrency = 256;
const patience_ms = 180_000;

const keys: HookKeys = {
  secret_key: 'bench-secret-key-0123456789abcdefghij',
  secret: 'ab'.repeat(32),
};
const event_of = {
  backlog: 'dispute.opened',
  flow: 'dispute.resolved',
  dead: 'question.closed',
} as const;

interface Yard {
  readonly bed: Bed;
  readonly receivers: Receivers;
  readonly redis: Redis;
  readonly service: ServiceTarget;
  readonly queue: Queue<DeliveryJob>;
  readonly worker_pid: number;
  readonly dead_id: string;
}

const urlOf = ({ receivers }: Pick<Yard, 'receivers'>, n: number): string =>
  receivers.url(`/h/${n}`);
const healthyUrl = ({ receivers }: Pick<Yard, 'receivers'>, n: number): string =>
  receivers.url(`/f/${n}`);

const requireAll = (name: string, arrived: Arrived, job: ReceiveJob): void => {
  const { count, repeats, wrong_signatures } = arrived;
  if (count === job.wanted && repeats === 0 && wrong_signatures === 0) return;
  throw new Error(
    `${name}: ${count} of ${job.wanted} arrived, ${repeats} repeats, ${wrong_signatures} wrong signatures.`,
  );
};

interface Run {
  readonly name: string;
  readonly job: ReceiveJob;
  readonly groups: Groups;
  /** Makes everything due, or puts it in at its rate. */
  readonly begin: () => Promise<unknown>;
}

/** Runs until everything has arrived, and says how fast and how late. */
const measure = async (yard: Yard, { name, job, groups, begin }: Run): Promise<Sample> => {
  const { bed, receivers } = yard;
  await bed.stores.admin`checkpoint`;
  const { arrived: arriving } = await receivers.expect(job);
  const shared = {
    postgres: bed.stores.postgresPids,
    redis: bed.stores.redisPids,
    receivers: () => [receivers.pid],
  };
  const meter = startMeter({ ...groups, ...shared }, () => []);
  await begin();
  const arrived = await arriving;
  const metered = meter.stop();
  requireAll(name, arrived, job);
  const seconds = (arrived.last_ms - arrived.first_ms) / 1_000;
  const { p50_ms, p99_ms, max_ms, most_open, most_in_a_second } = arrived;
  return {
    per_second: job.wanted / seconds,
    ...{ p50_ms, p99_ms, max_ms, most_open, most_in_a_second },
    ...metered,
  };
};

const cpuOf = ({ service }: Yard): Groups => ({
  cpu: service.groups.cpu,
});

const waitForSettled = async ({ service: { sql }, dead_id }: Yard): Promise<void> => {
  for (;;) {
    const rows = await sql`
      select from deliveries
      where webhook_id <> ${dead_id} and state in ('pending', 'waiting', 'sending')
      limit 1`;
    if (rows.length === 0) return;
    await delay(50);
  }
};

const serviceBacklog = (
  yard: Yard,
  name: string,
  options: { deliveries: number; answer_ms: number },
): Subject => {
  const run = async (deliveries: number): Promise<Sample> => {
    const events = Math.ceil(deliveries / endpoints);
    const { answer_ms } = options;
    const sample = await measure(yard, {
      name,
      job: { wanted: events * endpoints, answer_ms },
      groups: cpuOf(yard),
      begin: () => recordBacklog(yard.service.sql, event_of.backlog, events),
    });
    await waitForSettled(yard);
    const { p50_ms: _, p99_ms: __, max_ms: ___, ...rest } = sample;
    return rest;
  };
  return {
    name,
    warmUp: async () => void (await run(4_000)),
    round: () => run(options.deliveries),
  };
};

const makeJob = (url: string, event: string, n: number): DeliveryJob => ({
  ...{ url, event, secret: keys.secret, offset: n },
  ...{ event_id: makeId(), delivery_id: makeId(), body: makeBody(event, n) },
});

const bulk = 1_000;

const peerBacklog = (yard: Yard, deliveries: number): Subject => {
  const { queue } = yard;
  const name = 'bullmq_backlog';
  const run = async (wanted: number): Promise<Sample> => {
    await queue.pause();
    for (let first = 0; first < wanted; first += bulk) {
      const jobs = Array.from({ length: Math.min(bulk, wanted - first) }, (_, n) => ({
        name: 'deliver',
        data: makeJob(urlOf(yard, (first + n) % endpoints), event_of.backlog, first + n),
        opts: job_options,
      }));
      await queue.addBulk(jobs);
    }
    const sample = await measure(yard, {
      name,
      job: { wanted, answer_ms: 0 },
      groups: { cpu: () => treeOf(yard.worker_pid) },
      begin: () => queue.resume(),
    });
    const { p50_ms: _, p99_ms: __, max_ms: ___, ...rest } = sample;
    return rest;
  };
  return { name, warmUp: async () => void (await run(4_000)), round: () => run(deliveries) };
};

const flowFor = (seconds: number): Flow => ({
  event: event_of.flow,
  per_second: flow_per_second,
  count: flow_per_second * seconds,
  owners: Array.from({ length: healthy }, (_, n) => first_healthy_owner + n),
});

const serviceFlow = (yard: Yard, name: string, beside_dead: boolean): Subject => {
  const { sql } = yard.service;
  const run = async (seconds: number): Promise<Sample> => {
    const flow = flowFor(seconds);
    await setDead(yard, beside_dead);
    const sample = await measure(yard, {
      name,
      job: { wanted: flow.count, answer_ms: 0 },
      groups: cpuOf(yard),
      begin: () => emitEvents(sql, yard.redis, flow),
    });
    await setDead(yard, false);
    await waitForSettled(yard);
    return sample;
  };
  return {
    name,
    warmUp: async () => void (await run(2)),
    round: () => run(yard.bed.context.seconds),
  };
};

/** Makes all deliveries of the dead endpoint due, or none for as long as the bench takes. */
const setDead = async ({ service: { sql }, dead_id }: Yard, is_on: boolean): Promise<void> => {
  const wait_s = is_on ? 0 : 86_400;
  const moved = await sql`
    update deliveries
    set state = 'pending', attempts = 0, next_at = now() + ${wait_s} * interval '1 second'
    where webhook_id = ${dead_id} and state in ('pending', 'waiting')`;
  await sql`update webhooks set paused_until = null, trips = 0 where id = ${dead_id}`;
  if (moved.count < dead_due / 2) throw new Error(`Only ${moved.count} deliveries are due.`);
};

const peerFlow = (yard: Yard): Subject => {
  const { queue } = yard;
  const name = 'bullmq_flow';
  const run = async (seconds: number): Promise<Sample> => {
    const flow = flowFor(seconds);
    const add = (numbers: readonly number[]) =>
      queue.addBulk(
        numbers.map((n) => ({
          name: 'deliver',
          data: makeJob(healthyUrl(yard, n % healthy), flow.event, n),
          opts: job_options,
        })),
      );
    return measure(yard, {
      name,
      job: { wanted: flow.count, answer_ms: 0 },
      groups: { cpu: () => treeOf(yard.worker_pid) },
      begin: () => atRate(flow, add),
    });
  };
  return {
    name,
    warmUp: async () => void (await run(2)),
    round: () => run(yard.bed.context.seconds),
  };
};

const fillDatabase = async (bed: Bed, receivers: Receivers): Promise<string> => {
  await bed.stores.createDatabase('service');
  const sql = openPool(bed.stores.urlOf('service'), 'bench');
  await seed(sql, { keys: makeKeys(dead_owner + 1), questions: 1 });
  const backlog = Array.from({ length: endpoints }, (_, n) => ({
    owner: Math.floor(n / endpoints_of_an_owner),
    url: urlOf({ receivers }, n),
    event: event_of.backlog,
  }));
  const flow = Array.from({ length: healthy }, (_, n) => ({
    owner: first_healthy_owner + n,
    url: healthyUrl({ receivers }, n),
    event: event_of.flow,
  }));
  const dead = { owner: dead_owner, url: receivers.url('/dead'), event: event_of.dead };
  const ids = await addHooks(sql, [...backlog, ...flow, dead], keys);
  await recordBacklog(sql, event_of.dead, dead_due);
  const dead_id = ids.at(-1) as string;
  await sql`
    update deliveries
    set next_at = now() + interval '1 day'
    where webhook_id = ${dead_id}`;
  await sql.unsafe('vacuum analyze');
  await sql.end({ timeout: 5 });
  return dead_id;
};

const openRedis = (bed: Bed): Redis => {
  const redis = new Redis(bed.stores.redis_url.replace(/^unix:/, ''), {
    maxRetriesPerRequest: null,
  });
  bed.onClose(() => redis.disconnect());
  return redis;
};

const startYard = async (bed: Bed): Promise<Yard> => {
  const receivers = await startReceivers(bed, { secret: keys.secret, patience_ms });
  const dead_id = await fillDatabase(bed, receivers);
  const service = await startServiceTarget(bed, {
    SECRET_KEY: keys.secret_key,
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    WEBHOOK_CA_FILE: receivers.ca_file,
    WEBHOOK_ALLOW_IN_PRODUCTION: 'true',
  });
  const queue = new Queue<DeliveryJob>('deliveries', { connection: openRedis(bed) });
  bed.onClose(() => queue.close());
  const worker = await startPeer(new URL('./peers/bullmq-worker.js', import.meta.url), {
    REDIS_URL: bed.stores.redis_url,
    QUEUE: 'deliveries',
    CONCURRENCY: String(peer_concurrency),
    NODE_EXTRA_CA_CERTS: receivers.ca_file,
  });
  bed.onClose(worker.stop);
  const redis = openRedis(bed);
  return { bed, receivers, redis, service, queue, worker_pid: worker.pid, dead_id };
};

/** How far an endpoint was called faster than two calls in flight allow. */
const spike: Bench['ratios'][string] = (of) => {
  const most = of['service_outage']?.['most_in_a_second'];
  return most === undefined ? undefined : most / endpoint_most_per_second;
};

export const webhooks: Bench = {
  name: 'webhooks',
  question: 'How many signed webhooks a second, how soon after the event, and who waits for whom?',
  ratios: {
    backlog_over_bullmq: ratioOf('service_backlog', 'bullmq_backlog'),
    p99_beside_dead_over_alone: ratioOf('service_beside_dead', 'service_flow', 'p99_ms'),
    outage_spike: spike,
  },
  figures: {
    p99_ms_at_500: figureOf('service_flow', 'p99_ms'),
    outage_most_open: figureOf('service_outage', 'most_open'),
  },
  prepare: prepareOnBed(async (bed) => {
    const yard = await startYard(bed);
    const { quick, seconds } = bed.context;
    const deliveries = quick ? 8_000 : 4_000 * seconds;
    const due = quick ? 20_000 : outage_due;
    return {
      stages: [
        () => ({
          subjects: [
            serviceBacklog(yard, 'service_backlog', { deliveries, answer_ms: 0 }),
            peerBacklog(yard, deliveries),
          ],
        }),
        () => ({
          subjects: [
            serviceFlow(yard, 'service_flow', false),
            serviceFlow(yard, 'service_beside_dead', true),
            peerFlow(yard),
          ],
        }),
        () => ({
          subjects: [
            serviceBacklog(yard, 'service_outage', {
              deliveries: due,
              answer_ms: outage_answer_ms,
            }),
          ],
        }),
      ],
    };
  }),
};
