import { LRUCache } from 'lru-cache';
import type { Config } from '../../config.js';
import type { Db } from '../../db/client.js';
import type { WordHashes } from '../../kit/text.js';
import { type ComparedText, comparedOf, type Finding, pagesOf } from './gates.js';
import {
  type AgentRow,
  type AgentState,
  type EarlierRow,
  type Outcome,
  readAgents,
  readStoredSince,
} from './placing-store.js';

/**
 * Each api process has memories with which the gates compare a prediction: the predictions of a
 * question up to a certain number, and the pages that an agent cited up to a certain prediction.
 * Other processes store predictions too, so a batch needs up-to-date memories (`placing.ts`).
 */

/** The predictions of one question up to number `seq`. */
export class QuestionMemory {
  seq = 0;
  private readonly sets = new SimilarSets();
  /** The `seq` of each set. */
  private readonly seqs: number[] = [];
  private readonly sources = new Set<string>();
  private readonly families = new Map<string, number>();

  constructor(
    readonly question_id: string,
    private readonly family_cap: number,
  ) {}

  /** Approximate size in bytes. */
  get size(): number {
    return this.sets.bytes + 8 * this.seqs.length + 150 * this.sources.size + 1_000;
  }

  /** Returns the reasons to reject the text. */
  check({ words, sources, model_family }: ComparedText): Finding[] {
    const findings: Finding[] = [];
    if (sources.length > 0 && sources.every((source) => this.sources.has(source))) {
      findings.push({ kind: 'reused', by: 'others' });
    }
    const similar = this.sets.find(words);
    if (similar !== null) {
      const { similarity, entry } = similar;
      findings.push({ kind: 'similar', similarity, seq: this.seqs[entry] as number });
    }
    const cap = this.family_cap;
    if (cap > 0 && (this.families.get(model_family) ?? 0) >= cap) {
      findings.push({ kind: 'family', cap });
    }
    return findings;
  }

  /** Adds the next prediction. The returned function removes it again while it is the last one. */
  add({ words, sources, model_family }: ComparedText): () => void {
    this.seq += 1;
    this.sets.add(words);
    this.seqs.push(this.seq);
    const family = this.families.get(model_family) ?? 0;
    this.families.set(model_family, family + 1);
    const forgetSources = addNew(this.sources, sources);
    return () => {
      this.seq -= 1;
      this.sets.removeLast();
      this.seqs.pop();
      this.families.set(model_family, family);
      forgetSources();
    };
  }

  /** Adds a stored prediction. */
  take(row: EarlierRow): void {
    this.seq = row.seq - 1;
    this.add(comparedOf(row));
  }
}

/** Adds members. The returned function removes the members that were new. */
const addNew = (set: Set<string>, members: readonly string[]): (() => void) => {
  const added: string[] = [];
  for (const one of members) {
    const size = set.size;
    if (set.add(one).size > size) added.push(one);
  }
  return () => {
    for (const one of added) set.delete(one);
  };
};

/** The pages that an agent cited up to its prediction `last_id` (null before its first one). */
export class AgentMemory {
  last_id: string | null = null;
  points = 0;
  private readonly cited = new Set<string>();

  constructor(readonly agent_id: string) {}

  get size(): number {
    return 1 + this.cited.size;
  }

  check(sources: readonly string[]): Finding[] {
    const is_reused = sources.length > 0 && sources.every((source) => this.cited.has(source));
    return is_reused ? [{ kind: 'reused', by: 'self' }] : [];
  }

  /** Adds the next prediction. The returned function removes it again while it is the last one. */
  add(id: string, sources: readonly string[]): () => void {
    const { last_id } = this;
    this.last_id = id;
    const forgetSources = addNew(this.cited, sources);
    return () => {
      this.last_id = last_id;
      forgetSources();
    };
  }

  take({ last_id, points, citations }: AgentRow): void {
    this.last_id = last_id;
    this.points = points;
    if (citations !== null) addNew(this.cited, pagesOf(citations));
  }

  isAt({ last_id, points }: AgentState): boolean {
    return this.last_id === last_id && this.points === points;
  }
}

/** The memories of one batch. */
export interface Memories {
  readonly questions: Map<string, QuestionMemory>;
  readonly agents: Map<string, AgentMemory>;
}

export interface Originality {
  /** Returns the cached memories, which may be outdated, and reads the missing ones. */
  open(db: Db, question_ids: readonly string[], agent_ids: readonly string[]): Promise<Memories>;
  /** Brings the memories up to the state of the questions and agents in `found`. */
  catchUp(db: Db, memories: Memories, found: Pick<Outcome, 'questions' | 'agents'>): Promise<void>;
  /** Caches the memories after the commit. */
  cache(memories: Memories): void;
  /** Drops memories after a failure, because the stored state is then unknown. */
  forget(questions: Iterable<string>, agents: Iterable<string>): void;
  /** Reads a question before it is locked, so that less is left to read under the lock. */
  prepare(question_id: string): Promise<void>;
}

