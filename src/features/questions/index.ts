export {
  checkDraft,
  close as close_step,
  createQuestion,
  createQuestionTimer,
  markResolved,
  markVoided,
  question_counts,
  takeStep,
} from './life.js';
export {
  findVisible,
  type HeadlineParts,
  lists_tag,
  type QuestionParts,
  routes,
} from './routes.js';
export { whyNotOpen } from './rules.js';
export {
  type Headline,
  question_draft,
  question_faults,
  question_params,
  question_schema,
} from './schema.js';
export {
  createQuestionCache,
  type NumberedQuestion,
  type QuestionCache,
  type QuestionRow,
  readQuestion,
  toWire,
} from './store.js';
