import type { Deps } from '../../kit/deps.js';
import { type AgentMemories, createAgentMemories } from './agent-memory.js';
import { QuestionMemory } from './question-memory.js';

/**
 * The memories of one api process that gates 5 and 6 compare with: of questions, read at their
 * first prediction and forgotten, those not used for longest first, when all of them together take
 * more than ORIGINALITY_MB; and of agents.
 */
export interface Gates {
  question(id: string): QuestionMemory | Promise<QuestionMemory>;
  readonly agents: AgentMemories;
}

const uses_between_looks = 4_096;

export const createGates = ({ sql, config }: Pick<Deps, 'sql' | 'config'>): Gates => {
  const questions = new Map<string, QuestionMemory>();
  const reading = new Map<string, Promise<QuestionMemory>>();
  let uses = 0;

  const most = config.ORIGINALITY_MB * 1_000_000;

  const forgetSome = (): void => {
    let bytes = 0;
    for (const memory of questions.values()) bytes += memory.bytes;
    if (bytes <= most) return;
    const by_use = [...questions.values()].sort((a, b) => a.used - b.used);
    for (const memory of by_use) {
      if (bytes <= most) return;
      if (memory.used === uses || memory.waiting.size > 0) continue;
      bytes -= memory.bytes;
      questions.delete(memory.question_id);
    }
  };

  const use = (memory: QuestionMemory): QuestionMemory => {
    uses += 1;
    memory.used = uses;
    if (uses % uses_between_looks === 0) forgetSome();
    return memory;
  };

  const read = async (id: string): Promise<QuestionMemory> => {
    try {
      const memory = new QuestionMemory(id, config.MODEL_FAMILY_CAP);
      await memory.load(sql);
      questions.set(id, use(memory));
      forgetSome();
      return memory;
    } finally {
      reading.delete(id);
    }
  };

  return {
    question(id) {
      const known = questions.get(id);
      if (known !== undefined) return use(known);
      const under_way = reading.get(id);
      if (under_way !== undefined) return under_way;
      const work = read(id);
      reading.set(id, work);
      return work;
    },
    agents: createAgentMemories(sql),
  };
};
