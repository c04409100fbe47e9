import type { Deps } from '../../kit/deps.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';
import type { AgentCaller } from '../../kit/http/caller.js';
import { type Reply, reply } from '../../kit/http/route.js';
import { makeId } from '../../kit/ids.js';
import { withoutControls } from '../../kit/text.js';
import { tierOf } from '../points/index.js';
import { type QuestionRow, question_faults, whyNotOpen } from '../questions/index.js';
import type { AgentMemory } from './agent-memory.js';
import { citation_limits } from './citations.js';
import { makePlacedEvent } from './events.js';
import { compare, type Examined, examine, withoutPages } from './examine.js';
import type { AskedQuestion } from './gates.js';
import type { Needs, PlaceAsk, Placed, PlaceParts } from './place-parts.js';
import type { PlaceDraft, Verdict } from './placing.js';
import type { PredictionDraft } from './placing-store.js';
import type { QuestionMemory } from './question-memory.js';
import { type Reach, reach_ms } from './reach.js';
import { explain, refuseClosed, refuseExamined } from './refusals.js';
import type { PredictionWire } from './schema.js';
import type { StatedForecast } from './stated.js';
import { nameProbabilities } from './views.js';

/**
 * One prediction from the checked body to the answer: rules and comparisons first, all failures
 * together, then the group commit, which judges again what may have changed under its locks.
 */

export interface Memories {
  readonly question: QuestionMemory;
  readonly agent: AgentMemory;
}

/** Without a promise where both are known, which is nearly always. */
export const openMemories = (
  { gates }: Pick<PlaceParts, 'gates'>,
  asked: AskedQuestion,
  agent_id: string,
): Memories | Promise<Memories> => {
  const question = gates.question(asked);
  const agent = gates.agents.get(agent_id);
  if (!(question instanceof Promise) && !(agent instanceof Promise)) return { question, agent };
  return Promise.all([question, agent]).then(([question, agent]) => ({ question, agent }));
};

/** Reads what a placing right after it compares with, so that it goes to its batch at once. */
export const readAhead = async (
  deps: Needs,
  { question_id, agent }: Pick<PlaceAsk, 'question_id' | 'agent'>,
): Promise<void> => {
  const question = await deps.questions.get(question_id);
  if (question === undefined || whyNotOpen(question, deps.clock()) !== null) return;
  await openMemories(deps, question, agent.id);
};

export const placePrediction = async (deps: Needs, ask: PlaceAsk): Promise<Placed | Fault> => {
  const cached = deps.questions.get(ask.question_id);
  const question = cached instanceof Promise ? await cached : cached;
  if (question === undefined || question.status === 'draft') {
    return refuse(question_faults.QUESTION_NOT_FOUND);
  }
  const closed = whyNotOpen(question, deps.clock());
  if (closed !== null) return refuseClosed(deps, ask, closed);
  const { body, agent } = ask;
  const at_once = examine(deps.config, { body, question, model_family: agent.model_family });
  const examined = deps.reach === null ? at_once : await askPages(deps.reach, ask, at_once);
  if ('kind' in examined) return examined;
  const { stated } = examined;
  for (;;) {
    const memories = openMemories(deps, question, agent.id);
    if (memories instanceof Promise) {
      await memories;
      continue;
    }
    const findings = compare(examined.text, memories);
    if (findings.some(({ unsure }) => unsure)) {
      await memories.question.untilSettled();
      continue;
    }
    ask.onUnderWay?.();
    if (stated === null || examined.failures.length > 0 || findings.length > 0) {
      return refuseExamined(deps, ask, examined.failures, findings);
    }
    // Nothing was awaited since the comparison, so no similar draft came in between.
    return await commit(deps, ask, { question, stated, examined, memories });
  }
};

/** What the sources say for themselves, where they are asked. */
export const askPages = async (
  reach: Reach,
  { agent, asks_until_ms = performance.now() + reach_ms }: PlaceAsk,
  examined: Examined,
): Promise<Examined | Fault> => {
  const { citations: urls } = examined.checked;
  if (urls.length < citation_limits.needed) return examined;
  const found = await reach.findUnreachable({ urls, agent_id: agent.id, until_ms: asks_until_ms });
  if (found !== null) return withoutPages(examined, found);
  return refuse(common_faults.UNAVAILABLE, {
    message: 'The sources could not be asked for in time, and nothing was stored; try again soon.',
    headers: { 'Retry-After': '5' },
  });
};

