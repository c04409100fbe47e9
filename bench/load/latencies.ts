/** The least value that at least `share` (0–1) of the values do not exceed. */
export const quantile = (sorted: ArrayLike<number>, share: number): number =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;

export const latenciesOf = (values_ms: readonly number[]) => {
  const sorted = Float64Array.from(values_ms).sort();
  const at = (share: number): number => quantile(sorted, share);
  return { p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1) };
};
