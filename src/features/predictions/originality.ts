import { LRUCache } from 'lru-cache';
import type { Config } from '../../config.js';
import type { Db } from '../../kit/pg/client.js';
import { SimilarSets } from '../../kit/similar-sets.js';
import { readCitation } from './citations.js';
import { type ComparedText, type Finding, hashSources, readWords } from './gates.js';
import { type EarlierRow, readCitedSince, readStoredSince } from './placing-store.js';

/**
 * What gates 5 and 6 and the cap of a family compare a prediction with, in the memory of an api
 * process: of questions their predictions up to a number, of agents the pages they cited up to a
 * prediction. Other processes store predictions as well, so whoever relies on a memory holds the
 * lock of its question or agent and brings it up to date first (placing.ts).
 */

const hashesOf = (citations: readonly string[]): number[] =>
  hashSources(citations.map((url) => readCitation(url).key));

/** The predictions of one question up to number `seq`. */
export class QuestionMemory {
  seq = 0;
  private readonly sets = new SimilarSets();
  /** By set. */
  private readonly seqs: number[] = [];
  private readonly sources = new Set<number>();
  private readonly families = new Map<string, number>();

  constructor(
    readonly question_id: string,
    private readonly family_cap: number,
  ) {}

  /** About how much memory this takes. */
  get bytes(): number {
    return this.sets.bytes + 8 * this.seqs.length + 40 * this.sources.size + 1_000;
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

  /** The next prediction on the question; its number. */
  add({ words, sources, model_family }: ComparedText): number {
    this.seq += 1;
    this.sets.add(words);
    this.seqs.push(this.seq);
    for (const source of sources) this.sources.add(source);
    this.families.set(model_family, (this.families.get(model_family) ?? 0) + 1);
    return this.seq;
  }

  /** One that another process stored. */
  take({ seq, reasoning, citations, model_family }: EarlierRow): void {
    this.seq = seq - 1;
    this.add({ words: readWords(reasoning), sources: hashesOf(citations), model_family });
  }
}

/** What an agent cited, up to its prediction `last_id`; null: it has none. */
export class AgentMemory {
  last_id: string | null = null;
  private readonly cited = new Set<number>();

  constructor(readonly agent_id: string) {}

  get size(): number {
    return 1 + this.cited.size;
  }

  check(sources: readonly number[]): Finding[] {
    const is_reused = sources.length > 0 && sources.every((source) => this.cited.has(source));
    return is_reused ? [{ kind: 'reused', by: 'self' }] : [];
  }

  add(id: string, sources: readonly number[]): void {
    this.last_id = id;
    for (const source of sources) this.cited.add(source);
  }
}

export interface Memories {
  readonly questions: ReadonlyMap<string, QuestionMemory>;
  readonly agents: ReadonlyMap<string, AgentMemory>;
}

export interface Originality {
  /**
   * The memories, up to date; the transaction holds the locks of all these questions and agents,
   * and gives the last number of each question and the last prediction of each agent.
   */
  open(
    tx: Db,
    seqs: ReadonlyMap<string, number>,
    last_ids: ReadonlyMap<string, string | null>,
  ): Promise<Memories>;
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

export const createOriginality = (
  db: Db,
  { ORIGINALITY_MB, MODEL_FAMILY_CAP }: Pick<Config, 'ORIGINALITY_MB' | 'MODEL_FAMILY_CAP'>,
): Originality => {
  const max_bytes = ORIGINALITY_MB * 1_000_000;
  const questions = new LRUCache<string, QuestionMemory>({
    maxSize: max_bytes,
    // The largest question stays even where it has more than all of the room.
    sizeCalculation: ({ bytes }) => Math.min(Math.ceil(bytes), max_bytes),
  });
  const agents = new LRUCache<string, AgentMemory>({
    max: most_agents,
    maxSize: most_cited,
    sizeCalculation: ({ size }) => Math.min(size, most_cited),
  });
  const preparing = new Map<string, Promise<void>>();

  const newQuestion = (id: string): QuestionMemory => new QuestionMemory(id, MODEL_FAMILY_CAP);

  /** Until each is at its number in `seqs`, or at the last there is where that is not given. */
  const read = async (
    from: Db,
    behind: readonly QuestionMemory[],
    seqs: ReadonlyMap<string, number> | null,
  ): Promise<void> => {
    let left = behind;
    while (left.length > 0) {
      const by_id = new Map(left.map((memory) => [memory.question_id, memory]));
      const rows = await readStoredSince(from, left, rows_a_turn);
      for (const row of rows) by_id.get(row.question_id)?.take(row);
      if (seqs === null && rows.length < rows_a_turn) return;
      left = left.filter(({ question_id, seq }) => seqs === null || seq < seqs.get(question_id)!);
      // All there are were read: a number may have been given to what was not stored then.
      if (rows.length > 0) continue;
      for (const memory of left) memory.seq = seqs?.get(memory.question_id) ?? memory.seq;
      return;
    }
  };

  const openQuestions = async (tx: Db, seqs: ReadonlyMap<string, number>) => {
    const opened = new Map<string, QuestionMemory>();
    for (const [id, seq] of seqs) {
      const known = questions.get(id);
      opened.set(id, known === undefined || known.seq > seq ? newQuestion(id) : known);
    }
    const behind = [...opened.values()].filter(
      ({ question_id, seq }) => seq < seqs.get(question_id)!,
    );
    await read(tx, behind, seqs);
    return opened;
  };

  const openAgents = async (tx: Db, last_ids: ReadonlyMap<string, string | null>) => {
    const opened = new Map<string, AgentMemory>();
    const behind: AgentMemory[] = [];
    for (const [id, last_id] of last_ids) {
      const known = agents.get(id) ?? new AgentMemory(id);
      opened.set(id, known);
      if (known.last_id !== last_id) behind.push(known);
    }
    for (const { agent_id, id, citations } of await readCitedSince(tx, behind)) {
      opened.get(agent_id)?.add(id, hashesOf(citations));
    }
    return opened;
  };

  return {
    async open(tx, seqs, last_ids) {
      return {
        questions: await openQuestions(tx, seqs),
        agents: await openAgents(tx, last_ids),
      };
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
    async prepare(question_id) {
      if (questions.has(question_id)) return;
      const memory = newQuestion(question_id);
      const reading =
        preparing.get(question_id) ??
        read(db, [memory], null)
          .then(() => {
            const known = questions.get(question_id);
            if (known === undefined || known.seq < memory.seq) questions.set(question_id, memory);
          })
          .finally(() => preparing.delete(question_id));
      preparing.set(question_id, reading);
      await reading;
    },
  };
};
