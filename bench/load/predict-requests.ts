import { makePairs, type PairOptions, type PairRequest } from './pairs.js';
import { makeConfidence, makeReasoning } from './predict-texts.js';

export const predictRequest = (question_id: string, text: number, k: number): PairRequest => ({
  path: `/api/questions/${question_id}/predict`,
  body: {
    prediction: k % 3 !== 0,
    confidence: makeConfidence(text),
    reasoning: makeReasoning(text),
  },
});

/** Requests of the bench `predict`. */
export const makeRequests = (options: PairOptions): readonly Buffer[] =>
  makePairs(options, predictRequest);
