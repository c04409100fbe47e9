import type { Socket } from 'node:net';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import postgres from 'postgres';
import { ConnectionError } from '../kit/outage.js';
import {
  type Host,
  type HostFinder,
  type HostState,
  makeHostFinder,
  openSocket,
  readAddress,
} from './address.js';

/**
 * A pool of single connections. The connection that was used last is used next. Every wait has a
 * limit: for an answer, a free connection or a transaction. A connection over its limit is dropped.
 * If it was silent, the idle ones are dropped too: they are most likely on the same broken path.
 */

export type Client = postgres.Sql<{ bigint: number }>;

/** Makes a statement with the client of one connection. */
export type Make = (
  client: postgres.ISql<{ bigint: number }>,
) => postgres.PendingQuery<postgres.Row[]>;
export type Run = (make: Make) => Promise<postgres.RowList<postgres.Row[]>>;

const connect_ms = 3_000;

interface ConnectionOptions {
  readonly url: string;
  readonly findHost: () => Promise<Host>;
  readonly client: postgres.Options<{ bigint: postgres.PostgresType<number> }>;
  /** Called once, when the connection is lost or cannot be made. */
  readonly onLost: (connection: Connection, error: Error) => void;
  /** Called when the server refuses a write because it is read-only, as a standby is. */
  readonly onReadOnly: () => void;
  /** Waits before connecting if the last attempts failed. */
  readonly pause: () => Promise<void>;
  /** How long Postgres may stay silent while an answer is due; Infinity for no limit. */
  readonly silence_ms: number;
}

/** A client that only makes names and rows of values. It never connects. */
export const helper = postgres({ host: 'none', max: 1 }) as unknown as Client;

/** Returns true if Postgres sent the error and the connection is still open afterwards. */
const isAnswer = (error: unknown): error is postgres.PostgresError =>
  error instanceof postgres.PostgresError && error.severity === 'ERROR';

/**
 * Returns true if the notice says that a commit stopped waiting for the standby
 * (`synchronous_standby_names`), for example after a timeout. Postgres then reports the commit as
 * done, but a failover would lose it.
 */
const isUnreplicated = ({ file }: postgres.Notice): boolean => file === 'syncrep.c';

/**
 * If the first rows of a COPY contain an error, the error arrives together with the stream. A
 * caller that awaits the stream listens too late, so the error would end the process.
 */
const listenForErrors = (query: { resolve(stream: Readable): void }): void => {
  const { resolve } = query;
  query.resolve = (stream) => {
    if (stream instanceof Readable) stream.on('error', () => undefined);
    resolve(stream);
  };
};

/**
 * One connection: a client of the postgres package with `max: 1`, on a socket that we opened. Once
 * it is lost, every statement on it fails, and it is never reopened. The package would reconnect,
 * and run the remaining statements of a transaction outside it.
 */
export class Connection {
  readonly client: Client;
  silence_ms: number;
  /** Why the connection cannot be used any more; null if it can be used. */
  lost: Error | null = null;
  /** True once Postgres has answered on this connection. */
  answered = false;
  /** The transaction must end before this time. */
  until_ms = Number.POSITIVE_INFINITY;
  readonly made_ms = performance.now();
  #socket: Socket | undefined;
  #received_ms = 0;
  /** How many answers from Postgres are due. */
  #pending = 0;
  readonly #holders = new Set<(error: Error) => void>();
  readonly #onLost: ConnectionOptions['onLost'];
  readonly #onReadOnly: ConnectionOptions['onReadOnly'];

  constructor(given: ConnectionOptions) {
    const { url, client, findHost, onLost, onReadOnly, pause, silence_ms } = given;
    this.#onLost = onLost;
    this.#onReadOnly = onReadOnly;
    this.silence_ms = silence_ms;
    let made = false;
    const socket = async (): Promise<Socket> => {
      if (made) throw this.lost ?? new ConnectionError('CONNECTION_LOST', 'made once only');
      made = true;
      try {
        await pause();
        return this.#watch(await openSocket(await findHost()));
      } catch (error) {
        this.lose(error as Error);
        throw error;
      }
    };
    const one = { max: 1, idle_timeout: 0, max_lifetime: null, connect_timeout: connect_ms / 1000 };
    const onnotice = (notice: postgres.Notice): void => {
      if (!isUnreplicated(notice)) return;
      this.lose(new ConnectionError('CONNECTION_LOST', 'a commit was not replicated in time'));
    };
    const options = { ...client, ...one, fetch_types: false, ssl: false as const, onnotice };
    this.client = postgres(url, { ...options, socket } as never) as unknown as Client;
  }

