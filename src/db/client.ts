import { PassThrough, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type postgres from 'postgres';
import { isWriteRefused } from '../kit/outage.js';
import { type Connection, helper, type Make, Pool, type Run } from './pool.js';

/**
 * Postgres as the stores use it: statements are tagged templates of the package's own kind. A
 * statement goes out when it is awaited or `execute()` is called; within another statement it is a
 * part of that one. A statement and a transaction each have a connection of the pool to themselves.
 */

export type Row = Record<string, unknown>;
type Rows = readonly (object | undefined)[];
type Result<R extends Rows = postgres.Row[]> = postgres.RowList<R>;
type Client = postgres.ISql<{ bigint: number }>;

/** A part of a statement. */
export interface Fragment {
  /** Sends it now, before whatever is sent later; an error waits for its `await`. */
  execute(): this;
}

export interface Query<R extends Rows = postgres.Row[]> extends Promise<Result<R>>, Fragment {}

type Value = postgres.SerializableParameter<number> | Fragment | readonly Fragment[];

/** The pool or a transaction. */
export interface Db {
  <R extends Rows = postgres.Row[]>(text: TemplateStringsArray, ...values: Value[]): Query<R>;
  /** Names, or rows of values by their columns. */
  (first: string | readonly string[] | object, ...rest: string[]): Fragment;
  /** Text as it stands; several statements where no values are given. */
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

/** Statements within a statement, as the package takes them. */
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
  /** Sends the commit after what was sent already, without waiting for that; none may follow. */
  commit(): void;
  /** The rows of `copy … to stdout`; a reader that stops ends the transaction. */
  copyOut(text: string, idle_ms?: number): Readable;
  copyIn(text: string, bytes: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void>;
}

type Work<T> = (tx: Tx) => T | Promise<T>;

interface BeginOptions {
  /** The words after `begin`: `read only`, `isolation level repeatable read`. */
  readonly mode?: string;
  /** Longest a statement of it may run, where that is not what is usual in its pool. */
  readonly statement_ms?: number;
  /** Settings of Postgres until it ends. */
  readonly set?: Readonly<Record<string, string | number>>;
}

interface CopyOptions extends BeginOptions {
  /** Runs in the same transaction, before the copy. */
  readonly before?: (tx: Tx) => unknown;
  /** Longest that neither Postgres nor the reader may do anything. */
  readonly idle_ms?: number;
}

export interface Sql extends Db {
  /** All or nothing. An outage while it commits leaves open which. */
  begin<T>(work: Work<T>): Promise<T>;
  begin<T>(options: BeginOptions, work: Work<T>): Promise<T>;
  /** The rows of `copy … to stdout` as a stream, on a connection of its own. */
  copyOut(text: string, options?: CopyOptions): Readable;
  /** Waits for what is under way, at most `timeout` seconds where that is given. */
  end(options?: { readonly timeout?: number }): Promise<void>;
  /** How long the oldest statement has waited for an answer, in ms; not those without an end. */
  longestWait(): number;
  /** A statement that is made for the connection it runs on. */
  readonly run: Run;
}

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

/** How much longer than a statement may run its answer may take. */
const answer_ms = 1_000;

const silenceOf = (statement_ms: number): number =>
  statement_ms === 0 ? Number.POSITIVE_INFINITY : statement_ms + answer_ms;

/** How long a COPY may neither give nor be given anything. */
const idle_ms = 60_000;
const transaction_ms = 15_000;

/** A transaction on a connection of its own; `begin` is on its way with the first statement. */
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
    // Awaited later, or not at all when something else failed first.
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
      // `work` may wait for something else than the connection.
      const result = await this.#connection.orLost(Promise.resolve(work(this.tx)));
      await begun;
      const { command } = await this.#sendCommit();
      if (command === 'COMMIT') return result;
      // A statement failed and `work` went on: Postgres made a rollback of the commit.
      throw this.#error ?? new Error('Postgres rolled the transaction back');
    } catch (error) {
      this.#is_over = true;
      await this.#rollBack(begun);
      // Not what was refused because something before it had failed.
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
  /** Longest a statement of this pool may run; 0 for no end. */
  readonly statement_timeout_ms?: number;
  /** Longest it may wait for a lock. */
  readonly lock_timeout_ms?: number;
  /** Asked on each connection that is taken; rejects where it may not be used now. */
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
      // With arrays as parameters Postgres prefers a new plan for each execution, which costs more
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
    // Also where it is the pool's own: a pooler may have given the connection a shorter one.
    const { mode = '', statement_ms = options.statement_timeout_ms }: BeginOptions = how;
    const limit = statement_ms === undefined ? {} : { statement_timeout: statement_ms };
    const settings = Object.entries({ ...limit, ...how.set })
      .map(([name, value]) => `; set local ${name} = ${value}`)
      .join('');
    return using((connection) => {
      connection.silence_ms = silenceOf(statement_ms ?? usual_ms);
      const most_ms = Math.max(transaction_ms, 3 * connection.silence_ms);
      connection.until_ms = performance.now() + most_ms;
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

const read_every_ms = 5_000;

export type DatabaseClock = ReturnType<typeof followClock>;

/**
 * The time of Postgres in this process. Openings, closings and expiries are decided in many
 * processes and in statements; they agree because all of them go by one clock, whatever their
 * machines say.
 *
 * The time lies between what Postgres answers and that plus the time that the query took. The clock
 * is put into these bounds with each answer, and runs by the process's own monotonic time in
 * between. Until the first answer it is the process's clock.
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
  /** One query at a time: a Postgres that does not answer collects none. */
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
    /** Reads it again; keeps what is known where Postgres is away. */
    read: readOnce,
    stop: (): void => clearInterval(timer),
  };
};
