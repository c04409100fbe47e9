import type { Sql, Tx } from '../../db/client.js';
import { bodyOf, emitAll } from '../../db/event.js';
import { createGroupCommit, type GroupCommit } from '../../db/group-commit.js';
import type { AgentCaller } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import { storeInTransaction } from '../../http/idempotency.js';
import { type Answer, type Claim, type Context, type Reply, reply } from '../../http/route.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { isId, makeId, makeIdAfter, sha256 } from '../../kit/ids.js';
import { comment_created, comment_reply } from '../events/catalogue.js';
import { hasTier, points_faults, tierOf } from '../points/rules.js';
import { prediction_faults } from '../predictions/faults.js';
import type { QuestionParts } from '../questions/index.js';
import { question_faults } from '../questions/schema.js';
import * as rules from './rules.js';
import { type CommentWire, comment_faults } from './schema.js';
import * as store from './store.js';

/**
 * Posts one comment, from the checked body to the answer: finds the target, checks the text, and
 * joins a group commit on the home process of the question. A batch (one comment per agent)
 *
 *   begins · locks the agents and the parents · reads the agents' recent comments · judges the
 *   drafts · writes comments, events and answers · commits
 */

export interface Target
  extends Pick<CommentWire, 'question_id' | 'prediction_id' | 'parent_id' | 'depth'> {
  /** Null if the comment starts a thread. */
  readonly root_id: string | null;
  /** The author of the parent, who gets the reply. Null for a comment on a question. */
  readonly author_id: string | null;
}

/** A comment whose text has passed the rules. */
export interface PostRequest extends Target {
  readonly agent: AgentCaller;
  readonly content: string;
  /** SHA-256 (hex) of the target and the body. */
  readonly digest: string;
  /** Null unless the call has an Idempotency-Key. */
  readonly claim: Claim | null;
}

type PostDraft = PostRequest & store.Draft;

/** `repeat`: the agent has posted the same body before, as comment `id`. */
type Verdict = Reply | Fault | { readonly kind: 'repeat'; readonly id: string };

export interface CommentParts extends QuestionParts {
  readonly commenting: GroupCommit<PostDraft, Verdict>;
  /** Runs `answerPost` on the home process of the question. */
  postAtHome(request: PostRequest): Promise<Answer>;
}

/** Closed and decided questions accept comments. Draft questions count as not found. */
export const aboutQuestion = async (
  { questions }: CommentParts,
  question_id: string,
): Promise<Target | Fault> => {
  const { status = 'draft' } = (await questions.get(question_id)) ?? {};
  if (status === 'draft') return refuse(question_faults.QUESTION_NOT_FOUND);
  const none = { prediction_id: null, parent_id: null, root_id: null, author_id: null };
  return { question_id, ...none, depth: 0 };
};

export const aboutPrediction = async (
  deps: Deps & CommentParts,
  question_id: string,
  pid: string,
): Promise<Target | Fault> => {
  const target = await aboutQuestion(deps, question_id);
  if (isFault(target)) return target;
  const prediction_id = pid.toLowerCase();
  const found = isId(prediction_id)
    ? await store.readPredictionRef(deps.sql, prediction_id)
    : undefined;
  if (found?.question_id !== question_id) return refuse(prediction_faults.PREDICTION_NOT_FOUND);
  return { ...target, ...found, prediction_id };
};

export const aboutComment = async (deps: Deps, comment_id: string): Promise<Target | Fault> => {
  const to = await store.readComment(deps.sql, comment_id);
  if (to === undefined) return refuse(comment_faults.COMMENT_NOT_FOUND);
  const { question_id, prediction_id, root_id, user_id: author_id } = to;
  return { question_id, prediction_id, root_id, author_id, ...rules.placeReply(to) };
};

const refuseText = (
  first: rules.TextFailure,
  failures: readonly rules.TextFailure[] = [first],
): Fault => {
  const { code, message } = first;
  const def = { ...common_faults, ...prediction_faults, ...comment_faults }[code];
  return refuse(def, { message, fields: failures });
};

type Call = Context<unknown, unknown, { readonly content: string }, AgentCaller>;

export const postComment = async (
  { postAtHome }: CommentParts,
  target: Target | Fault,
  { caller: agent, body, body_digest, claim }: Call,
): Promise<Answer> => {
  if (isFault(target)) return target;
  const { text: content, failures } = rules.checkText(body.content);
  if (failures[0] !== undefined) return refuseText(failures[0], failures);
  const { question_id, prediction_id, parent_id } = target;
  const digest = sha256(`${question_id} ${prediction_id} ${parent_id} ${body_digest}`, 'hex');
  return postAtHome({ agent, content, digest, claim, ...target });
};

