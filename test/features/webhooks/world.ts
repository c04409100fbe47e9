import type { Test } from 'tap';
import {
  createWebhooks,
  planDeliveries,
  type Webhooks,
} from '../../../src/features/webhooks/index.js';
import { makeSecret } from '../../../src/features/webhooks/signing.js';
import { insertWebhook, type Owner } from '../../../src/features/webhooks/store.js';
import type { Deps } from '../../../src/http/deps.js';
import { makeId } from '../../../src/kit/ids.js';
import { createSigner, type SignerOptions } from '../../../src/process/start.js';
import { openAdmin } from '../../help/own-stores.js';
import { openParts, type PartsOptions } from '../../help/parts.js';
import { type Receiver, startReceiver } from '../../help/receiver.js';
import { openStores } from '../../help/stores.js';
import { until } from '../../help/until.js';

/** A receiver, stores, and shortcuts for webhooks and events, without the HTTP surface. */

export interface Hook {
  readonly id: string;
  readonly secret: string;
  readonly owner: Owner;
}

export interface HookOptions {
  readonly path?: string;
  readonly url?: string;
  readonly events?: readonly string[];
  readonly owner?: Owner;
}

export interface EventOptions {
  readonly event?: string;
  readonly audience_id?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface Delivery {
  readonly id: string;
  readonly webhook_id: string;
  readonly event_id: string;
  readonly event_offset: number;
  readonly state: string;
  readonly attempts: number;
  readonly claims: number;
  /** From the last attempt to the next. */
  readonly wait_ms: number;
  readonly lease_id: string | null;
}

export interface Attempt {
  readonly attempt: number;
  readonly status: number | null;
  readonly error: string | null;
  readonly answer: string | null;
}

export interface World {
  readonly deps: Deps;
  readonly receiver: Receiver;
  readonly webhooks: Webhooks;
  addHook(options?: HookOptions): Promise<Hook>;
  /** Records events as the relay does, and plans their deliveries; their ids. */
  record(...events: readonly EventOptions[]): Promise<string[]>;
  startSigner(options?: SignerOptions): Promise<{ stop(): Promise<void> }>;
  deliveries(): Promise<Delivery[]>;
  attempts(event_id: string): Promise<Attempt[]>;
  /** Waits until every delivery is in one of the states. */
  settled(count: number, ...states: readonly string[]): Promise<Delivery[]>;
  /** Makes waiting deliveries due. */
  makeDue(): Promise<void>;
}

export const newAgent = (): Owner => ({ kind: 'agent', id: makeId() });

export const bodyOf = ({ event = 'question.created', data = { n: 1 } }: EventOptions): string =>
  JSON.stringify({ event, data, timestamp: '2026-01-02T03:04:05.000Z' });

const recordEvents = async (deps: Deps, events: readonly EventOptions[]): Promise<string[]> =>
  deps.sql.begin(async (tx) => {
    const ids = events.map(() => makeId());
    const [head] = await tx<{ offset: number; today: string }[]>`
      update log_head
      set "offset" = "offset" + ${events.length}
      returning "offset", (now() at time zone 'UTC')::date::text as today`;
    if (head === undefined) throw new Error('the log has no head');
    const first = head.offset - events.length + 1;
    for (const [index, one] of events.entries()) {
      await tx`
        insert into events ("offset", recorded_on, recorded_at, id, event, audience_id, body)
        values (
          ${first + index}, ${head.today}::date, now(), ${ids[index] as string},
          ${one.event ?? 'question.created'}, ${one.audience_id ?? null}, ${bodyOf(one)}
        )`;
    }
    await planDeliveries(tx, { first, last: head.offset });
    return ids;
  });

export interface WorldOptions extends PartsOptions {
  /** DNS names of the receiver. */
  readonly names?: readonly string[];
}

export const makeWorld = async (t: Test, options: WorldOptions = {}): Promise<World> => {
  const receiver = await startReceiver(options.names);
  t.teardown(() => receiver.close());
  const env = {
    SECRET_KEY: 'k'.repeat(32),
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
    WEBHOOK_CA_FILE: receiver.ca_file,
    ...options.env,
  };
  const stores = options.stores ?? (await openStores(t));
  const { deps } = await openParts(t, { ...options, stores, env });
  const { sql } = deps;
  const webhooks = createWebhooks(deps.config);
  t.teardown(() => webhooks.close());

  // Whoever makes partitions may hold the table for a while.
  const looker = openAdmin(stores.database_url);
  t.teardown(() => looker.end());
  const deliveries = async (): Promise<Delivery[]> => looker<Delivery[]>`
    select
      d.id, d.webhook_id, d.event_id, d.event_offset, d.state, d.attempts, d.claims, d.lease_id,
      (extract(epoch from d.next_at - coalesce(
        (
          select max(a.at + a.latency_ms * interval '1 millisecond')
          from attempts a
          where a.webhook_id = d.webhook_id and a.event_id = d.event_id
        ),
        now()
      )) * 1000)::float8 as wait_ms
    from deliveries d
    order by d.event_offset, d.webhook_id`;

  return {
    deps,
    receiver,
    webhooks,
    deliveries,
    addHook: async ({ path = '/', url, events = ['question.created'], owner } = {}) => {
      const id = makeId();
      const secret = makeSecret();
      const who = owner ?? newAgent();
      const secret_sealed = webhooks.sealer.seal(id, secret);
      const target = url ?? receiver.url(path);
      await insertWebhook(sql, { id, owner: who, url: target, events, secret_sealed });
      return { id, secret, owner: who };
    },
    record: (...events) => recordEvents(deps, events),
    startSigner: async (signer_options = {}) => {
      const signer = createSigner(deps, { webhooks, sweep_ms: 50, ...signer_options });
      await signer.start();
      let stopping: Promise<void> | undefined;
      const stop = (): Promise<void> => {
        stopping ??= signer.stop();
        return stopping;
      };
      t.teardown(stop);
      return { stop };
    },
    attempts: async (event_id) => sql<Attempt[]>`
      select attempt, status, error, answer from attempts where event_id = ${event_id} order by at`,
    settled: async (count, ...states) =>
      until(`${count} deliveries ${states.join(' or ')}`, async () => {
        const all = await deliveries();
        const done = all.length === count && all.every((one) => states.includes(one.state));
        return done ? all : undefined;
      }),
    makeDue: async () => {
      await sql`update deliveries set next_at = now() where state = 'waiting'`;
    },
  };
};
