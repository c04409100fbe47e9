export * from './catalogue.js';
export {
  createDigests,
  createDigestTracker,
  type DigestTracker,
  findDigestDifferences,
  readDigest,
  storeDigests,
} from './digest.js';
export { type DigestPoint, listPoints } from './digest-store.js';
export {
  type FilterContext,
  type FilterMembers,
  filter_members,
  filter_query,
  passesFilter,
  readFilter,
  shown_filter_members,
} from './filter.js';
export { dropBelowOldest, moveOldest, type OldestStep, readOldest } from './floor-store.js';
export { Follower } from './follow.js';
export {
  eventText,
  type LogEntry,
  packEntry,
  readData,
  streamKey,
  timeOf,
  wakeUpChannel,
} from './log-entry.js';
export { countMatching, passesSql, readMatching } from './matching-store.js';
export { projectedKey, readProjected, tagOf, writeProjected } from './projected.js';
export { createEventsMaintenance, createRelay, type Projector, rebuildStream } from './relay.js';
export {
  type Revoked,
  restoreKey,
  revokeDigest,
  revokeSessions,
  suspendKey,
} from './revocations-store.js';
export { createRevocationWatch, mountSockets } from './sockets.js';
export {
  dropLease,
  entryColumns,
  eventNames,
  type Lease,
  readEvents,
  readHead,
  readLag,
  takeLease,
} from './store.js';
export { makeRecentEvents, PublishedEvent, resolveTopic } from './topics.js';
