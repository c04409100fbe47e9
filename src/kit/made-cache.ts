/**
 * What is made for one reader and kept for the next: at most so many bytes of it, the longest
 * unused dropped first. Readers that ask for the same while it is made wait for the same.
 */
export interface MadeCache<V> {
  get(key: string, make: () => V | Promise<V>): V | Promise<V>;
  stats(): { readonly kept: number; readonly bytes: number };
}

interface Kept<V> {
  readonly value: V;
  readonly bytes: number;
}

export const createMadeCache = <V>(
  sizeOf: (value: V) => number,
  most_bytes: number,
): MadeCache<V> => {
  const kept = new Map<string, Kept<V>>();
  const under_way = new Map<string, Promise<V>>();
  let bytes = 0;

  const keep = (key: string, value: V): void => {
    const size = sizeOf(value) + 2 * key.length;
    bytes += size - (kept.get(key)?.bytes ?? 0);
    kept.delete(key);
    kept.set(key, { value, bytes: size });
    for (const [oldest, { bytes: freed }] of kept) {
      if (bytes <= most_bytes) return;
      kept.delete(oldest);
      bytes -= freed;
    }
  };

  return {
    get(key, make) {
      const hit = kept.get(key);
      if (hit !== undefined) {
        kept.delete(key);
        kept.set(key, hit);
        return hit.value;
      }
      const waited = under_way.get(key);
      if (waited !== undefined) return waited;
      const made = make();
      if (!(made instanceof Promise)) {
        keep(key, made);
        return made;
      }
      const work = made
        .then((value) => {
          keep(key, value);
          return value;
        })
        .finally(() => under_way.delete(key));
      under_way.set(key, work);
      return work;
    },
    stats: () => ({ kept: kept.size, bytes }),
  };
};