interface CommitParts {
  readonly question: QuestionRow;
  readonly stated: StatedForecast;
  readonly examined: Examined;
  readonly memories: Memories;
}

const commit = async (deps: Needs, ask: PlaceAsk, parts: CommitParts): Promise<Placed | Fault> => {
  const { question, stated, examined, memories } = parts;
  const { checked, prior } = examined;
  const draft = makeDraft(deps, { ask, question, stated, checked, prior });
  const pending = memories.question.add(examined.text, draft.id);
  const placedOf = (made: Extract<Verdict, { kind: 'placed' }>): Placed => {
    const prediction = draftWire(draft, question, ask.agent);
    return { prediction, points: made.points, event_id: draft.event_id, replayed: false };
  };
  const { claim } = ask;
  const place: PlaceDraft = {
    draft,
    question: memories.question,
    agent: memories.agent,
    pending,
    version: memories.question.version,
    agent_count: memories.agent.count,
    verdict: null,
    keep: claim === null ? null : { claim, answer: (verdict) => answerPlaced(placedOf(verdict)) },
  };
  let verdict: Verdict;
  try {
    verdict = await deps.placing.add(place);
  } catch (error) {
    memories.question.drop(pending);
    throw error;
  }
  return verdict.kind === 'placed' ? placedOf(verdict) : explain(deps, ask, { draft, verdict });
};

interface DraftParts {
  readonly ask: PlaceAsk;
  readonly question: QuestionRow;
  readonly stated: StatedForecast;
  readonly checked: Examined['checked'];
  readonly prior: number | null;
}

const makeDraft = (deps: Deps, parts: DraftParts): PredictionDraft => {
  const { question, stated, checked } = parts;
  const { agent, body, body_digest } = parts.ask;
  const id = makeId();
  const at = deps.clock();
  const { prediction, probability, confidence, selected_option, probabilities } = stated;
  const event = makePlacedEvent({ id, at, question, agent, stated });
  return {
    id,
    question_id: question.id,
    agent_id: agent.id,
    owner_id: agent.owner_id,
    prediction,
    probability,
    confidence,
    selected_option,
    probabilities,
    reasoning: checked.text,
    citations: checked.citations,
    model_family: agent.model_family,
    resolution_protocol: body.resolution_protocol ?? null,
    prior_probability: parts.prior,
    prior_basis: body.prior_basis == null ? null : withoutControls(body.prior_basis),
    body_digest,
    at,
    event_id: event.id,
    event_body: event.body,
  };
};

/** What the stored row would give, without reading it back. */
const draftWire = (
  draft: PredictionDraft,
  question: QuestionRow,
  agent: AgentCaller,
): PredictionWire => ({
  id: draft.id,
  prediction_id: draft.id,
  question_id: draft.question_id,
  user_id: draft.agent_id,
  user_name: agent.name,
  model: agent.model,
  model_family: draft.model_family,
  prediction: draft.prediction,
  probability: draft.probability,
  confidence: draft.confidence,
  selected_option:
    draft.selected_option === null ? null : (question.options[draft.selected_option] ?? null),
  probabilities: nameProbabilities(question.options, draft.probabilities),
  reasoning: draft.reasoning,
  citations: draft.citations as string[],
  resolution_protocol: draft.resolution_protocol,
  prior_probability: draft.prior_probability,
  prior_basis: draft.prior_basis,
  upvotes: 0,
  downvotes: 0,
  created_at: draft.at.toISOString(),
});

/** The answer of the contract, §5. */
const placedWire = (placed: Placed) => ({
  prediction: placed.prediction,
  points: { points: placed.points, tier: tierOf(placed.points) },
  event_id: placed.event_id,
});

export const answerPlaced = (placed: Placed): Reply =>
  placed.replayed
    ? reply(200, placedWire(placed), { 'Idempotency-Replayed': 'true' })
    : reply(201, placedWire(placed));
