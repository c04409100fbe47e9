import type { Deps } from '../../../kit/deps.js';
import { firstIdAt, makeId } from '../../../kit/ids.js';
import { makeLoop } from '../../../kit/loop.js';
import { dropDays, ensureDays } from '../../../kit/pg/partition-store.js';
import type { Service } from '../../../kit/service.js';
import { dropLease, type Lease, takeLease } from '../../events/index.js';
import { type Mail, queueMail } from '../../humans/index.js';
import { type Notice, notify } from '../../notifications/index.js';
import {
  type Backlog,
  disableSick,
  dropOldSecrets,
  forgetLeavings,
  leaveOut,
  listLeavings,
  listSuspects,
  listUnclear,
  noteClear,
  removeDeliveries,
  removeOld,
  rows_a_step,
  type Sick,
  skipQueued,
} from './keep-store.js';
import { listReplays, stepReplay } from './plan-store.js';

/**
 * What is done about deliveries beside sending them, by one process at a time: webhooks whose
 * receivers are gone are switched off, queues of those that are off are emptied, deleted ones
 * cleared away, replays carried on, backlogs cut, and what is old removed. Each turn does a bounded
 * part of it, so that nobody waits for it; whatever is left over is found again by the next turn.
 */

export interface KeeperOptions {
  readonly every_ms?: number;
  readonly backlog?: Backlog;
}

export interface Keeper extends Service {
  /** Something is to be done now. */
  nudge(): void;
}

/** Smaller than any id. */
const first_id = '00000000-0000-0000-0000-000000000000';
const lease_seconds = 10;
/** Steps of one kind in one turn. */
const most_steps = 20;
const day_ms = 86_400_000;
const attempts = { table: 'attempts', column: 'at' };
export const backlog_limits: Backlog = { most: 10_000, age_hours: 24 };

/** Repeats a step until it finds less than a step's worth; false: there is more. */
const repeat = async (step: () => Promise<number>): Promise<boolean> => {
  for (let steps = 0; steps < most_steps; steps += 1) {
    if ((await step()) < rows_a_step) return true;
  }
  return false;
};

const noticeOf = ({ id, owner_id, disabled_reason, updated_at }: Sick): Notice => ({
  agent_id: owner_id,
  kind: 'webhook.disabled',
  cause: `webhook:${id}:${updated_at.toISOString()}`,
  subject_id: id,
  details: { webhook_id: id, reason: disabled_reason },
  at: updated_at,
});

const letterOf = (email: string, { url, disabled_reason }: Sick): Mail => ({
  to: email,
  subject: 'A webhook of yours was switched off',
  text: `The webhook to ${url} was switched off. ${disabled_reason}

Once its receiver is well, switch it on again with PATCH /api/webhooks/{id} {"active": true}; what
came meanwhile can be replayed for 7 days.
`,
  links: [],
});

const switchOffSick = async ({ sql, log, config }: Deps): Promise<void> => {
  const sick = await sql.begin(async (tx) => {
    const all = await disableSick(tx);
    for (const one of all) {
      if (one.email === null) continue;
      await queueMail(tx, letterOf(one.email, one), { config, at: one.updated_at });
    }
    await notify(tx, all.filter(({ owner_kind }) => owner_kind === 'agent').map(noticeOf));
    return all;
  });
  for (const { id, disabled_reason } of sick) {
    log.warn({ webhook_id: id, disabled_reason }, 'webhooks: one was switched off');
  }
};

/** True when there is nothing more to skip. */
const clearQueues = async ({ sql }: Deps): Promise<boolean> => {
  let is_done = true;
  for (const id of await listUnclear(sql)) {
    if (await repeat(() => skipQueued(sql, id))) await noteClear(sql, id);
    else is_done = false;
  }
  return is_done;
};

/** True when nothing is left of deleted webhooks. */
const clearAway = async ({ sql }: Deps): Promise<boolean> => {
  let is_done = true;
  for (const id of await listLeavings(sql)) {
    is_done = (await repeat(() => removeDeliveries(sql, id))) && is_done;
  }
  await forgetLeavings(sql);
  return is_done;
};

/** True when no replay can go on now. */
const carryOnReplays = async ({ sql }: Deps): Promise<boolean> => {
  const ids = await listReplays(sql);
  for (const id of ids) await stepReplay(sql, id);
  return ids.length === 0;
};

/** Cuts the backlogs of some webhooks after an id; returns where to go on. */
const cutBacklogs = async (
  { sql, log }: Deps,
  backlog: Backlog,
  after: string,
): Promise<string> => {
  const ids = await listSuspects(sql, backlog, after);
  for (const id of ids) {
    const count = await leaveOut(sql, id, backlog);
    if (count > 0) log.warn({ webhook_id: id, count }, 'webhooks: events were left out');
  }
  return ids.at(-1) ?? first_id;
};

const removeAllOld = async ({ sql, config }: Deps): Promise<void> => {
  const keep_days = config.WEBHOOK_KEEP_DAYS;
  const oldest_id = firstIdAt(Date.now() - keep_days * day_ms);
  await dropOldSecrets(sql);
  for (let after: string | null = first_id; after !== null; ) {
    after = await removeOld(sql, after, { oldest_id, keep_days });
  }
};

const keepPartitions = async ({ sql, config }: Deps): Promise<void> => {
  await ensureDays(sql, attempts, 3);
  await dropDays(sql, attempts.table, config.WEBHOOK_KEEP_DAYS);
};

/** Does something when it was not done for so long. */
const makeRarely = () => {
  const next_ms = new Map<string, number>();
  return async (name: string, every_ms: number, work: () => Promise<void>): Promise<void> => {
    const now_ms = performance.now();
    if (now_ms < (next_ms.get(name) ?? 0)) return;
    await work();
    next_ms.set(name, now_ms + every_ms);
  };
};

export const createKeeper = (deps: Deps, options: KeeperOptions = {}): Keeper => {
  const { every_ms = 1_000, backlog = backlog_limits } = options;
  const holder = makeId();
  const rarely = makeRarely();
  let lease: Lease | undefined;
  let cut_up_to = first_id;

  const turn = async (): Promise<'again' | 'rest'> => {
    lease = await takeLease(deps.sql, 'webhook-keeper', holder, lease_seconds);
    if (lease === undefined) return 'rest';
    await rarely('partitions', 3_600_000, () => keepPartitions(deps));
    await switchOffSick(deps);
    const is_done = [await clearQueues(deps), await clearAway(deps), await carryOnReplays(deps)];
    cut_up_to = await cutBacklogs(deps, backlog, cut_up_to);
    await rarely('old', 60 * every_ms, () => removeAllOld(deps));
    return is_done.includes(false) ? 'again' : 'rest';
  };

  const loop = makeLoop({ name: 'webhook keeper', log: deps.log, every_ms, turn });
  return {
    ...loop,
    async stop() {
      await loop.stop();
      if (lease !== undefined) await dropLease(deps.sql, lease).catch(() => undefined);
    },
  };
};
