import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import type { Sql } from '../src/db/client.js';
import { planDeliveries } from '../src/features/webhooks/index.js';
import { createSealer } from '../src/features/webhooks/signing.js';
import { insertWebhook } from '../src/features/webhooks/store.js';
import { makeId } from '../src/kit/ids.js';
import { makeDevCa } from '../src/process/embedded/dev-ca.js';
import { type Bed, makeKeys, prepareOnBed } from './env/bed.js';
import { startChild } from './env/child.js';
import { makeBody, nowMs, startEmitter } from './env/events.js';
import { type Groups, startMeter } from './env/processes.js';
import { agentId, seed } from './env/seed.js';
import { startPeer, startService } from './env/service.js';
import {
  type Bench,
  type Formula,
  figureOf,
  ratioOf,
  type Sample,
  type Subject,
} from './frame/bench.js';
import type { ReceiveJob, ReceiverHandlers } from './load/receiver-process.js';
import type { DeliveryJob } from './peers/bullmq-worker.js';

/**
 * Signed HTTPS deliveries to receivers on this machine: how many a second out of a backlog, and how
 * long after its event one arrives at a steady 500 a second, beside a BullMQ worker that does the
 * same with `fetch`. Then what 50 endpoints notice of one that is dead with 5,000 deliveries due,
 * and how a backlog of 100,000 drains. A round counts only when everything has arrived, signed,
 * exactly once.
 */

const backlog = {
  path: '/h',
  endpoints: 128,
  first_owner: 0,
  an_owner: 4,
  event: 'dispute.opened',
};
/** Events at a steady rate, each for the one endpoint of its owner. */
const flow = {
  path: '/f',
  endpoints: 50,
  first_owner: 100,
  an_owner: 1,
  event: 'dispute.resolved',
};
const dead = {
  path: '/dead',
  endpoints: 1,
  first_owner: 200,
  an_owner: 1,
  event: 'question.closed',
};
const owners = 201;
const dead_due = 5_000;
const flow_per_second = 500;
const warm_up_deliveries = 4_000;
const outage_due = 100_000;
/** A receiver answers after this time while the backlog of an outage drains. */
const outage_answer_ms = 10;
/** At two in flight. */
const endpoint_most_per_second = (2 * 1_000) / outage_answer_ms;
const peer_concurrency = 256;

const secret_key = 'bench-secret-key-0123456789abcdefghij';
/** Of every webhook. */
const secret = 'ab'.repeat(32);

const addHooks = async (
  sql: Sql,
  { path: start, endpoints, first_owner, an_owner, event }: typeof backlog,
  base: string,
): Promise<string> => {
  const sealer = createSealer(secret_key);
  let id = '';
  for (let n = 0; n < endpoints; n += 1) {
    id = makeId();
    await insertWebhook(sql, {
      ...{ id, url: `${base}${start}/${n}`, events: [event] },
      owner: { kind: 'agent', id: agentId(first_owner + Math.floor(n / an_owner)) },
      secret_sealed: sealer.seal(id, secret),
    });
  }
  return id;
};

/** Records events and plans them in one transaction: with its commit all deliveries are due. */
const recordBacklog = async (sql: Sql, event: string, count: number): Promise<void> => {
  await sql.begin(async (tx) => {
    const [head] = await tx<{ offset: number; today: string }[]>`
      update log_head
      set "offset" = "offset" + ${count}
      returning "offset", (now() at time zone 'UTC')::date::text as today`;
    if (head === undefined) throw new Error('The log has no head.');
    const first = head.offset - count + 1;
    const rows = Array.from({ length: count }, (_, n) => ({
      ...{ offset: first + n, id: makeId(), body: makeBody({ n, at: nowMs() }, event) },
    }));
    await tx`
      insert into events ("offset", recorded_on, recorded_at, id, event, body)
      select "offset", ${head.today}::date, now(), id, ${event}, body
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as d (
        "offset" bigint, id uuid, body text
      )`;
    await planDeliveries(tx, { first, last: head.offset });
  });
};

/** Calls `emit` with numbers of events at a steady rate; what a stall held up follows at once. */
const emitAtRate = async (
  count: number,
  emit: (numbers: readonly number[]) => Promise<unknown>,
): Promise<void> => {
  const started_ms = performance.now();
  const running: Promise<unknown>[] = [];
  for (let next = 0; next < count; ) {
    const due = Math.ceil(((performance.now() - started_ms) * flow_per_second) / 1_000);
    const numbers = Array.from({ length: Math.min(due, count) - next }, (_, n) => next + n);
    next += numbers.length;
    if (numbers.length > 0) running.push(emit(numbers));
    await delay(10);
  }
  await Promise.all(running);
};

