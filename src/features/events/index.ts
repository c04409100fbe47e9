export * from './catalogue.js';
export {
  type EventFilter,
  type FilterMembers,
  filter_members,
  filter_query,
  passesFilter,
  readFilter,
  showFilter,
  shown_filter_members,
} from './filter.js';
export { passesSql } from './filter-store.js';
export { createFollower, type Follower } from './follow.js';
export {
  type LogEntry,
  nudgeChannel,
  packEntry,
  projectedKey,
  readData,
  streamKey,
} from './log-entry.js';
export { createPartitionKeeper } from './partitions.js';
export type { Projector } from './projection.js';
export { createRelay } from './relay.js';
export { createRevocationSweep, createRevocationWatch } from './revocations.js';
export {
  type Revoked,
  restoreKey,
  revokeDigest,
  revokeSessions,
  suspendKey,
} from './revocations-store.js';
export { mountSockets, type Sockets } from './sockets.js';
export { readMatching, readOldest } from './sockets-store.js';
export {
  dropLease,
  ensurePartitions,
  type Lease,
  readEvents,
  readHead,
  takeLease,
} from './store.js';
export {
  type LogPlaces,
  makeRecentEvents,
  placesOf,
  resolveTopic,
  Told,
  topicsOf,
} from './topics.js';