/** Maximum number of cached agents, and of pages they cited. Together about 12 MB at most. */
const max_agents = 20_000;
const max_cited = 200_000;
/** Maximum number of rows per read. Each takes about 60 µs. */
const rows_a_turn = 200;

/** Reads each question up to its number in `seqs`. If `seqs` is null, reads all predictions. */
const readQuestions = async (
  db: Db,
  behind: readonly QuestionMemory[],
  seqs: ReadonlyMap<string, number> | null,
): Promise<void> => {
  let left = behind;
  while (left.length > 0) {
    const by_id = new Map(left.map((memory) => [memory.question_id, memory]));
    const rows = await readStoredSince(db, left, rows_a_turn);
    for (const row of rows) by_id.get(row.question_id)?.take(row);
    if (rows.length < rows_a_turn) {
      // A number may belong to a prediction that was not stored.
      for (const memory of left) memory.seq = seqs?.get(memory.question_id) ?? memory.seq;
      return;
    }
    left = left.filter(({ question_id, seq }) => seq < (seqs?.get(question_id) ?? Infinity));
  }
};

/** Reads newer predictions of agents into their memories. */
const readAgentsInto = async (db: Db, agents: ReadonlyMap<string, AgentMemory>, ids: string[]) => {
  if (ids.length === 0) return;
  const known = ids.map((id) => ({ id, last_id: agents.get(id)?.last_id ?? null }));
  for (const row of await readAgents(db, known)) agents.get(row.id)?.take(row);
};

/** Limits a size to the capacity, so that even a memory that exceeds it can be cached. */
const boundedBy =
  (most: number) =>
  ({ size }: { readonly size: number }): number =>
    Math.min(Math.ceil(size), most);

export const createOriginality = (
  sql: Db,
  { ORIGINALITY_MB, MODEL_FAMILY_CAP }: Pick<Config, 'ORIGINALITY_MB' | 'MODEL_FAMILY_CAP'>,
): Originality => {
  const maxSize = ORIGINALITY_MB * 1_000_000;
  const questions = new LRUCache<string, QuestionMemory>({
    maxSize,
    sizeCalculation: boundedBy(maxSize),
  });
  const agents = new LRUCache<string, AgentMemory>({
    max: max_agents,
    maxSize: max_cited,
    sizeCalculation: boundedBy(max_cited),
  });
  const preparing = new Map<string, Promise<void>>();

  const prepare = async (id: string): Promise<void> => {
    const memory = new QuestionMemory(id, MODEL_FAMILY_CAP);
    await readQuestions(sql, [memory], null);
    if ((questions.peek(id)?.seq ?? 0) < memory.seq) questions.set(id, memory);
  };

  return {
    async open(db, question_ids, agent_ids) {
      const of_questions = new Map<string, QuestionMemory>();
      const of_agents = new Map<string, AgentMemory>();
      const new_questions: QuestionMemory[] = [];
      const new_agents: string[] = [];
      for (const id of question_ids) {
        const known = questions.get(id);
        const memory = known ?? new QuestionMemory(id, MODEL_FAMILY_CAP);
        of_questions.set(id, memory);
        if (known === undefined) new_questions.push(memory);
      }
      for (const id of agent_ids) {
        const known = agents.get(id);
        of_agents.set(id, known ?? new AgentMemory(id));
        if (known === undefined) new_agents.push(id);
      }
      await Promise.all([
        readQuestions(db, new_questions, null),
        readAgentsInto(db, of_agents, new_agents),
      ]);
      return { questions: of_questions, agents: of_agents };
    },
    async catchUp(db, memories, found) {
      const seqs = new Map(found.questions.map(({ id, seq }) => [id, seq]));
      const behind: QuestionMemory[] = [];
      for (const [id, { seq }] of memories.questions) {
        const now = seqs.get(id);
        // A smaller number means that the database lost its last transactions.
        if (now === undefined) memories.questions.delete(id);
        else if (now < seq) memories.questions.set(id, new QuestionMemory(id, MODEL_FAMILY_CAP));
        const memory = memories.questions.get(id);
        if (memory !== undefined && memory.seq !== now) behind.push(memory);
      }
      const states = new Map(found.agents.map((one) => [one.id, one]));
      const changed: string[] = [];
      for (const [id, memory] of memories.agents) {
        const state = states.get(id);
        if (state === undefined) memories.agents.delete(id);
        else if (!memory.isAt(state)) changed.push(id);
      }
      await readQuestions(db, behind, seqs);
      await readAgentsInto(db, memories.agents, changed);
    },
    cache(memories) {
      // Deleted first: setting the same object again would keep its old size.
      for (const [id, memory] of memories.questions) {
        questions.delete(id);
        questions.set(id, memory);
      }
      for (const [id, memory] of memories.agents) {
        agents.delete(id);
        agents.set(id, memory);
      }
    },
    forget(question_ids, agent_ids) {
      for (const id of question_ids) questions.delete(id);
      for (const id of agent_ids) agents.delete(id);
    },
    async prepare(id) {
      if (questions.has(id)) return;
      const under_way = preparing.get(id) ?? prepare(id).finally(() => preparing.delete(id));
      preparing.set(id, under_way);
      await under_way;
    },
  };
};

