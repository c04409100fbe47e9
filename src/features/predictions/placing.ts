import type { Static } from '@sinclair/typebox';
import type { Sql, Tx } from '../../db/client.js';
import { type Draft as EventDraft, emitAll } from '../../db/event.js';
import { type Batch, createGroupCommit, type GroupCommit } from '../../db/group-commit.js';
import { type Claim, keepAll } from '../../http/idempotency.js';
import type { Answer } from '../../http/route.js';
import { makeId, makeIdAfter } from '../../kit/ids.js';
import { recordAct } from '../audit/index.js';
import { prediction_placed } from '../events/index.js';
import { type NewPrediction, nameProbabilities, no_values } from './columns.js';
import type { ComparedText, Finding } from './gates.js';
import type { Memories, Originality } from './originality.js';
import {
  insertPredictions,
  type LockedQuestion,
  lockAgents,
  lockQuestions,
  type Standing,
} from './placing-store.js';
import type { StatedForecast } from './stated.js';

/**
 * The only way in which a prediction is stored: a group commit (kit/pg/group-commit.ts) that
 *
 *   begins · locks the questions of the batch, in the order of their ids · takes in what came
 *   meanwhile on these questions · locks the agents · brings the memories of both up to date ·
 *   judges the drafts in order against the memories and the drafts before · writes · commits
 *
 * A memory has what is stored up to the last number of its question, or the last prediction of its
 * agent; under the lock nothing comes after it. Predictions of an agent have growing ids and those
 * of a question growing numbers, both without a gap between what is known and what was read. After
 * a failure the memories of the batch are forgotten. `unique (question_id, seq)` refuses a batch
 * that was numbered wrongly.
 */

interface PlaceDraft {
  readonly question_id: string;
  readonly agent_id: string;
  readonly text: ComparedText;
  /** What is stored when nothing speaks against it; null: it is judged only. */
  readonly compose: ((id: string) => Composed) | null;
  /** For a call with an Idempotency-Key: its answer is kept with the prediction. */
  readonly keep: { readonly claim: Claim; answer(placed: Placed): Answer } | null;
  /**
   * The admin who imports it: the question may be closed, and gates 5 and 6 and the cap do not ask
   * for what was never written for this forum.
   */
  readonly imported_by: string | null;
}

interface Composed {
  readonly row: NewPrediction;
  readonly event: EventDraft<typeof prediction_placed.data>;
}

export interface Placed {
  readonly row: NewPrediction;
  /** What the agent has. */
  readonly points: number;
}

export interface Verdict {
  /** Null: something speaks against it, or it was to be judged only. */
  readonly placed: Placed | null;
  /** Whether the question takes predictions. */
  readonly is_open: boolean;
  /** The agent's prediction on the question, which is there already. */
  readonly own_id: string | null;
  /** What gates 5 and 6 and the cap found; nothing beside an own prediction. */
  readonly findings: readonly Finding[];
  readonly points: number;
}

export type Placing = GroupCommit<PlaceDraft, Verdict>;

interface PlacingOptions {
  readonly sql: Sql;
  readonly originality: Originality;
  readonly clock: () => Date;
  /** Told after each commit. */
  readonly committed: () => void;
}

/** What is known under the locks. */
interface Locked {
  readonly questions: ReadonlyMap<string, LockedQuestion>;
  readonly memories: Memories;
  /** Of drafts of this batch, by question and agent. */
  readonly placed_ids: Map<string, string>;
}

interface Judged extends Verdict {
  readonly composed: Composed | null;
  readonly seq: number;
}

const judge = (draft: PlaceDraft, standing: Standing, locked: Locked): Judged => {
  const { question_id, agent_id, text, compose, imported_by } = draft;
  const question = locked.questions.get(question_id);
  const memory = locked.memories.questions.get(question_id);
  const agent = locked.memories.agents.get(agent_id);
  const pair = `${question_id} ${agent_id}`;
  const own_id = standing.own_id ?? locked.placed_ids.get(pair) ?? null;
  const is_open = imported_by === null ? question?.is_open : question?.takes_imports;
  const findings =
    own_id !== null || imported_by !== null || memory === undefined || agent === undefined
      ? []
      : [...memory.check(text), ...agent.check(text.sources)];
  const { points } = standing;
  const verdict = { is_open: is_open === true, own_id, findings, points };
  if (memory === undefined || agent === undefined || compose === null) {
    return { ...verdict, placed: null, composed: null, seq: 0 };
  }
  if (is_open !== true || own_id !== null || findings.length > 0) {
    return { ...verdict, placed: null, composed: null, seq: 0 };
  }
  const id = agent.last_id === null ? makeId() : makeIdAfter(agent.last_id);
  const composed = compose(id);
  locked.placed_ids.set(pair, id);
  agent.add(id, text.sources);
  const seq = memory.add(text);
  return { ...verdict, placed: { row: composed.row, points }, composed, seq };
};

