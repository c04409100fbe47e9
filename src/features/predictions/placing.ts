import type { Answer } from '../../kit/http/route.js';
import { type Claim, type Kept, keepAll } from '../../kit/idempotency.js';
import { type Batcher, createBatcher } from '../../kit/pg/batch.js';
import type { Sql, Tx } from '../../kit/pg/client.js';
import type { AgentMemory } from './agent-memory.js';
import { lockPlaces } from './gate-store.js';
import type { Gates } from './gates.js';
import {
  type NumberedDraft,
  type PredictionDraft,
  placeAll,
  type StoredVerdict,
} from './placing-store.js';
import type { Finding, Pending, QuestionMemory } from './question-memory.js';

/**
 * The group commit of predictions: a transaction locks the questions and the agents of a batch,
 * reads what other processes stored since, compares again and stores.
 *
 * The whole is run again after an outage. What had been stored by then is read as what is new, and
 * known by its id.
 */

export interface PlaceDraft {
  readonly draft: PredictionDraft;
  readonly question: QuestionMemory;
  readonly agent: AgentMemory;
  readonly pending: Pending;
  /** The question's version that it was compared with. */
  version: number;
  agent_count: number;
  /** Set once it is settled, so that a batch that is run again leaves it alone. */
  verdict: Verdict | null;
  /** For a call with an Idempotency-Key. */
  readonly keep: {
    readonly claim: Claim;
    answer(placed: Extract<StoredVerdict, { kind: 'placed' }>): Answer;
  } | null;
}

export type Verdict =
  | Exclude<StoredVerdict, { kind: 'stale' }>
  | { readonly kind: 'refused'; readonly findings: readonly Finding[] };

export type Placing = Batcher<PlaceDraft, Verdict>;

type Refusal = Extract<Verdict, { kind: 'refused' | 'taken' }>;

/** What speaks against it now; `unsure` where that hangs on a draft before it. */
const compareAgain = (place: PlaceDraft): { refusal: Refusal; unsure: boolean } | null => {
  const { question, agent, pending } = place;
  if (pending.state === 'stored') return { refusal: { kind: 'taken' }, unsure: false };
  if (place.version === question.version && place.agent_count === agent.count) return null;
  const findings = question.recheck(pending);
  const own = agent.check(pending.text.sources);
  if (own !== null) findings.push(own);
  if (findings.length > 0) {
    const unsure = findings.some((finding) => finding.unsure);
    return { refusal: { kind: 'refused', findings }, unsure };
  }
  place.version = question.version;
  place.agent_count = agent.count;
  return null;
};

/** What is refused is so for good, because it was compared with what is committed. */
const refuseNow = (place: PlaceDraft, verdict: Verdict): void => {
  place.verdict = verdict;
  place.question.drop(place.pending);
};

/** The drafts of one agent in a batch, in their order. */
interface Own {
  readonly places: PlaceDraft[];
  /** One of them hangs on another one; none behind it overtakes it. */
  is_held: boolean;
}

/** Whether it hangs on a draft of its agent that is before it in the batch. */
const hangsOn = (
  earlier: readonly PlaceDraft[],
  { question, agent, pending }: PlaceDraft,
): boolean => {
  if (earlier.length === 0) return false;
  if (earlier.some((other) => other.draft.question_id === question.question_id)) return true;
  const cited = earlier.flatMap((other) => other.pending.text.sources);
  return agent.check(pending.text.sources, cited) !== null;
};

/** By id: an agent that was forgotten and read again has two memories. */
type Owns = Map<string, Own>;

const ownOf = (owns: Owns, { draft }: PlaceDraft): Own => {
  let own = owns.get(draft.agent_id);
  if (own === undefined) {
    own = { places: [], is_held: false };
    owns.set(draft.agent_id, own);
  }
  return own;
};

/** Those that nothing speaks against and that hang on nothing; what is refused has its verdict. */
const findReady = (places: readonly PlaceDraft[], is_last: boolean): readonly PlaceDraft[] => {
  const owns: Owns = new Map();
  const all: PlaceDraft[] = [];
  for (const place of places) {
    const own = ownOf(owns, place);
    if (own.is_held) continue;
    const found = compareAgain(place);
    if (found !== null && (!found.unsure || is_last)) refuseNow(place, found.refusal);
    else if (found !== null || hangsOn(own.places, place)) own.is_held = true;
    else {
      all.push(place);
      own.places.push(place);
    }
  }
  return all;
};

interface Numbered extends NumberedDraft {
  readonly place: PlaceDraft;
}

