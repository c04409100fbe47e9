import { type Batcher, createBatcher } from '../../kit/pg/batch.js';
import type { Sql } from '../../kit/pg/client.js';
import type { VoteParts } from './routes.js';
import { type Ballot, castAll, type Verdict } from './store.js';

export { routes, type VoteParts } from './routes.js';
export { voidVotes } from './voiding-store.js';

const createLane = (sql: Sql): Batcher<Ballot, Verdict> =>
  createBatcher<Ballot, Verdict>({
    run: (ballots) => castAll(sql, ballots),
    key: ({ agent_id, subject_id }) => `${agent_id} ${subject_id}`,
    most: 256,
    lanes: 1,
    patience_ms: 7_000,
    queue: 10_000,
  });

/**
 * The group commit of votes; one a process. Votes on one thing are in one batch at a time, for two
 * would wait for its counter; so half of all things have one lane, and half the other.
 */
export const createVoting = (sql: Sql): VoteParts['voting'] => {
  const even = createLane(sql);
  const odd = createLane(sql);
  const laneOf = ({ subject_id }: Ballot) =>
    Number.parseInt(subject_id.slice(-1), 16) % 2 === 0 ? even : odd;
  return {
    add: (ballot) => laneOf(ballot).add(ballot),
    async drain() {
      await Promise.all([even.drain(), odd.drain()]);
    },
  };
};
