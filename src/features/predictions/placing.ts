import type { Db, Sql, Tx } from '../../db/client.js';
import { createGroupCommit, type GroupCommit } from '../../db/group-commit.js';
import { storeInTransaction } from '../../http/idempotency.js';
import type { Answer, Claim } from '../../http/route.js';
import { makeId, makeIdAfter } from '../../kit/ids.js';
import { recordAct } from '../audit/index.js';
import type { NewPrediction } from './columns.js';
import type { ComparedText, Finding } from './gates.js';
import type { Memories, Originality } from './originality.js';
import { type Outcome, type QuestionState, storeBatch } from './placing-store.js';

/**
 * Every prediction is stored here, by a group commit with these steps:
 *
 *   1. judge the drafts in order, against this process's memories and against earlier drafts
 *   2. lock their questions and agents and store all accepted drafts, in one statement
 *   3. if a question or an agent has changed since step 1, the statement stores nothing: read the
 *      changes and judge the drafts again, in a transaction that keeps the locks
 *
 * The memory of a question reaches up to the number of its last prediction. The memory of an agent
 * reaches up to the agent's last prediction. An agent's predictions have ascending ids, and a
 * question's predictions have ascending numbers. After a failure, the batch's memories are dropped.
 * `unique (question_id, seq)` rejects a batch with wrong numbers.
 */

export interface PlaceDraft {
  readonly question_id: string;
  readonly agent_id: string;
  readonly text: ComparedText;
  /** Builds the row and event of an accepted draft. Null if the draft is only to be judged. */
  readonly compose: ((id: string) => Composed) | null;
  /** Null unless the call has an Idempotency-Key. The answer is stored with the prediction. */
  readonly idempotent: { readonly claim: Claim; answer(stored: Stored): Answer } | null;
  /**
   * The admin who imports it, or null. An import may be on a closed question, and its text is not
   * compared with others, because it was not written for this forum.
   */
  readonly imported_by: string | null;
}

export interface Composed {
  readonly row: NewPrediction;
  /** The serialised event. */
  readonly body: string;
}

export interface Stored {
  readonly row: NewPrediction;
  /** The agent's points. */
  readonly points: number;
}

export interface Verdict {
  /** Null if the draft was rejected or was only to be judged. */
  readonly placed: Stored | null;
  /** True if the question takes predictions. */
  readonly is_open: boolean;
  /** The agent's existing prediction on the question, or null. */
  readonly own_id: string | null;
  /** Results of the comparison with others. Empty for imports and for a second prediction. */
  readonly findings: readonly Finding[];
  readonly points: number;
}

export type Placing = GroupCommit<PlaceDraft, Verdict>;

interface PlacingOptions {
  readonly sql: Sql;
  readonly originality: Originality;
  readonly clock: () => Date;
}

const pairOf = ({ question_id, agent_id }: Pick<PlaceDraft, 'question_id' | 'agent_id'>): string =>
  `${question_id} ${agent_id}`;

/** Results of the last attempt at this batch. Before the first, every question counts as open. */
class Known {
  #questions: ReadonlyMap<string, QuestionState> | null = null;
  #own: ReadonlyMap<string, string> = new Map();

  learn({ questions, own }: Outcome): void {
    this.#questions = new Map(questions.map((one) => [one.id, one]));
    this.#own = new Map(own.map((one) => [pairOf(one), one.id]));
  }

