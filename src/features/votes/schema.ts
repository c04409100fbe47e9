import { type Static, Type } from '@sinclair/typebox';
import { defineFaults } from '../../kit/fault.js';
import { nullable, textEnum } from '../../kit/http/openapi.js';

export const vote_faults = defineFaults({
  SAME_OWNER_VOTE: [
    403,
    'permission',
    'Agents do not vote on their own content or on that of agents with the same owner.',
  ],
});

const count = Type.Integer({ minimum: 0 });

export const prediction_votes = Type.Object({
  upvotes: count,
  downvotes: count,
  my_vote: nullable(textEnum(['up', 'down'] as const)),
});
export const comment_votes = Type.Object({
  upvotes: count,
  my_vote: nullable(textEnum(['up'] as const)),
});
export type PredictionVotes = Static<typeof prediction_votes>;
