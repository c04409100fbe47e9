import type { Answer } from '../../kit/http/route.js';
import { type Claim, type Kept, keepAll } from '../../kit/idempotency.js';
import { type Batcher, createBatcher } from '../../kit/pg/batch.js';
import type { Sql, Tx } from '../../kit/pg/client.js';
import type { AgentMemory } from './agent-memory.js';
import { lockPlaces } from './gate-store.js';
import type { Gates } from './gates.js';
import type { Finding, Pending, QuestionMemory } from './question-memory.js';
import { type NumberedDraft, type PredictionDraft, placeAll, type StoredVerdict } from './store.js';

/**
 * The group commit of predictions. A draft was compared with what this process knows of its
 * question and its agent, and says so by two numbers; the statement that stores the batch refuses
 * it as `stale` when the rows it locks say otherwise, because another process was faster. Stale
 * drafts go again at once: in a transaction that first takes the locks, then reads what is new,
 * compares again and stores; so they wait once, and nobody overtakes them.
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

/** Where the drafts of a batch go. */
interface Way {
  readonly db: Sql | Tx;
  /**
   * Behind a batch under way on the same connection: numbers are given as if all of it is stored,
   * and where it is not, what was numbered behind it is stale.
   */
  readonly ahead: boolean;
  readonly is_last: boolean;
}

/** The drafts of one agent in a batch, in the order of their stakes. */
interface Own {
  readonly places: PlaceDraft[];
  stakes: number;
}

/** A draft that is ready, behind `nth` others of its agent. */
interface Ready {
  readonly place: PlaceDraft;
  readonly own: Own;
  readonly nth: number;
  readonly staked_before: number;
}

/** Whether it hangs on a draft of its agent that is before it in the batch. */
const hangsOn = (
  earlier: readonly PlaceDraft[],
  { question, agent, pending }: PlaceDraft,
): boolean => {
  if (earlier.some((other) => other.question === question)) return true;
  const cited = earlier.flatMap((other) => other.pending.text.sources);
  return agent.check(pending.text.sources, cited) !== null;
};

const readyAmong = (owns: Map<AgentMemory, Own>, place: PlaceDraft): Ready | null => {
  let own = owns.get(place.agent);
  if (own === undefined) {
    own = { places: [], stakes: 0 };
    owns.set(place.agent, own);
  } else if (hangsOn(own.places, place)) return null;
  const ready = { place, own, nth: own.places.length, staked_before: own.stakes };
  own.places.push(place);
  own.stakes += place.draft.stake;
  return ready;
};

interface Numbered extends NumberedDraft {
  readonly place: PlaceDraft;
}

/** Numbers the drafts of each question behind its last one. */
const number = (all: readonly Ready[], ahead: boolean): readonly Numbered[] => {
  const begins = new Map<QuestionMemory, { readonly seen: number; given: number }>();
  return all.map(({ place, own, nth, staked_before }) => {
    const { draft, question, agent } = place;
    let begin = begins.get(question);
    if (begin === undefined) {
      const seen = ahead ? Math.max(question.given, question.seq) : question.seq;
      begin = { seen, given: seen };
      begins.set(question, begin);
    }
    begin.given += 1;
    if (ahead) question.given = begin.given;
    const { seen, given: seq } = begin;
    const of = own.places.length;
    return { place, draft, seen, seq, agent_seen: agent.count, nth, of, staked_before };
  });
};

interface Tried {
  readonly place: PlaceDraft;
  readonly seq: number;
  readonly verdict: StoredVerdict;
}

/** What is refused is so for good, because it was compared with what is committed. */
const refuseNow = (place: PlaceDraft, verdict: Verdict): void => {
  place.verdict = verdict;
  place.question.drop(place.pending);
};

/** Compares and stores; what is stored is not settled yet, because it may not be committed yet. */
const tryAll = async (
  { db, ahead, is_last }: Way,
  places: readonly PlaceDraft[],
): Promise<readonly Tried[]> => {
  const owns = new Map<AgentMemory, Own>();
  const all: Ready[] = [];
  for (const place of places) {
    const found = compareAgain(place);
    const ready = found === null ? readyAmong(owns, place) : null;
    if (ready !== null) all.push(ready);
    else if (found !== null && (!found.unsure || is_last)) refuseNow(place, found.refusal);
  }
  if (all.length === 0) return [];
  const numbered = number(all, ahead);
  const verdicts = await placeAll(db, numbered).catch((error: unknown) => {
    for (const { place } of numbered) place.question.given = 0;
    throw error;
  });
  return numbered.map(({ place, seq }, i) => ({ place, seq, verdict: verdicts[i]! }));
};

/** After the commit: the memories learn what is stored and what is not. */
const settle = (tried: readonly Tried[]): void => {
  for (const { place, seq, verdict } of tried) {
    if (verdict.kind !== 'placed') place.question.given = 0;
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
      if (seqs.get(question.question_id) !== question.seq) await question.sync(tx);
    }
    const moved = agents.filter(({ agent_id, count }) => (counts.get(agent_id) ?? count) !== count);
    if (moved.length > 0) await gates.agents.sync(tx, moved);
    const tried = await tryAll({ db: tx, ahead: false, is_last }, places);
    await keepAnswers(tx, tried);
    return { tried };
  });

const most_passes = 4;

const firstOfEach = (places: readonly PlaceDraft[]): readonly PlaceDraft[] => {
  const agents = new Set<AgentMemory>();
  return places.filter(({ agent }) => !agents.has(agent) && agents.add(agent));
};

export interface PlacingOptions {
  readonly sql: Sql;
  /** One connection, on which a batch is sent while the one before it is being stored. */
  readonly line: Sql;
  readonly gates: Gates;
  /** Told after each commit. */
  readonly committed: () => void;
}

export const createPlacing = ({ sql, line, gates, committed }: PlacingOptions): Placing =>
  createBatcher<PlaceDraft, Verdict>({
    run: async (places) => {
      // What carries a key needs a transaction, because its answer is stored in it.
      const plain = places.filter(({ keep, verdict }) => keep === null && verdict === null);
      if (plain.length > 0) settle(await tryAll({ db: line, ahead: true, is_last: false }, plain));
      // One pass under locks does, unless a draft hangs on one before it: that one is settled then.
      // What hangs on a draft of another batch even so is refused; it may come again. The last
      // passes settle one draft of each agent, whatever it is behind.
      for (let pass = 1; pass <= most_passes + places.length; pass += 1) {
        const left = places.filter(({ verdict }) => verdict === null);
        if (left.length === 0) break;
        const is_last = pass >= most_passes;
        const some = is_last ? firstOfEach(left) : left;
        settle((await tryLocked({ sql, gates }, some, is_last)).tried);
      }
      committed();
      return places.map(({ verdict }) => {
        if (verdict === null) throw new Error('a draft has no verdict');
        return verdict;
      });
    },
    key: ({ draft }) => draft.agent_id,
    keys_together: true,
    most: 256,
    ...{ lanes: 4, least_beside: 64, apart_ms: 4 },
    patience_ms: 7_000,
    queue: 20_000,
  });
