/**
 * Counts of latencies in buckets of at most 1.6 % width (64 to each power of two), in microseconds;
 * the same idea as HdrHistogram. Recording costs a few nanoseconds and no memory.
 */
export interface Histogram {
  record(us: number): void;
  readonly count: number;
  readonly max_us: number;
  /** The least latency that at least `share` (0–1) of the records do not exceed. */
  quantile(share: number): number;
}

const sub_bits = 6;
const sub_count = 1 << sub_bits;
/** 2^30 µs are 18 minutes; what takes longer counts as that. */
const limit_us = 2 ** 30 - 1;

const indexOf = (us: number): number => {
  if (us < sub_count) return us;
  const shift = 31 - Math.clz32(us) - sub_bits;
  return (shift << sub_bits) + (us >>> shift);
};

/** The largest value that falls into the bucket. */
const upperOf = (index: number): number => {
  if (index < sub_count * 2) return index;
  const shift = (index >> sub_bits) - 1;
  return ((index - (shift << sub_bits) + 1) << shift) - 1;
};

export const makeHistogram = (): Histogram => {
  const buckets = new Uint32Array(indexOf(limit_us) + 1);
  let count = 0;
  let max_us = 0;
  return {
    record(us) {
      const whole = us < 0 ? 0 : us > limit_us ? limit_us : Math.round(us);
      buckets[indexOf(whole)]!++;
      count++;
      if (whole > max_us) max_us = whole;
    },
    get count() {
      return count;
    },
    get max_us() {
      return max_us;
    },
    quantile(share) {
      const wanted = Math.max(1, Math.ceil(share * count));
      let seen = 0;
      for (let index = 0; index < buckets.length; index++) {
        seen += buckets[index]!;
        if (seen >= wanted) return Math.min(upperOf(index), max_us);
      }
      return max_us;
    },
  };
};
