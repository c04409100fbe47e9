import postgres from 'postgres';
import { array_types } from './arrays.js';
import { connectBulkSocket } from './bulk-socket.js';

/**
 * The Postgres client of one process. Everything that can wait has a bound: statements, locks,
 * idle transactions and the connect itself; a lost connection is made again at once.
 */

export type Sql = postgres.Sql<{ bigint: number }>;
export type Tx = postgres.TransactionSql<{ bigint: number }>;
/** What a store takes: the pool or a transaction. */
export type Db = Sql | Tx;
export type Row = Record<string, unknown>;

export interface SqlOptions {
  readonly url: string;
  readonly pool: number;
  readonly prepare: boolean;
  readonly name: string;
  /** Longest a statement of this pool may run. */
  readonly statement_timeout_ms?: number;
  /** Longest it may wait for a lock. */
  readonly lock_timeout_ms?: number;
  /** Very much is read: raw rows are good only while they are handed over (`bulk-socket.ts`). */
  readonly reads_much?: boolean;
}

/** The form of libpq for a unix socket, `?host=/folder`, which postgres.js does not read itself. */
const readAddress = (url: string): { readonly url: string; readonly path?: string } => {
  const read = new URL(url);
  const host = read.searchParams.get('host');
  if (host === null || !host.startsWith('/')) return { url };
  const port = read.port || '5432';
  read.searchParams.delete('host');
  return { url: read.href, path: `${host}/.s.PGSQL.${port}` };
};

/** What postgres.js calls its own sockets' maker with, as far as it is read here. */
interface SocketAsk {
  readonly path: string | false | undefined;
  readonly host: readonly string[];
  readonly port: readonly number[];
}

/** Several hosts, and TLS, are left to postgres.js itself. */
const socketOf = ({ url, reads_much }: SqlOptions) => {
  if (reads_much !== true || /[?&]ssl|,/.test(url)) return {};
  const socket = ({ path, host: [host = ''], port: [port = 5432] }: SocketAsk) =>
    connectBulkSocket({ path: path || undefined, host, port });
  return { socket };
};

export const openSql = (options: SqlOptions): Sql => {
  const { url, ...address } = readAddress(options.url);
  return postgres(url, {
    ...address,
    ...socketOf(options),
    max: options.pool,
    prepare: options.prepare,
    connect_timeout: 5,
    idle_timeout: 0,
    max_lifetime: null,
    // Seconds between attempts to connect; a restarted Postgres is found again quickly.
    backoff: (retries) => Math.min(0.05 * 2 ** retries, 0.5),
    onnotice: () => undefined,
    transform: { undefined: null },
    fetch_types: false,
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
      statement_timeout: options.statement_timeout_ms ?? 10_000,
      lock_timeout: options.lock_timeout_ms ?? 1_000,
      idle_in_transaction_session_timeout: 5_000,
      TimeZone: 'UTC',
    },
  }) as unknown as Sql;
};

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
  'CONNECTION_DESTROYED',
  'CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ECONNRESET',
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
