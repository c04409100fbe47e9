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
export * from './range.js';
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
  type QuestionType,
  question_draft,
  question_faults,
  question_params,
  question_schema,
  question_types,
  range_schema,
  type Value,
  value_schema,
} from './schema.js';
export {
  createQuestionCache,
  type NumberedQuestion,
  type QuestionCache,
  type QuestionRow,
  readQuestion,
  showOutcome,
  toWire,
} from './store.js';
