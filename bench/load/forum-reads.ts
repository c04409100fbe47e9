import { questionId } from '../env/seed.js';

export interface ReadOptions {
  readonly count: number;
  /** Seeded questions that are asked for in turn. */
  readonly questions: number;
}

/** What readers of the forum ask for: consensus, and every fourth time a whole question. */
export const makeRequests = ({ count, questions }: ReadOptions): readonly Buffer[] =>
  Array.from({ length: count }, (_, n) => {
    const path = `/api/questions/${questionId(n % questions)}${n % 4 === 0 ? '' : '/consensus'}`;
    return Buffer.from(`GET ${path} HTTP/1.1\r\nHost: bench\r\n\r\n`);
  });
