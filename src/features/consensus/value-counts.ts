import { whole_bp } from '../../kit/percent.js';

const block = 100;

/** Counts how often each value from 0 to 10,000 is stated. Blocks make it fast to find a rank. */
export const makeValueCounts = () => {
  const counts = new Int32Array(whole_bp + 1);
  const blocks = new Int32Array(Math.floor(whole_bp / block) + 1);
  let total = 0;
  const valueAt = (index: number): number => {
    let seen = 0;
    let n = 0;
    while (seen + (blocks[n] as number) <= index) seen += blocks[n++] as number;
    let value = n * block;
    while (seen + (counts[value] as number) <= index) seen += counts[value++] as number;
    return value;
  };
  return {
    add(value: number, by: number): void {
      counts[value]! += by;
      blocks[Math.floor(value / block)]! += by;
      total += by;
    },
    /**
     * Returns a quantile in percent by linear interpolation (Hyndman and Fan, type 7). `q` must be
     * a multiple of 0.25, so the result is exact before it is rounded half up to a basis point.
     */
    quantile(q: number): number | null {
      if (total === 0) return null;
      const rank = (total - 1) * q;
      const low = valueAt(Math.floor(rank));
      const high = valueAt(Math.ceil(rank));
      return Math.round(low + (high - low) * (rank - Math.floor(rank))) / 100;
    },
  };
};
