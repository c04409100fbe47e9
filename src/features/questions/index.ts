export { createQuestion } from './actions.js';
export { question_counts } from './counts.js';
export { closeQuestion, markResolved, markVoided } from './life.js';
export type { Resolution, Voiding } from './life-store.js';
export { findVisible, lists_tag, type QuestionParts, routes } from './routes.js';
export { createQuestionCache, type QuestionCache, whyNotOpen } from './rules.js';
export { question_faults, question_params, question_schema } from './schema.js';
export { type NumberedQuestion, type QuestionRow, readQuestion, toWire } from './store.js';
export { createQuestionTimer } from './timer.js';
