import { PassThrough, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type postgres from 'postgres';
import {
  Connection,
  ConnectionError,
  type ConnectionOptions,
  helper,
  type Make,
  type Run,
} from './connection.js';

/**
 * Statements, as the stores write them: tagged templates of the package's own kind. A
 * statement goes out when it is awaited or `execute()` is called; within another statement it is a
 * part of that one.
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

/** `helper` makes what needs no connection. */
const makeDb = (run: Run, helper: Client): Db => {
  const ask = (first: unknown, ...values: never[]): unknown => {
    if (!Array.isArray(first) || !('raw' in first)) return helper(first as never, ...values);
    const text = first as unknown as TemplateStringsArray;
    return new Statement(run, (client) =>
      client(text, ...values.map((value) => partOf(client, value) as never)),
    );
  };
  return Object.assign(ask, {
    unsafe: (text: string, values: unknown[] = []) =>
      new Statement(run, (client) => client.unsafe(text, values as never[])),
    json: (value: postgres.JSONValue) => helper.json(value),
  }) as unknown as Db;
};

/**
 * A pool of single connections. A statement and a transaction each have one to themselves; the one
 * that was used last is used next. Whatever can wait has an end: an answer, a free connection, a
 * transaction. A connection that passed it is thrown away, and with it the idle ones, which most
 * often lie on the same broken way.
 */

export interface Tx extends Db {
  /** Sends the commit after what was sent already, without waiting for that; none may follow. */
  commit(): void;
  /** The rows of `copy … to stdout`; a reader that stops ends the transaction. */
  copyOut(text: string, idle_ms?: number): Readable;
  copyIn(text: string, bytes: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void>;
}

interface BeginOptions {
  /** The words after `begin`: `read only`, `isolation level repeatable read`. */
  readonly mode?: string;
  /** Longest a statement of it may run, where that is not what is usual in its pool. */
  readonly statement_ms?: number;
}

interface CopyOptions extends BeginOptions {
  /** Runs in the same transaction, before the copy. */
  readonly before?: (tx: Tx) => unknown;
  /** Longest that neither Postgres nor the reader may do anything. */
  readonly idle_ms?: number;
}

export interface Sql extends Db {
  /** All or nothing. An outage while it commits leaves open which. */
  begin<T>(work: (tx: Tx) => T | Promise<T>): Promise<T>;
  begin<T>(options: string | BeginOptions, work: (tx: Tx) => T | Promise<T>): Promise<T>;
  /** The rows of `copy … to stdout` as a stream, on a connection of its own. */
  copyOut(text: string, options?: CopyOptions): Readable;
  /** Waits for what is under way, at most `timeout` seconds where that is given. */
  end(options?: { readonly timeout?: number }): Promise<void>;
  /** How long the oldest statement has waited for an answer, in ms; not those without an end. */
  longestWait(): number;
}

interface PoolOptions extends Pick<ConnectionOptions, 'url' | 'client'> {
  readonly most: number;
  /** Longest a statement may run, as Postgres is told; 0 for no end. */
  readonly statement_ms: number;
}

const sweep_ms = 100;
/** A sweep that comes so late says that the process stood still. */
const standstill_ms = 1_000;
const idle_ms = 60_000;
/** How much longer than a statement may run its answer may take. */
const answer_ms = 1_000;
const transaction_ms = 15_000;

const silenceOf = (statement_ms: number): number =>
  statement_ms === 0 ? Number.POSITIVE_INFINITY : statement_ms + answer_ms;

const ended = (): ConnectionError => new ConnectionError('CONNECTION_ENDED', 'the pool is closed');

interface Waiter {
  readonly until_ms: number;
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: Error) => void;
}

class Pool {
  readonly #options: PoolOptions;
  readonly #all = new Set<Connection>();
  readonly #free: Connection[] = [];
  #waiting: Waiter[] = [];
  #failures = 0;
  #ended = false;
  #onIdle: (() => void) | undefined;
  readonly #silence_ms: number;
  readonly #sweeper: NodeJS.Timeout;
  #swept_ms = performance.now();

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#silence_ms = silenceOf(options.statement_ms);
    this.#sweeper = setInterval(() => this.#sweep(), sweep_ms);
    this.#sweeper.unref();
  }

  /** Of one that was lost the place is free at once, although its user may not know yet. */
  #lost(connection: Connection): void {
    if (!connection.answered) this.#failures += 1;
    this.#all.delete(connection);
    const at = this.#free.indexOf(connection);
    if (at !== -1) this.#free.splice(at, 1);
    this.#noteIdle();
    const next = this.#waiting.shift();
    if (next !== undefined && !this.#ended) next.resolve(this.#make());
    else next?.reject(ended());
  }

  #pause = async (): Promise<void> => {
    if (this.#failures === 0) return;
    const ms = Math.min(25 * 2 ** Math.min(this.#failures, 5), 500);
    await new Promise((resolve) => setTimeout(resolve, ms));
  };

  #make(): Connection {
    const { url, client } = this.#options;
    const connection = new Connection({
      ...{ url, client, silence_ms: this.#silence_ms, pause: this.#pause },
      onLost: (lost) => this.#lost(lost),
    });
    this.#all.add(connection);
    return connection;
  }

  take(): Promise<Connection> {
    if (this.#ended) return Promise.reject(ended());
    this.#sweeper.ref();
    const free = this.#free.pop();
    if (free !== undefined) return Promise.resolve(free);
    if (this.#all.size < this.#options.most) return Promise.resolve(this.#make());
    const until_ms = performance.now() + this.#silence_ms;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ until_ms, resolve, reject });
    });
  }

  longestWait(): number {
    const at_ms = performance.now();
    const limited = [...this.#all].filter(({ silence_ms }) => Number.isFinite(silence_ms));
    return Math.max(0, ...limited.map((connection) => connection.waited(at_ms)));
  }

  give(connection: Connection): void {
    if (connection.lost !== null) return;
    if (connection.answered) this.#failures = 0;
    connection.silence_ms = this.#silence_ms;
    connection.until_ms = Number.POSITIVE_INFINITY;
    const next = this.#waiting.shift();
    if (next !== undefined) next.resolve(connection);
    else this.#free.push(connection);
    this.#noteIdle();
  }

  /** Nothing of it keeps the process alive while nothing is under way. */
  #noteIdle(): void {
    if (this.#free.length < this.#all.size) return;
    this.#sweeper.unref();
    this.#onIdle?.();
  }

  #sweep(): void {
    const at_ms = performance.now();
    const late_ms = at_ms - this.#swept_ms;
    this.#swept_ms = at_ms;
    if (late_ms > standstill_ms) {
      for (const connection of this.#all) connection.forgive(late_ms);
      return;
    }
    const silent = [...this.#all].filter((connection) => connection.isSilent(at_ms));
    const late = [...this.#all].filter(({ until_ms }) => until_ms < at_ms);
    const lost = silent.length > 0 ? [...silent, ...late, ...this.#free] : late;
    for (const connection of lost) {
      const message = 'Postgres, or who asked it, took too long';
      connection.lose(new ConnectionError('CONNECTION_SILENT', message));
    }
    while ((this.#waiting[0]?.until_ms ?? at_ms) < at_ms) {
      const message = 'no connection to Postgres came free in time';
      this.#waiting.shift()?.reject(new ConnectionError('CONNECTION_SILENT', message));
    }
  }

  async end(timeout_s = Number.POSITIVE_INFINITY): Promise<void> {
    this.#ended = true;
    for (const { reject } of this.#waiting.splice(0)) reject(ended());
    if (this.#free.length < this.#all.size) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
        if (timeout_s < 1_000_000) setTimeout(resolve, timeout_s * 1_000);
      });
    }
    clearInterval(this.#sweeper);
    const idle = this.#free.splice(0);
    for (const connection of this.#all) if (!idle.includes(connection)) connection.lose(ended());
    await Promise.all(idle.map((connection) => connection.close()));
  }
}

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
    this.tx = Object.assign(makeDb(run, helper), {
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

export const openPool = (options: PoolOptions): Sql => {
  const pool = new Pool(options);
  const using = async <T>(work: (connection: Connection) => Promise<T>): Promise<T> => {
    const connection = await pool.take();
    try {
      return await work(connection);
    } finally {
      pool.give(connection);
    }
  };

  const begin = async <T>(
    first: string | BeginOptions | ((tx: Tx) => T | Promise<T>),
    second?: (tx: Tx) => T | Promise<T>,
  ): Promise<T> => {
    const work = (second ?? first) as (tx: Tx) => T | Promise<T>;
    const { mode = '', statement_ms } = typeof first === 'object' ? first : modeOf(first);
    if (/[^a-z ]/i.test(mode)) throw new Error(`no mode of a transaction: ${mode}`);
    const longest_ms = statement_ms ?? options.statement_ms;
    const set = statement_ms === undefined ? '' : `; set local statement_timeout = ${statement_ms}`;
    return using((connection) => {
      connection.silence_ms = silenceOf(longest_ms);
      const most_ms = Math.max(transaction_ms, 3 * connection.silence_ms);
      connection.until_ms = performance.now() + most_ms;
      return new Transaction(connection).run(`begin ${mode}${set}`, work);
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
  return Object.assign(makeDb(run, helper), { begin, copyOut, end, longestWait }) as Sql;
};

const modeOf = (first: unknown): BeginOptions => (typeof first === 'string' ? { mode: first } : {});