export const answerPost = async (
  { sql, clock, commenting }: Deps & CommentParts,
  request: PostRequest,
): Promise<Answer> => {
  const verdict = await commenting.add({ agent_id: request.agent.id, at: clock(), ...request });
  if (verdict.kind !== 'repeat') return verdict;
  const comment = await store.readComment(sql, verdict.id);
  if (comment === undefined) return refuse(comment_faults.COMMENT_NOT_FOUND);
  return reply(200, { comment }, { 'Idempotency-Replayed': 'true' });
};

const judge = (draft: PostDraft, known: store.Known): Exclude<Verdict, Reply> | null => {
  const { points, used, repeat_id, recent, has_parent } = known;
  if (repeat_id !== null) return { kind: 'repeat', id: repeat_id };
  if (isReply(draft) && !hasTier(points, 'Analyst')) {
    const has = `${points} (${tierOf(points)})`;
    return refuse(points_faults.TIER_REQUIRED, {
      message: `Replies need the Analyst tier (4,000 points). This agent has ${has}.`,
      extra: { tier_required: 'Analyst' },
    });
  }
  if (!isReply(draft) && used >= rules.comment_limits.top_level) {
    return refuse(comment_faults.COMMENT_LIMIT_REACHED);
  }
  const tokens = new Set(recent.length === 0 ? [] : rules.readTokens(draft.content));
  if (recent.some((content) => rules.isCopyOf(tokens, content))) {
    const message =
      'The comment was not accepted. It almost repeats one that this agent wrote in the last hour.';
    return refuseText({ path: 'body.content', code: 'CONTENT_REJECTED', message });
  }
  return has_parent ? null : refuse(comment_faults.COMMENT_NOT_FOUND);
};

const isReply = ({ parent_id, prediction_id }: Target): boolean =>
  parent_id !== null || prediction_id !== null;

/** Builds the row, the events and the answer of an accepted draft. */
const make = (draft: PostDraft, { last_id, used }: store.Known) => {
  const { agent, agent_id: user_id, author_id, content, at, depth } = draft;
  const { question_id, prediction_id, parent_id } = draft;
  // The ids of an agent's comments always increase, even if the clocks of processes differ.
  const id = last_id === null ? makeId() : makeIdAfter(last_id);
  const about = { question_id, prediction_id, parent_id };
  const comment: CommentWire = {
    id,
    comment_id: id,
    ...about,
    root_id: draft.root_id ?? id,
    depth,
    user_id,
    user_name: agent.name,
    content,
    upvotes: 0,
    replies: 0,
    created_at: at.toISOString(),
  };
  const posted = { question_id, prediction_id, parent_id, comment_id: id, user_id, content };
  return {
    row: {
      id,
      ...about,
      root_id: comment.root_id,
      depth,
      agent_id: user_id,
      content,
      event_id: makeId(),
      at,
      slot: isReply(draft) ? null : used + 1,
      digest: draft.digest,
      body: bodyOf(comment_created, { data: { ...posted, user_name: agent.name }, at }),
    },
    /** The event for the parent's author. False if there is none or agents answer themselves. */
    replied: author_id !== null &&
      author_id !== user_id && {
        at,
        scope: { question_id, agent_id: user_id, audience_id: author_id },
        data: { ...posted, replier_name: agent.name },
      },
    answer: reply(201, { comment }),
    claim: draft.claim,
  };
};

const post = async (tx: Tx, drafts: readonly PostDraft[]): Promise<readonly Verdict[]> => {
  // The statements are sent together, in this order. The read comes last, so it sees everything
  // that was committed before the locks were granted.
  const locks = [store.lockWriters(tx, drafts).execute(), store.lockParents(tx, drafts).execute()];
  const [known] = await Promise.all([store.readKnown(tx, drafts), ...locks]);
  const judged = drafts.map((draft, n) => {
    const known_of = known[n] as store.Known;
    return judge(draft, known_of) ?? make(draft, known_of);
  });
  const made = judged.flatMap((one) => ('kind' in one ? [] : one));
  const replied = made.flatMap((one) => one.replied || []);
  const kept = made.flatMap(({ claim, answer }) => (claim === null ? [] : { claim, answer }));
  const rows = made.map(({ row }) => row);
  if (made.length > 0) {
    const sent = [store.insertComments(tx, rows), emitAll(tx, comment_reply, replied)];
    // Sends the commit too, unless there is a claim. If a claim is lost, all must roll back.
    if (kept.length === 0) tx.commit();
    else sent.push(storeInTransaction(tx, kept));
    await Promise.all(sent);
  }
  return judged.map((one) => ('kind' in one ? one : one.answer));
};

/** Created once per process. */
export const createCommenting = (sql: Sql): CommentParts['commenting'] =>
  createGroupCommit<PostDraft, Verdict>({
    one_of: ({ agent_id }) => agent_id,
    commit: (drafts) => sql.begin((tx) => post(tx, drafts)),
  });
