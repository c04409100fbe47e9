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
import { startChild } from './env/child.js';
import { makeBody, nowMs, startEmitter } from './env/events.js';
import { startMeter } from './env/processes.js';
import { agentId } from './env/seed.js';
import { type Setup, startForum, startPeer, type Target } from './env/setup.js';
import {
  type Bench,
  type BenchContext,
  figureOf,
  ratioOf,
  type Sample,
  type Subject,
} from './frame/bench.js';
import type { ReceiverHandlers } from './load/receiver-process.js';
import type { DeliveryJob } from './peers/bullmq-worker.js';

/**
 * Signed HTTPS deliveries to receivers on this machine. Measures deliveries per second from a
 * backlog, compared with a BullMQ worker that does the same with `fetch`. Also measures the delay
 * after an event at a steady 500 events per second. A round counts only if everything arrived,
 * signed, exactly once.
 */

interface Endpoints {
  readonly path: string;
  readonly count: number;
  readonly event: string;
  /** The number of the agent that owns endpoint `n`. */
  ownerOf(n: number): number;
}

const backlog: Endpoints = {
  path: '/h',
  count: 128,
  event: 'dispute.opened',
  ownerOf: (n) => Math.floor(n / 4),
};
/** Events at a steady rate, each for the only endpoint of its owner. */
const flow: Endpoints = {
  path: '/f',
  count: 50,
  event: 'dispute.resolved',
  ownerOf: (n) => 100 + n,
};
const owners = 150;
const flow_per_second = 500;
const warm_up_deliveries = 4_000;

const secret_key = 'bench-secret-key-0123456789abcdefghij';
/** Shared by all webhooks. */
const secret = 'ab'.repeat(32);

const addHooks = async (sql: Sql, endpoints: Endpoints, base: string): Promise<void> => {
  const sealer = createSealer(secret_key);
  for (let n = 0; n < endpoints.count; n += 1) {
    const id = makeId();
    await insertWebhook(sql, {
      id,
      url: `${base}${endpoints.path}/${n}`,
      events: [endpoints.event],
      owner: { kind: 'agent', id: agentId(endpoints.ownerOf(n)) },
      secret_sealed: sealer.seal(id, secret),
    });
  }
};

/** Records and plans events in one transaction, so that its commit makes all deliveries due. */
const recordBacklog = (sql: Sql, event: string, count: number): Promise<unknown> =>
  sql.begin(async (tx) => {
    const [head] = await tx<{ last: number }[]>`
      update log_head set "offset" = "offset" + ${count} returning "offset" as last`;
    const last = head!.last;
    const rows = Array.from({ length: count }, (_, n) => ({
      offset: last - n,
      id: makeId(),
      body: makeBody({ n, at: nowMs() }, event),
    }));
    await tx`
      insert into events ("offset", recorded_on, recorded_at, id, event, body)
      select "offset", (now() at time zone 'UTC')::date, now(), id, ${event}, body
      from json_to_recordset(${JSON.stringify(rows)}::text::json) as d (
        "offset" bigint, id uuid, body text
      )`;
    await planDeliveries(tx, { first: last - count + 1, last });
  });

const startReceivers = async (context: BenchContext) => {
  const made = await makeDevCa();
  const write = (name: 'ca' | 'key' | 'cert'): string => {
    const file = path.join(context.folder, `receivers-${name}.pem`);
    writeFileSync(file, made[name], { mode: 0o600 });
    return file;
  };
  const { call } = startChild<ReceiverHandlers>(context, 'load/receiver-process');
  const files = { key_file: write('key'), cert_file: write('cert') };
  const port = await call('listen', { ...files, secret });
  return { call, ca_file: write('ca'), base: `https://127.0.0.1:${port}` };
};

type Receivers = Awaited<ReturnType<typeof startReceivers>>;

interface Sender {
  readonly target: Pick<Target, 'watched' | 'all'>;
  /** Prepares a backlog of this many deliveries. The returned function makes all of them due. */
  prepare(deliveries: number): Promise<() => Promise<unknown>>;
}

