/** Counts the turns of the event loop until some work is done. */
export const countTurns = async (work: () => Promise<unknown>): Promise<number> => {
  let turns = 0;
  let is_over = false;
  const count = (): void => {
    turns += 1;
    if (!is_over) setImmediate(count);
  };
  setImmediate(count);
  await work();
  is_over = true;
  return turns;
};
