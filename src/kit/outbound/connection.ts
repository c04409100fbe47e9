import { constants } from 'node:crypto';
import http from 'node:http';
import net from 'node:net';
import type { Duplex } from 'node:stream';
import tls from 'node:tls';
import { canonicalAddress } from './addresses.js';
import { findStatus } from './status-line.js';
import type { Target } from './target.js';

/**
 * Sends HTTP/1.1 calls over connections to vetted addresses and keeps the connections for later
 * calls. It never looks up a name. A socket is opened to the vetted address. A request is written
 * only after the handshake and a check of the peer's address, so no byte of it goes anywhere else.
 * Connections are reused by scheme, address, port and certificate name. So a connection serves only
 * calls that were vetted for its own address.
 */

/**
 * Everything that can go wrong with a call. The list is fixed, so that no error reveals more than
 * it should.
 */
export const call_errors = {
  invalid_url: 'The URL cannot be called.',
  https_required: 'The URL must begin with https://.',
  target_refused: 'The URL names a host or port that may not be called.',
  address_refused: 'The host resolves to an address that may not be called.',
  name_not_found: 'The host name does not resolve.',
  lookup_failed: 'The name servers of the host did not answer.',
  lookup_timeout: 'The lookup of the host name took too long.',
  connect_failed: 'The connection was refused.',
  connect_timeout: 'The connection took too long.',
  tls_failed: 'The TLS handshake failed. Check the certificate.',
  timeout: 'The answer took too long.',
  connection_lost: 'The connection was lost before the answer was complete.',
  answer_invalid: 'The answer is not valid HTTP.',
} as const;

export type CallErrorCode = keyof typeof call_errors;

export interface ClientLimits {
  /** Time limit for lookup, connect, handshake, headers and body together. */
  readonly wall_ms: number;
  readonly connect_ms: number;
  readonly lookup_ms: number;
  /** If a response has more bytes than this, the connection is destroyed. */
  readonly answer_bytes: number;
  /** How many bytes of a response are returned to the caller. */
  readonly kept_bytes: number;
  readonly keep_ms: number;
}

export const client_limits: ClientLimits = {
  wall_ms: 10_000,
  connect_ms: 3_000,
  lookup_ms: 2_000,
  answer_bytes: 4_096,
  kept_bytes: 1_024,
  keep_ms: 15_000,
};

export interface Call {
  readonly target: Target;
  /** Defaults to POST. */
  readonly method?: 'POST' | 'HEAD' | 'GET';
  readonly headers: Readonly<Record<string, string>>;
  /** Only a POST may have a body. */
  readonly body?: Uint8Array;
  /** A shorter time limit for this call. */
  readonly wall_ms?: number;
}

export interface Answered {
  /** Null if no status line came. `error` says whether the rest of the response is wrong. */
  readonly status: number | null;
  /** Null if the response, or as much of it as this client reads, came in time. */
  readonly error: CallErrorCode | null;
  /** The start of the response as text. It is only for people to read. */
  readonly answer: string;
  /** The Retry-After header as sent; '' when absent. */
  readonly retry_after: string;
  /** The Location header as sent, for callers that follow it with another call; '' when absent. */
  readonly location: string;
  /** The Cache-Control header as sent; '' when absent. */
  readonly cache_control: string;
}

export const failedAs = (error: CallErrorCode): Answered => ({
  status: null,
  error,
  answer: '',
  retry_after: '',
  location: '',
  cache_control: '',
});

/** Maximum number of destinations with idle connections. */
const max_idle = 256;
const max_header_bytes = 8_192;
/** Maximum number of 1xx responses before the real one. */
const max_informational = 20;

interface Dial {
  readonly target: Target;
  readonly address: string;
  readonly connect_ms: number;
  /** Deadline of the call, on the clock of `performance.now()`. */
  readonly ends_ms: number;
}

/** Returns a connected socket whose peer has the vetted address, or an error code. */
const dial = (
  { target, address: host, connect_ms, ends_ms }: Dial,
  secureContext: tls.SecureContext,
): Promise<net.Socket | CallErrorCode> =>
  new Promise((resolve) => {
    const { is_plain, is_literal, port, name } = target;
    const servername = is_literal ? '' : name;
    const safe = { secureContext, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] } as const;
    const socket = is_plain
      ? net.connect({ host, port })
      : tls.connect({ host, port, servername, ...safe });
    let is_connected = false;
    const finish = (problem: CallErrorCode | null): void => {
      clearTimeout(connect_timer);
      clearTimeout(wall_timer);
      socket.off('close', fail);
      if (problem !== null) socket.destroy();
      resolve(problem ?? socket);
    };
    const fail = (): void => finish(is_connected ? 'tls_failed' : 'connect_failed');
    const connect_timer = setTimeout(() => finish('connect_timeout'), connect_ms);
    const wall_timer = setTimeout(() => finish('timeout'), ends_ms - performance.now());
    // If a peer breaks the connection at the end of the handshake, Node emits an error but no
    // `close` event.
    socket.on('error', () => socket.destroy()).setNoDelay(true);
    socket.once('close', fail);
    socket.once('connect', () => {
      is_connected = true;
      clearTimeout(connect_timer);
    });
    socket.once(is_plain ? 'connect' : 'secureConnect', () => {
      const is_same = canonicalAddress(socket.remoteAddress ?? '') === canonicalAddress(host);
      finish(is_same ? null : 'address_refused');
    });
  });

/** Carries the error code of a connection through the request that wanted the connection. */
class DialFailed extends Error {
  constructor(readonly problem: CallErrorCode) {
    super(problem);
  }
}

type Opened = (error: Error | null, socket: Duplex) => void;
const no_socket = undefined as never;

