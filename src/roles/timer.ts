import type { Config } from '../config.js';
import { createRankKeeper } from '../features/comments/index.js';
import { createEventsMaintenance } from '../features/events/index.js';
import { createSnapshotTimer } from '../features/history/index.js';
import { createMailer } from '../features/humans/index.js';
import { createNotificationSweeper } from '../features/notifications/index.js';
import { createQuestionTimer } from '../features/questions/index.js';
import { createSettling } from '../features/resolution/index.js';
import { createBoardKeeper } from '../features/standing/index.js';
import { createIdempotencySweep } from '../kit/idempotency.js';
import { connectRedis } from '../kit/redis/client.js';
import { type Running, startAll } from '../kit/service.js';
import { openBase, type RoleOptions } from './base.js';

/** The timer process: what happens because time passes. Any number of these may run. */
export const startTimer = async (config: Config, options: RoleOptions): Promise<Running> => {
  const base = await openBase(config, options);
  const subscriber = base.openExtraRedis('nudges');
  await connectRedis(subscriber);
  const running = await startAll([
    createEventsMaintenance(base.deps),
    createQuestionTimer(base.deps),
    createSettling(base.deps, { subscriber }),
    createSnapshotTimer(base.deps),
    createBoardKeeper(base.deps),
    createRankKeeper(base.deps),
    createMailer(base.deps),
    createNotificationSweeper(base.deps),
    createIdempotencySweep(base.deps.sql, base.deps.log),
    ...base.monitor(),
  ]);
  return {
    async stop() {
      await running.stop();
      await base.close();
    },
  };
};
