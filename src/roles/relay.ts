import type { Config } from '../config.js';
import { createConsensusProjector } from '../features/consensus/index.js';
import { createRelay } from '../features/events/index.js';
import { notified_replies } from '../features/notifications/index.js';
import { question_counts } from '../features/questions/index.js';
import { connectRedis } from '../kit/redis/client.js';
import { type Running, startAll } from '../kit/service.js';
import { openBase, type RoleOptions } from './base.js';

/** The relay process: outbox → log → Redis, and every projection of the log. */
export const startRelay = async (config: Config, options: RoleOptions): Promise<Running> => {
  const base = await openBase(config, options);
  const subscriber = base.openExtraRedis('nudges');
  await connectRedis(subscriber);
  const relay = createRelay(base.deps, {
    subscriber,
    projectors: [question_counts, notified_replies, createConsensusProjector(base.deps)],
  });
  const services = await startAll([relay, ...base.monitor()]);
  return {
    async stop() {
      await services.stop();
      await base.close();
    },
  };
};
