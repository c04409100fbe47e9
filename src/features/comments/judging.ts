import { groupBy } from '../../kit/group-by.js';
import type { Answer } from '../../kit/http/route.js';
import { type Claim, keepAll } from '../../kit/idempotency.js';
import type { Sql, Tx } from '../../kit/pg/client.js';
import { inShort, sendOne } from '../../kit/pg/short-transaction.js';
import { hasTier } from '../points/index.js';
import { isCopyOf } from './copies.js';
import {
  type CommentDraft,
  insertComments,
  isReply,
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
import type { WriterMemory } from './writer-memory.js';

/**
 * A batch of comments judged by the record, at most one an agent, in one transaction: lock the
 * agents, read what they wrote, judge each draft, store those that stand together with the answers
 * to calls that came with an Idempotency-Key.
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
  readonly standing: Standing | undefined;
  readonly repeat: CommentRow | undefined;
  readonly recent: readonly Written[];
}

/** Null for a draft that stands. */
const judge = ({ draft, answer }: Composed, known: Known): Verdict | null => {
  const { standing, repeat, recent } = known;
  // The batch is run again after an outage and had committed the first time.
  if (repeat?.id === draft.id) return { kind: 'placed', answer };
  if (repeat !== undefined) return { kind: 'repeat', row: repeat };
  const points = standing?.points ?? 0;
  if (isReply(draft)) {
    if (!hasTier(points, 'Analyst')) return { kind: 'tier', points };
  } else if ((standing?.used ?? 0) >= comment_limits.top_level) return { kind: 'limit' };
  return isCopy(draft, recent) ? { kind: 'copy' } : null;
};

const readKnown = async (
  tx: Tx,
  drafts: readonly CommentDraft[],
): Promise<(draft: CommentDraft) => Known> => {
  const agent_ids = drafts.map(({ agent_id }) => agent_id);
  const now = drafts.reduce((latest, { at }) => (at > latest ? at : latest), new Date(0));
  // All on their way at once; one connection carries them out one after the other, each with a
  // view of its own, so that what is read was committed before the lock was had.
  const [, standings, repeats, recents] = await Promise.all([
    lockWriters(tx, agent_ids),
    readStandings(tx, drafts),
    readRepeats(tx, drafts, now),
    readRecent(tx, agent_ids, now),
  ]);
  const standing_of = new Map(standings.map((row) => [row.agent_id, row]));
  const repeat_of = new Map(repeats.map((row) => [row.agent_id, row]));
  const recent_of = groupBy(recents, ({ agent_id }) => agent_id);
  return ({ agent_id }) => ({
    standing: standing_of.get(agent_id),
    repeat: repeat_of.get(agent_id),
    recent: recent_of.get(agent_id) ?? [],
  });
};

/** A draft that stands, and behind which comment of its agent. */
interface Allowed extends Composed, Numbered {
  readonly claim: Claim | null;
  readonly last_id: string | null;
}

const judgeOne = (posting: Posting, known: Known): Verdict | Allowed => {
  const verdict = judge(posting, known);
  if (verdict !== null) return verdict;
  const { used = 0, last_id = null } = known.standing ?? {};
  // Made before a comment that another process stored meanwhile, or by a clock that is behind.
  const is_late = last_id !== null && posting.draft.id <= last_id;
  const { draft, answer } = is_late ? posting.composeAfter(last_id) : posting;
  const slot = isReply(draft) ? null : used + 1;
  return { draft, answer, slot, claim: posting.claim, last_id };
};

const isAllowed = (one: Verdict | Allowed): one is Allowed => 'draft' in one;

/** What was read of each agent, and what was stored, is remembered after the commit. */
export const postJudged = async (
  sql: Sql,
  writers: WriterMemory,
  postings: readonly Posting[],
): Promise<readonly Verdict[]> => {
  const { judged, stored, knownOf } = await inShort(sql, async (tx, sendLast) => {
    const knownOf = await readKnown(
      tx,
      postings.map(({ draft }) => draft),
    );
    const judged = postings.map((posting) => judgeOne(posting, knownOf(posting.draft)));
    const allowed = judged.filter(isAllowed);
    // Answers are kept after it, where there are any to keep.
    const send = allowed.some(({ claim }) => claim !== null) ? sendOne : sendLast;
    const stored =
      allowed.length === 0 ? new Set<string>() : await insertComments(tx, allowed, send);
    const kept = allowed.flatMap(({ draft, claim, answer }) =>
      claim !== null && stored.has(draft.id) ? [{ claim, answer }] : [],
    );
    await keepAll(tx, kept);
    return { judged, stored, knownOf };
  });
  for (const { draft } of postings) {
    const { standing, recent } = knownOf(draft);
    writers.learn(draft.agent_id, standing?.last_id ?? null, recent);
  }
  return judged.map((one): Verdict => {
    if (!isAllowed(one)) return one;
    if (!stored.has(one.draft.id)) return { kind: 'gone' };
    writers.stored(one.draft, one.last_id);
    return { kind: 'placed', answer: one.answer };
  });
};