/** Returns the key by which connections to a destination are reused. */
const nameOf = ({ target, address }: Dial): string =>
  `${target.is_plain} ${address} ${target.port} ${target.is_literal ? '' : target.name}`;

/** The options that a request gives the agent. One member, because Node often copies them. */
interface ByWay {
  readonly way: Dial;
}

/** Keeps connections by destination. Finds one for a request, and never chooses an address. */
class VettedAgent extends http.Agent {
  readonly #secureContext: tls.SecureContext;

  constructor(secureContext: tls.SecureContext, keep_ms: number) {
    super({ keepAlive: true, timeout: keep_ms });
    this.#secureContext = secureContext;
  }

  override getName(options?: object): string {
    return nameOf((options as ByWay).way);
  }

  override createConnection(options: object, done?: Opened): undefined {
    void dial((options as ByWay).way, this.#secureContext).then((opened) => {
      if (typeof opened === 'string') done?.(new DialFailed(opened), no_socket);
      else done?.(null, opened);
    });
  }

  /** Returning false closes the connection. */
  override keepSocketAlive(socket: Duplex): unknown {
    const is_full = Object.keys(this.freeSockets).length >= max_idle;
    return is_full ? false : super.keepSocketAlive(socket);
  }
}

const errorOf = (error: NodeJS.ErrnoException): CallErrorCode => {
  if (error instanceof DialFailed) return error.problem;
  return error.code?.startsWith('HPE_') === true ? 'answer_invalid' : 'connection_lost';
};

/** Decodes text that any store accepts: broken UTF-8 and NUL are replaced. */
const toText = (chunks: readonly Buffer[]): string =>
  Buffer.concat(chunks).toString('utf8').replaceAll('\0', '\uFFFD');

/** Returns the header fields in the order in which they are sent. */
const fieldsOf = ({ target, headers, body }: Call): string[] => {
  const fields = ['Host', target.host];
  for (const [name, value] of Object.entries(headers)) fields.push(name, value);
  if (body !== undefined) fields.push('Content-Length', String(body.length));
  return fields;
};

/** `is_stale`: a reused connection broke before any byte of the response; a new one may work. */
interface Sent {
  readonly answered: Answered;
  readonly is_stale: boolean;
}

/**
 * Sends a request and reads the response within the limits. If the response is broken, its status
 * is read from the status line. 1xx responses are skipped.
 */
const send = (
  call: Call,
  way: Dial,
  { agent, limits }: { readonly agent: VettedAgent; readonly limits: ClientLimits },
): Promise<Sent> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = [];
    /** The bytes that arrived before Node's parser reported a response. */
    const head: Buffer[] = [];
    let [size, informational] = [0, 0];
    let received: http.IncomingMessage | undefined;
    const { method = 'POST', body, target } = call;
    const [headers, maxHeaderSize] = [fieldsOf(call), max_header_bytes];
    const options = { way, agent, method, path: target.path, headers, maxHeaderSize };
    const request = http.request(options);
    const settle = (error: CallErrorCode | null): void => {
      clearTimeout(wall);
      request.socket?.off('data', keepHead);
      const is_stale = request.reusedSocket && head.length === 0 && error === 'connection_lost';
      const { statusCode, headers = {} } = received ?? {};
      const answered = {
        status: statusCode ?? findStatus(Buffer.concat(head), max_informational),
        error,
        answer: toText(chunks),
        retry_after: headers['retry-after'] ?? '',
        location: headers.location ?? '',
        cache_control: headers['cache-control'] ?? '',
      };
      resolve({ answered, is_stale });
    };
    const end = (error: CallErrorCode | null): void => {
      settle(error);
      request.destroy();
    };
    const fail = (error: Error): void => {
      // If the response is complete, only later bytes can be wrong, and they do not matter.
      if (received?.complete !== true) end(errorOf(error));
    };
    const wall = setTimeout(() => end('timeout'), way.ends_ms - performance.now());
    request.on('error', fail);
    const keepHead = (chunk: Buffer): void => {
      if (received === undefined) head.push(chunk);
    };
    // Runs before Node's own listener, which may end the request because of bytes after the status
    // line.
    request.on('socket', (socket) => socket.prependListener('data', keepHead));
    request.on('upgrade', () => end('answer_invalid'));
    request.on('information', () => {
      informational += 1;
      if (informational > max_informational) end('answer_invalid');
    });
    request.on('response', (response) => {
      received = response;
      response.on('error', fail);
      response.on('end', () => settle(null));
      response.on('data', (chunk: Buffer) => {
        // Copied, so that the rest of the chunk can be freed.
        if (size < limits.kept_bytes) {
          chunks.push(Buffer.from(chunk.subarray(0, limits.kept_bytes - size)));
        }
        size += chunk.length;
        if (size > limits.answer_bytes) end(null);
      });
    });
    request.end(body);
  });

export const makeConnections = (limits: ClientLimits, ca_pem: string | undefined) => {
  const secureContext = tls.createSecureContext({
    // Otherwise a peer could ask for new handshakes for as long as the call lasts.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(ca_pem === undefined ? {} : { ca: [...tls.rootCertificates, ca_pem] }),
  });
  const agent = new VettedAgent(secureContext, limits.keep_ms);
  return {
    /** Makes one call to one vetted address, over a reused or new connection. */
    async exchange(call: Call, given: Omit<Dial, 'target'>): Promise<Answered> {
      const way = { ...given, target: call.target };
      for (;;) {
        const { answered, is_stale } = await send(call, way, { agent, limits });
        if (!is_stale || performance.now() >= way.ends_ms) return answered;
      }
    },
    destroy(): void {
      agent.destroy();
    },
  };
};
