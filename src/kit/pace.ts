/**
 * Waits until `floor_ms` after `started_ms` (of `performance.now()`), so that answers that must not
 * differ take the same time. Holds a timer and nothing else.
 */
export const waitUntilFloor = (started_ms: number, floor_ms: number): Promise<void> | undefined => {
  const left_ms = started_ms + floor_ms - performance.now();
  if (left_ms <= 0) return undefined;
  return new Promise((resolve) => {
    setTimeout(resolve, Math.ceil(left_ms));
  });
};
