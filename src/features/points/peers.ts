/**
 * The relative score of forecasters who can join and revise at any time. It is the mean over time
 * of 100 · (own log score − mean log score of the other active forecasters), over the time in which
 * there are others. It is null if there is no such time. At each moment these scores sum to 0.
 *
 * If N forecasters are active and S is the sum of their log scores, the mean of the others is
 * (S − l)/(N − 1) for a forecaster with log score l. So three integrals over time, the same for all
 * forecasters, describe the others: of 1, of S/(N − 1) and of 1/(N − 1), over the time when N > 1.
 * Each integral is stored from every change to the end, because no forecaster leaves earlier.
 * Integrals for late forecasters are then small numbers, so they lose no digits. Changes must be
 * added in the order of their times, in any unit of time.
 *
 * Source: Metaculus, "Scores FAQ" (peer score), in the form without coverage.
 */

export interface LogChange {
  /** Index of its time among the times of all changes. */
  readonly index: number;
  readonly log_score: number;
}

export type Peers = ReturnType<typeof createPeers>;

export const createPeers = () => {
  const times: number[] = [];
  const counts: number[] = [];
  const sums: number[] = [];
  /** Integrals from each time to the end. */
  const shared: number[] = [];
  const others: number[] = [];
  const inverse: number[] = [];

  return {
    /** Adds a change and returns its index. `before` is null for a forecaster's first change. */
    add(at: number, before: number | null, after: number): number {
      const last = times.length - 1;
      const count = (counts[last] ?? 0) + (before === null ? 1 : 0);
      const sum = (sums[last] ?? 0) + after - (before ?? 0);
      const index = times[last] === at ? last : last + 1;
      times[index] = at;
      counts[index] = count;
      sums[index] = sum;
      return index;
    },

    /** Returns the index of the change at this time. */
    findIndex(at: number): number {
      let low = 0;
      let high = counts.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (times[middle]! <= at) low = middle;
        else high = middle - 1;
      }
      return low;
    },

    /** Call it after the last change. `at` must not be earlier than the last change. */
    end(at: number): void {
      const count = times.push(at) - 1;
      for (const integral of [shared, others, inverse]) integral.length = count + 1;
      shared[count] = others[count] = inverse[count] = 0;
      for (let n = count - 1; n >= 0; n -= 1) {
        const peers = counts[n]! - 1;
        const time = peers > 0 ? times[n + 1]! - times[n]! : 0;
        shared[n] = shared[n + 1]! + time;
        others[n] = others[n + 1]! + (peers > 0 ? (time * sums[n]!) / peers : 0);
        inverse[n] = inverse[n + 1]! + (peers > 0 ? time / peers : 0);
      }
    },

    /**
     * Returns the relative score of a forecaster from all its changes, in order. If no time has
     * passed since the first change, this is the score at that moment.
     */
    relativeOf(changes: readonly LogChange[]): number | null {
      const end = counts.length;
      const first = changes[0];
      const last = changes.at(-1);
      if (first === undefined || last === undefined) return null;
      if (times[first.index] === times[end]) {
        const peers = counts[end - 1]! - 1;
        const sum = sums[end - 1]! - last.log_score;
        return peers === 0 ? null : 100 * (last.log_score - sum / peers);
      }
      if (shared[first.index] === 0) return null;
      let own = 0;
      for (const [n, { index: from, log_score }] of changes.entries()) {
        const to = changes[n + 1]?.index ?? end;
        own += log_score * (shared[from]! - shared[to]! + inverse[from]! - inverse[to]!);
      }
      return (100 * (own - others[first.index]!)) / shared[first.index]!;
    },
  };
};
