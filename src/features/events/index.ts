export * from './catalogue.js';
export { type EventFilter, readFilter } from './filter.js';
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
  told_packing,
  topicsOf,
} from './topics.js';