export interface SimilarSet {
  /** The number that `add` returned for this set. */
  readonly entry: number;
  readonly overlap: number;
  readonly similarity: number;
}

/**
 * Returns how many members sets of these sizes must have in common to be similar. Similar means
 * that |x ∩ y| / |x ∪ y|, their Jaccard similarity, is at least 3/5.
 */
export const leastOverlap = (one: number, other: number): number =>
  Math.ceil((3 * (one + other)) / 8);

/** Measured bytes of a set besides its members: two objects and its row. */
const bytes_a_set = 450;

/** A row has the size of a set, then its sketch: 8 × 32 bits, of which each member sets one. */
const row_length = 9;

const rowOf = (set: WordHashes): Int32Array => {
  const row = new Int32Array(row_length);
  row[0] = set.length;
  for (let n = 0; n < set.length; n += 1) row[1 + ((set[n]! >>> 5) & 7)]! |= 1 << (set[n]! & 31);
  return row;
};

const countBits = (word: number): number => {
  let bits = word - ((word >>> 1) & 0x55555555);
  bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
  return Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
};

/** Counts the bits of the sketch in `row` that the sketch at `at` lacks. Stops above `most`. */
const countLacking = (row: Int32Array, rows: Int32Array, at: number, most: number): number => {
  let count = 0;
  for (let n = 1; n < row_length && count <= most; n += 1) {
    count += countBits(row[n]! & ~rows[at + n]!);
  }
  return count;
};

/** Counts the members that two sets have in common. Stops early if they are fewer than `needed`. */
const countOverlap = (one: WordHashes, other: WordHashes, needed: number): number => {
  let [overlap, i, j] = [0, 0, 0];
  while (i - overlap <= one.length - needed && i < one.length && j < other.length) {
    const difference = one[i]! - other[j]!;
    if (difference === 0) overlap += 1;
    if (difference <= 0) i += 1;
    if (difference >= 0) j += 1;
  }
  return overlap;
};

/**
 * Finds, among many sets of words, the one that is most similar to a given set. A search looks at
 * the sizes first. Then it compares sketches of 256 bits: each member sets one, so each bit that
 * the other sketch lacks means at least one member that the other set lacks. This rules out nearly
 * all sets. The rest are counted exactly, so the result equals a comparison with every set.
 */
export class SimilarSets {
  private readonly sets: WordHashes[] = [];
  private rows = new Int32Array(16 * row_length);
  /** Approximate size in memory. */
  bytes = 0;

  /** Stores the set and returns its number. */
  add(set: WordHashes): number {
    const entry = this.sets.push(set) - 1;
    const at = entry * row_length;
    if (at === this.rows.length) {
      const { rows } = this;
      this.rows = new Int32Array(2 * rows.length);
      this.rows.set(rows);
    }
    this.rows.set(rowOf(set), at);
    this.bytes += bytes_a_set + set.byteLength;
    return entry;
  }

  removeLast(): void {
    const set = this.sets.pop();
    if (set !== undefined) this.bytes -= bytes_a_set + set.byteLength;
  }

  /** Returns the most similar set, or the first of several. Null if no set reaches 3/5. */
  find(set: WordHashes): SimilarSet | null {
    const { sets, rows } = this;
    const size = set.length;
    if (size === 0) return null;
    const row = rowOf(set);
    let best: SimilarSet | null = null;
    for (let entry = 0, at = 0; entry < sets.length; entry += 1, at += row_length) {
      const other = rows[at]!;
      const needed = leastOverlap(size, other);
      if (needed > size || needed > other) continue;
      const most = size - needed;
      if (countLacking(row, rows, at, most) > most) continue;
      const overlap = countOverlap(set, sets[entry]!, needed);
      if (overlap < needed) continue;
      const similarity = overlap / (size + other - overlap);
      if (best === null || similarity > best.similarity) best = { entry, overlap, similarity };
    }
    return best;
  }
}
