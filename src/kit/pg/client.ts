import { array_types } from './arrays.js';
import { openPool, type Sql, type Tx } from './pool.js';
import type { Db, Query } from './statement.js';

export type { Sql, Tx } from './pool.js';
export type { Db, Fragment, Query, Row } from './statement.js';

/** How the service asks Postgres, and what Postgres may answer when it does not do as asked. */

export interface SqlOptions {
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

const code = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';

/** Serialisation failure or deadlock: the same statement may succeed when it is run again. */
export const isConflict = (error: unknown): boolean => ['40001', '40P01'].includes(code(error));

const outage_codes = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_LOST',
  'CONNECTION_SILENT',
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  '55P03',
  '57014',
]);

/** Connections; resources (disk, memory, connections); an operator's act; the system below. */
const outage_classes = /^(08|53|57P|58)/;

/** The disk is full, or the server or the database takes no writes; reads go on. */
export const isWriteRefused = (error: unknown): boolean => ['53100', '25006'].includes(code(error));

/**
 * The store is away, restarting, out of time or out of room, and nothing is wrong with the
 * statement. Whether a commit that was under way took effect is unknown: only idempotent work may
 * be run again.
 */
export const isOutage = (error: unknown): boolean =>
  outage_codes.has(code(error)) ||
  outage_classes.test(code(error)) ||
  isConflict(error) ||
  isWriteRefused(error);

/** Remembers for a moment that Postgres refused a write: a full disk is known by nothing else. */
export interface WriteWatch {
  note(error: unknown): void;
  refuses(): boolean;
}

const remembered_ms = 3_000;

export const createWriteWatch = (): WriteWatch => {
  let until_ms = Number.NEGATIVE_INFINITY;
  return {
    note(error) {
      if (isWriteRefused(error)) until_ms = performance.now() + remembered_ms;
    },
    refuses: () => performance.now() < until_ms,
  };
};

/** The constraint that refused a row, or '' when the error is about something else. */
export const brokenConstraint = (error: unknown): string =>
  ['23505', '23514', '23503'].includes(code(error))
    ? String((error as { constraint_name?: unknown }).constraint_name ?? '')
    : '';
