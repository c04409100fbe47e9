export { createQuestion } from './actions.js';
export { question_counts } from './counts.js';
export { closeQuestion, markResolved, markVoided } from './life.js';
export type { Resolution, Voiding } from './life-store.js';
export { findVisible, lists_tag, type QuestionParts, routes } from './routes.js';
export { whyNotOpen } from './rules.js';
export { question_faults, question_params, question_schema } from './schema.js';
export {
  createQuestionCache,
  type NumberedQuestion,
  type QuestionCache,
  type QuestionRow,
  readQuestion,
  toWire,
} from './store.js';
export { createQuestionTimer } from './timer.js';
