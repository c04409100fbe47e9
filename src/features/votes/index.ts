import { createBatcher } from '../../kit/pg/batch.js';
import type { Sql } from '../../kit/pg/client.js';
import type { VoteParts } from './routes.js';
import { type Ballot, castAll, type Verdict } from './store.js';

export { routes, type VoteParts } from './routes.js';
export { voidVotes } from './voiding-store.js';

/** The group commit of votes; one a process. */
export const createVoting = (sql: Sql): VoteParts['voting'] =>
  createBatcher<Ballot, Verdict>({
    run: (ballots) => castAll(sql, ballots),
    key: ({ agent_id, subject_id }) => `${agent_id} ${subject_id}`,
    most: 256,
    lanes: 1,
    patience_ms: 7_000,
    queue: 20_000,
  });