const startReceivers = async (bed: Bed) => {
  const made = await makeDevCa();
  const write = (name: 'ca' | 'key' | 'cert'): string => {
    const file = path.join(bed.context.folder, `receivers-${name}.pem`);
    writeFileSync(file, made[name], { mode: 0o600 });
    return file;
  };
  const child = startChild<ReceiverHandlers>(
    new URL('./load/receiver-process.js', import.meta.url),
  );
  bed.onClose(child.stop);
  const files = { key_file: write('key'), cert_file: write('cert') };
  const port = await child.call('listen', { ...files, secret });
  return { ...child, ca_file: write('ca'), base: `https://127.0.0.1:${port}` };
};

type Receivers = Awaited<ReturnType<typeof startReceivers>>;

interface Run extends ReceiveJob {
  readonly name: string;
  readonly groups: Groups;
  /** Makes everything due, or puts it in at its rate. */
  readonly begin: () => Promise<unknown>;
}

/** Runs until everything has arrived, and returns how fast and how late. */
const measure = async (bed: Bed, receivers: Receivers, run: Run): Promise<Sample> => {
  const { name, wanted, answer_ms, groups, begin } = run;
  await bed.admin`checkpoint`;
  await receivers.call('expect', { wanted, answer_ms });
  const { postgres, redis } = bed.groups;
  const meter = startMeter({ ...groups, postgres, redis, receivers: () => [receivers.pid] });
  const arriving = receivers.call('arrived');
  await begin();
  const { count, repeats, wrong_signatures, seconds, ...sample } = await arriving;
  const metered = meter.stop();
  if (count !== wanted || repeats > 0 || wrong_signatures > 0) {
    const found = `${count} of ${wanted}, ${repeats} repeats, ${wrong_signatures} wrong signatures`;
    throw new Error(`${name}: ${found}.`);
  }
  return { per_second: wanted / seconds, ...sample, ...metered };
};

/** Sends webhooks: the service, or its peer. */
interface Sender {
  readonly name: string;
  readonly groups: Groups;
  /** Prepares about so many deliveries; `begin` makes all of them due. */
  prepare(least: number): Promise<{ readonly wanted: number; begin(): Promise<unknown> }>;
  /** Events with these numbers, each for the endpoint of one owner. */
  emit(numbers: readonly number[]): Promise<unknown>;
  /** Waits until nothing is under way. */
  settle(): Promise<void>;
}

const startForum = async (bed: Bed, receivers: Receivers) => {
  let dead_id = '';
  await bed.createDatabase('service', async (sql) => {
    await seed(sql, { keys: makeKeys(owners), questions: 1 });
    await addHooks(sql, backlog, receivers.base);
    await addHooks(sql, flow, receivers.base);
    dead_id = await addHooks(sql, dead, receivers.base);
    await recordBacklog(sql, dead.event, dead_due);
    await sql`
      update deliveries set next_at = now() + interval '1 day' where webhook_id = ${dead_id}`;
    await sql`vacuum analyze`;
  });
  const { sql, groups } = await startService(bed, {
    SECRET_KEY: secret_key,
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    WEBHOOK_CA_FILE: receivers.ca_file,
    WEBHOOK_ALLOW_IN_PRODUCTION: 'true',
  });
  const emit = await startEmitter(bed, sql);
  const sender: Sender = {
    name: 'service',
    groups,
    async prepare(least) {
      const events = Math.ceil(least / backlog.endpoints);
      const begin = () => recordBacklog(sql, backlog.event, events);
      return { wanted: events * backlog.endpoints, begin };
    },
    emit(numbers) {
      const at = nowMs();
      const audienceOf = (n: number) => agentId(flow.first_owner + (n % flow.endpoints));
      return emit(numbers.map((n) => ({ n, at, event: flow.event, audience_id: audienceOf(n) })));
    },
    async settle() {
      const states = ['pending', 'waiting', 'sending'];
      const look = () => sql`
        select from deliveries
        where webhook_id <> ${dead_id} and state = any (${states})
        limit 1`;
      while ((await look()).length > 0) await delay(50);
    },
  };
  /** Makes all deliveries of the dead endpoint due, or none for as long as the bench takes. */
  const setDead = async (is_on: boolean): Promise<void> => {
    const moved = await sql`
      update deliveries
      set state = 'pending', attempts = 0,
        next_at = now() + ${is_on ? 0 : 86_400} * interval '1 second'
      where webhook_id = ${dead_id} and state in ('pending', 'waiting')`;
    await sql`update webhooks set paused_until = null, trips = 0 where id = ${dead_id}`;
    if (moved.count < dead_due / 2) throw new Error(`Only ${moved.count} deliveries are due.`);
  };
  return { sender, setDead };
};