const startService = async (context: BenchContext, receivers: Receivers) => {
  const { setup, service } = await startForum(context, {
    agents: owners,
    questions: 1,
    async fill(sql) {
      await addHooks(sql, backlog, receivers.base);
      await addHooks(sql, flow, receivers.base);
    },
    env: {
      SECRET_KEY: secret_key,
      WEBHOOK_CA_FILE: receivers.ca_file,
      WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
      WEBHOOK_ALLOW_IN_PRODUCTION: 'true',
    },
  });
  const { sql } = service;
  const emit = await startEmitter(setup, sql);
  return {
    setup,
    target: service,
    prepare: async (deliveries: number) => () =>
      recordBacklog(sql, backlog.event, deliveries / backlog.count),
    /** Emits this many events at a steady rate, each for the endpoint of one owner. */
    async emit(count: number): Promise<void> {
      const started_ms = performance.now();
      const audienceOf = (n: number) => agentId(flow.ownerOf(n % flow.count));
      const running: Promise<unknown>[] = [];
      for (let next = 0; next < count; await delay(10)) {
        const at = nowMs();
        const due = Math.ceil(((performance.now() - started_ms) * flow_per_second) / 1_000);
        const events = Array.from({ length: Math.min(due, count) - next }, () => next++).map(
          (n) => ({ n, at, event: flow.event, audience_id: audienceOf(n) }),
        );
        running.push(emit(events));
      }
      await Promise.all(running);
    },
    /** Waits until no delivery is in progress. */
    async settle(): Promise<void> {
      const look = () => sql`
        select from deliveries where state in ('pending', 'waiting', 'sending') limit 1`;
      while ((await look()).length > 0) await delay(50);
    },
  };
};

const startBullmq = async (setup: Setup, receivers: Receivers): Promise<Sender> => {
  const { context, redis_url } = setup;
  const connection = new Redis(redis_url.replace(/^unix:/, ''), { maxRetriesPerRequest: null });
  context.onClose(() => connection.disconnect());
  const queue = new Queue<DeliveryJob>('deliveries', { connection });
  context.onClose(() => queue.close());
  const env = { NODE_EXTRA_CA_CERTS: receivers.ca_file };
  const target = await startPeer(setup, { name: 'bullmq', module: 'bullmq-worker', env });
  const { event, count, path: start } = backlog;
  const backoff = { type: 'exponential', delay: 5_000 };
  const makeJob = (n: number) => ({
    name: 'deliver',
    data: {
      url: `${receivers.base}${start}/${n % count}`,
      event,
      secret,
      offset: n,
      event_id: makeId(),
      delivery_id: makeId(),
      body: makeBody({ n, at: nowMs() }, event),
    },
    opts: { attempts: 10, removeOnComplete: true, backoff },
  });
  return {
    target,
    async prepare(deliveries) {
      await queue.pause();
      const jobs = Array.from({ length: deliveries }, (_, n) => makeJob(n));
      while (jobs.length > 0) await queue.addBulk(jobs.splice(0, 1_000));
      return () => queue.resume();
    },
  };
};

export const bench: Bench = {
  question: 'How many signed webhooks are sent per second, and how soon after the event?',
  figures: {
    backlog_over_bullmq: { of: ratioOf('service_backlog', 'bullmq_backlog'), min: 3 },
    p99_ms_at_500: { of: figureOf('service_flow', 'p99_ms'), max: 60 },
  },
  async prepare(context) {
    const { quick, seconds } = context;
    const receivers = await startReceivers(context);
    const service = await startService(context, receivers);
    const bullmq = await startBullmq(service.setup, receivers);

    /** Sends deliveries and waits until all have arrived. Returns the rate and the delays. */
    const measure = async (
      { target }: Pick<Sender, 'target'>,
      wanted: number,
      begin: () => Promise<unknown>,
    ): Promise<Sample> => {
      const { admin, partsOf } = service.setup;
      await admin`checkpoint`;
      await receivers.call('expect', wanted);
      const meter = startMeter(undefined, () => partsOf(target));
      const arriving = receivers.call('arrived');
      await begin();
      const { count, repeats, wrong_signatures, seconds: took_s, ...latencies } = await arriving;
      const metered = { ...meter.stop(), ...meter.cpu(wanted) };
      if (count !== wanted || repeats > 0 || wrong_signatures > 0) {
        const wrong = `${repeats} repeats, ${wrong_signatures} wrong signatures`;
        throw new Error(`${count} of ${wanted} arrived, ${wrong}.`);
      }
      await service.settle();
      return { per_second: wanted / took_s, ...latencies, ...metered };
    };

    const makeBacklog = (name: string, sender: Sender): Subject => {
      const run = async (least: number): Promise<Sample> => {
        const wanted = Math.ceil(least / backlog.count) * backlog.count;
        return measure(sender, wanted, await sender.prepare(wanted));
      };
      const deliveries = quick ? 8_000 : 4_000 * seconds;
      return { name, warmUp: () => run(warm_up_deliveries), round: () => run(deliveries) };
    };
    const runFlow = (for_seconds: number): Promise<Sample> => {
      const wanted = flow_per_second * for_seconds;
      return measure(service, wanted, () => service.emit(wanted));
    };
    const flow_subject = {
      name: 'service_flow',
      warmUp: () => runFlow(2),
      round: () => runFlow(seconds),
    };

    return [
      () => [makeBacklog('service_backlog', service), makeBacklog('bullmq_backlog', bullmq)],
      () => [flow_subject],
    ];
  },
};
