import pLimit, { type LimitFunction } from 'p-limit';

/** Work that is bounded at once and in waiting, over all and for each who asks for it. */
export interface FairPool {
  /** Undefined, and nothing is done, when there is no room to wait. */
  run<T>(key: string, work: () => Promise<T>): Promise<T | undefined>;
}

export interface FairPoolOptions {
  readonly at_once: number;
  readonly of_each: number;
  readonly waiting: number;
  readonly waiting_of_each: number;
}

interface Line {
  readonly limit: LimitFunction;
  inside: number;
}

export const makeFairPool = (room: FairPoolOptions): FairPool => {
  const all = pLimit(room.at_once);
  const lines = new Map<string, Line>();
  let inside = 0;
  return {
    async run(key, work) {
      const line = lines.get(key) ?? { limit: pLimit(room.of_each), inside: 0 };
      if (inside >= room.at_once + room.waiting) return undefined;
      if (line.inside >= room.of_each + room.waiting_of_each) return undefined;
      lines.set(key, line);
      line.inside += 1;
      inside += 1;
      try {
        return await line.limit(() => all(work));
      } finally {
        inside -= 1;
        line.inside -= 1;
        if (line.inside === 0) lines.delete(key);
      }
    },
  };
};
