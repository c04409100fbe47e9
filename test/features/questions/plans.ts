import type { Db, Sql } from '../../../src/db/client.js';
import { askOf, keyOf, listQuestions } from '../../../src/features/questions/lists-store.js';

/** How Postgres carries out a list: its own statement, with `explain` before it. */

interface Plan {
  readonly text: string;
  readonly ms: number;
}

/** Puts `explain` before the statement of the outermost call; fragments are left alone. */
const explaining = (sql: Sql): Db => {
  const call = (strings: TemplateStringsArray, ...values: readonly unknown[]) => {
    const is_statement = strings[0]?.trimStart().startsWith('with keys') === true;
    if (!is_statement) return sql(strings, ...(values as never[]));
    const first = `explain (analyze, costs off, buffers off) ${strings[0]}`;
    const texts = [first, ...strings.slice(1)];
    return sql(Object.assign(texts, { raw: texts }), ...(values as never[]));
  };
  return call as unknown as Db;
};

/** The plan of the first page of a list, or of the one after so many rows. */
export const readPlan = async (sql: Sql, query: string, after = 0): Promise<Plan> => {
  const ask = askOf(Object.fromEntries(new URLSearchParams(query)), false);
  const page = { limit: 20, after: null, offset: 0 };
  const shown = after === 0 ? [] : await listQuestions(sql, ask, { ...page, limit: after });
  const last = shown[after - 1];
  const rows = (await listQuestions(explaining(sql), ask, {
    ...page,
    after: last === undefined ? null : keyOf(last),
  })) as unknown as { 'QUERY PLAN': string }[];
  const text = rows.map((row) => row['QUERY PLAN']).join('\n');
  return { text, ms: Number(/Execution Time: ([\d.]+)/.exec(text)?.[1]) };
};
