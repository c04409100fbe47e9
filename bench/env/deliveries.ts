import { setTimeout as delay } from 'node:timers/promises';
import type { Sql } from '../../src/db/client.js';
import { wakeUpChannel } from '../../src/features/events/index.js';
import { planDeliveries } from '../../src/features/webhooks/index.js';
import { createSealer } from '../../src/features/webhooks/signing.js';
import { insertWebhook } from '../../src/features/webhooks/store.js';
import { makeId } from '../../src/kit/ids.js';
import { agentId } from './seed.js';

/** Webhooks and events for benches, written straight into the database of a service. */

export interface HookSeed {
  /** By number, the owner's webhooks count against one limit. */
  readonly owner: number;
  readonly url: string;
  readonly event: string;
}

export interface HookKeys {
  readonly secret_key: string;
  /** Of every webhook. */
  readonly secret: string;
}

export const addHooks = async (
  sql: Sql,
  hooks: readonly HookSeed[],
  { secret_key, secret }: HookKeys,
): Promise<readonly string[]> => {
  const sealer = createSealer(secret_key);
  const ids: string[] = [];
  for (const { owner, url, event } of hooks) {
    const id = makeId();
    const secret_sealed = sealer.seal(id, secret);
    const who = { kind: 'agent', id: agentId(owner) } as const;
    await insertWebhook(sql, { id, owner: who, url, events: [event], secret_sealed });
    ids.push(id);
  }
  return ids;
};

const now = (): number => performance.timeOrigin + performance.now();

/** As long as what an event of a prediction holds; `at` is when it was made, in milliseconds. */
export const makeBody = (event: string, n: number): string => {
  const at = now();
  const data = {
    ...{ at, n, question_id: makeId(), prediction_id: makeId(), user_id: makeId() },
    user_name: `Bench agent ${n}`,
    model_family: 'claude',
    ...{ prediction: true, confidence: 72, probability: 0.72, consensus: 0.6131 },
  };
  return JSON.stringify({ event, data, timestamp: new Date(at).toISOString() });
};

/**
 * Records events that are handed over and planned in one transaction: with its commit, and not
 * before, all their deliveries are due.
 */
export const recordBacklog = async (sql: Sql, event: string, count: number): Promise<void> => {
  await sql.begin(async (tx) => {
    const [head] = await tx<{ offset: number; today: string }[]>`
      update log_head
      set "offset" = "offset" + ${count}
      returning "offset", (now() at time zone 'UTC')::date::text as today`;
    if (head === undefined) throw new Error('The log has no head.');
    const first = head.offset - count + 1;
    const numbers = Array.from({ length: count }, (_, n) => n);
    await tx`
      insert into events ("offset", recorded_on, recorded_at, id, event, body)
      select ${first}::bigint + n, ${head.today}::date, now(), id, ${event}, body
      from unnest(
        ${numbers}::bigint[],
        ${numbers.map(() => makeId())}::uuid[],
        ${numbers.map((n) => makeBody(event, n))}::text[]
      ) as d (n, id, body)`;
    await planDeliveries(tx, { first, last: head.offset });
  });
};

export interface Flow {
  readonly event: string;
  readonly per_second: number;
  readonly count: number;
  /** Each event is for one of these, in turn. */
  readonly owners: readonly number[];
}

const tick_ms = 10;

/** Calls `emit` with numbers of events at a steady rate; what a stall held up follows at once. */
export const atRate = async (
  { per_second, count }: Pick<Flow, 'per_second' | 'count'>,
  emit: (numbers: readonly number[]) => Promise<unknown>,
): Promise<void> => {
  const started_ms = performance.now();
  const running: Promise<unknown>[] = [];
  for (let next = 0; next < count; ) {
    const due = Math.ceil(((performance.now() - started_ms) * per_second) / 1_000);
    const numbers = Array.from({ length: Math.min(due, count) - next }, (_, n) => next + n);
    next += numbers.length;
    if (numbers.length > 0) running.push(emit(numbers));
    await delay(tick_ms);
  }
  await Promise.all(running);
};

interface Publisher {
  publish(channel: string, message: string): Promise<unknown>;
}

const prefix = 'pf';

/** Events into the outbox, as whatever causes them would put them there. */
export const emitEvents = (sql: Sql, redis: Publisher, flow: Flow): Promise<void> =>
  atRate(flow, async (numbers) => {
    await sql`
      insert into outbox (id, event, audience_id, body)
      select id, ${flow.event}, audience_id, body
      from unnest(
        ${numbers.map(() => makeId())}::uuid[],
        ${numbers.map((n) => agentId(flow.owners[n % flow.owners.length] as number))}::uuid[],
        ${numbers.map((n) => makeBody(flow.event, n))}::text[]
      ) as d (id, audience_id, body)`;
    await redis.publish(wakeUpChannel(prefix), '');
  });
