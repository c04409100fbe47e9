import type { Told } from '../events/index.js';
import { type StreamLimits, stream_limits } from './stream.js';
import { createVisitors, type VisitorOptions, type Visitors } from './visitors.js';
import { createLogWatch, type LogWatch, type WatchOptions } from './watch.js';

/** What the routes of the log need: one value for each api process. */
export interface LogDoors {
  readonly watch: LogWatch;
  readonly visitors: Visitors;
  readonly limits: StreamLimits;
  /** After the follower, and before the server listens. */
  start(head: number): Promise<void>;
  /** Feed this to the follower. */
  onEvents(batch: readonly Told[]): void;
  onPurge(agent_id: string): void;
  /** Ends every stream and every wait; those that come later end at once. */
  drain(): void;
  isDraining(): boolean;
}

export type DoorOptions = WatchOptions &
  VisitorOptions & { readonly limits?: Partial<StreamLimits> };

const oldest_every_ms = 60_000;

export const createLogDoors = (options: DoorOptions): LogDoors => {
  const watch = createLogWatch(options);
  const visitors = createVisitors(options);
  let timer: NodeJS.Timeout | undefined;
  let draining = false;
  return {
    watch,
    visitors,
    limits: { ...stream_limits, ...options.limits },
    async start(head) {
      watch.begin(head);
      await watch.refreshOldest();
      timer = setInterval(() => watch.refreshOldest(), oldest_every_ms);
      timer.unref();
    },
    onEvents: (batch) => watch.onEvents(batch),
    onPurge: (agent_id) => visitors.onPurge(agent_id),
    drain() {
      draining = true;
      clearInterval(timer);
      visitors.stop();
      watch.end();
    },
    isDraining: () => draining,
  };
};

export interface LogParts {
  readonly log_doors: LogDoors;
}
