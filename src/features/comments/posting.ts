import type { Answer } from '../../kit/http/route.js';
import { type Claim, keepAll } from '../../kit/idempotency.js';
import { type Batcher, createBatcher } from '../../kit/pg/batch.js';
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
} from './post-store.js';
import { comment_limits } from './rules.js';
import type { CommentRow } from './store.js';

/**
 * The group commit of comments. A batch is one transaction, with at most one comment an agent: lock
 * the agents, read what they wrote, judge each draft, store those that stand together with the
 * answers to calls that came with an Idempotency-Key.
 */

export interface Posting {
  readonly draft: CommentDraft;
  readonly claim: Claim | null;
  /** What is answered when the draft stands. */
  readonly answer: Answer;
}

export type Verdict =
  | { readonly kind: 'placed' }
  /** This very body was accepted before, and this is what became of it. */
  | { readonly kind: 'repeat'; readonly row: CommentRow }
  | { readonly kind: 'tier'; readonly equity: number }
  | { readonly kind: 'limit' }
  | { readonly kind: 'copy' }
  /** What it replies to was hidden meanwhile. */
  | { readonly kind: 'gone' };

const group = <R extends { readonly agent_id: string }>(
  rows: readonly R[],
): ReadonlyMap<string, readonly R[]> => {
  const by_agent = new Map<string, R[]>();
  for (const row of rows) {
    const known = by_agent.get(row.agent_id);
    if (known === undefined) by_agent.set(row.agent_id, [row]);
    else known.push(row);
  }
  return by_agent;
};

const isCopy = (draft: CommentDraft, texts: readonly { readonly content: string }[]): boolean => {
  if (texts.length === 0) return false;
  const own = new Set(draft.tokens);
  return texts.some(({ content }) => isCopyOf(own, content));
};

interface Known {
  readonly standing: Standing | undefined;
  readonly repeat: CommentRow | undefined;
  readonly recent: readonly { readonly content: string }[];
}

/** Null for a draft that stands. */
const judge = (draft: CommentDraft, { standing, repeat, recent }: Known): Verdict | null => {
  // The batch is run again after an outage and had committed the first time.
  if (repeat?.id === draft.id) return { kind: 'placed' };
  if (repeat !== undefined) return { kind: 'repeat', row: repeat };
  const equity = standing?.equity ?? 0;
  if (isReply(draft)) {
    if (!hasTier(equity, 'Analyst')) return { kind: 'tier', equity };
  } else if ((standing?.used ?? 0) >= comment_limits.top_level) return { kind: 'limit' };
  return isCopy(draft, recent) ? { kind: 'copy' } : null;
};

const judgeAll = async (
  tx: Tx,
  drafts: readonly CommentDraft[],
): Promise<readonly (Verdict | Numbered)[]> => {
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
  const recent_of = group(recents);
  return drafts.map((draft) => {
    const standing = standing_of.get(draft.agent_id);
    const repeat = repeat_of.get(draft.agent_id);
    const recent = recent_of.get(draft.agent_id) ?? [];
    const verdict = judge(draft, { standing, repeat, recent });
    return verdict ?? { draft, slot: isReply(draft) ? null : (standing?.used ?? 0) + 1 };
  });
};

const postAll = (sql: Sql, postings: readonly Posting[]): Promise<readonly Verdict[]> =>
  inShort(sql, async (tx, sendLast) => {
    const judged = await judgeAll(
      tx,
      postings.map(({ draft }) => draft),
    );
    const standing = judged.filter((one): one is Numbered => 'draft' in one);
    // Answers are kept after it, where there are any to keep.
    const send = postings.some(({ claim }) => claim !== null) ? sendOne : sendLast;
    const stored = standing.length === 0 ? new Set() : await insertComments(tx, standing, send);
    const kept = postings.flatMap(({ draft, claim, answer }) =>
      claim !== null && stored.has(draft.id) ? [{ claim, answer }] : [],
    );
    await keepAll(tx, kept);
    return judged.map((one): Verdict => {
      if (!('draft' in one)) return one;
      return stored.has(one.draft.id) ? { kind: 'placed' } : { kind: 'gone' };
    });
  });

/** One a process. `committed` is told after each batch. */
export const createCommenting = (sql: Sql, committed: () => void): Batcher<Posting, Verdict> =>
  createBatcher<Posting, Verdict>({
    run: async (postings) => {
      const verdicts = await postAll(sql, postings);
      committed();
      return verdicts;
    },
    key: ({ draft }) => draft.agent_id,
    most: 256,
    // The lock on agents keeps two batches apart that have one in common.
    lanes: 2,
    patience_ms: 7_000,
    queue: 20_000,
  });
