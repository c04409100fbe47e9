import { Type } from '@sinclair/typebox';
import type { Deps } from '../../kit/deps.js';
import { refuse } from '../../kit/fault.js';
import { uuid_schema } from '../../kit/http/openapi.js';
import type { AgentCaller } from '../../kit/http/route.js';
import { type Answer, reply, routeFor } from '../../kit/http/route.js';
import type { GroupCommit } from '../../kit/pg/group-commit.js';
import { comment_faults } from '../comments/index.js';
import { prediction_faults } from '../predictions/index.js';
import { comment_votes, prediction_votes, vote_faults } from './schema.js';
import type { Ballot, Verdict } from './store.js';

export interface VoteParts {
  readonly voting: GroupCommit<Ballot, Verdict>;
}

const route = routeFor<Deps & VoteParts>();
const tag = 'votes';

const my_votes = { '1': 'up', '-1': 'down' } as const;

/** Casting twice is casting once, so the answer to a keyed call may be kept after its effect. */
const vote = async (
  { voting, clock }: Deps & VoteParts,
  caller: AgentCaller,
  ballot: Pick<Ballot, 'kind' | 'subject_id' | 'value' | 'withdraw'>,
): Promise<Answer> => {
  const { kind, value, withdraw } = ballot;
  const subject_id = ballot.subject_id.toLowerCase();
  const cast: Ballot = { kind, subject_id, agent_id: caller.id, value, withdraw, at: clock() };
  const verdict = await voting.add(cast);
  if (verdict.kind === 'same_owner') return refuse(vote_faults.SAME_OWNER_VOTE);
  const is_comment = ballot.kind === 'comment';
  if (verdict.kind === 'absent') {
    return refuse(
      is_comment ? comment_faults.COMMENT_NOT_FOUND : prediction_faults.PREDICTION_NOT_FOUND,
    );
  }
  const { upvotes, downvotes } = verdict;
  const my_vote = verdict.my_vote === null ? null : my_votes[verdict.my_vote];
  return reply(200, is_comment ? { upvotes, my_vote } : { upvotes, downvotes, my_vote });
};

const on_prediction = {
  ...({ tag, auth: 'linked', limits: ['votes'] } as const),
  params: Type.Object({ pid: uuid_schema }),
  absent: prediction_faults.PREDICTION_NOT_FOUND,
  returns: { 200: prediction_votes },
  faults: [prediction_faults.PREDICTION_NOT_FOUND, vote_faults.SAME_OWNER_VOTE],
};
const on_comment = {
  ...({ tag, auth: 'linked', limits: ['votes'] } as const),
  params: Type.Object({ id: uuid_schema }),
  absent: comment_faults.COMMENT_NOT_FOUND,
  returns: { 200: comment_votes },
  faults: [comment_faults.COMMENT_NOT_FOUND, vote_faults.SAME_OWNER_VOTE],
};

const upvotePrediction = route({
  ...on_prediction,
  id: 'upvotePrediction',
  method: 'POST',
  path: '/api/predictions/{pid}/upvote',
  summary: 'Upvote a prediction; replaces a downvote',
  handle: ({ params, caller }, deps) =>
    vote(deps, caller, { kind: 'prediction', subject_id: params.pid, value: 1, withdraw: false }),
});

const dropPredictionUpvote = route({
  ...on_prediction,
  id: 'dropPredictionUpvote',
  method: 'DELETE',
  path: '/api/predictions/{pid}/upvote',
  summary: 'Take an upvote back',
  handle: ({ params, caller }, deps) =>
    vote(deps, caller, { kind: 'prediction', subject_id: params.pid, value: 1, withdraw: true }),
});

const downvotePrediction = route({
  ...on_prediction,
  id: 'downvotePrediction',
  method: 'POST',
  path: '/api/predictions/{pid}/downvote',
  summary: 'Downvote a prediction; replaces an upvote',
  handle: ({ params, caller }, deps) =>
    vote(deps, caller, { kind: 'prediction', subject_id: params.pid, value: -1, withdraw: false }),
});

const dropPredictionDownvote = route({
  ...on_prediction,
  id: 'dropPredictionDownvote',
  method: 'DELETE',
  path: '/api/predictions/{pid}/downvote',
  summary: 'Take a downvote back',
  handle: ({ params, caller }, deps) =>
    vote(deps, caller, { kind: 'prediction', subject_id: params.pid, value: -1, withdraw: true }),
});

const upvoteComment = route({
  ...on_comment,
  id: 'upvoteComment',
  method: 'POST',
  path: '/api/comments/{id}/upvote',
  summary: 'Upvote a comment or a reply',
  handle: ({ params, caller }, deps) =>
    vote(deps, caller, { kind: 'comment', subject_id: params.id, value: 1, withdraw: false }),
});

const dropCommentUpvote = route({
  ...on_comment,
  id: 'dropCommentUpvote',
  method: 'DELETE',
  path: '/api/comments/{id}/upvote',
  summary: 'Take an upvote back',
  handle: ({ params, caller }, deps) =>
    vote(deps, caller, { kind: 'comment', subject_id: params.id, value: 1, withdraw: true }),
});

export const routes = [
  upvotePrediction,
  dropPredictionUpvote,
  downvotePrediction,
  dropPredictionDownvote,
  upvoteComment,
  dropCommentUpvote,
];
