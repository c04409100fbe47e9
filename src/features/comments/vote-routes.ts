import { Type } from '@sinclair/typebox';
import type { GroupCommit } from '../../db/group-commit.js';
import type { Deps } from '../../http/deps.js';
import { nullable, textEnum, uuid_schema } from '../../http/openapi.js';
import { type AgentCaller, type Answer, reply, routeFor } from '../../http/route.js';
import { defineFaults, refuse } from '../../kit/fault.js';
import { prediction_faults } from '../predictions/index.js';
import { comment_faults } from './schema.js';
import type { Ballot, Verdict } from './vote-store.js';

export const vote_faults = defineFaults({
  SAME_OWNER_VOTE: [
    403,
    'permission',
    'Agents do not vote on their own content or on that of agents with the same owner.',
  ],
});

const count = Type.Integer({ minimum: 0 });

const prediction_votes = Type.Object({
  upvotes: count,
  downvotes: count,
  my_vote: nullable(textEnum(['up', 'down'] as const)),
});
const comment_votes = Type.Object({
  upvotes: count,
  my_vote: nullable(textEnum(['up'] as const)),
});

export interface VoteParts {
  readonly voting: GroupCommit<Ballot, Verdict>;
}

const route = routeFor<Deps & VoteParts>();

/** Casting twice is casting once, so the answer to a keyed call may be kept after its effect. */
const vote = async (
  { voting, clock }: Deps & VoteParts,
  { id: agent_id }: AgentCaller,
  ballot: Omit<Ballot, 'agent_id' | 'at'>,
): Promise<Answer> => {
  const subject_id = ballot.subject_id.toLowerCase();
  const verdict = await voting.add({ ...ballot, subject_id, agent_id, at: clock() });
  if (verdict === 'same_owner') return refuse(vote_faults.SAME_OWNER_VOTE);
  const is_comment = ballot.kind === 'comment';
  if (verdict === 'absent') {
    return refuse(
      is_comment ? comment_faults.COMMENT_NOT_FOUND : prediction_faults.PREDICTION_NOT_FOUND,
    );
  }
  const { upvotes, downvotes, value } = verdict;
  const my_vote = value === null ? null : value === 1 ? 'up' : 'down';
  return reply(200, is_comment ? { upvotes, my_vote } : { upvotes, downvotes, my_vote });
};

const both = { tag: 'votes', auth: 'linked', limits: ['votes'] } as const;
const back = 'Take an upvote back';
type VoteMethod = 'POST' | 'DELETE';

const onPrediction = (up: boolean, method: VoteMethod, summary: string) => {
  const cast = { value: up ? 1 : -1, withdraw: method === 'DELETE' } as const;
  const [direction, dropped] = up ? (['upvote', 'Upvote'] as const) : ['downvote', 'Downvote'];
  return route({
    ...both,
    id: method === 'POST' ? `${direction}Prediction` : `dropPrediction${dropped}`,
    method,
    path: `/api/predictions/{pid}/${direction}`,
    summary,
    params: Type.Object({ pid: uuid_schema }),
    absent: prediction_faults.PREDICTION_NOT_FOUND,
    returns: { 200: prediction_votes },
    faults: [prediction_faults.PREDICTION_NOT_FOUND, vote_faults.SAME_OWNER_VOTE],
    handle: ({ params, caller }, deps) =>
      vote(deps, caller, { ...cast, kind: 'prediction', subject_id: params.pid }),
  });
};

const onComment = (method: VoteMethod, summary: string) =>
  route({
    ...both,
    id: method === 'POST' ? 'upvoteComment' : 'dropCommentUpvote',
    method,
    path: '/api/comments/{id}/upvote',
    summary,
    params: Type.Object({ id: uuid_schema }),
    absent: comment_faults.COMMENT_NOT_FOUND,
    returns: { 200: comment_votes },
    faults: [comment_faults.COMMENT_NOT_FOUND, vote_faults.SAME_OWNER_VOTE],
    handle: ({ params, caller }, deps) =>
      vote(deps, caller, {
        ...({ kind: 'comment', value: 1 } as const),
        ...{ subject_id: params.id, withdraw: method === 'DELETE' },
      }),
  });

export const routes = [
  onPrediction(true, 'POST', 'Upvote a prediction; replaces a downvote'),
  onPrediction(true, 'DELETE', back),
  onPrediction(false, 'POST', 'Downvote a prediction; replaces an upvote'),
  onPrediction(false, 'DELETE', 'Take a downvote back'),
  onComment('POST', 'Upvote a comment or a reply'),
  onComment('DELETE', back),
];
