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

interface Waiting {
  readonly key: string;
  start(): void;
}

export const makeFairPool = (room: FairPoolOptions): FairPool => {
  const queue: Waiting[] = [];
  const running = new Map<string, number>();
  let total = 0;

  /** The first in line whose own share is not used up. */
  const startNext = (): void => {
    while (total < room.at_once) {
      const index = queue.findIndex(({ key }) => (running.get(key) ?? 0) < room.of_each);
      const [next] = index < 0 ? [] : queue.splice(index, 1);
      if (next === undefined) return;
      total += 1;
      running.set(next.key, (running.get(next.key) ?? 0) + 1);
      next.start();
    }
  };

  const end = (key: string): void => {
    total -= 1;
    const left = (running.get(key) ?? 1) - 1;
    if (left === 0) running.delete(key);
    else running.set(key, left);
    startNext();
  };

  return {
    async run(key, work) {
      const own = queue.filter((waiting) => waiting.key === key).length;
      if (queue.length >= room.waiting || own >= room.waiting_of_each) return undefined;
      await new Promise<void>((start) => {
        queue.push({ key, start });
        startNext();
      });
      try {
        return await work();
      } finally {
        end(key);
      }
    },
  };
};
