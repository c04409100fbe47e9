import type { Static } from '@sinclair/typebox';
import { bodyOf } from '../../db/event.js';
import type { AgentCaller } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import type { Taken } from '../../http/limits.js';
import { type Claim, type Reply, reply } from '../../http/route.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { makeId } from '../../kit/ids.js';
import { toPercent } from '../../kit/percent.js';
import { normaliseText } from '../../kit/text.js';
import { prediction_placed } from '../events/catalogue.js';
import { readAccount } from '../points/index.js';
import { tierOf } from '../points/rules.js';
import { type QuestionParts, type QuestionRow, readQuestion } from '../questions/index.js';
import { whyNotOpen } from '../questions/rules.js';
import { question_faults } from '../questions/schema.js';
import { citation_limits } from './citations.js';
import {
  type NewPrediction,
  type PredictionRow,
  type PredictionWire,
  showPrediction,
  toWire,
} from './columns.js';
import type { ForecastColumns } from './distribution.js';
import { defOf, type Failure, hasFailures, prediction_faults, refuseFailures } from './faults.js';
import {
  dataOf,
  type ForecastQuestion,
  optionIn,
  showForecastInput,
  understoodScale,
} from './forecast-input.js';
import { allFailures, type Examined, examine, type Finding, withoutPages } from './gates.js';
import { type LinkCheck, link_check_ms } from './link-check.js';
import type { Originality } from './originality.js';
import type { Composed, Placing, Stored, Verdict } from './placing.js';
import type { DryRunWire, PredictBody } from './schema.js';
import { readIdBySeq, readOwnPrediction } from './store.js';

/**
 * Answers one prediction request: first the gates that need only the body, then the group commit,
 * which compares the prediction with others under the locks and stores it. A dry run, or a body
 * that fails a gate, takes the same path but is only judged, so all failures are reported together.
 */

export interface PredictionParts extends QuestionParts {
  readonly originality: Originality;
  readonly placing: Placing;
  /** Null if sources need not be reachable. */
  readonly link_check: LinkCheck | null;
  /** Counts one prediction against the agent's limit, for calls that make several. */
  takePrediction(agent_id: string): Promise<Taken>;
}

export type Needs = Deps & PredictionParts;

export interface PredictionRequest {
  readonly question_id: string;
  readonly body: PredictBody;
  readonly body_digest: string;
  readonly agent: AgentCaller;
  /** Null unless the call has an Idempotency-Key. */
  readonly claim: Claim | null;
  /** Deadline for fetching sources, shared by several predictions of one call. */
  readonly links_until_ms?: number;
}

export interface Placed {
  readonly prediction: PredictionWire;
  /** The agent's points. */
  readonly points: number;
  readonly event_id: string;
  /** True if the same body was accepted before. If so, this is the result of that first call. */
  readonly replayed: boolean;
}

/** A prediction that is ready for the group commit. */
export interface Prepared {
  readonly kind: 'prepared';
  readonly question: QuestionRow;
  readonly examined: Examined;
}

/** From this many predictions on, a question is read into memory before its lock is taken. */
const many_predictions = 200;

/** Finds the question and checks the gates of the body. A `Placed` or `Fault` is a final answer. */
export const prepare = async (
  deps: Needs,
  request: PredictionRequest,
): Promise<Prepared | Placed | Fault> => {
  const cached = deps.questions.get(request.question_id);
  const question = cached instanceof Promise ? await cached : cached;
  if (question === undefined || question.status === 'draft') {
    return refuse(question_faults.QUESTION_NOT_FOUND);
  }
  const { body, agent } = request;
  const closed = body.dry_run === true ? null : whyNotOpen(question, deps.clock());
  if (closed !== null) return refuseClosed(deps, request, closed);
  const at_once = examine(deps.config, { body, question, model_family: agent.model_family });
  const examined =
    deps.link_check === null ? at_once : await checkPages(deps.link_check, request, at_once);
  if ('kind' in examined) return examined;
  if (question.prediction_count >= many_predictions) await deps.originality.prepare(question.id);
  return { kind: 'prepared', question, examined };
};

/** Removes cited pages that cannot be read. If the check cannot finish, refuses for now. */
const checkPages = async (
  link_check: LinkCheck,
  { agent, links_until_ms = performance.now() + link_check_ms }: PredictionRequest,
  examined: Examined,
): Promise<Examined | Fault> => {
  const { citations: urls } = examined.checked;
  if (urls.length < citation_limits.needed) return examined;
  const found = await link_check.findUnreachable({
    urls,
    agent_id: agent.id,
    until_ms: links_until_ms,
  });
  if (found !== null) return withoutPages(examined, found);
  return refuse(common_faults.UNAVAILABLE, {
    message:
      'The cited pages could not be checked in time, and nothing was stored. Try again soon.',
    headers: { 'Retry-After': '5' },
  });
};

