import type postgres from 'postgres';

/**
 * What goes to Postgres, as the stores write it: tagged templates of the package's own kind. A
 * statement goes out when it is awaited or `execute()` is called; within another statement it is a
 * part of that one.
 */

export type Row = Record<string, unknown>;
type Rows = readonly (object | undefined)[];
export type Result<R extends Rows = postgres.Row[]> = postgres.RowList<R>;
type Client = postgres.ISql<{ bigint: number }>;
type Asked = postgres.PendingQuery<postgres.Row[]>;

/** What may stand within a statement. */
export interface Fragment {
  /** Sends it now, before whatever is sent later; an error waits for whoever awaits it. */
  execute(): this;
  /** Each row as the bytes of its columns. */
  raw(): Promise<readonly (readonly Buffer[])[]>;
}

export interface Query<R extends Rows = postgres.Row[]> extends Promise<Result<R>>, Fragment {}

type Value = postgres.SerializableParameter<number> | Fragment | readonly Fragment[];

/** What a store takes: the pool or a transaction. */
export interface Db {
  <R extends Rows = postgres.Row[]>(text: TemplateStringsArray, ...values: Value[]): Query<R>;
  /** Names, or rows of values by their columns. */
  (first: string | readonly string[] | object, ...rest: string[]): Fragment;
  /** Text as it stands; several statements where no values are given. */
  unsafe<R extends Rows = postgres.Row[]>(text: string, values?: unknown[]): Query<R>;
  json(value: postgres.JSONValue): postgres.Parameter;
}

type Make = (client: Client) => Asked;
export type Run = (make: Make) => Promise<Result>;

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

  raw() {
    return this.#run((client) => this.make(client).raw() as never);
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
export const makeDb = (run: Run, helper: Client): Db => {
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
