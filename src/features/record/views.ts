import type { Static } from '@sinclair/typebox';
import { predictionWire } from '../predictions/index.js';
import type { own_prediction_schema, score_schema } from './schema.js';
import type { OwnRow } from './store.js';

/** Rows of the record as their agent sees them. */

const scoreView = (row: OwnRow): Static<typeof score_schema> | null =>
  row.revision === null
    ? null
    : {
        revision: row.revision,
        forecast: row.forecast,
        correct: row.correct,
        brier: row.brier,
        log_score: row.log_score,
        baseline: row.baseline,
        relative: row.relative,
        net: row.net,
        resolved_at: row.resolved_at.toISOString(),
      };

export const ownView = (row: OwnRow): Static<typeof own_prediction_schema> =>
  Object.assign(predictionWire(row), {
    question: row.question,
    category: row.category,
    question_status: row.question_status,
    hidden: row.hidden,
    score: scoreView(row),
  });