  takes({ question_id, imported_by }: PlaceDraft): boolean {
    if (this.#questions === null) return true;
    const question = this.#questions.get(question_id);
    return (imported_by === null ? question?.is_open : question?.takes_imports) === true;
  }

  ownOf(draft: PlaceDraft): string | null {
    return this.#own.get(pairOf(draft)) ?? null;
  }
}

interface Judged extends Verdict {
  readonly composed: Composed | null;
  readonly seq: number;
  /** Removes the draft from the memories again. */
  readonly undo: () => void;
}

const nothing = { placed: null, composed: null, seq: 0, undo: () => undefined };

/** Judges one draft and, if it is accepted, adds it to the memories. */
const judge = (draft: PlaceDraft, { memories, known, placed_ids }: Readonly<Under>): Judged => {
  const { question_id, agent_id, text, compose, imported_by } = draft;
  const question = memories.questions.get(question_id);
  const agent = memories.agents.get(agent_id);
  const own_id = known.ownOf(draft) ?? placed_ids.get(pairOf(draft)) ?? null;
  const is_open = known.takes(draft);
  if (question === undefined || agent === undefined) {
    return { ...nothing, is_open: false, own_id, findings: [], points: agent?.points ?? 0 };
  }
  const findings =
    own_id !== null || imported_by !== null
      ? []
      : [...question.check(text), ...agent.check(text.sources)];
  const { points } = agent;
  if (compose === null || !is_open || own_id !== null || findings.length > 0) {
    return { ...nothing, is_open, own_id, findings, points };
  }
  const id = agent.last_id === null ? makeId() : makeIdAfter(agent.last_id);
  const composed = compose(id);
  placed_ids.set(pairOf(draft), id);
  const forgetCited = agent.add(id, text.sources);
  const forgetText = question.add(text);
  const undo = (): void => {
    forgetText();
    forgetCited();
  };
  const placed = { row: composed.row, points };
  return { placed, is_open, own_id, findings, points, composed, seq: question.seq, undo };
};

interface Under {
  readonly memories: Memories;
  readonly known: Known;
  /** Ids given to drafts of this batch, by question and agent. */
  readonly placed_ids: Map<string, string>;
}

const distinct = (ids: readonly string[]): string[] => [...new Set(ids)];

interface Attempt {
  readonly drafts: readonly PlaceDraft[];
  readonly memories: Memories;
  readonly known: Known;
}

/** Judges the drafts and stores them. If anything has changed meanwhile, learns the new state. */
const attempt = async (
  db: Db,
  { drafts, memories, known }: Attempt,
): Promise<{ readonly judged: readonly Judged[]; readonly outcome: Outcome }> => {
  const questions = [...memories.questions.values()].map(({ question_id: id, seq }) => ({
    id,
    seq,
  }));
  const agents = [...memories.agents.values()].map(({ agent_id: id, last_id, points }) => {
    return { id, last_id, points };
  });
  const under = { memories, known, placed_ids: new Map<string, string>() };
  const judged = drafts.map((draft) => judge(draft, under));
  const stores = (imports: boolean): ReadonlySet<string> =>
    new Set(
      drafts.flatMap(({ question_id, imported_by }, n) =>
        judged[n]?.composed != null && (imported_by !== null) === imports ? [question_id] : [],
      ),
    );
  const [open, imports] = [stores(false), stores(true)];
  const outcome = await storeBatch(db, {
    questions: questions.map(({ id, seq }) => {
      return { id, seq, open: open.has(id), imports: imports.has(id) };
    }),
    agents,
    pairs: drafts,
    rows: judged.flatMap(({ composed, seq }) =>
      composed === null ? [] : [{ seq, body: composed.body, ...composed.row }],
    ),
  });
  known.learn(outcome);
  if (!outcome.fits) for (const { undo } of judged.toReversed()) undo();
  return { judged, outcome };
};

/**
 * While the locks are held, predictions do not change, but the first attempt reads data from before
 * it waited for them. The second may still find a new prediction by the same agent. By the third,
 * everything is known. A fourth attempt allows for points that are paid in the meantime.
 */
const max_attempts = 4;

/** Writes one line of the audit log for each admin who imported predictions in this batch. */
const recordImports = async (
  tx: Tx,
  drafts: readonly PlaceDraft[],
  judged: readonly Judged[],
  at: Date,
): Promise<void> => {
  const imported = drafts.filter((draft, n) => draft.imported_by !== null && judged[n]?.placed);
  for (const admin of new Set(imported.map(({ imported_by }) => imported_by ?? ''))) {
    const of_admin = imported.filter(({ imported_by }) => imported_by === admin);
    await recordAct(tx, {
      admin,
      act: 'prediction.import',
      at,
      subject: { kind: 'import', id: of_admin[0]?.question_id ?? '' },
      details: { predictions: of_admin.length },
    });
  }
};

/** If a draft was not stored, updates its verdict with the state that the statement read. */
const refine = (draft: PlaceDraft, { placed, ...verdict }: Judged, known: Known): Verdict => {
  if (placed !== null) return { placed, ...verdict };
  const own_id = known.ownOf(draft) ?? verdict.own_id;
  const findings = own_id === null ? verdict.findings : [];
  return { placed, is_open: known.takes(draft), own_id, findings, points: verdict.points };
};

export const createPlacing = ({ sql, originality, clock }: PlacingOptions): Placing => {
  /** Stores the batch in one transaction with its audit lines and answers. */
  const storeIn = async (tx: Tx, batch: Attempt): Promise<readonly Judged[]> => {
    for (let n = 1; n <= max_attempts; n += 1) {
      const { judged, outcome } = await attempt(tx, batch);
      if (!outcome.fits) {
        await originality.catchUp(tx, batch.memories, outcome);
        continue;
      }
      await recordImports(tx, batch.drafts, judged, clock());
      const kept = batch.drafts.flatMap(({ idempotent }, n) => {
        const placed = judged[n]?.placed ?? null;
        if (idempotent === null || placed === null) return [];
        return { claim: idempotent.claim, answer: idempotent.answer(placed) };
      });
      await storeInTransaction(tx, kept);
      return judged;
    }
    throw new Error('a batch did not fit under its own locks');
  };

  const store = async (batch: Attempt): Promise<readonly Judged[]> => {
    const is_alone = batch.drafts.every(
      ({ idempotent, imported_by }) => idempotent === null && imported_by === null,
    );
    if (is_alone) {
      const { judged, outcome } = await attempt(sql, batch);
      if (outcome.fits) return judged;
      await originality.catchUp(sql, batch.memories, outcome);
    }
    return sql.begin((tx) => storeIn(tx, batch));
  };

  return createGroupCommit<PlaceDraft, Verdict>({
    async commit(drafts) {
      const question_ids = distinct(drafts.map(({ question_id }) => question_id));
      const agent_ids = distinct(drafts.map(({ agent_id }) => agent_id));
      try {
        const memories = await originality.open(sql, question_ids, agent_ids);
        const known = new Known();
        const judged = await store({ drafts, memories, known });
        originality.cache(memories);
        return judged.map((one, n) => refine(drafts[n] as PlaceDraft, one, known));
      } catch (error) {
        originality.forget(question_ids, agent_ids);
        throw error;
      }
    },
  });
};
