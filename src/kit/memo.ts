/**
 * Stores the result of an asynchronous function by key, so that it runs once. If it fails, the next
 * call tries again. For few keys that never change, because nothing is removed.
 */
export const memo = <Args extends readonly unknown[], T>(
  keyOf: (...args: Args) => string,
  make: (...args: Args) => Promise<T>,
): ((...args: Args) => Promise<T>) => {
  const made = new Map<string, Promise<T>>();
  return (...args) => {
    const key = keyOf(...args);
    const known = made.get(key);
    if (known !== undefined) return known;
    const result = make(...args);
    made.set(key, result);
    result.catch(() => made.delete(key));
    return result;
  };
};
