import type { Static } from '@sinclair/typebox';
import type { Sql, Tx } from '../../db/client.js';
import { type Draft as EventDraft, emitAll } from '../../db/event.js';
import { type Batch, createGroupCommit, type GroupCommit } from '../../db/group-commit.js';
import type { AgentCaller } from '../../http/caller.js';
import type { Deps } from '../../http/deps.js';
import { keepAll } from '../../http/idempotency.js';
import type { Taken } from '../../http/limits.js';
import { type Answer, type Claim, type Reply, reply } from '../../http/route.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { makeId, makeIdAfter } from '../../kit/ids.js';
import { toPercent } from '../../kit/percent.js';
import { normaliseText } from '../../kit/text.js';
import { recordAct } from '../audit/index.js';
import { prediction_placed } from '../events/catalogue.js';
import { readAccount } from '../points/index.js';
import { tierOf } from '../points/rules.js';
import { type QuestionParts, type QuestionRow, readQuestion } from '../questions/index.js';
import { whyNotOpen } from '../questions/rules.js';
import { question_faults } from '../questions/schema.js';
import { citation_limits } from './citations.js';
import {
  type NewPrediction,
  no_values,
  type PredictionRow,
  type PredictionWire,
  toWire,
} from './columns.js';
import type { Stated } from './distribution.js';
import { defOf, type Failure, hasFailures, prediction_faults, refuseFailures } from './faults.js';
import {
  allFailures,
  type ComparedText,
  type Examined,
  examine,
  type Finding,
  withoutPages,
} from './gates.js';
import type { Memories, Originality } from './originality.js';
import {
  insertPredictions,
  type LockedQuestion,
  lockAgents,
  lockQuestions,
  type Standing,
} from './placing-store.js';
import { type Reach, reach_ms } from './reach.js';
import type { DryRunWire, PredictBody } from './schema.js';
import { dataOf, optionIn, type StatedQuestion, showStated, understoodScale } from './stated.js';
import { readIdBySeq, readOwnPrediction } from './store.js';

/**
 * One prediction from the checked body to the answer: the gates that look at the body alone, then
 * the group commit, which compares it with others under the locks and stores it. A dry
 * run and a body that fails a gate go the same way and are only judged, so that all failures are
 * told together.
 */

export interface PlaceParts extends QuestionParts {
  readonly originality: Originality;
  readonly placing: Placing;
  /** Null where sources need not be reachable. */
  readonly reach: Reach | null;
  /** Counts one prediction against the agent's limit, for calls that make several. */
  takePrediction(agent_id: string): Promise<Taken>;
}

export type Needs = Deps & PlaceParts;

export interface PlaceRequest {
  readonly question_id: string;
  readonly body: PredictBody;
  readonly body_digest: string;
  readonly agent: AgentCaller;
  /** Of a call with an Idempotency-Key. */
  readonly claim: Claim | null;
  /** Until when sources may be fetched, of several predictions in one call. */
  readonly reach_until_ms?: number;
}

export interface Placed {
  readonly prediction: PredictionWire;
  /** What the agent has. */
  readonly points: number;
  readonly event_id: string;
  /** True: this body was accepted before, and this is that result. */
  readonly replayed: boolean;
}

/** A prediction that is ready for the group commit. */
export interface Prepared {
  readonly kind: 'prepared';
  readonly question: QuestionRow;
  readonly examined: Examined;
}

/** Of so many predictions on a question the memory is read before its lock is taken. */
const many_predictions = 200;

/** The question and the gates that look at the body alone; or what is answered without more. */
export const prepare = async (
  deps: Needs,
  request: PlaceRequest,
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
  const examined = deps.reach === null ? at_once : await checkPages(deps.reach, request, at_once);
  if ('kind' in examined) return examined;
  if (question.prediction_count >= many_predictions) await deps.originality.prepare(question.id);
  return { kind: 'prepared', question, examined };
};

/** What the sources say for themselves, where they have to be reachable. */
const checkPages = async (
  reach: Reach,
  { agent, reach_until_ms = performance.now() + reach_ms }: PlaceRequest,
  examined: Examined,
): Promise<Examined | Fault> => {
  const { citations: urls } = examined.checked;
  if (urls.length < citation_limits.needed) return examined;
  const found = await reach.findUnreachable({ urls, agent_id: agent.id, until_ms: reach_until_ms });
  if (found !== null) return withoutPages(examined, found);
  return refuse(common_faults.UNAVAILABLE, {
    message: 'The sources could not be asked for in time, and nothing was stored; try again soon.',
    headers: { 'Retry-After': '5' },
  });
};

