import type { Config, RoleName } from '../config.js';
import { createStalledSweep } from '../db/stalled.js';
import { createMailer } from '../features/accounts/index.js';
import {
  createConsensusProjector,
  createFitting,
  createSnapshotTimer,
} from '../features/consensus/index.js';
import { createDigests, createEventsMaintenance, createRelay } from '../features/events/index.js';
import { createAdjustedTimer, createBoardRebuild } from '../features/leaderboards/index.js';
import { createNotificationSweeper, notified_replies } from '../features/notifications/index.js';
import { createOperatorCheck } from '../features/operators/index.js';
import { createQuestionTimer, question_counts } from '../features/questions/index.js';
import { createSettling } from '../features/resolution/index.js';
import { createRetention } from '../features/retention/index.js';
import {
  countDue,
  createMaintenance,
  createWebhooks,
  type MaintenanceOptions,
  Sending,
  type SendingOptions,
} from '../features/webhooks/index.js';
import type { Deps } from '../http/deps.js';
import { createIdempotencySweep } from '../http/idempotency.js';
import type { Measure } from '../kit/metrics.js';
import { type Running, type Service, startAll } from '../kit/service.js';
import { type Base, measure, openBase, type RoleOptions } from './base.js';

/** Which role is what. Any number of each may run; only one relay at a time is active. */

type Part = Service & { readonly measures?: readonly Measure[] };

const workers: Record<Exclude<RoleName, 'api'>, (base: Base) => Promise<readonly Part[]>> = {
  /** Outbox → log → Redis, and every projection of the log. */
  async relay({ deps, openSubscriber }) {
    const projectors = [question_counts, notified_replies, createConsensusProjector(deps)];
    const relay = createRelay(deps, { subscriber: await openSubscriber(), projectors });
    return [relay, createDigests(deps)];
  },

  /** Sends webhooks: the log's stream and Postgres share out the work. */
  signer: async ({ deps }) => [createSigner(deps)],

  /** What happens because time passes. */
  timer: async ({ deps }) => [
    createStalledSweep(deps.sql, deps.log),
    createEventsMaintenance(deps),
    createRetention(deps),
    createQuestionTimer(deps),
    createSettling(deps),
    createSnapshotTimer(deps),
    createFitting(deps),
    createBoardRebuild(deps),
    createAdjustedTimer(deps),
    createMailer(deps),
    createNotificationSweeper(deps),
    createOperatorCheck(deps),
    createIdempotencySweep(deps.sql, deps.log),
  ],
};

/** Starts one role in this process. */
export const startProcess = async (config: Config, options: RoleOptions): Promise<Running> => {
  const base = await openBase(config, options);
  if (options.role === 'api') {
    // The other roles do without the routes and pages: a fifth of the time and memory of a start.
    const { startApi } = await import('./api.js');
    return startApi(base, options);
  }
  const parts = await workers[options.role](base);
  const measures = parts.flatMap((part) => part.measures ?? []);
  return startAll([base, ...parts, ...base.monitor(measures)]);
};

export interface SignerOptions extends Partial<SendingOptions> {
  readonly maintenance?: MaintenanceOptions;
}

/** Sends webhooks. */
export const createSigner = (deps: Deps, options: SignerOptions = {}): Part => {
  const { webhooks = createWebhooks(deps.config), maintenance: timing, ...rest } = options;
  const maintenance = createMaintenance(deps, timing);
  const sending = new Sending(deps, { ...rest, webhooks });
  const { stats } = sending;
  return {
    name: 'signer',
    measures: [
      measure(
        'webhook_attempts_total',
        'Attempts that ended.',
        () => stats.delivered + stats.failed,
      ),
      measure('webhook_attempts_failed_total', 'Attempts that failed.', () => stats.failed),
      measure('webhook_deliveries_due', 'Not sent yet, at most 10,000.', () => countDue(deps.sql)),
      measure(
        'webhook_breakers_opened_total',
        'How often webhooks were left alone because they failed.',
        () => stats.breakers_opened,
      ),
      measure(
        'webhook_deliveries_dead_total',
        'Deliveries that were claimed five times without a result; each is worth an alarm.',
        () => stats.dead,
      ),
    ],
    async start() {
      await sending.start();
      await maintenance.start();
    },
    async stop() {
      await Promise.all([maintenance.stop(), sending.stop()]);
      if (options.webhooks === undefined) webhooks.close();
    },
  };
};