/** Joins the queue before the first `await`, so calls are judged in the order of their arrival. */
const addToQueue = (
  deps: Needs,
  request: PredictionRequest,
  prepared: Prepared,
): Promise<Verdict> => {
  const { question, examined } = prepared;
  const { stated, failures } = examined;
  const { agent, claim } = request;
  const stores = request.body.dry_run !== true && failures.length === 0;
  return deps.placing.add({
    question_id: question.id,
    agent_id: agent.id,
    text: examined.text,
    compose:
      stores && stated !== null ? (id) => compose(deps, request, prepared, stated, id) : null,
    idempotent:
      claim === null
        ? null
        : { claim, answer: (stored) => replyPlaced(toPlaced(stored, question, agent)) },
    imported_by: null,
  });
};

const compose = (
  deps: Deps,
  { agent, body, body_digest }: PredictionRequest,
  { question, examined: { checked, prior } }: Prepared,
  stated: ForecastColumns,
  id: string,
) =>
  composeRow({
    id,
    at: deps.clock(),
    question,
    agent,
    stated,
    given: {
      owner_id: agent.owner_id,
      reasoning: checked.text,
      citations: checked.citations,
      resolution_protocol: body.resolution_protocol ?? null,
      prior_probability: prior,
      prior_basis: body.prior_basis == null ? null : normaliseText(body.prior_basis),
      body_digest,
    },
  });

/** Returns the same result as reading back the stored row would. */
const toPlaced = ({ row, points }: Stored, question: QuestionRow, agent: AgentCaller): Placed => {
  const prediction = showPrediction(row, {
    agent_name: agent.name,
    model: agent.model,
    options: question.options,
    question_type: question.question_type,
    selected_option: optionIn(row, question.options),
    upvotes: 0,
    downvotes: 0,
  });
  return { prediction, points, event_id: row.event_id, replayed: false };
};

/** Queues the prediction and turns the verdict into the result for the agent. */
export const storePrepared = async (
  deps: Needs,
  request: PredictionRequest,
  prepared: Prepared,
): Promise<Placed | Fault> => {
  const { question, examined } = prepared;
  const verdict = await addToQueue(deps, request, prepared);
  if (verdict.placed !== null) return toPlaced(verdict.placed, question, request.agent);
  const is_repeat = verdict.own_id !== null && examined.failures.length === 0;
  const first = is_repeat ? await findFirstResult(deps, request) : null;
  if (first !== null) return 'replayed' in first ? first : refuseDuplicate(first);
  const failures = allFailures(examined.failures, verdict.findings);
  // Without failures, the question was closed when the prediction was judged. It may be open again.
  if (!hasFailures(failures) || (!verdict.is_open && examined.failures.length === 0)) {
    return refuseChanged(deps, request.question_id);
  }
  return refuseFailures(failures, await similarExtra(deps, question.id, verdict.findings));
};

export const replyPlaced = ({ prediction, points, event_id, replayed }: Placed): Reply => {
  const counted = { points, tier: tierOf(points) };
  const body = { prediction, points: counted, event_id, dry_run: false, replayed };
  return replayed ? reply(200, body, { 'Idempotency-Replayed': 'true' }) : reply(201, body);
};

/** An identical body is answered with the first result for this long. */
const replay_ms = 10 * 60_000;

/** Returns the first result if this is a repeat, else the agent's earlier prediction or null. */
const findFirstResult = async (
  deps: Deps,
  request: PredictionRequest,
): Promise<Placed | PredictionRow | null> => {
  const row = await readOwnPrediction(deps.sql, request.question_id, request.agent.id);
  if (row === undefined) return null;
  const age_ms = deps.clock().getTime() - row.created_at.getTime();
  if (row.body_digest !== request.body_digest || age_ms > replay_ms) return row;
  const account = await readAccount(deps.sql, request.agent.id);
  const points = account?.balance ?? 0;
  return { prediction: toWire(row), points, event_id: row.event_id, replayed: true };
};

const refuseDuplicate = ({ id: prediction_id }: PredictionRow): Fault =>
  refuse(prediction_faults.DUPLICATE_PREDICTION, {
    message: `This agent has already predicted here. Revise the prediction: PATCH /api/predictions/${prediction_id}.`,
    extra: { prediction_id },
  });

/** Answers if the question takes no predictions now. A repeat still gets its first result. */
const refuseClosed = async (
  deps: Deps,
  request: PredictionRequest,
  message: string,
): Promise<Placed | Fault> => {
  const first = await findFirstResult(deps, request);
  if (first !== null && 'replayed' in first) return first;
  return refuse(question_faults.QUESTION_NOT_OPEN, { message });
};

/** Refuses because the question was closed or removed after it was cached. */
const refuseChanged = async (deps: Needs, question_id: string): Promise<Fault> => {
  deps.questions.forget(question_id);
  const question = await readQuestion(deps.sql, question_id);
  if (question === undefined) return refuse(question_faults.QUESTION_NOT_FOUND);
  const message = whyNotOpen(question, deps.clock()) ?? 'The question was just changed. Try again.';
  return refuse(question_faults.QUESTION_NOT_OPEN, { message });
};