/** Joins the queue before anything is awaited, so that calls in order are judged in order. */
const addToQueue = (deps: Needs, request: PlaceRequest, prepared: Prepared): Promise<Verdict> => {
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
        : { claim, answer: (stored) => answerPlaced(placedOf(stored, question, agent)) },
    imported_by: null,
  });
};

const compose = (
  deps: Deps,
  { agent, body, body_digest }: PlaceRequest,
  { question, examined: { checked, prior } }: Prepared,
  stated: Stated,
  id: string,
) =>
  composePlaced({
    id,
    at: deps.clock(),
    question,
    agent,
    stated,
    rest: {
      owner_id: agent.owner_id,
      reasoning: checked.text,
      citations: checked.citations,
      resolution_protocol: body.resolution_protocol ?? null,
      prior_probability: prior,
      prior_basis: body.prior_basis == null ? null : normaliseText(body.prior_basis),
      body_digest,
    },
  });

/** What the stored row would give, without reading it back. */
const placedOf = ({ row, points }: Stored, question: QuestionRow, agent: AgentCaller): Placed => {
  const prediction = toWire({
    ...row,
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

export const place = async (
  deps: Needs,
  request: PlaceRequest,
  prepared: Prepared,
): Promise<Placed | Fault> => {
  const { question, examined } = prepared;
  const verdict = await addToQueue(deps, request, prepared);
  if (verdict.placed !== null) return placedOf(verdict.placed, question, request.agent);
  const is_repeat = verdict.own_id !== null && examined.failures.length === 0;
  const first = is_repeat ? await findFirstResult(deps, request) : null;
  if (first !== null) return 'replayed' in first ? first : refuseDuplicate(first);
  if (!verdict.is_open && examined.failures.length === 0) {
    return refuseChanged(deps, request.question_id);
  }
  const failures = allFailures(examined.failures, verdict.findings);
  if (!hasFailures(failures)) throw new Error('a refusal without a reason');
  return refuseFailures(failures, await similarExtra(deps, question.id, verdict.findings));
};

/** The answer to a prediction. */
export const answerPlaced = ({ prediction, points, event_id, replayed }: Placed): Reply => {
  const body = { prediction, points: { points, tier: tierOf(points) }, event_id };
  return replayed ? reply(200, body, { 'Idempotency-Replayed': 'true' }) : reply(201, body);
};

/** For how long an identical body is answered with the first result. */
const replay_ms = 10 * 60_000;

/** The first result of this very body, while a lost answer may be the reason for the repeat. */
const findFirstResult = async (
  deps: Deps,
  request: PlaceRequest,
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
    message: `This agent has predicted here; revise it: PATCH /api/predictions/${prediction_id}.`,
    extra: { prediction_id },
  });

/** Of a question that takes no predictions now. */
const refuseClosed = async (
  deps: Deps,
  request: PlaceRequest,
  message: string,
): Promise<Placed | Fault> => {
  const first = await findFirstResult(deps, request);
  if (first !== null && 'replayed' in first) return first;
  return refuse(question_faults.QUESTION_NOT_OPEN, { message });
};

/** Of a question that was closed or taken away since it was cached. */
const refuseChanged = async (deps: Needs, question_id: string): Promise<Fault> => {
  deps.questions.forget(question_id);
  const question = await readQuestion(deps.sql, question_id);
  if (question === undefined) return refuse(question_faults.QUESTION_NOT_FOUND);
  const message = whyNotOpen(question, deps.clock()) ?? 'The question was changing; try again.';
  return refuse(question_faults.QUESTION_NOT_OPEN, { message });
};

/** What the most similar prediction is, for the members of the error. */
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

/** `dry_run: true`: every gate, all failures at once, and nothing is stored. */
export const dryRun = async (
  deps: Needs,
  request: PlaceRequest,
  prepared: Prepared,
): Promise<DryRunWire> => {
  const { question, examined } = prepared;
  const { is_open, own_id, findings, points } = await addToQueue(deps, request, prepared);
  const failures: Failure[] = [];
  const closed =
    whyNotOpen(question, deps.clock()) ?? (is_open ? null : 'The question takes no predictions.');
  if (closed !== null) {
    failures.push({ path: 'params.id', message: closed, code: 'QUESTION_NOT_OPEN' });
  }
  if (own_id !== null) {
    const message = 'This agent has predicted on this question already.';
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
    forecast: examined.stated && showStated(examined.stated, question),
    understood_scale: examined.stated && understoodScale(request.body),
    prior_probability: examined.prior === null ? null : toPercent(examined.prior),
    points: { points, tier: tierOf(points) },
  };
};

/** A prediction or a dry run, alone in its call. */
export const answerRequest = async (deps: Needs, request: PlaceRequest): Promise<Reply | Fault> => {
  const prepared = await prepare(deps, request);
  return isFault(prepared) || !('kind' in prepared)
    ? answerOf(prepared)
    : answerPrepared(deps, request, prepared);
};

const answerOf = (placed: Placed | Fault): Reply | Fault =>
  isFault(placed) ? placed : answerPlaced(placed);

/** Joins the queue before anything is awaited. */
export const answerPrepared = async (
  deps: Needs,
  request: PlaceRequest,
  prepared: Prepared | Placed | Fault,
): Promise<Reply | Fault> => {
  if (isFault(prepared) || !('kind' in prepared)) return answerOf(prepared);
  if (request.body.dry_run === true) return reply(200, await dryRun(deps, request, prepared));
  return answerOf(await place(deps, request, prepared));
};

/**
 * The only way in which a prediction is stored: a group commit that
 *
 *   begins · locks the questions of the batch, in the order of their ids · takes in what came
 *   meanwhile on these questions · locks the agents · brings the memories of both up to date ·
 *   judges the drafts in order against the memories and the drafts before · writes · commits
 *
 * A memory has what is stored up to the last number of its question, or the last prediction of its
 * agent; under the lock nothing comes after it. Predictions of an agent have growing ids and those
 * of a question growing numbers, both without a gap between what is known and what was read. After
 * a failure the memories of the batch are forgotten. `unique (question_id, seq)` refuses a batch
 * that was numbered wrongly.
 */

interface PlaceDraft {
  readonly question_id: string;
  readonly agent_id: string;
  readonly text: ComparedText;
  /** What is stored when nothing speaks against it; null: it is judged only. */
  readonly compose: ((id: string) => Composed) | null;
  /** For a call with an Idempotency-Key: its answer is kept with the prediction. */
  readonly idempotent: { readonly claim: Claim; answer(stored: Stored): Answer } | null;
  /**
   * The admin who imports it: the question may be closed, and what was never written for this forum
   * is not compared with others.
   */
  readonly imported_by: string | null;
}

interface Composed {
  readonly row: NewPrediction;
  readonly event: EventDraft<typeof prediction_placed.data>;
}

interface Stored {
  readonly row: NewPrediction;
  /** What the agent has. */
  readonly points: number;
}

export interface Verdict {
  /** Null: something speaks against it, or it was to be judged only. */
  readonly placed: Stored | null;
  /** Whether the question takes predictions. */
  readonly is_open: boolean;
  /** The agent's prediction on the question, which is there already. */
  readonly own_id: string | null;
  /** What the comparison with others found; nothing where the agent has a prediction. */
  readonly findings: readonly Finding[];
  readonly points: number;
}

export type Placing = GroupCommit<PlaceDraft, Verdict>;

interface PlacingOptions {
  readonly sql: Sql;
  readonly originality: Originality;
  readonly clock: () => Date;
  /** Told after each commit. */
  readonly committed: () => void;
}

/** What is known under the locks. */
interface Locked {
  readonly questions: ReadonlyMap<string, LockedQuestion>;
  readonly memories: Memories;
  /** Of drafts of this batch, by question and agent. */
  readonly placed_ids: Map<string, string>;
}

interface Judged extends Verdict {
  readonly composed: Composed | null;
  readonly seq: number;
}

const judge = (draft: PlaceDraft, standing: Standing, locked: Locked): Judged => {
  const { question_id, agent_id, text, compose, imported_by } = draft;
  const question = locked.questions.get(question_id);
  const memory = locked.memories.questions.get(question_id);
  const agent = locked.memories.agents.get(agent_id);
  const pair = `${question_id} ${agent_id}`;
  const own_id = standing.own_id ?? locked.placed_ids.get(pair) ?? null;
  const is_open = imported_by === null ? question?.is_open : question?.takes_imports;
  const findings =
    own_id !== null || imported_by !== null || memory === undefined || agent === undefined
      ? []
      : [...memory.check(text), ...agent.check(text.sources)];
  const { points } = standing;
  const verdict = { is_open: is_open === true, own_id, findings, points };
  if (memory === undefined || agent === undefined || compose === null) {
    return { ...verdict, placed: null, composed: null, seq: 0 };
  }
  if (is_open !== true || own_id !== null || findings.length > 0) {
    return { ...verdict, placed: null, composed: null, seq: 0 };
  }
  const id = agent.last_id === null ? makeId() : makeIdAfter(agent.last_id);
  const composed = compose(id);
  locked.placed_ids.set(pair, id);
  agent.add(id, text.sources);
  const seq = memory.add(text);
  return { ...verdict, placed: { row: composed.row, points }, composed, seq };
};

interface Written {
  readonly drafts: readonly PlaceDraft[];
  readonly judged: readonly Judged[];
  readonly at: Date;
}

/** Predictions, events and kept answers, and the commit with them unless a claim may be lost. */
const write = async (tx: Tx, { drafts, judged, at }: Written): Promise<void> => {
  const made = judged.flatMap(({ composed, seq }) => (composed === null ? [] : { composed, seq }));
  if (made.length === 0) return;
  const kept = drafts.flatMap(({ idempotent }, n) => {
    const placed = judged[n]?.placed ?? null;
    return idempotent === null || placed === null
      ? []
      : { claim: idempotent.claim, answer: idempotent.answer(placed) };
  });
  await recordImports(tx, { drafts, judged, at });
  const rows = made.map(({ composed, seq }) => ({ ...composed.row, seq }));
  const events = made.map(({ composed }) => composed.event);
  const sent = [insertPredictions(tx, rows), emitAll(tx, prediction_placed, events)];
  if (kept.length === 0) tx.commit();
  else sent.push(keepAll(tx, kept));
  await Promise.all(sent);
};

/** One line of the audit log for what an admin imported in this batch. */
const recordImports = async (tx: Tx, { drafts, judged, at }: Written): Promise<void> => {
  const imported = drafts.filter((draft, n) => draft.imported_by !== null && judged[n]?.placed);
  for (const admin of new Set(imported.map(({ imported_by }) => imported_by ?? ''))) {
    const of_admin = imported.filter(({ imported_by }) => imported_by === admin);
    await recordAct(tx, {
      admin,
      act: 'prediction.import',
      at,
      subject: { kind: 'import', id: of_admin[0]?.question_id ?? '' },
      details: { predictions: of_admin.length },
    });
  }
};

const distinct = (ids: readonly string[]): string[] => [...new Set(ids)];

export const createPlacing = ({ sql, originality, clock, committed }: PlacingOptions): Placing => {
  const place = async (tx: Tx, batch: Batch<PlaceDraft>) => {
    const locked = await lockQuestions(tx, distinct(batch.drafts.map((one) => one.question_id)));
    const questions = new Map(locked.map((question) => [question.id, question]));
    batch.join(({ question_id }) => questions.has(question_id));
    const { drafts } = batch;
    const standings = await lockAgents(tx, drafts);
    const memories = await originality.open(
      tx,
      new Map(locked.map(({ id, seq }) => [id, seq])),
      new Map(drafts.map(({ agent_id }, n) => [agent_id, standings[n]?.last_id ?? null])),
    );
    const under = { questions, memories, placed_ids: new Map<string, string>() };
    const judged = drafts.map((draft, n) => judge(draft, standings[n] as Standing, under));
    await write(tx, { drafts, judged, at: clock() });
    return { judged, memories };
  };

  return createGroupCommit<PlaceDraft, Verdict>({
    key: ({ agent_id }) => agent_id,
    async commit(batch) {
      try {
        const { judged, memories } = await sql.begin((tx) => place(tx, batch));
        originality.keep(memories);
        committed();
        return judged;
      } catch (error) {
        originality.forget(
          batch.drafts.map(({ question_id }) => question_id),
          batch.drafts.map(({ agent_id }) => agent_id),
        );
        throw error;
      }
    },
  });
};

interface PlacedParts {
  readonly id: string;
  readonly at: Date;
  readonly question: { readonly id: string } & Pick<StatedQuestion, 'options' | 'question_type'>;
  readonly agent: { readonly id: string; readonly name: string; readonly model_family: string };
  readonly stated: Stated;
  /** What else it has; columns that are left out are null. */
  readonly rest: Pick<NewPrediction, 'reasoning' | 'citations' | 'body_digest'> &
    Partial<NewPrediction>;
}

/** A prediction, made here or imported, and its event, which tells no reasoning. */
export const composePlaced = ({ id, at, question, agent, stated, rest }: PlacedParts): Composed => {
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
  const ids = { question_id: question.id, agent_id: agent.id };
  return {
    row: {
      ...no_values,
      ...rest,
      id,
      ...ids,
      ...stated,
      model_family,
      event_id,
      created_at: at,
      revision: 0,
    },
    event: { id: event_id, at, place: { ...ids, owner_id: rest.owner_id ?? null }, data },
  };
};
