import { emitAll } from '../../kit/event.js';
import { groupBy } from '../../kit/group-by.js';
import type { Answer } from '../../kit/http/route.js';
import { type Claim, keepAll } from '../../kit/idempotency.js';
import type { Sql, Tx } from '../../kit/pg/client.js';
import { createGroupCommit, type GroupCommit } from '../../kit/pg/group-commit.js';
import { comment_created, comment_reply } from '../events/index.js';
import { hasTier } from '../points/index.js';
import { isCopyOf } from './copies.js';
import {
  type CommentDraft,
  insertComments,
  isReply,
  lockParents,
  lockWriters,
  type Numbered,
  readRecent,
  readRepeats,
  readStandings,
  type Standing,
  type Written,
} from './post-store.js';
import { comment_limits } from './rules.js';
import type { CommentRow } from './store.js';

/**
 * The group commit of comments, at most one an agent in a batch: lock the agents and what is
 * replied to, read what the agents wrote, judge each draft, and store those that stand with their
 * events and the answers to calls that came with an Idempotency-Key.
 */

export interface Composed {
  readonly draft: CommentDraft;
  /** What is answered when the draft stands. */
  readonly answer: Answer;
}

export interface Posting extends Composed {
  readonly claim: Claim | null;
  /** The same comment with an id that sorts behind another. */
  composeAfter(id: string): Composed;
}

export type Verdict =
  | { readonly kind: 'placed'; readonly answer: Answer }
  /** This very body was accepted before, and this is what became of it. */
  | { readonly kind: 'repeat'; readonly row: CommentRow }
  | { readonly kind: 'tier'; readonly points: number }
  | { readonly kind: 'limit' }
  | { readonly kind: 'copy' }
  /** What it replies to was hidden meanwhile. */
  | { readonly kind: 'gone' };

const isCopy = (draft: CommentDraft, texts: readonly { readonly content: string }[]): boolean => {
  if (texts.length === 0) return false;
  const own = new Set(draft.tokens);
  return texts.some(({ content }) => isCopyOf(own, content));
};

/** What the record has of the agent of a draft. */
interface Known {
  /** What it replies to is there. */
  readonly has_parent: boolean;
  readonly standing: Standing | undefined;
  readonly repeat: CommentRow | undefined;
  readonly recent: readonly Written[];
}

/** Null for a draft that stands. */
const judge = (draft: CommentDraft, known: Known): Verdict | null => {
  const { standing, repeat, recent, has_parent } = known;
  if (repeat !== undefined) return { kind: 'repeat', row: repeat };
  const points = standing?.points ?? 0;
  if (isReply(draft)) {
    if (!hasTier(points, 'Analyst')) return { kind: 'tier', points };
  } else if ((standing?.used ?? 0) >= comment_limits.top_level) return { kind: 'limit' };
  if (isCopy(draft, recent)) return { kind: 'copy' };
  return has_parent ? null : { kind: 'gone' };
};

const readKnown = async (
  tx: Tx,
  drafts: readonly CommentDraft[],
): Promise<(draft: CommentDraft) => Known> => {
  const agent_ids = drafts.map(({ agent_id }) => agent_id);
  const now = drafts.reduce((latest, { at }) => (at > latest ? at : latest), new Date(0));
  // All on their way at once; one connection carries them out one after the other, each with a
  // view of its own, so that what is read was committed before the lock was had.
  const [, parents, standings, repeats, recents] = await Promise.all([
    lockWriters(tx, agent_ids),
    lockParents(tx, drafts),
    readStandings(tx, drafts),
    readRepeats(tx, drafts, now),
    readRecent(tx, agent_ids, now),
  ]);
  const standing_of = new Map(standings.map((row) => [row.agent_id, row]));
  const repeat_of = new Map(repeats.map((row) => [row.agent_id, row]));
  const recent_of = groupBy(recents, ({ agent_id }) => agent_id);
  return ({ agent_id, parent_id }) => ({
    has_parent: parent_id === null || parents.has(parent_id),
    standing: standing_of.get(agent_id),
    repeat: repeat_of.get(agent_id),
    recent: recent_of.get(agent_id) ?? [],
  });
};

/** A draft that stands. */
interface Allowed extends Composed, Numbered {
  readonly claim: Claim | null;
}

const judgeOne = (posting: Posting, known: Known): Verdict | Allowed => {
  const verdict = judge(posting.draft, known);
  if (verdict !== null) return verdict;
  const { used = 0, last_id = null } = known.standing ?? {};
  // Made before a comment that another process stored meanwhile, or by a clock that is behind.
  const is_late = last_id !== null && posting.draft.id <= last_id;
  const { draft, answer } = is_late ? posting.composeAfter(last_id) : posting;
  return { draft, answer, slot: isReply(draft) ? null : used + 1, claim: posting.claim };
};

const isAllowed = (one: Verdict | Allowed): one is Allowed => 'draft' in one;

const write = async (tx: Tx, allowed: readonly Allowed[]): Promise<void> => {
  if (allowed.length === 0) return;
  await Promise.all([
    insertComments(tx, allowed),
    emitAll(
      tx,
      comment_created,
      allowed.map(({ draft }) => draft.created),
    ),
    emitAll(
      tx,
      comment_reply,
      allowed.flatMap(({ draft }) => draft.reply ?? []),
    ),
    keepAll(
      tx,
      allowed.flatMap(({ claim, answer }) => (claim === null ? [] : [{ claim, answer }])),
    ),
  ]);
};

export type Commenting = GroupCommit<Posting, Verdict>;

/** One a process. `committed` is told after each batch. */
export const createCommenting = (sql: Sql, committed: () => void): Commenting =>
  createGroupCommit<Posting, Verdict>({
    key: ({ draft }) => draft.agent_id,
    one_a_key: true,
    async commit({ drafts: postings }) {
      const verdicts = await sql.begin(async (tx) => {
        const knownOf = await readKnown(
          tx,
          postings.map(({ draft }) => draft),
        );
        const judged = postings.map((posting) => judgeOne(posting, knownOf(posting.draft)));
        await write(tx, judged.filter(isAllowed));
        return judged.map(
          (one): Verdict => (isAllowed(one) ? { kind: 'placed', answer: one.answer } : one),
        );
      });
      committed();
      return verdicts;
    },
  });
