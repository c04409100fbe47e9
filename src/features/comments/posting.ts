import { keepAll } from '../../kit/idempotency.js';
import { type Batcher, createBatcher } from '../../kit/pg/batch.js';
import type { Sql } from '../../kit/pg/client.js';
import { inLine, inShort, sendNow, sendOne } from '../../kit/pg/short-transaction.js';
import { pointsFor } from '../points/index.js';
import { type Posting, postJudged, type Verdict } from './judging.js';
import { type Expecting, insertExpecting } from './quick-store.js';
import { comment_limits } from './rules.js';
import { makeWriterMemory, type WriterMemory } from './writer-memory.js';

/**
 * The group commit of comments. Whoever is known to have written nothing alike goes the quick way,
 * one round trip in which Postgres stores what it has nothing against. What it leaves out, and
 * comments of agents of whom nothing is known yet, are judged by the record.
 */

interface Stores {
  readonly sql: Sql;
  /** One connection, on which a batch is sent while the one before it is being stored. */
  readonly line: Sql;
}

interface Trying extends Expecting {
  readonly posting: Posting;
}

const tryOne = (writers: WriterMemory, posting: Posting): Trying | null => {
  const { draft } = posting;
  const last_id = writers.lastOf(draft.agent_id);
  return last_id === undefined || writers.mayCopy(draft) ? null : { draft, last_id, posting };
};

const rules = { most: comment_limits.top_level, least_points: pointsFor('Analyst') };

/** Null for what has to be judged. */
const postExpecting = async (
  { sql, line }: Stores,
  writers: WriterMemory,
  postings: readonly Posting[],
): Promise<readonly (Verdict | null)[]> => {
  const tried = postings.flatMap((posting) => tryOne(writers, posting) ?? []);
  if (tried.length === 0) return postings.map(() => null);
  const claimed = tried.filter(({ posting }) => posting.claim !== null);
  const stored =
    claimed.length === 0
      ? await inLine(line, (tx) => insertExpecting(tx, tried, rules, sendNow))
      : await inShort(sql, async (tx) => {
          const stored = await insertExpecting(tx, tried, rules, sendOne);
          // Answers are kept with what they answer.
          const kept = claimed.flatMap(({ posting: { draft, claim, answer } }) =>
            claim !== null && stored.has(draft.id) ? [{ claim, answer }] : [],
          );
          await keepAll(tx, kept);
          return stored;
        });
  for (const { draft, last_id } of tried) {
    if (stored.has(draft.id)) writers.stored(draft, last_id);
  }
  return postings.map(({ draft, answer }) =>
    stored.has(draft.id) ? { kind: 'placed', answer } : null,
  );
};

const bounds = {
  key: ({ draft }: Posting) => draft.agent_id,
  most: 256,
  patience_ms: 7_000,
  refused_ms: 1_000,
  queue: 20_000,
};

/** One a process. `committed` is told after each batch. */
export const createCommenting = (
  stores: Stores,
  committed: () => void,
): Pick<Batcher<Posting, Verdict>, 'add' | 'drain'> => {
  const writers = makeWriterMemory();
  const quick = createBatcher<Posting, Verdict | null>({
    ...bounds,
    ...{ lanes: 4, least_beside: 24 },
    run: async (postings) => {
      const verdicts = await postExpecting(stores, writers, postings);
      if (verdicts.some((verdict) => verdict !== null)) committed();
      return verdicts;
    },
  });
  const judging = createBatcher<Posting, Verdict>({
    ...bounds,
    // The lock on agents keeps two batches apart that have one in common.
    lanes: 2,
    run: async (postings) => {
      const verdicts = await postJudged(stores.sql, writers, postings);
      committed();
      return verdicts;
    },
  });
  return {
    async add(posting) {
      const is_known = writers.lastOf(posting.draft.agent_id) !== undefined;
      return (is_known ? await quick.add(posting) : null) ?? judging.add(posting);
    },
    async drain() {
      await quick.drain();
      await judging.drain();
    },
  };
};
