import { consensusTopic, makeConsensusTopics } from '../features/consensus/index.js';
import type { LogEntry } from '../features/events/index.js';
import { makeLeaderboardTopics } from '../features/standing/index.js';
import { makePolledSource, type StateSource } from '../kit/ws/states.js';
import type { ApiParts } from './api.js';

/** The topics of the socket that are a state, and what moves them. */
export interface StateTopics {
  readonly sources: readonly StateSource[];
  /** Feed this from the follower. */
  onEvents(batch: readonly LogEntry[]): void;
  /** From now on the process is about to end. */
  startDraining(): void;
}

interface Place {
  readonly node: string;
  /** That of the hub. */
  readonly touch: (topic: string) => void;
}

const every_ms = 1_000;

const redis_away = {
  code: 'REDIS_AWAY',
  text: 'Redis does not answer: events and leaderboards come later than usual. Nothing is lost.',
};

/** `system`: what a client should know of the process that it is connected to. */
const makeSystemTopic = ({ redis }: Pick<ApiParts, 'redis'>, { node, touch }: Place) => {
  let status: 'serving' | 'draining' = 'serving';
  const source = makePolledSource({
    resolve: (label) => (label === 'system' ? { topic: label, label } : null),
    read: () => ({ node, status, notices: redis.status === 'ready' ? [] : [redis_away] }),
    every_ms,
    touch,
  });
  const startDraining = (): void => {
    status = 'draining';
    touch('system');
  };
  return { source, startDraining };
};

export const makeStateTopics = (parts: ApiParts, place: Place): StateTopics => {
  const { source, startDraining } = makeSystemTopic(parts, place);
  return {
    sources: [
      makeConsensusTopics(parts.consensus),
      makeLeaderboardTopics(parts, place.touch),
      source,
    ],
    onEvents(batch) {
      for (const id of parts.consensus.onEvents(batch)) place.touch(consensusTopic(id));
    },
    startDraining,
  };
};
