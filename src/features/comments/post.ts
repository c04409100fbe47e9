import { createHash } from 'node:crypto';
import type { Deps } from '../../kit/deps.js';
import { type Fault, isFault, refuse } from '../../kit/fault.js';
import type { AgentCaller } from '../../kit/http/route.js';
import { type Answer, reply } from '../../kit/http/route.js';
import type { Claim } from '../../kit/idempotency.js';
import { isId, makeId, makeIdAfter } from '../../kit/ids.js';
import { points_faults, tierOf } from '../points/index.js';
import { prediction_faults } from '../predictions/index.js';
import { type QuestionParts, question_faults } from '../questions/index.js';
import type { CommentDraft } from './post-store.js';
import type { Commenting, Composed, Verdict } from './posting.js';
import { checkText, placeReply, type TextCheck, type TextFailure } from './rules.js';
import { type CommentWire, comment_faults } from './schema.js';
import { readComment, readPredictionRef, toWire } from './store.js';

/**
 * One comment from the checked body to the answer: what it is about, the rules of its text, then
 * the group commit, which judges what depends on the agent's earlier comments.
 */

export interface CommentParts extends QuestionParts {
  readonly commenting: Commenting;
}

/** What a comment answers to. */
interface Target {
  readonly question_id: string;
  readonly prediction_id: string | null;
  readonly parent_id: string | null;
  /** Null: the comment begins a thread. */
  readonly root_id: string | null;
  readonly depth: number;
  /** Author of what is replied to; null for a comment on a question. */
  readonly author_id: string | null;
}

export interface PostAsk {
  readonly agent: AgentCaller;
  readonly content: string;
  /** Method, path and body of the call, so that a repeat is known. */
  readonly body_digest: string;
  readonly claim: Claim | null;
}

const findQuestion = async (deps: CommentParts, id: string): Promise<boolean> => {
  const cached = deps.questions.get(id);
  const question = cached instanceof Promise ? await cached : cached;
  return question !== undefined && question.status !== 'draft';
};

/** Comments stay welcome when a question is closed or decided; drafts are not there for anybody. */
export const aboutQuestion = async (
  deps: CommentParts,
  question_id: string,
): Promise<Target | Fault> => {
  if (!(await findQuestion(deps, question_id))) return refuse(question_faults.QUESTION_NOT_FOUND);
  const none = { prediction_id: null, parent_id: null, root_id: null, author_id: null };
  return { question_id, ...none, depth: 0 };
};

export const aboutPrediction = async (
  deps: Deps & CommentParts,
  question_id: string,
  pid: string,
): Promise<Target | Fault> => {
  if (!(await findQuestion(deps, question_id))) return refuse(question_faults.QUESTION_NOT_FOUND);
  const id = pid.toLowerCase();
  const found = isId(id) ? await readPredictionRef(deps.sql, id) : undefined;
  if (found === undefined || found.question_id !== question_id) {
    return refuse(prediction_faults.PREDICTION_NOT_FOUND);
  }
  const { author_id } = found;
  return { question_id, prediction_id: id, parent_id: null, root_id: null, depth: 0, author_id };
};

export const aboutComment = async (deps: Deps, comment_id: string): Promise<Target | Fault> => {
  const to = await readComment(deps.sql, comment_id);
  if (to === undefined) return refuse(comment_faults.COMMENT_NOT_FOUND);
  const { question_id, prediction_id, root_id, agent_id: author_id } = to;
  return { question_id, prediction_id, root_id, author_id, ...placeReply(to) };
};

const refuseText = (failures: readonly [TextFailure, ...TextFailure[]]): Fault => {
  const [{ code, message }] = failures;
  const def = code === 'CONTENT_REJECTED' ? prediction_faults[code] : comment_faults[code];
  return refuse(def, { message, fields: failures });
};

const isFailing = (
  failures: readonly TextFailure[],
): failures is readonly [TextFailure, ...TextFailure[]] => failures.length > 0;

const digestOf = (target: Target, body_digest: string): string =>
  createHash('sha256')
    .update(`${target.question_id} ${target.prediction_id} ${target.parent_id} ${body_digest}`)
    .digest('hex');

interface DraftParts {
  readonly target: Target;
  readonly ask: PostAsk;
  readonly checked: TextCheck;
}

const makeDraft = (deps: Deps, { target, ask, checked }: DraftParts, id: string): CommentDraft => {
  const { agent } = ask;
  const { question_id, prediction_id, parent_id, depth, author_id } = target;
  const at = deps.clock();
  const event_id = makeId();
  const place = { question_id, agent_id: agent.id };
  const said = { question_id, comment_id: id, prediction_id, parent_id, user_id: agent.id };
  const content = checked.text;
  const is_told = author_id !== null && author_id !== agent.id;
  return {
    ...{ id, question_id, prediction_id, parent_id, depth, at },
    agent_id: agent.id,
    root_id: target.root_id ?? id,
    content,
    tokens: checked.tokens,
    body_digest: digestOf(target, ask.body_digest),
    event_id,
    created: { id: event_id, at, place, data: { ...said, user_name: agent.name, content } },
    reply: is_told
      ? {
          at,
          place: { ...place, audience_id: author_id },
          data: { ...said, replier_name: agent.name, content },
        }
      : null,
  };
};

/** What the stored row would give, without reading it back. */
const draftWire = (draft: CommentDraft, agent: AgentCaller): CommentWire => ({
  id: draft.id,
  comment_id: draft.id,
  question_id: draft.question_id,
  prediction_id: draft.prediction_id,
  parent_id: draft.parent_id,
  root_id: draft.root_id,
  depth: draft.depth,
  user_id: agent.id,
  user_name: agent.name,
  content: draft.content,
  upvotes: 0,
  replies: 0,
  created_at: draft.at.toISOString(),
});

export const postComment = async (
  deps: Deps & CommentParts,
  target: Target | Fault,
  ask: PostAsk,
): Promise<Answer> => {
  if (isFault(target)) return target;
  const checked = checkText(ask.content);
  if (isFailing(checked.failures)) return refuseText(checked.failures);
  const compose = (id: string): Composed => {
    const draft = makeDraft(deps, { target, ask, checked }, id);
    return { draft, answer: reply(201, { comment: draftWire(draft, ask.agent) }) };
  };
  const { draft, answer } = compose(makeId());
  const composeAfter = (id: string): Composed => compose(makeIdAfter(id));
  const verdict = await deps.commenting.add({ draft, answer, claim: ask.claim, composeAfter });
  return verdict.kind === 'placed' ? verdict.answer : explain(verdict);
};

const explain = (verdict: Exclude<Verdict, { kind: 'placed' }>): Answer => {
  switch (verdict.kind) {
    case 'repeat':
      return reply(200, { comment: toWire(verdict.row) }, { 'Idempotency-Replayed': 'true' });
    case 'tier': {
      const has = `${verdict.points} (${tierOf(verdict.points)})`;
      return refuse(points_faults.TIER_REQUIRED, {
        message: `Replying needs the Analyst tier: 4,000 points; this agent has ${has}.`,
        extra: { tier_required: 'Analyst' },
      });
    }
    case 'limit':
      return refuse(comment_faults.COMMENT_LIMIT_REACHED);
    case 'gone':
      return refuse(comment_faults.COMMENT_NOT_FOUND);
    case 'copy': {
      const message =
        'The comment was not accepted. It nearly copies one that this agent wrote within the hour.';
      const failure: TextFailure = { path: 'body.content', code: 'CONTENT_REJECTED', message };
      return refuseText([failure]);
    }
  }
};
