import type { PostgresType } from 'postgres';
import { isWriteRefused } from '../kit/outage.js';
import type { Db, Query } from './pool.js';
import { openPool, type Sql, type Tx } from './pool.js';

/**
 * Arrays of the types that the schema and its queries use, one-dimensional. postgres.js would ask
 * every new connection for them, in a query that nobody waits for: a Postgres that goes away in the
 * middle of it then ends the process with an unhandled rejection, and each connect costs one round
 * trip more.
 */

const asItIs = (text: string): string => text;
const readDate = (text: string): Date => new Date(text);

/** By the number of the array type in Postgres: how its elements are read. */
const readers: Readonly<Record<number, (text: string) => unknown>> = {
  1000: (text) => text === 't',
  1001: (text) => Buffer.from(text.slice(2), 'hex'),
  // smallint, integer, bigint, double precision; text, varchar, uuid; date, timestamptz
  ...{ 1005: Number, 1007: Number, 1016: Number, 1022: Number },
  ...{ 1009: asItIs, 1015: asItIs, 2951: asItIs, 1182: readDate, 1185: readDate },
};

const textOf = (value: unknown): string => {
  if (value instanceof Date) return value.toISOString();
  return value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : String(value);
};

/** As Postgres reads an element; texts are quoted, so that none is mistaken. */
const writeElement = (value: unknown): string => {
  if (value === null || typeof value === 'number') return String(value);
  const text = textOf(value);
  return /["\\]/.test(text) ? `"${text.replace(/[\\"]/g, '\\$&')}"` : `"${text}"`;
};

const element_pattern = /"([^"\\]*(?:\\.[^"\\]*)*)"|([^,{}"]+)/gs;

const readArray = (text: string, read: (text: string) => unknown): unknown[] =>
  Array.from(text.matchAll(element_pattern), ([, quoted, bare]) => {
    if (quoted !== undefined) return read(quoted.replace(/\\(.)/gs, '$1'));
    return bare === 'NULL' ? null : read(bare as string);
  });

/** For the `types` of a client that does not fetch any. A text that is given passes as it is. */
const array_types: Readonly<Record<string, PostgresType>> = Object.fromEntries(
  Object.entries(readers).map(([oid, read]) => [
    `array_${oid}`,
    {
      to: Number(oid),
      from: [Number(oid)],
      serialize: (values: readonly unknown[] | string) =>
        typeof values === 'string' ? values : `{${values.map(writeElement).join(',')}}`,
      parse: (text: string) => readArray(text, read),
    },
  ]),
);

export type { Db, Fragment, Query, Row, Sql, Tx } from './pool.js';

interface SqlOptions {
  readonly url: string;
  readonly pool: number;
  readonly prepare: boolean;
  readonly name: string;
  /** Longest a statement of this pool may run; 0 for no end. */
  readonly statement_timeout_ms?: number;
  /** Longest it may wait for a lock. */
  readonly lock_timeout_ms?: number;
}

export const openSql = (options: SqlOptions): Sql => {
  const { url, pool, statement_timeout_ms: statement_ms = 4_000 } = options;
  const client = {
    prepare: options.prepare,
    onnotice: () => undefined,
    transform: { undefined: null },
    types: {
      ...array_types,
      // int8 as number: offsets and counts stay far below 2^53.
      bigint: {
        to: 20,
        from: [20],
        parse: (text: string) => Number(text),
        serialize: (value: number) => String(value),
      },
    },
    connection: {
      application_name: `prediction-forum ${options.name}`,
      statement_timeout: statement_ms,
      lock_timeout: options.lock_timeout_ms ?? 1_000,
      idle_in_transaction_session_timeout: 5_000,
      TimeZone: 'UTC',
    },
  };
  return openPool({ url, client, most: pool, statement_ms });
};

/** The rows of a statement in portions, all of one state. */
export async function* readPages<R>(
  tx: Tx,
  rows: Query<R[] & object[]>,
  most: number,
): AsyncGenerator<readonly R[]> {
  await tx`declare pages no scroll cursor for ${rows}`;
  for (;;) {
    // Not prepared: another cursor of that name has other columns.
    const page = await tx.unsafe<R[] & object[]>(`fetch forward ${most} from pages`);
    if (page.length > 0) yield page;
    if (page.length < most) break;
  }
  await tx`close pages`;
}

/** Whether Postgres answers at all; rejects when it does not. */
export const probeSql = async (db: Db): Promise<void> => {
  await db`select 1`;
};

/** Whether it would take a write, as far as it knows before one; rejects without an answer. */
export const probeWrites = async (db: Db): Promise<boolean> => {
  const [row] = await db<{ takes: boolean }[]>`
    select current_setting('transaction_read_only') = 'off' as takes`;
  return row?.takes === true;
};

const remembered_ms = 3_000;

export type WriteWatch = ReturnType<typeof createWriteWatch>;

/** Remembers for a moment that Postgres refused a write: a full disk is known by nothing else. */
export const createWriteWatch = () => {
  let until_ms = Number.NEGATIVE_INFINITY;
  return {
    note(error: unknown): void {
      if (isWriteRefused(error)) until_ms = performance.now() + remembered_ms;
    },
    refuses: (): boolean => performance.now() < until_ms,
  };
};

const ask_every_ms = 5_000;

export type DatabaseClock = ReturnType<typeof followClock>;

/**
 * The time of Postgres in this process. Openings, closings and expiries are decided in many
 * processes and in statements; they agree because all of them go by one clock, whatever their
 * machines say.
 *
 * The time lies between what Postgres answers and that plus the time the question took. The clock
 * is put into these bounds with each answer, and runs by the process's own monotonic time in
 * between. Until the first answer it is the process's clock.
 */
export const followClock = (db: Db) => {
  let ahead_ms = Date.now() - performance.now();
  const ask = async (): Promise<void> => {
    const asked_ms = performance.now();
    const [row] = await db<{ now: Date }[]>`select clock_timestamp() as now`;
    if (row === undefined) return;
    const answered_ms = performance.now();
    const least = row.now.getTime() - answered_ms;
    const most = row.now.getTime() - asked_ms;
    ahead_ms = Math.min(Math.max(ahead_ms, least), most);
  };
  let asking: Promise<void> | undefined;
  /** One query at a time: a Postgres that does not answer collects none. */
  const askOnce = (): Promise<void> => {
    asking ??= ask()
      .catch(() => undefined)
      .finally(() => {
        asking = undefined;
      });
    return asking;
  };
  const timer = setInterval(askOnce, ask_every_ms);
  timer.unref();
  return {
    now: (): Date => new Date(performance.now() + ahead_ms),
    /** Asks again; keeps what is known where Postgres is away. */
    ask: askOnce,
    stop: (): void => clearInterval(timer),
  };
};
