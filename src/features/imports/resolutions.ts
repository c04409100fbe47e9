import type { Deps } from '../../kit/deps.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import { withoutControls } from '../../kit/text.js';
import {
  closeQuestion,
  type QuestionParts,
  type QuestionRow,
  question_faults,
  readQuestion,
} from '../questions/index.js';
import {
  type Decision,
  decideQuestion,
  readDecision,
  resolution_faults,
} from '../resolution/index.js';
import type { ResolutionItem } from './schema.js';
import { findBySource } from './store.js';

/**
 * Decisions by their question's source. What is decided already stays as it is: the same outcome
 * again is nothing new, and another one is refused, because a new revision is never an accident of
 * an import. A question that is open is closed first.
 */

export interface ResolutionOutcome {
  readonly kind: 'created' | 'exists';
  readonly question_id: string;
}

type Needs = Deps & QuestionParts;

const readItem = (item: ResolutionItem, question: QuestionRow): Decision | Fault => {
  const { outcome, correct_options, resolution_note = null } = item;
  if (item.void !== true) {
    return readDecision(
      {
        ...(outcome === undefined ? {} : { outcome }),
        ...(correct_options === undefined ? {} : { correct_options }),
        ...(resolution_note === null ? {} : { resolution_note }),
      },
      question,
    );
  }
  if (outcome === undefined && correct_options === undefined) {
    return {
      kind: 'void',
      outcome: null,
      correct_options: null,
      resolution_note: resolution_note === null ? null : withoutControls(resolution_note),
      evidence_urls: [],
    };
  }
  const message = 'A question is void, or it has an outcome; send one of them.';
  return refuse(resolution_faults.INVALID_OUTCOME, { message });
};

const isDecided = ({ status }: QuestionRow): boolean =>
  status === 'resolved' || status === 'voided';

const saysSame = (row: QuestionRow, decision: Decision): boolean => {
  if (row.status === 'voided') return decision.kind === 'void';
  return (
    decision.kind === 'resolve' &&
    row.outcome === decision.outcome &&
    JSON.stringify(row.correct_options) === JSON.stringify(decision.correct_options)
  );
};

const refuseOther = (row: QuestionRow): Fault =>
  refuse(question_faults.INVALID_TRANSITION, {
    message: `The question is ${row.status} otherwise already; an import does not decide it anew.`,
  });

export const importResolution = async (
  deps: Needs,
  item: ResolutionItem,
  admin: string,
): Promise<ResolutionOutcome | Fault> => {
  const [named] = await findBySource(deps.sql, [item]);
  const row = named === undefined ? undefined : await readQuestion(deps.sql, named.id);
  if (row === undefined) {
    const message = `There is no published question ${item.source_id} of ${item.source}.`;
    return refuse(question_faults.QUESTION_NOT_FOUND, { message });
  }
  const decision = readItem(item, row);
  if (isFault(decision)) return decision;
  const question_id = row.id;
  if (isDecided(row)) {
    return saysSame(row, decision) ? { kind: 'exists', question_id } : refuseOther(row);
  }
  // Of a question that closes by itself at this very moment the decision finds out next.
  if (row.status === 'open' && decision.kind === 'resolve') {
    await closeQuestion(deps, question_id, { admin, keep: async () => undefined });
  }
  const decided = await deps.sql.begin((tx) =>
    decideQuestion(tx, {
      question_id,
      decided_by: admin,
      at: deps.clock(),
      decide: (now) => (isDecided(now) && !saysSame(now, decision) ? refuseOther(now) : decision),
    }),
  );
  if (isFault(decided)) return decided;
  deps.questions.forget(question_id);
  return { kind: 'created', question_id };
};
