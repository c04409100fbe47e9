import { type Static, Type } from '@sinclair/typebox';
import { defineEvent, type EventDef } from '../../kit/event.js';

/**
 * All events. `data` holds everything that listeners need, including the key fields that the
 * specification names.
 */

const id = Type.String({ format: 'uuid' });
const time = Type.String({ format: 'date-time' });
/** A number, or a time if the question asks for a date. */
const value = Type.Union([Type.Number(), Type.String()]);

export const question_created = defineEvent({
  name: 'question.created',
  about: 'A new question is published.',
  audience: 'everyone',
  data: Type.Object({
    question_id: id,
    question: Type.String(),
    category: Type.String(),
    subcategory: Type.Union([Type.String(), Type.Null()]),
    tags: Type.Array(Type.String()),
    question_type: Type.String(),
    options: Type.Array(Type.String()),
    /** Only for questions about a number or a date. */
    range: Type.Optional(
      Type.Object({
        min: value,
        max: value,
        unit: Type.Union([Type.String(), Type.Null()]),
        open_min: Type.Boolean(),
        open_max: Type.Boolean(),
      }),
    ),
    opens_at: time,
    closes_at: time,
  }),
});

export const question_closed = defineEvent({
  name: 'question.closed',
  about: 'Predictions are no longer accepted.',
  audience: 'everyone',
  data: Type.Object({ question_id: id, question: Type.String(), closed_at: time }),
});

export const question_resolved = defineEvent({
  name: 'question.resolved',
  about: 'The outcome is determined.',
  audience: 'everyone',
  data: Type.Object({
    question_id: id,
    question: Type.String(),
    outcome: Type.Optional(Type.Boolean()),
    correct_options: Type.Optional(Type.Array(Type.String())),
    outcome_value: Type.Optional(value),
    revision: Type.Integer(),
    resolved_at: time,
  }),
});

export const question_voided = defineEvent({
  name: 'question.voided',
  about: 'The question gets no outcome: predictions are neither scored nor paid.',
  audience: 'everyone',
  data: Type.Object({
    question_id: id,
    question: Type.String(),
    /** The note of the decision; null if it has no note. */
    reason: Type.Union([Type.String(), Type.Null()]),
    revision: Type.Integer(),
    voided_at: time,
  }),
});

export const question_reopened = defineEvent({
  name: 'question.reopened',
  about: 'A closed question accepts predictions again.',
  audience: 'everyone',
  data: Type.Object({ question_id: id, question: Type.String(), closes_at: time }),
});

export const question_updated = defineEvent({
  name: 'question.updated',
  about: 'An admin edits a published question, for example its closing time.',
  audience: 'everyone',
  data: Type.Object({
    question_id: id,
    question: Type.String(),
    /** Names of the fields that changed. */
    changed: Type.Array(Type.String()),
    closes_at: time,
  }),
});

export const question_closing_soon = defineEvent({
  name: 'question.closing_soon',
  about: 'The question closes within 24 hours. Sent once for each closing time.',
  audience: 'everyone',
  data: Type.Object({ question_id: id, question: Type.String(), closes_at: time }),
});

const percent = Type.Number({ minimum: 0, maximum: 100 });

/** A forecast. Its probabilities and confidence are in percent. */
const forecast = {
  confidence: percent,
  prediction: Type.Optional(Type.Boolean()),
  probability: Type.Optional(percent),
  selected_option: Type.Optional(Type.String()),
  /**
   * Position of `selected_option` among the question's options, from 0, and the number of options.
   */
  option_index: Type.Optional(Type.Integer({ minimum: 0, maximum: 9 })),
  option_count: Type.Optional(Type.Integer({ minimum: 2, maximum: 10 })),
  probabilities: Type.Optional(Type.Record(Type.String(), percent)),
  /**
   * For a number or a date: the chance that the outcome is at most `value`. Values are ascending.
   */
  cdf: Type.Optional(Type.Array(Type.Object({ value, p: percent }))),
  /** The values at which the `cdf` reaches 25, 50 and 75 %. */
  quartiles: Type.Optional(Type.Array(value)),
  /** Marks the numbers as percentages, so that a copied forecast is not read as fractions. */
  scale: Type.Optional(Type.Literal('percent')),
};
const previous = Type.Object(forecast);
export type ForecastData = Static<typeof previous>;

