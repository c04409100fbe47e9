import type { Sql, Tx } from '../../db/client.js';
import { createGroupCommit, type GroupCommit, QueueFullError } from '../../db/group-commit.js';
import * as store from './store.js';

/**
 * Votes on predictions and comments. At every commit, the counters equal the sums of the votes. A
 * batch
 *
 *   begins · locks the agents, voters and authors alike · locks predictions and comments · reads
 *   them with the voters' own votes · judges the ballots in order · writes votes and counters ·
 *   commits
 *
 * Linking an agent takes a conflicting lock, so no agent changes its owner between the check of
 * owners and the commit. Rows are locked in the order of ids.
 */

/** The counters, and the agent's current vote. */
type Counted = { readonly upvotes: number; downvotes: number; value: 1 | -1 | null };

export type Verdict = Counted | 'absent' | 'same_owner';

const isUp = (value: 1 | -1 | null): number => Number(value === 1);
const isDown = (value: 1 | -1 | null): number => Number(value === -1);

/** Judges the ballots in order. Several ballots of one agent on one target become one change. */
const judge = (ballots: readonly store.Ballot[], subjects: readonly store.Subject[]) => {
  const added = new Map<string, { up: number; down: number }>();
  const changes = new Map<string, store.Change>();
  const verdicts = ballots.map((ballot, n): Verdict => {
    const { kind, subject_id, agent_id, at, value: wanted, withdraw } = ballot;
    const subject = subjects[n] as store.Subject;
    const { question_id, author_id, upvotes, downvotes, same_owner, own: stored } = subject;
    if (question_id === null) return 'absent';
    if (same_owner) return 'same_owner';
    const key = `${agent_id} ${subject_id}`;
    const earlier = changes.get(key);
    const own = earlier === undefined ? stored : earlier.value;
    const left = own === wanted ? null : own;
    const value = withdraw ? left : wanted;
    const sum = added.get(subject_id) ?? { up: 0, down: 0 };
    added.set(subject_id, sum);
    if (value !== own) {
      sum.up += isUp(value) - isUp(own);
      sum.down += isDown(value) - isDown(own);
      const [up, down] = [isUp(value) - isUp(stored), isDown(value) - isDown(stored)];
      const of = { kind, question_id, subject_id, agent_id, author_id };
      changes.set(key, { ...of, value, up, down, at });
    }
    return { upvotes: upvotes + sum.up, downvotes: downvotes + sum.down, value };
  });
  return { changes: [...changes.values()], verdicts };
};

/** A vote that waited longer may already have been cast by another process and changed since. */
const late_ms = 1_500;

const cast = async (tx: Tx, ballots: readonly store.Ballot[], clock: () => Date) => {
  const ids = ballots.map(({ subject_id }) => subject_id);
  // The statements are sent together, in this order. The read comes last, so it sees everything
  // that was committed before the locks were granted.
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
  });