const startBullmq = async (bed: Bed, receivers: Receivers): Promise<Sender> => {
  const connection = new Redis(bed.redis_url.replace(/^unix:/, ''), { maxRetriesPerRequest: null });
  bed.onClose(() => connection.disconnect());
  const queue = new Queue<DeliveryJob>('deliveries', { connection });
  bed.onClose(() => queue.close());
  const { groups } = await startPeer(bed, {
    name: 'bullmq',
    module: 'bullmq-worker',
    env: {
      QUEUE: 'deliveries',
      CONCURRENCY: String(peer_concurrency),
      NODE_EXTRA_CA_CERTS: receivers.ca_file,
    },
  });
  const add = (numbers: readonly number[], { path: start, endpoints, event }: typeof backlog) => {
    const at = nowMs();
    const jobs = numbers.map((n) => ({
      name: 'deliver',
      data: {
        ...{ url: `${receivers.base}${start}/${n % endpoints}`, event, secret, offset: n },
        ...{ event_id: makeId(), delivery_id: makeId(), body: makeBody({ n, at }, event) },
      },
      opts: {
        ...{ attempts: 10, removeOnComplete: true },
        backoff: { type: 'exponential', delay: 5_000 },
      },
    }));
    return queue.addBulk(jobs);
  };
  return {
    name: 'bullmq',
    groups,
    async prepare(wanted) {
      await queue.pause();
      const bulk = 1_000;
      for (let first = 0; first < wanted; first += bulk) {
        const length = Math.min(bulk, wanted - first);
        const numbers = Array.from({ length }, (_, n) => first + n);
        await add(numbers, backlog);
      }
      return { wanted, begin: () => queue.resume() };
    },
    emit: (numbers) => add(numbers, flow),
    settle: async () => undefined,
  };
};

/** How far an endpoint was called faster than two calls in flight allow. */
const spike: Formula = (of) => {
  const most = of['service_outage']?.['most_in_a_second'];
  return most === undefined ? undefined : most / endpoint_most_per_second;
};

export const bench: Bench = {
  name: 'webhooks',
  question: 'How many signed webhooks a second, how soon after the event, and who waits for whom?',
  figures: {
    backlog_over_bullmq: ratioOf('service_backlog', 'bullmq_backlog'),
    p99_ms_at_500: figureOf('service_flow', 'p99_ms'),
    p99_beside_dead_over_alone: ratioOf('service_beside_dead', 'service_flow', 'p99_ms'),
    outage_spike: spike,
    outage_most_open: figureOf('service_outage', 'most_open'),
  },
  prepare: prepareOnBed(async (bed) => {
    const { quick, seconds } = bed.context;
    const receivers = await startReceivers(bed);
    const { sender: forum, setDead } = await startForum(bed, receivers);
    const bullmq = await startBullmq(bed, receivers);

    const makeBacklog = (sender: Sender, name: string, least: number, answer_ms = 0): Subject => {
      const run = async (deliveries: number): Promise<Sample> => {
        const { groups } = sender;
        const { wanted, begin } = await sender.prepare(deliveries);
        const sample = await measure(bed, receivers, { name, wanted, answer_ms, groups, begin });
        await sender.settle();
        // In a backlog the time since the event says nothing.
        const { p50_ms: _, p99_ms: __, max_ms: ___, ...rest } = sample;
        return rest;
      };
      return { name, warmUp: () => run(warm_up_deliveries), round: () => run(least) };
    };
    const makeFlow = (sender: Sender, name: string, is_dead_on = false): Subject => {
      const run = async (for_seconds: number): Promise<Sample> => {
        const { groups } = sender;
        const wanted = flow_per_second * for_seconds;
        if (is_dead_on) await setDead(true);
        const begin = () => emitAtRate(wanted, sender.emit);
        const sample = await measure(bed, receivers, { name, wanted, answer_ms: 0, groups, begin });
        if (is_dead_on) await setDead(false);
        await sender.settle();
        return sample;
      };
      return { name, warmUp: () => run(2), round: () => run(seconds) };
    };

    const deliveries = quick ? 8_000 : 4_000 * seconds;
    const due = quick ? 20_000 : outage_due;
    return {
      stages: [
        () => [
          makeBacklog(forum, 'service_backlog', deliveries),
          makeBacklog(bullmq, 'bullmq_backlog', deliveries),
        ],
        () => [
          makeFlow(forum, 'service_flow'),
          makeFlow(forum, 'service_beside_dead', true),
          makeFlow(bullmq, 'bullmq_flow'),
        ],
        () => [makeBacklog(forum, 'service_outage', due, outage_answer_ms)],
      ],
    };
  }),
};
