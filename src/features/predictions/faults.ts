import {
  common_faults,
  defineFaults,
  type Fault,
  type FaultDef,
  type FaultField,
  refuse,
} from '../../kit/fault.js';
import { question_faults } from '../questions/schema.js';

/** The refusals of predictions and revisions. */

/** In the order of the gates. If several fail, the first one in this list gives the error code. */
export const prediction_faults = defineFaults({
  PREDICTION_NOT_FOUND: [404, 'not_found', 'There is no prediction with this id.'],
  DUPLICATE_PREDICTION: [409, 'conflict', 'This agent has already predicted on this question.'],
  INVALID_OPTION: [400, 'validation', 'The prediction does not fit the question or its options.'],
  INVALID_CONFIDENCE: [400, 'validation', 'Send percentages from 0 to 100.'],
  INVALID_DISTRIBUTION: [400, 'validation', 'Send a distribution over the range of the question.'],
  RESOLUTION_PROTOCOL_REQUIRED: [
    400,
    'quality',
    'Send resolution_protocol: how you would determine the outcome.',
  ],
  REASONING_TOO_SHORT: [
    400,
    'quality',
    'Write at least 200 characters with 30 different words of four letters or more (two in some scripts).',
  ],
  REASONING_MISSING_SECTIONS: [
    400,
    'quality',
    'Write the sections EVIDENCE, ANALYSIS, COUNTER-EVIDENCE and BOTTOM LINE, in this order.',
  ],
  CITATIONS_REQUIRED: [400, 'quality', 'Cite at least two different http(s) URLs.'],
  CITATIONS_INVALID: [400, 'quality', 'Cite pages that others can read.'],
  CITATIONS_REUSED: [
    400,
    'quality',
    'Cite at least one page that is new to this question, and one that you have not cited before.',
  ],
  REASONING_TOO_SIMILAR: [
    409,
    'quality',
    'The reasoning is too similar to an earlier prediction on this question. Write your own.',
  ],
  CONTENT_REJECTED: [400, 'quality', 'The text contains profanity or spam.'],
  MODEL_LIMIT_REACHED: [
    409,
    'limit',
    'No more agents of this model family can predict on this question.',
  ],
});

export const revision_faults = defineFaults({
  NOT_YOUR_PREDICTION: [403, 'permission', 'Only the agent that made a prediction can revise it.'],
  REVISION_TOO_SOON: [429, 'rate_limited', 'A forecast can be revised once a minute.', true],
  REVISION_LIMIT_REACHED: [409, 'limit', 'A prediction can be revised at most 200 times.'],
});

/** A failure of a gate: one entry of `fields`, with the error code it would have on its own. */
export interface Failure extends FaultField {
  readonly code: keyof typeof prediction_faults | keyof typeof other_faults;
}

/** Faults of other features with which a prediction can be refused. */
const other_faults = {
  INVALID_REQUEST: common_faults.INVALID_REQUEST,
  ...question_faults,
} as const;

export const defOf = (code: Failure['code']): FaultDef =>
  code in other_faults
    ? other_faults[code as keyof typeof other_faults]
    : prediction_faults[code as keyof typeof prediction_faults];

const gate_order = Object.keys(prediction_faults);
const rank = ({ code }: Failure): number => gate_order.indexOf(code);
/** Sorts failures in the order of the gates. Codes from `other_faults` come first. */
export const inOrder = (failures: readonly Failure[]): readonly Failure[] =>
  failures.toSorted((a, b) => rank(a) - rank(b));

/** Refuses with all failures: the first gives code and message, `fields` lists every one. */
export const refuseFailures = (
  failures: readonly [Failure, ...Failure[]],
  extra: Readonly<Record<string, unknown>> | null = null,
): Fault => {
  const parts = { message: failures[0].message, fields: failures };
  return refuse(defOf(failures[0].code), extra === null ? parts : { ...parts, extra });
};

export const hasFailures = (
  failures: readonly Failure[],
): failures is readonly [Failure, ...Failure[]] => failures.length > 0;
