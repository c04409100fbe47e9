import { once } from 'node:events';
import net from 'node:net';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import tls from 'node:tls';
import postgres from 'postgres';

/**
 * A pool of single connections; the one that was used last is used next. Whatever can wait has an
 * end: an answer, a free connection, a transaction. A connection that passed it is thrown away, and
 * with it the idle ones, which most often lie on the same broken way.
 */

export type Client = postgres.Sql<{ bigint: number }>;

/** Makes a statement of a client. */
export type Make = (
  client: postgres.ISql<{ bigint: number }>,
) => postgres.PendingQuery<postgres.Row[]>;
export type Run = (make: Make) => Promise<postgres.RowList<postgres.Row[]>>;

class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  constructor(
    readonly code: 'CONNECTION_LOST' | 'CONNECTION_SILENT' | 'CONNECT_TIMEOUT' | 'CONNECTION_ENDED',
    message: string,
  ) {
    super(message);
  }
}

const connect_ms = 3_000;
const keep_alive_ms = 5_000;

interface Address {
  readonly target: net.NetConnectOpts;
  readonly host: string;
  readonly tls: 'off' | 'prefer' | 'require' | 'verify';
}

const tls_modes: Readonly<Record<string, Address['tls']>> = {
  ...{ allow: 'prefer', prefer: 'prefer', require: 'require', true: 'require' },
  ...{ 'verify-ca': 'verify', 'verify-full': 'verify' },
};

/** Also the form of libpq for a unix socket, `?host=/folder`. `url` is what is left of it. */
export const readAddress = (text: string): { readonly url: string; readonly address: Address } => {
  const url = new URL(text);
  const folder = url.searchParams.get('host');
  const mode = url.searchParams.get('sslmode') ?? url.searchParams.get('ssl') ?? '';
  for (const name of ['host', 'sslmode', 'ssl']) url.searchParams.delete(name);
  const port = Number(url.port || 5432);
  if (folder?.startsWith('/')) {
    const target = { path: `${folder}/.s.PGSQL.${port}` };
    return { url: url.href, address: { target, host: 'localhost', tls: 'off' } };
  }
  const host = (url.hostname || 'localhost').replace(/^\[|\]$/g, '');
  const address = { target: { host, port }, host, tls: tls_modes[mode] ?? 'off' } as const;
  return { url: url.href, address };
};

const tls_request = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/** Asks the server for TLS; exactly one byte may come before it. */
const secure = async (plain: net.Socket, address: Address, signal: AbortSignal) => {
  plain.write(tls_request);
  const [answer] = (await once(plain, 'data', { signal })) as [Buffer];
  if (answer.length !== 1) throw new Error('Postgres sent more than an answer about TLS');
  if (answer[0] !== 83) {
    if (address.tls === 'prefer') return plain;
    throw new Error('Postgres does not speak TLS');
  }
  const socket = tls.connect({
    socket: plain,
    ...(net.isIP(address.host) === 0 ? { servername: address.host } : {}),
    rejectUnauthorized: address.tls === 'verify',
  });
  await once(socket, 'secureConnect', { signal });
  return socket;
};

const describeAbort = (error: unknown): unknown =>
  (error as Error).name === 'AbortError'
    ? new ConnectionError('CONNECT_TIMEOUT', 'Postgres did not take the connection in time')
    : error;

const openSocket = async (address: Address): Promise<net.Socket> => {
  const socket = net.connect(address.target);
  // An error after the first one must not end the process.
  socket.on('error', () => undefined);
  const signal = AbortSignal.timeout(connect_ms);
  try {
    await once(socket, 'connect', { signal });
    socket.setNoDelay(true);
    socket.setKeepAlive(true, keep_alive_ms);
    return address.tls === 'off' ? socket : await secure(socket, address, signal);
  } catch (error) {
    socket.destroy();
    throw describeAbort(error);
  }
};

interface ConnectionOptions {
  readonly url: string;
  readonly client: postgres.Options<{ bigint: postgres.PostgresType<number> }>;
  /** Told once, when the connection is lost or could not be made. */
  readonly onLost: (connection: Connection, error: Error) => void;
  /** Waits before it connects, where the last attempts failed. */
  readonly pause: () => Promise<void>;
  /** Longest that Postgres may stay silent while an answer is due; Infinity for none. */
  readonly silence_ms: number;
}

/** Makes names and rows of values, which need no connection; it never connects. */
export const helper = postgres({ host: 'none', max: 1 }) as unknown as Client;

/** Whether Postgres said it and listens on; after a fatal one it ends the connection. */
const isAnswer = (error: unknown): boolean =>
  error instanceof postgres.PostgresError && error.severity === 'ERROR';

/**
 * An error among the first rows comes together with the stream of a COPY, before anybody who awaits
 * it can listen, and would end the process: the package has no other place to listen from.
 */
const listenForErrors = (query: { resolve(stream: Readable): void }): void => {
  const { resolve } = query;
  query.resolve = (stream) => {
    if (stream instanceof Readable) stream.on('error', () => undefined);
    resolve(stream);
  };
};

/**
 * One connection: a client of the published package with `max: 1` on a socket of our own. Once the
 * connection is lost every statement on it fails, and it is never made again: the package would
 * reconnect by itself and run the rest of a transaction outside of it.
 */
