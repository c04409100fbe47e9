/** Groups rows by a key. Each group keeps the order of the rows. */
export const groupBy = <R, K>(rows: readonly R[], keyOf: (row: R) => K): Map<K, R[]> => {
  const groups = new Map<K, R[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, [row]);
    else known.push(row);
  }
  return groups;
};