  /** Turns every end of a connection into an error, because postgres.js cannot handle an end. */
  #watch(socket: Socket): Socket {
    if (this.lost !== null) {
      socket.destroy();
      throw this.lost;
    }
    this.#socket = socket;
    const ended = () => new ConnectionError('CONNECTION_LOST', 'Postgres ended the connection');
    socket.on('error', (error) => this.lose(error));
    socket.on('end', () => socket.destroy(ended()));
    socket.on('close', () => this.lose(ended()));
    return socket;
  }

  /** Fails all pending work and cuts the connection. Even a silent Postgres notices the cut. */
  lose(error: Error): void {
    if (this.lost !== null) return;
    this.lost = error;
    for (const reject of this.#holders) reject(error);
    this.#socket?.destroy(error);
    this.#onLost(this, error);
  }

  /** Lowers the limit on silence to `silence_ms`. Does nothing if there is no limit. */
  hasten(silence_ms: number): void {
    if (Number.isFinite(this.silence_ms)) this.silence_ms = Math.min(this.silence_ms, silence_ms);
  }

  /** Closes an idle connection in the way that Postgres expects. */
  async close(): Promise<void> {
    this.lost ??= new ConnectionError('CONNECTION_ENDED', 'the pool is closed');
    if (this.#socket !== undefined) await this.client.end({ timeout: 1 }).catch(() => undefined);
    this.#socket?.destroy();
  }

  /** Returns how many ms the connection has waited for an answer; 0 if no answer is due. */
  waited(at_ms: number): number {
    return this.#pending > 0 ? at_ms - this.#received_ms : 0;
  }

  /** Returns true if the connection has waited too long for an answer. */
  isSilent(at_ms: number): boolean {
    return this.waited(at_ms) > this.silence_ms;
  }

  /** Extends the limits after this process hung, because answers may be there but not yet read. */
  forgive(ms: number): void {
    this.#received_ms += ms;
    this.until_ms += ms;
  }

  #noteAnswer(): void {
    this.#received_ms = performance.now();
  }

  /** Resolves like `work`, but rejects as soon as the connection is lost. */
  orLost<T>(work: Promise<T>): Promise<T> {
    if (this.lost !== null) return Promise.reject(this.lost);
    return new Promise<T>((resolve, reject) => {
      this.#holders.add(reject);
      work
        .then(resolve, (error) => reject(this.lost ?? error))
        .finally(() => this.#holders.delete(reject));
    });
  }

  /** Like `orLost`, for work that needs an answer from Postgres. */
  async #answer<T>(answer: PromiseLike<T>): Promise<T> {
    if (this.#pending === 0) this.#noteAnswer();
    this.#pending += 1;
    try {
      const result = await this.orLost(Promise.resolve(answer));
      this.answered = true;
      return result;
    } catch (error) {
      // If Postgres did not send the error, postgres.js may have lost count of the answers.
      if (!isAnswer(error)) this.lose(error as Error);
      else {
        this.answered = true;
        if (error.code === '25006') this.#onReadOnly();
      }
      throw error;
    } finally {
      this.#pending -= 1;
      this.#noteAnswer();
    }
  }

  run: Run = (make) =>
    this.lost === null ? this.#answer(make(this.client)) : Promise.reject(this.lost);

  /**
   * Returns the rows of a COPY as bytes. Only losing the connection ends a COPY early. So if the
   * reader stops, or takes nothing for `idle_ms`, the connection is lost.
   */
  copyOut(text: string, idle_ms: number): Readable {
    let finished = false;
    const finish = (): void => {
      finished = true;
    };
    const out = Readable.from(this.#rows(text, idle_ms, finish), { objectMode: false });
    out.once('close', () => {
      if (!finished) this.lose(new ConnectionError('CONNECTION_LOST', 'a COPY was not read fully'));
    });
    return out;
  }

  async *#rows(text: string, idle_ms: number, finish: () => void): AsyncGenerator<Buffer> {
    const { silence_ms, until_ms } = this;
    this.silence_ms = Number.POSITIVE_INFINITY;
    const noteProgress = (): void => {
      this.until_ms = performance.now() + idle_ms;
    };
    noteProgress();
    let end = (): void => undefined;
    const read = new Promise<void>((resolve) => {
      end = resolve;
    });
    try {
      const query = this.client.unsafe(text);
      listenForErrors(query as never);
      const source: Readable = await this.#answer(query.readable() as never);
      this.orLost(read).catch((error: Error) => source.destroy(error));
      for await (const chunk of source) {
        noteProgress();
        yield chunk;
        noteProgress();
      }
      finish();
    } catch (error) {
      if (isAnswer(error)) finish();
      throw error;
    } finally {
      end();
      this.silence_ms = silence_ms;
      this.until_ms = until_ms;
      // The last rows may have paused the socket. An ended stream does not resume the socket.
      this.#socket?.resume();
    }
  }

  /** Sends the bytes to a `copy … from stdin`. */
  async copyIn(text: string, bytes: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void> {
    const sink: Writable = await this.#answer(this.client.unsafe(text).writable() as never);
    await this.#answer(pipeline(Readable.from(bytes), sink));
  }
}

export interface PoolOptions extends Pick<ConnectionOptions, 'url' | 'client'> {
  readonly most: number;
  /** The same as in `ConnectionOptions`. It is also the maximum wait for a free connection. */
  readonly silence_ms: number;
}

/** Asks a host for its state, on a connection of its own. */
const probe = async (host: Host, options: Pick<PoolOptions, 'url' | 'client'>) => {
  const connection = new Connection({
    ...options,
    silence_ms: connect_ms,
    findHost: async () => host,
    onLost: () => undefined,
    onReadOnly: () => undefined,
    pause: async () => undefined,
  });
  const late = setTimeout(() => {
    connection.lose(new ConnectionError('CONNECT_TIMEOUT', 'does not answer'));
  }, connect_ms);
  try {
    const text = `select pg_is_in_recovery() as standby,
      current_setting('transaction_read_only') = 'on' as read_only`;
    const [state] = await connection.run((client) => client.unsafe(text));
    return state as unknown as HostState;
  } finally {
    clearTimeout(late);
    void connection.close();
  }
};

const sweep_ms = 250;
/** Minimum time between two replacements of the connections to a read-only server. */
const replace_every_ms = 1_000;
/** If a sweep comes this late, the process itself hung. */
const standstill_ms = 1_000;
const ended = (): ConnectionError => new ConnectionError('CONNECTION_ENDED', 'the pool is closed');

interface Waiter {
  readonly until_ms: number;
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: Error) => void;
}

export class Pool {
  readonly #options: PoolOptions;
  readonly #hosts: HostFinder;
  readonly #all = new Set<Connection>();
  readonly #free: Connection[] = [];
  #waiting: Waiter[] = [];
  #failures = 0;
  #ended = false;
  #onIdle: (() => void) | undefined;
  readonly #silence_ms: number;
  readonly #sweeper: NodeJS.Timeout;
  #swept_ms = performance.now();
  /** Connections made before this are not used again. */
  #oldest_ms = Number.NEGATIVE_INFINITY;

  constructor({ url: given, ...rest }: PoolOptions) {
    const address = readAddress(given);
    const options = { ...rest, url: address.url };
    this.#options = options;
    this.#hosts = makeHostFinder(address, (host) => probe(host, options));
    this.#silence_ms = options.silence_ms;
    this.#sweeper = setInterval(() => this.#sweep(), sweep_ms);
    this.#sweeper.unref();
  }

  /** Frees the slot of a lost connection at once, even if its user has not noticed yet. */
  #lost(connection: Connection): void {
    if (!connection.answered) this.#failures += 1;
    this.#hosts.forget();
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
      url,
      client,
      silence_ms: this.#silence_ms,
      pause: this.#pause,
      findHost: () => this.#hosts.find(),
      onLost: (lost) => this.#lost(lost),
      onReadOnly: () => this.#replaceAll(),
    });
    this.#all.add(connection);
    return connection;
  }

  /** Looks for a host again, because this server refused a write as read-only. */
  #replaceAll(): void {
    const now_ms = performance.now();
    if (now_ms - this.#oldest_ms < replace_every_ms) return;
    this.#oldest_ms = now_ms;
    this.#hosts.forget();
    for (const connection of this.#free.splice(0)) this.#retire(connection);
  }

  #retire(connection: Connection): void {
    connection.lose(new ConnectionError('CONNECTION_ENDED', 'the server is read-only'));
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
    if (connection.made_ms < this.#oldest_ms) {
      this.#retire(connection);
      return;
    }
    connection.silence_ms = this.#silence_ms;
    connection.until_ms = Number.POSITIVE_INFINITY;
    const next = this.#waiting.shift();
    if (next !== undefined) next.resolve(connection);
    else this.#free.push(connection);
    this.#noteIdle();
  }

  /** If no connection is in use, the pool does not keep the process alive. */
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
    // Connections with a longer limit are on the same broken path, so they get the shorter limit.
    if (silent.length > 0) for (const one of this.#all) one.hasten(this.#silence_ms);
    for (const connection of lost) {
      const message = 'Postgres or its caller took too long';
      connection.lose(new ConnectionError('CONNECTION_SILENT', message));
    }
    while ((this.#waiting[0]?.until_ms ?? at_ms) < at_ms) {
      const message = 'no connection to Postgres became free in time';
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
