import type { Sql, Tx } from '../../db/client.js';
import { createGroupCommit, type GroupCommit, QueueFullError } from '../../db/group-commit.js';
import * as store from './store.js';

/**
 * Votes on predictions and comments, whose counters are the sums of their votes at every commit. A
 * batch
 *
 *   begins · locks the agents, voters and authors alike · locks predictions and comments · reads
 *   them with the voters' own votes · judges the ballots in order · writes votes and counters ·
 *   commits
 *
 * Linking an agent takes a conflicting lock, so that no agent changes its owner between the check
 * of owners and the commit. Rows are locked in the order of ids.
 */

/** The counters, and the vote that the agent has now. */
type Counted = { readonly upvotes: number; downvotes: number; value: 1 | -1 | null };

export type Verdict = Counted | 'absent' | 'same_owner';

const judge = (ballots: readonly store.Ballot[], subjects: readonly store.Subject[]) => {
  const added = new Map<string, { up: number; down: number }>();
  const changes: store.Change[] = [];
  const verdicts = ballots.map((ballot, n): Verdict => {
    const { question_id, author_id, same_owner, own, ...stored } = subjects[n] as store.Subject;
    if (question_id === null) return 'absent';
    if (same_owner) return 'same_owner';
    const { withdraw, value: cast_value, ...cast } = ballot;
    const left = own === cast_value ? null : own;
    const value = withdraw ? left : cast_value;
    const sum = added.get(cast.subject_id) ?? { up: 0, down: 0 };
    added.set(cast.subject_id, sum);
    if (value !== own) {
      const up = Number(value === 1) - Number(own === 1);
      const down = Number(value === -1) - Number(own === -1);
      sum.up += up;
      sum.down += down;
      changes.push({ ...cast, question_id, author_id, value, up, down });
    }
    return { upvotes: stored.upvotes + sum.up, downvotes: stored.downvotes + sum.down, value };
  });
  return { changes, verdicts };
};

/** Later than that a vote may have been cast elsewhere for its caller, and changed since. */
const late_ms = 1_500;

const cast = async (tx: Tx, ballots: readonly store.Ballot[], clock: () => Date) => {
  const ids = ballots.map(({ subject_id }) => subject_id);
  // All are sent at once, in this order; the read comes last, so that it sees what was committed
  // before the locks were granted.
  const locks = [store.lockAgents(tx, ballots, ids).execute(), ...store.lockSubjects(tx, ids)];
  const [subjects] = await Promise.all([store.readSubjects(tx, ballots), ...locks]);
  const oldest_ms = Math.min(...ballots.map(({ at }) => at.getTime()));
  if (clock().getTime() - oldest_ms > late_ms) throw new QueueFullError('a vote came too late');
  const { changes, verdicts } = judge(ballots, subjects);
  const written = store.writeVotes(tx, changes);
  tx.commit();
  await written;
  return verdicts;
};

export const createVoting = (sql: Sql, clock: () => Date): GroupCommit<store.Ballot, Verdict> =>
  createGroupCommit<store.Ballot, Verdict>({
    commit: (drafts) => sql.begin((tx) => cast(tx, drafts, clock)),
    one_of: ({ agent_id, subject_id }) => `${agent_id} ${subject_id}`,
  });
