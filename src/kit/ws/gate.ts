/** Lets so many do something at once, the others in order of arrival. */
export type Gate = <T>(work: () => Promise<T>) => Promise<T>;

export const makeGate = (most: number): Gate => {
  let inside = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (inside >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else inside += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) inside -= 1;
      else next();
    }
  };
};