export class Connection {
  readonly client: Client;
  silence_ms: number;
  /** Why it cannot be used any more. */
  lost: Error | null = null;
  /** Whether Postgres has ever answered on it. */
  answered = false;
  /** When a transaction on it has to be over. */
  until_ms = Number.POSITIVE_INFINITY;
  #socket: net.Socket | undefined;
  #received_ms = 0;
  /** Answers that are waited for. */
  #pending = 0;
  readonly #holders = new Set<(error: Error) => void>();
  readonly #onLost: ConnectionOptions['onLost'];

  constructor({ url, client, onLost, pause, silence_ms }: ConnectionOptions) {
    this.#onLost = onLost;
    this.silence_ms = silence_ms;
    const read = readAddress(url);
    let made = false;
    const socket = async (): Promise<net.Socket> => {
      if (made) throw this.lost ?? new ConnectionError('CONNECTION_LOST', 'made once only');
      made = true;
      try {
        await pause();
        return this.#watch(await openSocket(read.address));
      } catch (error) {
        this.lose(error as Error);
        throw error;
      }
    };
    const one = { max: 1, idle_timeout: 0, max_lifetime: null, connect_timeout: connect_ms / 1000 };
    const options = { ...client, ...one, fetch_types: false, ssl: false as const };
    this.client = postgres(read.url, { ...options, socket } as never) as unknown as Client;
  }

  /** Every end of a connection is an error to the package: after a plain one it trips over null. */
  #watch(socket: net.Socket): net.Socket {
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

  /** Fails what is under way and cuts the connection; a Postgres that was silent learns of it. */
  lose(error: Error): void {
    if (this.lost !== null) return;
    this.lost = error;
    for (const reject of this.#holders) reject(error);
    this.#socket?.destroy(error);
    this.#onLost(this, error);
  }

  /** Says goodbye to a Postgres that has nothing to do here. */
  async close(): Promise<void> {
    this.lost ??= new ConnectionError('CONNECTION_ENDED', 'the pool is closed');
    if (this.#socket !== undefined) await this.client.end({ timeout: 1 }).catch(() => undefined);
    this.#socket?.destroy();
  }

  /** How long it has waited for an answer; 0 where none is due. */
  waited(at_ms: number): number {
    return this.#pending > 0 ? at_ms - this.#received_ms : 0;
  }

  /** Whether it has waited too long for an answer. */
  isSilent(at_ms: number): boolean {
    return this.waited(at_ms) > this.silence_ms;
  }

  /** The process stood still: what came meanwhile has not been read yet. */
  forgive(ms: number): void {
    this.#received_ms += ms;
    this.until_ms += ms;
  }

  #noteAnswer(): void {
    this.#received_ms = performance.now();
  }

  /** Rejects when the connection is lost before `work` is done, whatever that waits for. */
  orLost<T>(work: Promise<T>): Promise<T> {
    if (this.lost !== null) return Promise.reject(this.lost);
    return new Promise<T>((resolve, reject) => {
      this.#holders.add(reject);
      work
        .then(resolve, (error) => reject(this.lost ?? error))
        .finally(() => this.#holders.delete(reject));
    });
  }

  /** The same for what Postgres has to answer. */
  async #answer<T>(answer: PromiseLike<T>): Promise<T> {
    if (this.#pending === 0) this.#noteAnswer();
    this.#pending += 1;
    try {
      const result = await this.orLost(Promise.resolve(answer));
      this.answered = true;
      return result;
    } catch (error) {
      // An error that Postgres did not send may have cost the package the count of the answers.
      if (isAnswer(error)) this.answered = true;
      else this.lose(error as Error);
      throw error;
    } finally {
      this.#pending -= 1;
      this.#noteAnswer();
    }
  }

  run: Run = (make) =>
    this.lost === null ? this.#answer(make(this.client)) : Promise.reject(this.lost);

  /**
   * The rows of a COPY as bytes. A reader that stops, and one that takes nothing for `idle_ms`,
   * cost the connection: nothing else ends a COPY.
   */
  copyOut(text: string, idle_ms: number): Readable {
    let finished = false;
    const finish = (): void => {
      finished = true;
    };
    const out = Readable.from(this.#rows(text, idle_ms, finish), { objectMode: false });
    out.once('close', () => {
      if (!finished) this.lose(new ConnectionError('CONNECTION_LOST', 'a COPY was not read whole'));
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
      // The last rows may have paused it, and a stream that has ended asks for no more.
      this.#socket?.resume();
    }
  }

  /** Gives the bytes to a `copy … from stdin`. */
  async copyIn(text: string, bytes: AsyncIterable<Buffer> | Iterable<Buffer>): Promise<void> {
    const sink: Writable = await this.#answer(this.client.unsafe(text).writable() as never);
    await this.#answer(pipeline(Readable.from(bytes), sink));
  }
}

export interface PoolOptions extends Pick<ConnectionOptions, 'url' | 'client'> {
  readonly most: number;
  /** As of `ConnectionOptions`, and longest that a free connection is waited for. */
  readonly silence_ms: number;
}

const sweep_ms = 100;
/** A sweep that comes so late says that the process stood still. */
const standstill_ms = 1_000;
const ended = (): ConnectionError => new ConnectionError('CONNECTION_ENDED', 'the pool is closed');

interface Waiter {
  readonly until_ms: number;
  readonly resolve: (connection: Connection) => void;
  readonly reject: (error: Error) => void;
}

export class Pool {
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
    this.#silence_ms = options.silence_ms;
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
      const message = 'Postgres or its caller took too long';
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
