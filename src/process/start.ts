import type { Config, RoleName } from '../config.js';
import { createMailer } from '../features/accounts/index.js';
import { createConsensusProjector, createSnapshotTimer } from '../features/consensus/index.js';
import { createEventsMaintenance, createRelay } from '../features/events/index.js';
import { createBoardRebuild } from '../features/leaderboards/index.js';
import { createNotificationSweeper, notified_replies } from '../features/notifications/index.js';
import { createQuestionTimer, question_counts } from '../features/questions/index.js';
import { createSettling } from '../features/resolution/index.js';
import { createIdempotencySweep } from '../http/idempotency.js';
import type { Measure } from '../kit/metrics.js';
import { type Running, type Service, startAll } from '../kit/service.js';
import { startApi } from './api.js';
import { type Base, openBase, type RoleOptions } from './base.js';
import { createSigner } from './signer.js';

/** Which role is what. Any number of each may run; only one relay at a time is active. */

type Part = Service & { readonly measures?: readonly Measure[] };

const workers: Record<Exclude<RoleName, 'api'>, (base: Base) => Promise<readonly Part[]>> = {
  /** Outbox → log → Redis, and every projection of the log. */
  async relay({ deps, openSubscriber }) {
    const projectors = [question_counts, notified_replies, createConsensusProjector(deps)];
    return [createRelay(deps, { subscriber: await openSubscriber(), projectors })];
  },

  /** Sends webhooks: the log's stream and Postgres share out the work. */
  signer: async ({ deps }) => [createSigner(deps)],

  /** What happens because time passes. */
  timer: async ({ deps }) => [
    createEventsMaintenance(deps),
    createQuestionTimer(deps),
    createSettling(deps),
    createSnapshotTimer(deps),
    createBoardRebuild(deps),
    createMailer(deps),
    createNotificationSweeper(deps),
    createIdempotencySweep(deps.sql, deps.log),
  ],
};

/** Starts one role in this process. */
export const startProcess = async (config: Config, options: RoleOptions): Promise<Running> => {
  const base = await openBase(config, options);
  if (options.role === 'api') return startApi(base, options);
  const parts = await workers[options.role](base);
  const measures = parts.flatMap((part) => part.measures ?? []);
  return startAll([base, ...parts, ...base.monitor(measures)]);
};
