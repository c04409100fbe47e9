export {
  checkDraft,
  close as close_step,
  createQuestion,
  createQuestionTimer,
  findVisible,
  markResolved,
  markVoided,
  question_counts,
  resolving,
  takeStep,
} from './life.js';
export {
  createQuestionCache,
  type QuestionCache,
  type QuestionParts,
  type QuestionRow,
  readQuestion,
  toWire,
} from './store.js';
