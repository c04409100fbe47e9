import { ensureDays } from '../../db/partition-store.js';
import type { Deps } from '../../http/deps.js';
import { firstIdAt } from '../../kit/ids.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import { queueMail } from '../mail/index.js';
import { notify } from '../notifications/index.js';
import * as store from './maintenance-store.js';
import { describeOutcome } from './pinging.js';
import { listReplays, stepReplay } from './planning-store.js';

/**
 * Maintains deliveries, except for sending them. Switches off webhooks whose receivers are gone,
 * empties the queues of inactive webhooks, removes deliveries of deleted ones, continues replays,
 * cuts backlogs, and removes old deliveries. Each turn does a limited amount of work, so that
 * nothing has to wait for it. Any number of processes may do it.
 */

export interface MaintenanceOptions {
  readonly every_ms?: number;
  readonly backlog?: store.Backlog;
}

const day_ms = 86_400_000;
const backlog_limits: store.Backlog = { most: 10_000, age_hours: 24 };

const mailOf = (
  to: string,
  { url, disabled_reason }: Pick<store.Sick, 'url' | 'disabled_reason'>,
) => ({
  to,
  subject: 'Your webhook was switched off',
  text: `The webhook to ${url} was switched off. ${disabled_reason}

Once its receiver works again, use the Webhooks page of your account to switch it on again, or PATCH
/api/webhooks/{id} {"active": true}. Events that it missed can be replayed for 7 days.
`,
  links: [],
});

const lastFailure = ({ last }: store.Failing): string | null =>
  last === null ? null : describeOutcome(last);

const failingMail = (to: string, one: store.Failing) => ({
  to,
  subject: 'Your webhook is failing',
  text: `The last ${one.failures} attempts to call ${one.url} failed. The first one failed at ${one.failing_since.toISOString()}. ${lastFailure(one) ?? ''}

Each delivery is retried for up to three days, so nothing is lost yet. If no attempt succeeds for 5
days, the webhook is switched off. To see the answer of its receiver, send a test from the Webhooks
page of your account, or with POST /api/webhooks/{id}/test.
`,
  links: [],
});

const tellOfFailing = ({ sql, config }: Deps): Promise<unknown> =>
  sql.begin(async (tx) => {
    for (const one of await store.markFailing(tx)) {
      const { id, email, owner_kind, owner_id: agent_id, warned_at: at } = one;
      if (email !== null) await queueMail(tx, failingMail(email, one), { config, at });
      if (owner_kind !== 'agent') continue;
      const cause = `webhook:${id}:failing:${at.toISOString()}`;
      const details = {
        webhook_id: id,
        failures: one.failures,
        since: one.failing_since.toISOString(),
        reason: lastFailure(one),
      };
      await notify(tx, [{ agent_id, kind: 'webhook.failing', cause, subject_id: id, details, at }]);
    }
  });

const switchOffSick = async ({ sql, log, config }: Deps): Promise<void> => {
  const sick = await sql.begin(async (tx) => {
    const all = await store.disableSick(tx);
    for (const { email, updated_at: at, ...one } of all) {
      if (email !== null) await queueMail(tx, mailOf(email, one), { config, at });
      if (one.owner_kind !== 'agent') continue;
      const { id, owner_id: agent_id, disabled_reason: reason } = one;
      const cause = `webhook:${id}:${at.toISOString()}`;
      const details = { webhook_id: id, reason };
      await notify(tx, [
        { agent_id, kind: 'webhook.disabled', cause, subject_id: id, details, at },
      ]);
    }
    return all;
  });
  for (const { id, disabled_reason } of sick) {
    log.warn({ webhook_id: id, disabled_reason }, 'webhooks: switched off a failing webhook');
  }
};

export const createMaintenance = (deps: Deps, options: MaintenanceOptions = {}): Service => {
  const { sql, log, config } = deps;
  const { every_ms = 1_000, backlog = backlog_limits } = options;
  const keep_days = config.WEBHOOK_KEEP_DAYS;

  /** Returns true if more work is waiting. */
  const clearQueues = async (): Promise<boolean> => {
    await switchOffSick(deps);
    await tellOfFailing(deps);
    await store.skipQueued(sql);
    const removed = await store.removeOfDeleted(sql);
    const replays = await listReplays(sql);
    for (const id of replays) await stepReplay(sql, id);
    return removed === store.max_removed || replays.length > 0;
  };
  const clearHistory = async (): Promise<void> => {
    for (const id of await store.listBacklogs(sql, backlog)) {
      const count = await store.leaveOut(sql, id, backlog);
      if (count > 0) log.warn({ webhook_id: id, count }, 'webhooks: skipped waiting events');
    }
    const oldest_id = firstIdAt(Date.now() - keep_days * day_ms);
    for (let steps = 0; steps < 20; steps += 1) {
      if ((await store.removeOld(sql, { oldest_id, keep_days })) < store.max_removed) return;
    }
  };
  const keepPartitions = () => ensureDays(sql, { table: 'attempts', column: 'at' }, 3);

  let turns = 0;
  return makeLoop({
    name: 'webhook maintenance',
    log,
    every_ms,
    async turn() {
      if (turns % 3_600 === 0) await keepPartitions();
      const has_more = await clearQueues();
      if (turns % 60 === 0) await clearHistory();
      turns += 1;
      return has_more ? 'again' : 'rest';
    },
  });
};
