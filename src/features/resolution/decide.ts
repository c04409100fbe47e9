import type { Deps } from '../../kit/deps.js';
import { emit } from '../../kit/event.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import type { Tx } from '../../kit/pg/client.js';
import { question_closed, question_resolved } from '../events/index.js';
import {
  markResolved,
  markVoided,
  type QuestionRow,
  question_faults,
  readQuestion,
} from '../questions/index.js';
import { type Decision, isSameDecision } from './rules.js';
import { insertResolution, lockQuestion, type ResolutionRow, readLatest } from './store.js';

/**
 * A decision takes effect at once: in one transaction the question changes its status and revision,
 * the event goes out, and a row tells the job what to settle. What agents get follows in chunks.
 *
 * Predictions are placed under a shared lock of the question while it is open, and a decision takes
 * the exclusive one: whoever came first is settled with the others, whoever comes later is refused.
 */

export interface Decided {
  readonly question: QuestionRow;
  readonly resolution: ResolutionRow;
  /** False: exactly this had been decided already, and nothing changed. */
  readonly changed: boolean;
}

export interface DecideAsk {
  readonly question_id: string;
  /** `admin`, `human:<id>` or `dispute:<id>`. */
  readonly decided_by: string;
  readonly at: Date;
  /** Made from the question as it is under the lock. */
  decide(question: QuestionRow): Decision | Fault;
}

const announce = async (tx: Tx, row: QuestionRow, decision: Decision, at: Date): Promise<void> => {
  const { outcome, correct_options } = decision;
  await emit(tx, question_resolved, {
    at,
    place: { question_id: row.id },
    data: {
      question_id: row.id,
      question: row.question,
      ...(outcome === null ? {} : { outcome }),
      ...(correct_options === null ? {} : { correct_options: [...correct_options] }),
      revision: row.revision,
      resolved_at: at.toISOString(),
    },
  });
};

/** A question that is voided while it is open takes no more predictions: that is what this says. */
const announceClosing = async (tx: Tx, row: QuestionRow, at: Date): Promise<void> => {
  await emit(tx, question_closed, {
    at,
    place: { question_id: row.id },
    data: { question_id: row.id, question: row.question, closed_at: at.toISOString() },
  });
};

const change = async (tx: Tx, before: QuestionRow, made: { decision: Decision; at: Date }) => {
  const { decision, at } = made;
  const { id } = before;
  if (decision.kind === 'void') {
    const row = await markVoided(tx, { id, note: decision.note, at });
    if (!isFault(row) && before.status === 'open') await announceClosing(tx, row, at);
    return row;
  }
  const { outcome, correct_options, note } = decision;
  const row = await markResolved(tx, { id, outcome, correct_options, note, at });
  if (!isFault(row)) await announce(tx, row, decision, at);
  return row;
};

/** Decides within the caller's transaction; call `wakeSettling` after its commit. */
export const decideQuestion = async (tx: Tx, ask: DecideAsk): Promise<Decided | Fault> => {
  const { question_id, decided_by, at } = ask;
  if (!(await lockQuestion(tx, question_id))) return refuse(question_faults.QUESTION_NOT_FOUND);
  const before = await readQuestion(tx, question_id);
  if (before === undefined) return refuse(question_faults.QUESTION_NOT_FOUND);
  const decision = ask.decide(before);
  if (isFault(decision)) return decision;
  const latest = await readLatest(tx, question_id);
  if (latest !== undefined && isSameDecision(latest, decision)) {
    return { question: before, resolution: latest, changed: false };
  }
  const question = await change(tx, before, { decision, at });
  if (isFault(question)) return question;
  const { revision } = question;
  const resolution = await insertResolution(tx, {
    ...decision,
    ...{ question_id, revision, decided_by, at },
  });
  return { question, resolution, changed: true };
};

export const settlingChannel = (prefix: string): string => `${prefix}:nudge:settling`;

/** Tells timers that there is something to settle. Never throws and waits for nothing. */
export const wakeSettling = ({ redis, config }: Pick<Deps, 'redis' | 'config'>): void => {
  if (redis.status !== 'ready') return;
  redis.publish(settlingChannel(config.REDIS_PREFIX), '').catch(() => undefined);
};
