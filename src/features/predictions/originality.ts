import { LRUCache } from 'lru-cache';
import type { Config } from '../../config.js';
import type { Db } from '../../db/client.js';
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

/** Those of one batch; what Postgres does not know is left out. */
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
  keep(memories: Memories): void;
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
        // Where the database lost its last transactions there are fewer.
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
    keep(memories) {
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

/**
 * Finds, among many sets, the one that is most similar to a given set: exactly, and without
 * comparing it with them all. Similar means a Jaccard similarity |x ∩ y| / |x ∪ y| of at least 3/5,
 * which is an overlap of at least ⌈3(|x| + |y|)/8⌉. The method is the prefix filter of all-pairs
 * (Bayardo, Ma, Srikant 2007) over an inverted index:
 *
 * - A similar set has between 3/5 and 5/3 of the members of `x`, and so shares at least ⌈3|x|/5⌉.
 *   Hence it has one of any |x| − ⌈3|x|/5⌉ + 1 members of `x`. Only the lists of so many are read,
 *   the shortest ones, so the members that everybody has cost nothing.
 * - A set with c of these has at most c more than the other members of `x` in common with it.
 *   Nearly everything ends here.
 * - The other sets are compared member by member.
 */

export interface SimilarSet {
  /** The number that `add` gave. */
  readonly entry: number;
  readonly overlap: number;
  readonly similarity: number;
}

/** Exact, because it is a fraction of whole numbers. */
const leastSize = (size: number): number => Math.ceil((3 * size) / 5);
/** The least members that sets of these sizes have in common when they are similar. */
export const leastOverlap = (one: number, other: number): number =>
  Math.ceil((3 * (one + other)) / 8);

const countIn = (own: ReadonlySet<number>, members: Int32Array): number => {
  let count = 0;
  for (const member of members) if (own.has(member)) count += 1;
  return count;
};

/** Bytes that a member, a place in a list and a set take, as measured. */
const bytes_each = { member: 120, place: 16, set: 250 } as const;

export class SimilarSets {
  /** Members → their places in `lists`. */
  private readonly ids = new Map<string, number>();
  /** By member: the sets that have it. */
  private readonly lists: number[][] = [];
  /** By set: the ids of its members. */
  private readonly sets: Int32Array[] = [];
  /** By set: how many members it has. */
  private readonly sizes: number[] = [];
  /** By set: the members it shares with the prefix; zero between two searches. */
  private counts = new Uint16Array(64);
  private places = 0;

  get size(): number {
    return this.sets.length;
  }

  /** About how much memory this takes. */
  get bytes(): number {
    const { member, place, set } = bytes_each;
    return this.ids.size * member + this.places * place + this.sets.length * set;
  }

  /** The most similar set, the earliest of equals; null when none reaches 3/5. */
  find(set: readonly string[]): SimilarSet | null {
    const known: number[] = [];
    for (const one of set) {
      const id = this.ids.get(one);
      if (id !== undefined) known.push(id);
    }
    return this.search(known, set.length);
  }

  /** Keeps the set; its number. Different members only. */
  add(set: readonly string[]): number {
    const entry = this.sets.length;
    const members = new Int32Array(set.length);
    for (const [n, member] of set.entries()) {
      let id = this.ids.get(member);
      if (id === undefined) {
        // A list of one takes a third of the room of one that was begun empty; most have only one.
        id = this.lists.push([entry]) - 1;
        // A copy, because a slice would keep the whole text it was cut from.
        this.ids.set(Buffer.from(member).toString(), id);
      } else this.lists[id]!.push(entry);
      members[n] = id;
    }
    this.sets.push(members);
    this.sizes.push(set.length);
    this.places += set.length;
    if (entry >= this.counts.length) this.counts = new Uint16Array(2 * entry);
    return entry;
  }

  /** Takes the last set out again. */
  removeLast(): void {
    const entry = this.sets.length - 1;
    for (const id of this.sets.pop() ?? []) {
      if (this.lists[id]!.at(-1) === entry) this.lists[id]!.pop();
    }
    this.places -= this.sizes.pop() ?? 0;
  }

  /** `known`: the members that any set has, of a set of `size` members. */
  private search(known: readonly number[], size: number): SimilarSet | null {
    const { counts, sizes } = this;
    const lists = known.map((id) => this.lists[id]!);
    lists.sort((one, other) => one.length - other.length);
    // Unknown members have the shortest lists of all.
    const rest = Math.min(lists.length, leastSize(size) - 1);
    const prefix = lists.slice(0, lists.length - rest);
    for (const list of prefix) for (const entry of list) counts[entry]! += 1;
    const least = Math.max(1, leastSize(size) - rest);
    let own: ReadonlySet<number> | undefined;
    let best: SimilarSet | null = null;
    for (let entry = 0; entry < sizes.length; entry += 1) {
      const other = sizes[entry]!;
      if (counts[entry]! < least) continue;
      const needed = leastOverlap(size, other);
      if (counts[entry]! + rest < needed) continue;
      own ??= new Set(known);
      const overlap = countIn(own, this.sets[entry]!);
      if (overlap < needed) continue;
      const similarity = overlap / (size + other - overlap);
      if (best === null || similarity > best.similarity) best = { entry, overlap, similarity };
    }
    counts.fill(0, 0, sizes.length);
    return best;
  }
}
