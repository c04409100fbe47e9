import { constants } from 'node:crypto';
import net from 'node:net';
import tls from 'node:tls';
import { canonicalAddress } from './addresses.js';
import type { AnswerReader } from './answer-reader.js';
import type { CallErrorCode } from './call-errors.js';

/**
 * Connections to vetted addresses, kept for the next call. No name is looked up here, and a kept
 * connection is found again by scheme, address, port and certificate name: it serves only a target
 * that was vetted to this same address again.
 *
 * A connection is handed out only after the handshake and after the peer's address was compared
 * with the vetted one, so that no byte of a request goes anywhere else.
 */

export interface Dial {
  readonly is_plain: boolean;
  readonly address: string;
  readonly port: number;
  /** For the certificate; '' for an IP literal. */
  readonly name: string;
  readonly connect_ms: number;
  /** Until the wall clock of the call: longest that connect and handshake may take together. */
  readonly left_ms: number;
}

export interface ConnectionsOptions {
  /** Further certificate authorities, PEM, beside those that Node brings. */
  readonly ca_pem: string | undefined;
  /** How long an unused connection is kept. */
  readonly keep_ms: number;
}

export interface Connections {
  /** A kept connection, if there is one. */
  take(dial: Dial): Connection | null;
  /** A new one, or what went wrong. */
  connect(dial: Dial): Promise<Connection | CallErrorCode>;
  destroy(): void;
}

/** Null when a whole answer, or as much of it as is read, came. */
type Settle = (error: CallErrorCode | null) => void;

/** One call at a time. Its listeners stay for its life, so that a call adds none. */
export class Connection {
  is_used = false;
  /** On this process's clock, while it is kept. */
  idle_since_ms = 0;
  readonly key: string;
  readonly #socket: net.Socket;
  readonly #release: (connection: Connection) => void;
  readonly #forget: (connection: Connection) => void;
  #reader: AnswerReader | null = null;
  #settle: Settle | null = null;

