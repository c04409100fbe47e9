import { PassThrough, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type postgres from 'postgres';
import { isWriteRefused } from '../kit/outage.js';
import { type Connection, helper, type Make, Pool, type Run } from './pool.js';

/**
 * Postgres as the stores use it. Statements are tagged templates, as in the postgres package. A
 * statement is sent when it is awaited or when `execute()` is called. Inside another statement, it
 * becomes part of that statement. Each statement or transaction has a pool connection to itself.
 */

export type Row = Record<string, unknown>;
type Rows = readonly (object | undefined)[];
type Result<R extends Rows = postgres.Row[]> = postgres.RowList<R>;
type Client = postgres.ISql<{ bigint: number }>;

export interface Fragment {
  /** Sends the statement now, before all later ones. If it fails, awaiting it throws the error. */
  execute(): this;
}

export interface Query<R extends Rows = postgres.Row[]> extends Promise<Result<R>>, Fragment {}

type Value = postgres.SerializableParameter<number> | Fragment | readonly Fragment[];

/** The pool or a transaction. */
export interface Db {
  <R extends Rows = postgres.Row[]>(text: TemplateStringsArray, ...values: Value[]): Query<R>;
  /** Makes a part of a statement, from names or from rows of values with their columns as keys. */
  (first: string | readonly string[] | object, ...rest: string[]): Fragment;
  /** Takes plain text, which may contain several statements if there are no values. */
  unsafe<R extends Rows = postgres.Row[]>(text: string, values?: unknown[]): Query<R>;
  json(value: postgres.JSONValue): postgres.Parameter;
}

class Statement {
  #result: Promise<Result> | undefined;
  readonly #run: Run;
  readonly make: Make;

  constructor(run: Run, make: Make) {
    this.#run = run;
    this.make = make;
  }

  #send(): Promise<Result> {
    this.#result ??= this.#run(this.make);
    return this.#result;
  }

  execute(): this {
    this.#send().catch(() => undefined);
    return this;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is awaited.
  then(...both: Parameters<Promise<Result>['then']>) {
    return this.#send().then(...both);
  }

  catch(...failed: Parameters<Promise<Result>['catch']>) {
    return this.#send().catch(...failed);
  }

  finally(...done: Parameters<Promise<Result>['finally']>) {
    return this.#send().finally(...done);
  }
}

/** Converts statements inside a statement to the form that postgres.js expects. */
const partOf = (client: Client, value: unknown): unknown => {
  if (value instanceof Statement) return value.make(client);
  if (Array.isArray(value) && value[0] instanceof Statement) {
    return value.map((one) => partOf(client, one));
  }
  return value;
};

export const makeDb = (run: Run): Db => {
  const make = (first: unknown, ...values: never[]): unknown => {
    if (!Array.isArray(first) || !('raw' in first)) return helper(first as never, ...values);
    const text = first as unknown as TemplateStringsArray;
    return new Statement(run, (client) =>
      client(text, ...values.map((value) => partOf(client, value) as never)),
    );
  };
  return Object.assign(make, {
    unsafe: (text: string, values: unknown[] = []) =>
      new Statement(run, (client) => client.unsafe(text, values as never[])),
    json: (value: postgres.JSONValue) => helper.json(value),
  }) as unknown as Db;
};

export interface Tx extends Db {
  /** Sends the commit after the earlier statements, without waiting. No statement may follow. */
  commit(): void;
  /** Returns the rows of `copy … to stdout`. If the reader stops early, the transaction ends. */
  copyOut(text: string, idle_ms?: number): Readable;
  copyIn(text: string, bytes: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void>;
}

type Work<T> = (tx: Tx) => T | Promise<T>;

interface BeginOptions {
  /** The words after `begin`: `read only`, `isolation level repeatable read`. */
  readonly mode?: string;
  /** Maximum time for each of its statements, if not the pool's usual limit. */
  readonly statement_ms?: number;
  /** Settings of Postgres for this transaction only. */
  readonly set?: Readonly<Record<string, string | number>>;
}

interface CopyOptions extends BeginOptions {
  /** Runs in the same transaction, before the copy. */
  readonly before?: (tx: Tx) => unknown;
  /** If no rows move from Postgres to the reader for this long, the copy fails. */
  readonly idle_ms?: number;
}

export interface Sql extends Db {
  /** Runs a transaction. After an outage during its commit, the outcome is unknown. */
  begin<T>(work: Work<T>): Promise<T>;
  begin<T>(options: BeginOptions, work: Work<T>): Promise<T>;
  /** Returns the rows of `copy … to stdout` as a stream, on a connection of its own. */
  copyOut(text: string, options?: CopyOptions): Readable;
  /** Waits for running statements, at most `timeout` seconds if that is given. */
  end(options?: { readonly timeout?: number }): Promise<void>;
  /** Returns how many ms the oldest statement with a time limit has waited. */
  longestWait(): number;
  /** Takes a connection, and runs the statement that the given function makes with its client. */
  readonly run: Run;
}

/**
 * Codecs for one-dimensional arrays of the types that the schema and its queries use. Without them
 * postgres.js would ask every new connection for these types, in a query that it does not await. If
 * Postgres went down during that query, an unhandled rejection would end the process. The query
 * would also cost a round trip.
 */

const asItIs = (text: string): string => text;
const readDate = (text: string): Date => new Date(text);

/** Functions that read one element, by the OID (Postgres's number) of the array type. */
const readers: Readonly<Record<number, (text: string) => unknown>> = {
  1000: (text) => text === 't',
  1001: (text) => Buffer.from(text.slice(2), 'hex'),
  // smallint, integer, bigint, double precision; text, varchar, uuid; date, timestamptz
  1005: Number,
  1007: Number,
  1016: Number,
  1022: Number,
  1009: asItIs,
  1015: asItIs,
  2951: asItIs,
  1182: readDate,
  1185: readDate,
};

const textOf = (value: unknown): string => {
  if (value instanceof Date) return value.toISOString();
  return value instanceof Uint8Array ? `\\x${Buffer.from(value).toString('hex')}` : String(value);
};

/** Writes an element as Postgres reads it. Strings are quoted, so that they are never misread. */
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

/** The `types` of a client that does not fetch types itself. A string is sent unchanged. */
const array_types: Readonly<Record<string, postgres.PostgresType>> = Object.fromEntries(
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

/** The time limit for an answer exceeds the limit of its statement by this much. */
const answer_ms = 1_000;

const silenceOf = (statement_ms: number): number =>
  statement_ms === 0 ? Number.POSITIVE_INFINITY : statement_ms + answer_ms;

/** A COPY without any progress fails after this time. */
const idle_ms = 60_000;
const transaction_ms = 15_000;

/** A transaction on its own connection. `begin` is sent together with the first statement. */
class Transaction {
  readonly tx: Tx;
  readonly #connection: Connection;
  #is_over = false;
  #error: unknown;
  #commit: Promise<Result> | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
    const run: Run = (make) => {
      if (this.#is_over) return Promise.reject(new Error('its transaction is over'));
      const sent = connection.run(make);
      sent.catch((error: unknown) => {
        this.#error ??= error;
      });
      return sent;
    };
    this.tx = Object.assign(makeDb(run), {
      commit: () => void this.#sendCommit(),
      copyOut: (text: string, idle = idle_ms) => connection.copyOut(text, idle),
      copyIn: (text: string, bytes: AsyncIterable<Buffer> | Iterable<Buffer>) =>
        connection.copyIn(text, bytes),
    });
  }

  #send(text: string): Promise<Result> {
    const sent = this.#connection.run((client) => client.unsafe(text));
    // The caller awaits this later. If something else fails first, the caller never awaits it.
    sent.catch(() => undefined);
    return sent;
  }

  #sendCommit(): Promise<Result> {
    this.#is_over = true;
    this.#commit ??= this.#send('commit');
    return this.#commit;
  }

  async run<T>(begin: string, work: (tx: Tx) => T | Promise<T>): Promise<T> {
    const begun = this.#send(begin);
    try {
      // `work` may be waiting for something else, so it would not notice a lost connection.
      const result = await this.#connection.orLost(Promise.resolve(work(this.tx)));
      await begun;
      const { command } = await this.#sendCommit();
      if (command === 'COMMIT') return result;
      // A statement failed but `work` went on, so Postgres rolled back instead of committing.
      throw this.#error ?? new Error('Postgres rolled the transaction back');
    } catch (error) {
      this.#is_over = true;
      await this.#rollBack(begun);
      // 25P02 only says that an earlier statement failed, so throw that statement's own error.
      throw (error as { code?: string }).code === '25P02' ? (this.#error ?? error) : error;
    }
  }

  async #rollBack(begun: Promise<unknown>): Promise<void> {
    try {
      await begun;
      await (this.#commit ?? this.#send('rollback'));
    } catch (error) {
      this.#connection.lose(error as Error);
    }
  }
}

export interface SqlOptions {
  readonly url: string;
  readonly pool: number;
  readonly prepare: boolean;
  readonly name: string;
  /** Maximum time for a statement of this pool; 0 for no limit. */
  readonly statement_timeout_ms?: number;
  /** Maximum time that a statement may wait for a lock. */
  readonly lock_timeout_ms?: number;
  /** Checks each connection that is taken from the pool. Rejects if it may not be used now. */
  readonly admit?: (run: Run) => Promise<void>;
}

export const openSql = (options: SqlOptions): Sql => {
  const { url, statement_timeout_ms: usual_ms = 4_000 } = options;
  const client = {
    prepare: options.prepare,
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
      statement_timeout: usual_ms,
      lock_timeout: options.lock_timeout_ms ?? 1_000,
      idle_in_transaction_session_timeout: 5_000,
      TimeZone: 'UTC',
      // If parameters are arrays, Postgres prefers a new plan for each execution. That costs more
      // than most of these statements.
      ...(options.prepare ? { plan_cache_mode: 'force_generic_plan' } : {}),
    },
  };
  const pool = new Pool({ url, client, most: options.pool, silence_ms: silenceOf(usual_ms) });
  const using = async <T>(work: (connection: Connection) => Promise<T>): Promise<T> => {
    const connection = await pool.take();
    try {
      await options.admit?.(connection.run);
      return await work(connection);
    } finally {
      pool.give(connection);
    }
  };

  const begin = async <T>(first: BeginOptions | Work<T>, second?: Work<T>): Promise<T> => {
    const [how, work] = typeof first === 'object' ? [first, second as Work<T>] : [{}, first];
    // Set even if the pool has the same limit: a pooler may have put a shorter one on the
    // connection.
    const { mode = '', statement_ms = options.statement_timeout_ms }: BeginOptions = how;
    const limit = statement_ms === undefined ? {} : { statement_timeout: statement_ms };
    const settings = Object.entries({ ...limit, ...how.set })
      .map(([name, value]) => `; set local ${name} = ${value}`)
      .join('');
    return using((connection) => {
      connection.silence_ms = silenceOf(statement_ms ?? usual_ms);
      const max_ms = Math.max(transaction_ms, 3 * connection.silence_ms);
      connection.until_ms = performance.now() + max_ms;
      return new Transaction(connection).run(`begin ${mode}${settings}`, work);
    });
  };

  const copyOut = (text: string, { before, idle_ms, ...how }: CopyOptions = {}): Readable => {
    const out = new PassThrough();
    begin(how, async (tx) => {
      await before?.(tx);
      tx.unsafe('set local statement_timeout = 0').execute();
      await pipeline(tx.copyOut(text, idle_ms), out);
    }).catch((error: Error) => out.destroy(error));
    return out;
  };

  const run: Run = (make) => using((connection) => connection.run(make));
  const end = ({ timeout }: { readonly timeout?: number } = {}) => pool.end(timeout);
  const longestWait = () => pool.longestWait();
  return Object.assign(makeDb(run), { run, begin, copyOut, end, longestWait }) as Sql;
};

/** Yields the rows of a statement in pages, all from one snapshot. */
export async function* readPages<R>(
  tx: Tx,
  rows: Query<R[] & object[]>,
  most: number,
): AsyncGenerator<readonly R[]> {
  // Not prepared, because other cursors with the same name have different columns.
  const fetch = () => tx.unsafe<R[] & object[]>(`fetch forward ${most} from pages`);
  // The first page is asked for at once, because most results are short.
  let [, page] = await Promise.all([tx`declare pages no scroll cursor for ${rows}`, fetch()]);
  for (;;) {
    if (page.length > 0) yield page;
    if (page.length < most) break;
    page = await fetch();
  }
  await tx`close pages`;
}

/** Returns if Postgres answers; otherwise rejects. */
export const probeSql = async (db: Db): Promise<void> => {
  await db`select 1`;
};

/** Returns true if Postgres says that it takes writes. Rejects if it does not answer. */
export const probeWrites = async (db: Db): Promise<boolean> => {
  const [row] = await db<{ takes: boolean }[]>`
    select current_setting('transaction_read_only') = 'off' as takes`;
  return row?.takes === true;
};

const remembered_ms = 3_000;

export type WriteWatch = ReturnType<typeof createWriteWatch>;

/** Remembers for a moment that Postgres refused a write. A full disk shows in no other way. */
export const createWriteWatch = () => {
  let until_ms = Number.NEGATIVE_INFINITY;
  return {
    note(error: unknown): void {
      if (isWriteRefused(error)) until_ms = performance.now() + remembered_ms;
    },
    refuses: (): boolean => performance.now() < until_ms,
  };
};

const read_every_ms = 5_000;

export type DatabaseClock = ReturnType<typeof followClock>;

/**
 * The time of Postgres in this process. Many processes and statements decide on openings, closings
 * and expiries. They agree because all of them use one clock, not the clocks of their machines.
 *
 * The true time is between the time that Postgres answers and that time plus the duration of the
 * query. Each answer moves the clock into these bounds. Between answers it follows the process's
 * monotonic time. Until the first answer it shows the process's own clock.
 */
export const followClock = (db: Db) => {
  let ahead_ms = Date.now() - performance.now();
  const read = async (): Promise<void> => {
    const sent_ms = performance.now();
    const [row] = await db<{ now: Date }[]>`select clock_timestamp() as now`;
    if (row === undefined) return;
    const answered_ms = performance.now();
    const least = row.now.getTime() - answered_ms;
    const most = row.now.getTime() - sent_ms;
    ahead_ms = Math.min(Math.max(ahead_ms, least), most);
  };
  let reading: Promise<void> | undefined;
  /** Runs one query at a time. Otherwise queries would pile up while Postgres does not answer. */
  const readOnce = (): Promise<void> => {
    reading ??= read()
      .catch(() => undefined)
      .finally(() => {
        reading = undefined;
      });
    return reading;
  };
  const timer = setInterval(readOnce, read_every_ms).unref();
  return {
    now: (): Date => new Date(performance.now() + ahead_ms),
    /** Reads the time again. Changes nothing if Postgres is down. */
    read: readOnce,
    stop: (): void => clearInterval(timer),
  };
};
