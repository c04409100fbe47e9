import { createStalledSweep } from '../db/stalled.js';
import { createFitting, createSnapshotTimer } from '../features/consensus/index.js';
import { createDigestTimer, stopRefused } from '../features/digests/index.js';
import { createEventsMaintenance } from '../features/events/index.js';
import { createNews } from '../features/follows/index.js';
import { createAdjustedTimer, createBoardRebuild } from '../features/leaderboards/index.js';
import { createMailer } from '../features/mail/index.js';
import { createNotificationSweeper } from '../features/notifications/index.js';
import { createOperatorCheck } from '../features/operators/index.js';
import { createQuestionTimer } from '../features/questions/index.js';
import { createSettling } from '../features/resolution/index.js';
import { createRetention } from '../features/retention/index.js';
import { createIdempotencySweep } from '../http/idempotency.js';
import { type Running, startAll } from '../kit/service.js';
import type { Base } from './base.js';

/** The timer runs the jobs that become due as time passes. */
export const startTimer = (base: Base): Promise<Running> => {
  const { deps, monitor } = base;
  const parts = [
    createStalledSweep(deps.sql, deps.log),
    createEventsMaintenance(deps),
    createRetention(deps),
    createQuestionTimer(deps),
    createSettling(deps),
    createSnapshotTimer(deps),
    createFitting(deps),
    createBoardRebuild(deps),
    createAdjustedTimer(deps),
    createNews(deps),
    createDigestTimer(deps),
    createMailer(deps, { onRefused: stopRefused }),
    createNotificationSweeper(deps),
    createOperatorCheck(deps),
    createIdempotencySweep(deps.sql, deps.log),
  ];
  return startAll([base, ...parts, ...monitor()]);
};
