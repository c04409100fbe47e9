import { createBatcher } from '../../kit/pg/batch.js';
import type { Sql } from '../../kit/pg/client.js';
import type { VoteParts } from './routes.js';
import { type Ballot, castAll, type Verdict } from './store.js';

export { routes, type VoteParts } from './routes.js';
export { voidVotes } from './voiding-store.js';

/** The group commit of votes, on a connection of its own; one a process. */
export const createVoting = (line: Sql): VoteParts['voting'] =>
  createBatcher<Ballot, Verdict>({
    run: (ballots) => castAll(line, ballots),
    key: ({ agent_id, subject_id }) => `${agent_id} ${subject_id}`,
    most: 256,
    // Two batches that have a thing in common would wait for its counter on two connections.
    ...{ lanes: 4, least_beside: 24 },
    patience_ms: 7_000,
    refused_ms: 1_000,
    queue: 10_000,
  });