/** Numbers the drafts of each question behind its last one. */
const number = (all: readonly PlaceDraft[]): readonly Numbered[] => {
  const given = new Map<QuestionMemory, number>();
  return all.map((place) => {
    const { draft, question } = place;
    const seq = (given.get(question) ?? question.seq) + 1;
    given.set(question, seq);
    return { place, draft, seen: question.seq, seq };
  });
};

interface Tried {
  readonly place: PlaceDraft;
  readonly seq: number;
  readonly verdict: StoredVerdict;
}

/** Compares and stores; what is stored is not settled yet, because it is not committed yet. */
const tryAll = async (
  db: Tx,
  places: readonly PlaceDraft[],
  is_last: boolean,
): Promise<readonly Tried[]> => {
  const numbered = number(findReady(places, is_last));
  if (numbered.length === 0) return [];
  const verdicts = await placeAll(db, numbered);
  return numbered.map(({ place, seq }, i) => ({ place, seq, verdict: verdicts[i]! }));
};

/** After the commit: the memories learn what is stored and what is not. */
const settle = (tried: readonly Tried[]): void => {
  for (const { place, seq, verdict } of tried) {
    if (verdict.kind === 'stale') continue;
    const { question, agent, pending } = place;
    place.verdict = verdict;
    if (verdict.kind === 'placed') {
      question.stored(pending, seq);
      agent.stored(pending.text.sources);
    } else question.drop(pending);
  }
};

const keepAnswers = (tx: Tx, tried: readonly Tried[]): Promise<void> => {
  const kept: Kept[] = [];
  for (const { place, verdict } of tried) {
    if (place.keep === null || verdict.kind !== 'placed') continue;
    kept.push({ claim: place.keep.claim, answer: place.keep.answer(verdict) });
  }
  return keepAll(tx, kept);
};

/** Under locks, so that nothing can be stale. */
const tryLocked = (
  { sql, gates }: Pick<PlacingOptions, 'sql' | 'gates'>,
  places: readonly PlaceDraft[],
  is_last: boolean,
) =>
  sql.begin(async (tx) => {
    const questions = [...new Set(places.map(({ question }) => question))];
    const agents = [...new Set(places.map(({ agent }) => agent))];
    const { seqs, counts } = await lockPlaces(
      tx,
      questions.map(({ question_id }) => question_id),
      agents.map(({ agent_id }) => agent_id),
    );
    for (const question of questions) {
      const seq = seqs.get(question.question_id);
      if (seq !== question.seq) await question.sync(tx, seq);
    }
    const moved = agents.filter(({ agent_id, count }) => (counts.get(agent_id) ?? count) !== count);
    if (moved.length > 0) await gates.agents.sync(tx, moved);
    const tried = await tryAll(tx, places, is_last);
    await keepAnswers(tx, tried);
    return { tried };
  });

/** Passes in which nothing is settled, after which what hangs on others is refused. */
const most_idle = 3;

type TellVerdict = (index: number, verdict: Verdict) => void;

/**
 * Settles a batch. One pass does, unless a draft hangs on one before
 * it: that one is settled then. What hangs on a draft of another batch even so is refused; it may
 * come again. Whoever has a verdict is told it, so that nobody waits for the drafts of others.
 */
const settleLeft = async (
  options: Pick<PlacingOptions, 'sql' | 'gates' | 'committed'>,
  places: readonly PlaceDraft[],
  tell: TellVerdict,
): Promise<void> => {
  let idle = 0;
  for (let before = places.length; ; ) {
    for (const [index, { verdict }] of places.entries()) if (verdict !== null) tell(index, verdict);
    const left = places.filter(({ verdict }) => verdict === null);
    if (left.length === 0) return;
    idle = left.length < before ? 0 : idle + 1;
    before = left.length;
    if (idle > most_idle) throw new Error('a draft has no verdict');
    settle((await tryLocked(options, left, idle === most_idle)).tried);
    options.committed();
  }
};

export interface PlacingOptions {
  readonly sql: Sql;
  readonly gates: Gates;
  /** Told after each commit. */
  readonly committed: () => void;
}

export const createPlacing = (options: PlacingOptions): Placing =>
  createBatcher<PlaceDraft, Verdict>({
    run: async (places, tell) => {
      await settleLeft(options, places, tell);
      return places.map(({ verdict }) => verdict as Verdict);
    },
    key: ({ draft }) => draft.agent_id,
    keys_together: true,
    most: 256,
    ...{ lanes: 4, least_beside: 64, apart_ms: 4 },
    patience_ms: 7_000,
    refused_ms: 1_000,
    queue: 20_000,
  });
