import type { Sql } from '../../kit/pg/client.js';
import { createGroupCommit } from '../../kit/pg/group-commit.js';
import type { VoteParts } from './routes.js';
import { type Ballot, castAll, type Verdict } from './store.js';

export { routes, type VoteParts } from './routes.js';
export { voidVotes } from './voiding-store.js';

/** The group commit of votes; one a process. */
export const createVoting = (sql: Sql): VoteParts['voting'] =>
  createGroupCommit<Ballot, Verdict>({
    commit: ({ drafts }) => sql.begin((tx) => castAll(tx, drafts)),
    key: ({ agent_id, subject_id }) => `${agent_id} ${subject_id}`,
    one_a_key: true,
  });