interface Written {
  readonly drafts: readonly PlaceDraft[];
  readonly judged: readonly Judged[];
  readonly at: Date;
}

/** Predictions, events and kept answers, and the commit with them unless a claim may be lost. */
const write = async (tx: Tx, { drafts, judged, at }: Written): Promise<void> => {
  const made = judged.flatMap(({ composed, seq }) => (composed === null ? [] : { composed, seq }));
  if (made.length === 0) return;
  const kept = drafts.flatMap(({ keep }, n) => {
    const placed = judged[n]?.placed ?? null;
    return keep === null || placed === null
      ? []
      : { claim: keep.claim, answer: keep.answer(placed) };
  });
  await recordImports(tx, { drafts, judged, at });
  const rows = made.map(({ composed, seq }) => ({ ...composed.row, seq }));
  const events = made.map(({ composed }) => composed.event);
  const sent = [
    insertPredictions(tx, rows),
    emitAll(tx, prediction_placed, events),
    keepAll(tx, kept),
  ];
  if (kept.length === 0) tx.commit();
  await Promise.all(sent);
};

/** One line of the audit log for what an admin imported in this batch. */
const recordImports = async (tx: Tx, { drafts, judged, at }: Written): Promise<void> => {
  const imported = drafts.filter((draft, n) => draft.imported_by !== null && judged[n]?.placed);
  for (const admin of new Set(imported.map(({ imported_by }) => imported_by ?? ''))) {
    const of_admin = imported.filter(({ imported_by }) => imported_by === admin);
    await recordAct(tx, {
      ...{ admin, act: 'prediction.import', at },
      subject: { kind: 'import', id: of_admin[0]?.question_id ?? '' },
      details: { predictions: of_admin.length },
    });
  }
};

const distinct = (ids: readonly string[]): string[] => [...new Set(ids)];

export const createPlacing = ({ sql, originality, clock, committed }: PlacingOptions): Placing => {
  const place = async (tx: Tx, batch: Batch<PlaceDraft>) => {
    const locked = await lockQuestions(tx, distinct(batch.drafts.map((one) => one.question_id)));
    const questions = new Map(locked.map((question) => [question.id, question]));
    batch.join(({ question_id }) => questions.has(question_id));
    const { drafts } = batch;
    const standings = await lockAgents(tx, drafts);
    const memories = await originality.open(
      tx,
      new Map(locked.map(({ id, seq }) => [id, seq])),
      new Map(drafts.map(({ agent_id }, n) => [agent_id, standings[n]?.last_id ?? null])),
    );
    const under = { questions, memories, placed_ids: new Map<string, string>() };
    const judged = drafts.map((draft, n) => judge(draft, standings[n] as Standing, under));
    await write(tx, { drafts, judged, at: clock() });
    return { judged, memories };
  };

  return createGroupCommit<PlaceDraft, Verdict>({
    key: ({ agent_id }) => agent_id,
    async commit(batch) {
      try {
        const { judged, memories } = await sql.begin((tx) => place(tx, batch));
        originality.keep(memories);
        committed();
        return judged;
      } catch (error) {
        originality.forget(
          batch.drafts.map(({ question_id }) => question_id),
          batch.drafts.map(({ agent_id }) => agent_id),
        );
        throw error;
      }
    },
  });
};

interface PlacedParts {
  readonly id: string;
  readonly at: Date;
  readonly question: { readonly id: string; readonly options: readonly string[] };
  readonly agent: { readonly id: string; readonly name: string; readonly model_family: string };
  readonly stated: StatedForecast;
  /** What else it has; columns that are left out are null. */
  readonly rest: Pick<NewPrediction, 'reasoning' | 'citations' | 'body_digest'> &
    Partial<NewPrediction>;
}

/** A prediction, made here or imported, and its event, which tells no reasoning. */
export const composePlaced = ({ id, at, question, agent, stated, rest }: PlacedParts): Composed => {
  const { prediction, probability, confidence, selected_option, probabilities } = stated;
  const { model_family } = agent;
  const data: Static<typeof prediction_placed.data> = {
    question_id: question.id,
    prediction_id: id,
    user_id: agent.id,
    user_name: agent.name,
    model_family,
    confidence,
  };
  if (prediction !== null && probability !== null) {
    data.prediction = prediction;
    data.probability = probability;
  }
  if (selected_option !== null) {
    data.selected_option = question.options[selected_option] ?? '';
    data.option_index = selected_option;
    data.option_count = question.options.length;
  }
  const named = nameProbabilities(question.options, probabilities);
  if (named !== null) data.probabilities = named;
  const event_id = makeId();
  const ids = { question_id: question.id, agent_id: agent.id };
  const columns = { prediction, probability, confidence, selected_option, probabilities };
  return {
    row: {
      ...{ ...no_values, ...rest, id, ...ids, ...columns },
      ...{ model_family, event_id, created_at: at },
    },
    event: { id: event_id, at, place: { ...ids, owner_id: rest.owner_id ?? null }, data },
  };
};
