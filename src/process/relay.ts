import { createConsensusProjector } from '../features/consensus/index.js';
import { createDigests, createRelay } from '../features/events/index.js';
import { queued_news } from '../features/follows/index.js';
import { notified_replies } from '../features/notifications/index.js';
import { question_counts } from '../features/questions/index.js';
import { type Running, startAll } from '../kit/service.js';
import type { Base } from './base.js';

/** The relay moves events from the outbox to the log and Redis, and updates all projections. */
export const startRelay = async (base: Base): Promise<Running> => {
  const { deps, openSubscriber, monitor } = base;
  const projectors = [
    question_counts,
    notified_replies,
    queued_news,
    createConsensusProjector(deps),
  ];
  const relay = createRelay(deps, { subscriber: await openSubscriber(), projectors });
  const parts = [relay, createDigests(deps)];
  return startAll([base, ...parts, ...monitor()]);
};
