/** The values of one member of each row, in order. */
export function pluck<T, K extends keyof T>(rows: readonly T[], name: K): T[K][];
// biome-ignore lint/suspicious/noExplicitAny: rows of an answer, whose shape the test knows.
export function pluck(rows: any, name: string): any[];
export function pluck(rows: readonly Record<string, unknown>[], name: string): unknown[] {
  return rows.map((row) => row[name]);
}
