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
 * What the gates that compare a prediction with others compare it with, in the memory of an api
 * process: of questions their predictions up to a number, of agents the pages they cited up to a
 * prediction. Other processes store predictions as well, so a batch is stored only where the memories
 * that it was judged by were up to date (storing.ts).
 */

/** The predictions of one question up to number `seq`. */
export class QuestionMemory {
  seq = 0;
  private readonly sets = new SimilarSets();
  /** By set. */
  private readonly seqs: number[] = [];
  private readonly sources = new Set<string>();
  private readonly families = new Map<string, number>();

  constructor(
    readonly question_id: string,
    private readonly family_cap: number,
  ) {}

  /** About how many bytes of memory this takes. */
  get size(): number {
    return this.sets.bytes + 8 * this.seqs.length + 150 * this.sources.size + 1_000;
  }

  /** What speaks against the text. */
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

  /** The next prediction on the question; what takes it out again, while it is the last one. */
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

  /** One that another process stored. */
  take(row: EarlierRow): void {
    this.seq = row.seq - 1;
    this.add(comparedOf(row));
  }
}

/** Adds members; what takes those out again that were not there before. */
const addNew = (set: Set<string>, members: readonly string[]): (() => void) => {
  const added = members.filter((one) => !set.has(one));
  for (const one of added) set.add(one);
  return () => {
    for (const one of added) set.delete(one);
  };
};

/** What an agent cited, up to its prediction `last_id`; null: it has none. */
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

  /** The agent's next prediction; what takes it out again, while it is the last one. */
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
  /** The memories, as old as they are; those that are not there are read. */
  open(db: Db, question_ids: readonly string[], agent_ids: readonly string[]): Promise<Memories>;
  /** Brings memories to where questions and agents were found to be. */
  catchUp(db: Db, memories: Memories, found: Pick<Outcome, 'questions' | 'agents'>): Promise<void>;
  /** After the commit. */
  cache(memories: Memories): void;
  /** After a failure: nothing is known of what was stored. */
  forget(questions: Iterable<string>, agents: Iterable<string>): void;
  /** Reads a question without its lock, so that less is left to read under it. */
  prepare(question_id: string): Promise<void>;
}

/** Agents kept, and pages they cited; about 12 MB at most. */
const most_agents = 20_000;
const most_cited = 200_000;
/** Rows at a time: each costs some 60 µs to read. */
const rows_a_turn = 200;

/** Brings questions to their numbers in `seqs`; without these, to the last there is. */
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
      // A number may have been given to what was not stored then.
      for (const memory of left) memory.seq = seqs?.get(memory.question_id) ?? memory.seq;
      return;
    }
    left = left.filter(({ question_id, seq }) => seq < (seqs?.get(question_id) ?? Infinity));
  }
};

/** Brings agents to their last predictions. */
const readAgentsInto = async (db: Db, agents: ReadonlyMap<string, AgentMemory>, ids: string[]) => {
  if (ids.length === 0) return;
  const known = ids.map((id) => ({ id, last_id: agents.get(id)?.last_id ?? null }));
  for (const row of await readAgents(db, known)) agents.get(row.id)?.take(row);
};

/** The largest memory stays even where it takes more than all of the room. */
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
    max: most_agents,
    maxSize: most_cited,
    sizeCalculation: boundedBy(most_cited),
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
        // Fewer than known: the database lost its last transactions.
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
      // Taken out first: what is set again as it is keeps the size it was set with.
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
  /** The number that `add` gave. */
  readonly entry: number;
  readonly overlap: number;
  readonly similarity: number;
}

/**
 * The least members that sets of these sizes have in common if they are similar: if
 * |x ∩ y| / |x ∪ y|, their Jaccard similarity, is at least 3/5.
 */
export const leastOverlap = (one: number, other: number): number =>
  Math.ceil((3 * (one + other)) / 8);

/** Bytes that a set takes besides its members, as measured: two objects and its row. */
const bytes_a_set = 450;

/** The row of a set: its size, then its sketch, 8 × 32 bits of which each member sets one. */
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

/** How many bits the sketch in `row` has and that at `at` lacks. It stops above `most`. */
const countLacking = (row: Int32Array, rows: Int32Array, at: number, most: number): number => {
  let count = 0;
  for (let n = 1; n < row_length && count <= most; n += 1) {
    count += countBits(row[n]! & ~rows[at + n]!);
  }
  return count;
};

/** How many members the sets have in common. It stops early if they are fewer than `needed`. */
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
 * the sizes first. Then it compares sketches of 256 bits: each member sets one, so each bit that the
 * other sketch lacks is at least one member that the other set lacks. Nearly everything ends here.
 * The rest is counted exactly, so the result equals a comparison with every set.
 */
export class SimilarSets {
  private readonly sets: WordHashes[] = [];
  private rows = new Int32Array(16 * row_length);
  /** About how much memory this takes. */
  bytes = 0;

  /** Keeps the set; its number. */
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

  /** Takes the last set out again. */
  removeLast(): void {
    const set = this.sets.pop();
    if (set !== undefined) this.bytes -= bytes_a_set + set.byteLength;
  }

  /** The most similar set, the earliest of equals; null when none reaches 3/5. */
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
