import type { Deps } from '../../kit/deps.js';
import type { NumberedQuestion } from '../questions/index.js';
import { type AgentMemories, createAgentMemories } from './agent-memory.js';
import { QuestionMemory } from './question-memory.js';

/** A question, and how many predictions it had when it was read. */
export type AskedQuestion = Pick<NumberedQuestion, 'id' | 'last_seq' | 'prediction_count'>;

/**
 * The memories of one api process that gates 5 and 6 compare with: of questions, read at their
 * first prediction, and of agents. When the questions take more than ORIGINALITY_MB, those not used
 * for longest are forgotten. Those in use stay, up to `most_times` as much: a question that is read
 * again at every other prediction costs a thousand times what keeping it does.
 */
export interface Gates {
  question(asked: AskedQuestion): QuestionMemory | Promise<QuestionMemory>;
  readonly agents: AgentMemories;
}

export interface GatesOptions {
  /** For how long after its last use a question counts as in use. */
  readonly in_use_ms?: number;
}

const uses_between_looks = 4_096;
const most_times = 8;

/** The memories of questions; `most` bytes of them, and of those in use more. */
const makeShelf = (most: number, in_use_ms: number) => {
  const questions = new Map<string, QuestionMemory>();
  let uses = 0;
  let is_look_due = false;

  const forgetSome = (now_ms: number): void => {
    let bytes = 0;
    for (const memory of questions.values()) bytes += memory.bytes;
    if (bytes <= most) return;
    const by_use = [...questions.values()].sort((a, b) => a.used_ms - b.used_ms);
    // The last one is what somebody is about to use.
    for (const memory of by_use.slice(0, -1)) {
      const is_in_use = memory.used_ms > now_ms - in_use_ms;
      if (bytes <= (is_in_use ? most_times * most : most)) return;
      if (memory.waiting.size > 0) continue;
      bytes -= memory.bytes;
      questions.delete(memory.question_id);
    }
  };

  /** Soon, and once for all that were opened together: it goes through all questions. */
  const lookSoon = (): void => {
    if (is_look_due) return;
    is_look_due = true;
    setImmediate(() => {
      is_look_due = false;
      forgetSome(performance.now());
    });
  };

  const use = (memory: QuestionMemory): QuestionMemory => {
    uses += 1;
    memory.used_ms = performance.now();
    if (uses % uses_between_looks === 0) forgetSome(memory.used_ms);
    return memory;
  };

  return {
    use(question_id: string): QuestionMemory | undefined {
      const known = questions.get(question_id);
      return known === undefined ? undefined : use(known);
    },
    keep(memory: QuestionMemory): QuestionMemory {
      questions.set(memory.question_id, use(memory));
      lookSoon();
      return memory;
    },
  };
};

export const createGates = (
  { sql, config }: Pick<Deps, 'sql' | 'config'>,
  { in_use_ms = 30_000 }: GatesOptions = {},
): Gates => {
  const shelf = makeShelf(config.ORIGINALITY_MB * 1_000_000, in_use_ms);
  const reading = new Map<string, Promise<QuestionMemory>>();

  const read = async (memory: QuestionMemory, last_seq: number): Promise<QuestionMemory> => {
    try {
      await memory.load(sql, last_seq);
      return shelf.keep(memory);
    } finally {
      reading.delete(memory.question_id);
    }
  };

  return {
    question({ id, last_seq, prediction_count }) {
      const known = shelf.use(id) ?? reading.get(id);
      if (known !== undefined) return known;
      const memory = new QuestionMemory(id, config.MODEL_FAMILY_CAP);
      // What is stored since it was read is met by the commit, like all that others store.
      if (last_seq === 0 && prediction_count === 0) return shelf.keep(memory);
      const work = read(memory, last_seq);
      reading.set(id, work);
      return work;
    },
    agents: createAgentMemories(sql),
  };
};
