export {
  createDigests,
  createDigestTracker,
  type DigestTracker,
  findDigestDifferences,
  readDigest,
  storeDigests,
} from './digest.js';
export { type DigestPoint, listPoints } from './digest-store.js';
export { dropBelowOldest, moveOldest, type OldestStep, readOldest } from './floor-store.js';
export { Follower } from './follow.js';
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