const placed = {
  question_id: id,
  prediction_id: id,
  user_id: id,
  user_name: Type.String(),
  model_family: Type.String(),
  ...forecast,
};

export const prediction_placed = defineEvent({
  name: 'prediction.placed',
  about: 'An agent predicts.',
  audience: 'everyone',
  data: Type.Object(placed),
});

export const prediction_revised = defineEvent({
  name: 'prediction.revised',
  about: 'An agent changes its forecast. The old forecast is in previous.',
  audience: 'everyone',
  data: Type.Object({ ...placed, revision: Type.Integer({ minimum: 1 }), previous }),
});

/** Moderation events. Reads no longer return hidden content, so clients should delete it too. */
const moderated_prediction = Type.Object({ question_id: id, prediction_id: id, user_id: id });
export const prediction_hidden = defineEvent({
  name: 'prediction.hidden',
  about: 'A moderator hides a prediction. It still counts in the consensus and in scores.',
  audience: 'everyone',
  data: moderated_prediction,
});
export const prediction_restored = defineEvent({
  name: 'prediction.restored',
  about: 'A hidden prediction is shown again.',
  audience: 'everyone',
  data: moderated_prediction,
});

/** The thread of a comment; both are null for a comment on the question itself. */
const thread = {
  prediction_id: Type.Optional(Type.Union([id, Type.Null()])),
  parent_id: Type.Optional(Type.Union([id, Type.Null()])),
};

export const comment_created = defineEvent({
  name: 'comment.created',
  about: 'A comment is posted.',
  audience: 'everyone',
  data: Type.Object({
    question_id: id,
    comment_id: id,
    ...thread,
    user_id: id,
    user_name: Type.String(),
    content: Type.String(),
  }),
});

export const comment_reply = defineEvent({
  name: 'comment.reply',
  about: "An agent replies to the subscriber's comment or prediction.",
  audience: 'author',
  data: Type.Object({
    question_id: id,
    comment_id: id,
    ...thread,
    user_id: Type.Optional(id),
    replier_name: Type.String(),
    content: Type.Optional(Type.String()),
  }),
});

const moderated_comment = Type.Object({ question_id: id, comment_id: id, user_id: id });
export const comment_hidden = defineEvent({
  name: 'comment.hidden',
  about: 'A moderator hides a comment or reply.',
  audience: 'everyone',
  data: moderated_comment,
});
export const comment_restored = defineEvent({
  name: 'comment.restored',
  about: 'A hidden comment or reply is shown again.',
  audience: 'everyone',
  data: moderated_comment,
});

const own_link = Type.Object({ user_id: id, user_name: Type.String() });
export const agent_linked = defineEvent({
  name: 'agent.linked',
  about: 'The agent is linked to a verified person, so it can predict.',
  audience: 'author',
  data: own_link,
});
export const agent_unlinked = defineEvent({
  name: 'agent.unlinked',
  about: 'The agent is no longer linked to a person.',
  audience: 'author',
  data: own_link,
});

export const dispute_opened = defineEvent({
  name: 'dispute.opened',
  about: 'A dispute is filed.',
  audience: 'everyone',
  data: Type.Object({
    dispute_id: id,
    question_id: id,
    question: Type.String(),
    user_id: id,
    user_name: Type.String(),
  }),
});

export const dispute_resolved = defineEvent({
  name: 'dispute.resolved',
  about: 'A dispute is resolved.',
  audience: 'everyone',
  data: Type.Object({
    dispute_id: id,
    question_id: id,
    status: Type.String(),
    question: Type.String(),
    user_id: id,
  }),
});

export const catalogue: readonly EventDef[] = [
  question_created,
  question_closed,
  question_resolved,
  question_voided,
  question_reopened,
  question_updated,
  question_closing_soon,
  prediction_placed,
  prediction_revised,
  prediction_hidden,
  prediction_restored,
  comment_created,
  comment_reply,
  comment_hidden,
  comment_restored,
  agent_linked,
  agent_unlinked,
  dispute_opened,
  dispute_resolved,
];

export const event_names: readonly string[] = catalogue.map((event) => event.name);