/** Returns the similarity and the id of the most similar prediction, to show them in the error. */
const similarExtra = async (
  { sql }: Pick<Deps, 'sql'>,
  question_id: string,
  findings: readonly Finding[],
): Promise<{ readonly similarity: number; readonly prediction_id: string | null } | null> => {
  const similar = findings.find((finding) => finding.kind === 'similar');
  if (similar === undefined) return null;
  return {
    similarity: Math.floor(similar.similarity * 10_000) / 10_000,
    prediction_id: await readIdBySeq(sql, question_id, similar.seq),
  };
};

/** Answers `dry_run: true`: checks every gate, reports all failures and stores nothing. */
export const dryRun = async (
  deps: Needs,
  request: PredictionRequest,
  prepared: Prepared,
): Promise<DryRunWire> => {
  const { question, examined } = prepared;
  const { is_open, own_id, findings, points } = await addToQueue(deps, request, prepared);
  const failures: Failure[] = [];
  const closed =
    whyNotOpen(question, deps.clock()) ?? (is_open ? null : 'The question accepts no predictions.');
  if (closed !== null) {
    failures.push({ path: 'params.id', message: closed, code: 'QUESTION_NOT_OPEN' });
  }
  if (own_id !== null) {
    const message = 'This agent has already predicted on this question.';
    failures.push({ path: 'params.id', message, code: 'DUPLICATE_PREDICTION' });
  }
  failures.push(...allFailures(examined.failures, findings));
  const similar = await similarExtra(deps, question.id, findings);
  return {
    dry_run: true,
    would_be_accepted: failures.length === 0,
    failures: failures.map(({ path, message, code }) => {
      return { path, message, code, status: defOf(code).status };
    }),
    similarity: similar?.similarity ?? null,
    similar_prediction_id: similar?.prediction_id ?? null,
    citations: [...examined.checked.citations],
    forecast: examined.stated && showForecastInput(examined.stated, question),
    understood_scale: examined.stated && understoodScale(request.body),
    prior_probability: examined.prior === null ? null : toPercent(examined.prior),
    points: { points, tier: tierOf(points) },
  };
};

/** Answers a call with a single prediction or dry run. */
export const answerPrediction = async (
  deps: Needs,
  request: PredictionRequest,
): Promise<Reply | Fault> => {
  const prepared = await prepare(deps, request);
  return isFault(prepared) || !('kind' in prepared)
    ? replyOf(prepared)
    : answerPrepared(deps, request, prepared);
};

const replyOf = (placed: Placed | Fault): Reply | Fault =>
  isFault(placed) ? placed : replyPlaced(placed);

/** Joins the queue before the first `await`, so a batch keeps its order. */
export const answerPrepared = async (
  deps: Needs,
  request: PredictionRequest,
  prepared: Prepared | Placed | Fault,
): Promise<Reply | Fault> => {
  if (isFault(prepared) || !('kind' in prepared)) return replyOf(prepared);
  if (request.body.dry_run === true) return reply(200, await dryRun(deps, request, prepared));
  return replyOf(await storePrepared(deps, request, prepared));
};

interface PlacedParts {
  readonly id: string;
  readonly at: Date;
  readonly question: { readonly id: string } & Pick<ForecastQuestion, 'options' | 'question_type'>;
  readonly agent: { readonly id: string; readonly name: string; readonly model_family: string };
  readonly stated: ForecastColumns;
  readonly given: Given;
}

/** Members of the row that are stored as they are given. */
type Given = Omit<
  NewPrediction,
  | keyof ForecastColumns
  | 'question_id'
  | 'agent_id'
  | 'id'
  | 'model_family'
  | 'revision'
  | 'revised_at'
  | 'revision_reason'
  | 'revision_event_id'
  | 'event_id'
  | 'created_at'
>;

/** These members are not given for an imported prediction. */
export const not_imported = {
  resolution_protocol: null,
  prior_probability: null,
  prior_basis: null,
  body_digest: '',
} satisfies Partial<Given>;

/** Builds the row and event of a prediction, made here or imported. The event has no reasoning. */
export const composeRow = ({ id, at, question, agent, stated, given }: PlacedParts): Composed => {
  const { model_family } = agent;
  const data: Static<typeof prediction_placed.data> = {
    question_id: question.id,
    prediction_id: id,
    user_id: agent.id,
    user_name: agent.name,
    model_family,
    ...dataOf(stated, question),
  };
  const event_id = makeId();
  return {
    row: {
      question_id: question.id,
      agent_id: agent.id,
      owner_id: given.owner_id,
      id,
      reasoning: given.reasoning,
      citations: given.citations,
      resolution_protocol: given.resolution_protocol,
      prior_probability: given.prior_probability,
      prior_basis: given.prior_basis,
      body_digest: given.body_digest,
      prediction: stated.prediction,
      probability: stated.probability,
      confidence: stated.confidence,
      selected_option: stated.selected_option,
      probabilities: stated.probabilities,
      cdf: stated.cdf,
      model_family,
      revision: 0,
      revised_at: null,
      revision_reason: null,
      revision_event_id: null,
      event_id,
      created_at: at,
    },
    body: bodyOf(prediction_placed, { data, at }),
  };
};
