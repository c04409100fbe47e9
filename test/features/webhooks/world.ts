import type { ServerResponse } from 'node:http';
import type { Test } from 'tap';
import { streamKey } from '../../../src/features/events/log-entry.js';
import { createWebhooks, planDeliveries } from '../../../src/features/webhooks/index.js';
import { makeSecret } from '../../../src/features/webhooks/signing.js';
import {
  insertWebhook,
  type Owner,
  updateWebhook,
  type WebhookChange,
} from '../../../src/features/webhooks/store.js';
import type { Deps } from '../../../src/http/deps.js';
import { makeId } from '../../../src/kit/ids.js';
import { createSigner, type SignerOptions } from '../../../src/process/signer.js';
import { openAdmin } from '../../help/own-stores.js';
import { openParts, type PartsOptions } from '../../help/parts.js';
import { startReceiver } from '../../help/receiver.js';
import { openStores } from '../../help/stores.js';
import { until } from '../../help/until.js';

/** A receiver, stores, and shortcuts for webhooks and events, without the HTTP routes. */

interface HookOptions {
  readonly path?: string;
  readonly url?: string;
  readonly events?: readonly string[];
  readonly order?: 'none' | 'question';
  readonly owner?: Owner;
}

interface EventOptions {
  readonly event?: string;
  readonly audience_id?: string;
  readonly question_id?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

interface Delivery extends Record<'id' | 'webhook_id' | 'event_id' | 'state', string> {
  readonly event_offset: number;
  readonly attempts: number;
  readonly claims: number;
  /** Time from the last attempt to the next. */
  readonly wait_ms: number;
  readonly lease_id: string | null;
}

interface Attempt {
  readonly attempt: number;
  readonly status: number | null;
  readonly error: string | null;
  readonly answer: string | null;
}

/** This many events with default values. */
export const many = (count: number): readonly EventOptions[] =>
  Array.from({ length: count }, () => ({}));

export const newAgent = (): Owner => ({ kind: 'agent', id: makeId() });

export const bodyOf = ({ event = 'question.created', data = { n: 1 } }: EventOptions): string =>
  JSON.stringify({ event, data, timestamp: '2026-01-02T03:04:05.000Z' });

/** Adds an agent and, if `human` is given, the person who owns the agent. */
export const addAgent = async ({ sql }: Deps, id: string, human: string | null = null) => {
  if (human !== null) await addHuman({ sql }, human);
  await sql`
    insert into agents
      (id, name, name_key, model, model_family, persona_archetype, risk_profile, roles,
        referral_code, owner_id, linked_at, key_digest)
    values
      (${id}, 'owner', 'owner', 'm', 'other', 'data_driven', 'moderate', '{predictor}', 'CODE',
        ${human}, case when ${human !== null} then now() end, ${Buffer.alloc(32)})`;
};

export const addHuman = ({ sql }: Pick<Deps, 'sql'>, id: string) => sql`
  insert into humans (id, email, email_key, password_hash)
  values (${id}, 'a@b.dev', 'a@b.dev', '-')`;

const recordEvents = async (deps: Deps, events: readonly EventOptions[]): Promise<string[]> =>
  deps.sql.begin(async (tx) => {
    const ids = events.map(() => makeId());
    const [head] = await tx<{ offset: number; today: string }[]>`
      update log_head
      set "offset" = "offset" + ${events.length}
      returning "offset", (now() at time zone 'UTC')::date::text as today`;
    if (head === undefined) throw new Error('the log has no head');
    const first = head.offset - events.length + 1;
    const rows = events.map((one, index) => ({
      offset: first + index,
      recorded_on: head.today,
      recorded_at: new Date(),
      id: ids[index],
      event: one.event ?? 'question.created',
      body: bodyOf(one),
      audience_id: one.audience_id ?? null,
      question_id: one.question_id ?? null,
    }));
    await tx`insert into events ${tx(rows as never[])}`;
    await planDeliveries(tx, { first, last: head.offset });
    return ids;
  });

interface WorldOptions extends PartsOptions {
  /** DNS names of the receiver. */
  readonly names?: readonly string[];
}

export const makeWorld = async (t: Test, options: WorldOptions = {}) => {
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
  const openWebhooks = (
    { limits }: Parameters<typeof createWebhooks>[1] = {},
    env: Partial<Deps['config']> = {},
  ) => {
    const opened = createWebhooks({ ...deps.config, ...env }, limits && { limits });
    t.teardown(() => opened.close());
    return opened;
  };
  const webhooks = openWebhooks();

  const signers: (() => Promise<void>)[] = [];
  const unanswered: ServerResponse[] = [];

  // Creating partitions may lock the table for a while, so this uses a separate connection.
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
    openWebhooks,
    deliveries,
    addHook: async (hook: HookOptions = {}) => {
      const { path = '/', url = receiver.url(path), events = ['question.created'] } = hook;
      const { owner = newAgent(), order } = hook;
      const id = makeId();
      const secret = makeSecret();
      const secret_sealed = webhooks.sealer.seal(id, secret);
      await insertWebhook(sql, { id, owner, url, events, secret_sealed, order });
      return { id, secret, owner };
    },
    /** Records events as the relay does, and plans their deliveries. Returns their ids. */
    record: (...events: readonly EventOptions[]) => recordEvents(deps, events),
    /** Holds the next requests to a path. The test answers them later. */
    hold: (path: string, count = 1, held: ServerResponse[] = []): ServerResponse[] => {
      const hold = (response: ServerResponse): void => {
        held.push(response);
        unanswered.push(response);
      };
      receiver.script(path, ...Array<typeof hold>(count).fill(hold));
      return held;
    },
    startSigner: async (signer_options: SignerOptions = {}) => {
      const signer = createSigner(deps, { webhooks, sweep_ms: 50, ...signer_options });
      await signer.start();
      let stopping: Promise<void> | undefined;
      const stop = (): Promise<void> => {
        stopping ??= signer.stop();
        return stopping;
      };
      signers.push(stop);
      t.teardown(stop);
      return { stop };
    },
    /** Resets a world that tests share: removes its signers, webhooks, events and stream. */
    reset: async (): Promise<void> => {
      for (const response of unanswered.splice(0)) response.destroy();
      await Promise.all(signers.splice(0).map((stop) => stop()));
      await looker`
        truncate webhooks, webhook_old_secrets, webhook_leavings, webhook_replays, deliveries, attempts, planned_ranges,
          signers, events, notifications, mails`;
      for (const table of ['agents', 'humans']) await looker`delete from ${looker(table)}`;
      await looker`update log_head set "offset" = 0`;
      await looker`update delivery_plan set planned_offset = 0`;
      if (deps.redis.status === 'ready') await deps.redis.del(streamKey(deps.config.REDIS_PREFIX));
      receiver.clear();
    },
    attempts: async (event_id: string | undefined): Promise<Attempt[]> => sql<Attempt[]>`
      select attempt, status, error, answer
      from attempts
      where event_id = ${event_id ?? null}
      order by at`,
    /** Waits until there are this many deliveries, each in one of these states. */
    settled: async (count: number, ...states: readonly string[]) => {
      await until(`${count} deliveries ${states.join(' or ')}`, async () => {
        const rows = await looker`select state from deliveries`;
        return rows.length === count && rows.every(({ state }) => states.includes(state));
      });
      return deliveries();
    },
    /** Makes waiting deliveries due. */
    makeDue: async () => {
      await sql`update deliveries set next_at = now() where state = 'waiting'`;
    },
  };
};

export type World = Awaited<ReturnType<typeof makeWorld>>;
export type Hook = Awaited<ReturnType<World['addHook']>>;

interface Health {
  readonly active: boolean;
  readonly disabled_reason: string | null;
  readonly failures: number;
  readonly trips: number;
  readonly pause_s: number | null;
  readonly failed: number;
  readonly gone: number;
}

/** Changes a webhook as its owner does. */
export const editHook = ({ deps }: World, { id, owner }: Hook, change: WebhookChange) =>
  deps.sql.begin((tx) => updateWebhook(tx, owner, { id, change }));

export const healthOf = async ({ deps }: World, { id }: Hook): Promise<Health> => {
  const [row] = await deps.sql<Health[]>`
    select
      active, disabled_reason, failures, trips,
      extract(epoch from paused_until - now())::float8 as pause_s,
      cardinality(failed_events) as failed, cardinality(gone_events) as gone
    from webhooks
    where id = ${id}`;
  if (row === undefined) throw new Error('there is no such webhook');
  return row;
};