  constructor(socket: net.Socket, key: string, pool: Pick<Pool, 'release' | 'forget'>) {
    this.key = key;
    this.#socket = socket;
    this.#release = pool.release;
    this.#forget = pool.forget;
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('end', () => this.#onEnd());
    socket.on('error', () => this.#onClose());
    socket.on('close', () => this.#onClose());
  }

  /** Sends a request and reads its answer; `ended` is called once. */
  talk(request: Uint8Array, reader: AnswerReader, ended: Settle): void {
    this.#reader = reader;
    this.#settle = ended;
    // It may have broken after it was handed out, and says so once.
    if (this.#socket.destroyed) this.#finish('connection_lost', false);
    else this.#socket.write(request);
  }

  /** Ends the call under way. */
  abort(error: CallErrorCode): void {
    this.#finish(error, false);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #onData(chunk: Buffer): void {
    const reader = this.#reader;
    // Nothing was asked.
    if (reader === null) {
      this.destroy();
      return;
    }
    const fed = reader.feed(chunk);
    if (fed === 'more') return;
    const may_reuse = fed === 'done' && reader.may_reuse && this.#socket.writableLength === 0;
    this.#finish(fed === 'invalid' ? 'answer_invalid' : null, may_reuse);
  }

  #onEnd(): void {
    this.#finish(this.#reader?.end() === true ? null : 'connection_lost', false);
  }

  #onClose(): void {
    this.#finish('connection_lost', false);
    this.#forget(this);
  }

  #finish(error: CallErrorCode | null, may_reuse: boolean): void {
    const settle = this.#settle;
    this.#reader = null;
    this.#settle = null;
    if (may_reuse) this.#release(this);
    else this.destroy();
    settle?.(error);
  }
}

interface Pool {
  readonly release: (connection: Connection) => void;
  readonly forget: (connection: Connection) => void;
}

/** `ready` is the event after which the connection may be used. */
const watchConnect = (
  socket: net.Socket,
  { is_plain, address, connect_ms, left_ms }: Dial,
): Promise<CallErrorCode | null> =>
  new Promise((resolve) => {
    const ready = is_plain ? 'connect' : 'secureConnect';
    let is_connected = false;
    const finish = (problem: CallErrorCode | null): void => {
      clearTimeout(connect_timer);
      clearTimeout(wall_timer);
      socket.off('error', fail).off('close', fail).off(ready, onReady);
      if (problem !== null) socket.destroy();
      resolve(problem);
    };
    const fail = (): void => finish(is_connected ? 'tls_failed' : 'connect_failed');
    const onReady = (): void => {
      const is_same = canonicalAddress(socket.remoteAddress ?? '') === canonicalAddress(address);
      finish(is_same ? null : 'address_refused');
    };
    const connect_timer = setTimeout(() => finish('connect_timeout'), connect_ms);
    const wall_timer = setTimeout(() => finish('timeout'), left_ms);
    socket.once('connect', () => {
      is_connected = true;
      clearTimeout(connect_timer);
    });
    socket.once('error', fail).once('close', fail).once(ready, onReady);
  });

const most_idle = 256;

const keyOf = ({ is_plain, address, port, name }: Dial): string =>
  `${is_plain ? 'http' : 'https'} ${address} ${port} ${name}`;

/** Kept connections by what they lead to; those kept too long end by a timer. */
const makeIdle = (keep_ms: number) => {
  const by_key = new Map<string, Connection[]>();
  let count = 0;
  let timer: NodeJS.Timeout | null = null;

  const remove = (connection: Connection): boolean => {
    const kept = by_key.get(connection.key);
    const at = kept?.indexOf(connection) ?? -1;
    if (kept === undefined || at < 0) return false;
    kept.splice(at, 1);
    if (kept.length === 0) by_key.delete(connection.key);
    count -= 1;
    return true;
  };
  const sweep = (): void => {
    timer = null;
    const oldest_ms = performance.now() - keep_ms;
    for (const one of [...by_key.values()].flat()) {
      if (one.idle_since_ms <= oldest_ms && remove(one)) one.destroy();
    }
    plan();
  };
  const plan = (): void => {
    if (count > 0) timer ??= setTimeout(sweep, keep_ms / 2).unref();
  };
  return {
    remove,
    add(connection: Connection): void {
      if (count >= most_idle) {
        connection.destroy();
        return;
      }
      connection.idle_since_ms = performance.now();
      const kept = by_key.get(connection.key);
      if (kept === undefined) by_key.set(connection.key, [connection]);
      else kept.push(connection);
      count += 1;
      plan();
    },
    /** The one that was used last. */
    take(key: string): Connection | null {
      const connection = by_key.get(key)?.at(-1);
      if (connection === undefined) return null;
      remove(connection);
      return connection;
    },
    clear(): void {
      if (timer !== null) clearTimeout(timer);
      for (const one of [...by_key.values()].flat()) if (remove(one)) one.destroy();
    },
  };
};

export const makeConnections = (options: ConnectionsOptions): Connections => {
  const { ca_pem, keep_ms } = options;
  const secureContext = tls.createSecureContext({
    // A peer could make it handshake for as long as the call lasts.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(ca_pem === undefined ? {} : { ca: [...tls.rootCertificates, ca_pem] }),
  });
  const idle = makeIdle(keep_ms);
  let is_over = false;
  const pool: Pool = {
    release: (connection) => {
      if (is_over) connection.destroy();
      else idle.add(connection);
    },
    forget: (connection) => void idle.remove(connection),
  };
  const open = ({ is_plain, address: host, port, name: servername }: Dial): net.Socket => {
    if (is_plain) return net.connect({ host, port });
    const safe = { secureContext, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] } as const;
    return tls.connect({ host, port, servername, ...safe });
  };
  return {
    take(dial) {
      const connection = idle.take(keyOf(dial));
      if (connection !== null) connection.is_used = true;
      return connection;
    },
    async connect(dial) {
      const socket = open(dial);
      // A peer can break a connection in the same moment in which it completes the handshake.
      socket.on('error', () => undefined).setNoDelay(true);
      const problem = await watchConnect(socket, dial);
      return problem ?? new Connection(socket, keyOf(dial), pool);
    },
    destroy() {
      is_over = true;
      idle.clear();
    },
  };
};
