import { constants } from 'node:crypto';
import net from 'node:net';
import tls from 'node:tls';
import { Client, type Dispatcher } from 'undici';
import { canonicalAddress } from './addresses.js';
import type { Target } from './target.js';

/**
 * Connections to vetted addresses, one call of HTTP/1.1 at a time, kept for the next one. No name
 * is looked up here: a socket is opened to the address that was vetted, and handed to undici only
 * after the handshake and after the peer's address was compared, so that no byte of a request goes
 * anywhere else. A kept connection is found again by scheme, address, port and certificate name: it
 * serves only a target that was vetted to this same address again.
 */

/**
 * Everything that can be wrong with a call: a fixed list, so that no error tells more than it
 * should.
 */
export const call_errors = {
  invalid_url: 'The URL is not one that can be called.',
  https_required: 'The URL must begin with https://.',
  target_refused: 'The URL names a host or port that may not be called.',
  address_refused: 'The host resolves to an address that may not be called.',
  name_not_found: 'The host name does not resolve.',
  lookup_failed: 'The name servers of the host did not give an answer.',
  lookup_timeout: 'The lookup of the host name took too long.',
  connect_failed: 'The connection was refused.',
  connect_timeout: 'The connection took too long.',
  tls_failed: 'The TLS handshake failed; check the certificate.',
  timeout: 'The answer took too long.',
  connection_lost: 'The connection was lost before the answer was complete.',
  answer_invalid: 'The answer is not valid HTTP.',
} as const;

export type CallErrorCode = keyof typeof call_errors;

export interface ClientLimits {
  /** Over lookup, connect, handshake, headers and body. */
  readonly wall_ms: number;
  readonly connect_ms: number;
  readonly lookup_ms: number;
  /** How much of an answer is read before the connection is destroyed. */
  readonly answer_bytes: number;
  /** How much of that is kept. */
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
  /** POST when absent. */
  readonly method?: 'POST' | 'HEAD' | 'GET';
  readonly headers: Readonly<Record<string, string>>;
  /** Of a POST. */
  readonly body?: Uint8Array;
  /** A shorter wall clock for this call. */
  readonly wall_ms?: number;
}

export interface Answered {
  /** Null when no answer came. */
  readonly status: number | null;
  /** Null when a whole answer, or as much of it as is read, came in time. */
  readonly error: CallErrorCode | null;
  /** The beginning of the answer as text; for people only. */
  readonly answer: string;
  /** The Retry-After header as sent; '' when absent. */
  readonly retry_after: string;
  /** The Location header as sent, for callers that follow it by another call; '' when absent. */
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

const most_idle = 256;
const most_header_bytes = 8_192;

interface Dial {
  readonly target: Target;
  readonly address: string;
  readonly connect_ms: number;
  /** The wall clock of the call, on `performance.now()`. */
  readonly ends_ms: number;
}

/** A connected socket whose peer is the one that was vetted, or what went wrong. */
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
    // A peer that breaks the connection with the end of the handshake makes an error without a
    // close.
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

const invalid = /^(HTTPParser|HeadersOverflow|ResponseContentLengthMismatch)Error$/;

const errorOf = ({ name, message }: Error): CallErrorCode =>
  invalid.test(name) || /^bad (response|upgrade)$/.test(message)
    ? 'answer_invalid'
    : 'connection_lost';

/** Text that any store takes: broken UTF-8 and NUL are replaced. */
const toText = (chunks: readonly Buffer[]): string =>
  Buffer.concat(chunks).toString('utf8').replaceAll('\0', '\uFFFD');

/** Sends a request and reads its answer as far as the limits say. Never rejects. */
const send = (
  client: Client,
  { target, method = 'POST', headers, body }: Call,
  { answer_bytes, kept_bytes, ends_ms }: ClientLimits & { readonly ends_ms: number },
): Promise<Answered> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let [size, status] = [0, null as number | null];
    let [retry_after, location, cache_control] = ['', '', ''];
    const settle = (error: CallErrorCode | null): void => {
      clearTimeout(wall);
      resolve({ status, error, answer: toText(chunks), retry_after, location, cache_control });
    };
    const end = (error: CallErrorCode | null): void => {
      settle(error);
      drop(client);
    };
    const wall = setTimeout(() => end('timeout'), ends_ms - performance.now());
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: () => undefined,
      onRequestUpgrade: () => end('answer_invalid'),
      onResponseStart(_, code, fields) {
        if (code < 200) return;
        status = code;
        retry_after = String(fields['retry-after'] ?? '');
        location = String(fields['location'] ?? '');
        cache_control = String(fields['cache-control'] ?? '');
      },
      onResponseData(_, chunk) {
        // Copied, so that no more than this is kept of what came.
        if (size < kept_bytes) chunks.push(Buffer.from(chunk.subarray(0, kept_bytes - size)));
        size += chunk.length;
        if (size > answer_bytes) end(null);
      },
      onResponseEnd: () => settle(null),
      onResponseError: (_, error) => end(errorOf(error)),
    };
    const sent = { path: target.path, method, headers, ...(body === undefined ? {} : { body }) };
    client.dispatch({ ...sent, body: body ?? null }, handler);
  });

/** undici on a connection of ours; it makes none by itself. */
const makeClient = ({ is_plain, host }: Target, socket: net.Socket, keep_ms: number): Client => {
  let is_used = false;
  return new Client(`${is_plain ? 'http' : 'https'}://${host}`, {
    connect: (_, done) => {
      const is_first = !is_used;
      is_used = true;
      // It is not ready for an answer in the same turn.
      queueMicrotask(() => {
        if (is_first && !socket.destroyed) done(null, socket);
        else done(new Error('the connection is over'), null);
      });
    },
    maxHeaderSize: most_header_bytes,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: keep_ms,
    keepAliveMaxTimeout: keep_ms,
  });
};

const drop = (client: Client): void => void client.destroy().catch(() => undefined);

export const makeConnections = (limits: ClientLimits, ca_pem: string | undefined) => {
  const secureContext = tls.createSecureContext({
    // A peer could make it handshake for as long as the call lasts.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(ca_pem === undefined ? {} : { ca: [...tls.rootCertificates, ca_pem] }),
  });
  /** Idle connections with what they lead to; those used last are at the end. */
  const idle = new Map<Client, string>();
  let is_over = false;

  const take = (key: string): Client | undefined => {
    const client = [...idle].findLast(([, leads_to]) => leads_to === key)?.[0];
    if (client !== undefined) idle.delete(client);
    return client;
  };
  const keep = (key: string, client: Client): void => {
    if (is_over || idle.size >= most_idle) drop(client);
    if (!client.destroyed) idle.set(client, key);
  };
  const open = async (way: Dial): Promise<Client | CallErrorCode> => {
    const socket = await dial(way, secureContext);
    if (typeof socket === 'string') return socket;
    const client = makeClient(way.target, socket, limits.keep_ms);
    client.on('disconnect', () => {
      idle.delete(client);
      drop(client);
    });
    return client;
  };

  return {
    /** One call over one connection to one vetted address, kept or new. */
    async exchange(call: Call, way: Omit<Dial, 'target'>): Promise<Answered> {
      const { target } = call;
      const { is_plain, is_literal, port, name } = target;
      const key = `${is_plain} ${way.address} ${port} ${is_literal ? '' : name}`;
      for (;;) {
        const kept = take(key);
        const client = kept ?? (await open({ ...way, target }));
        if (typeof client === 'string') return failedAs(client);
        const answered = await send(client, call, { ...limits, ends_ms: way.ends_ms });
        const is_stale = answered.status === null && answered.error === 'connection_lost';
        // One that had been used before and broke before any answer: worth another one.
        if (kept !== undefined && is_stale && performance.now() < way.ends_ms) continue;
        keep(key, client);
        return answered;
      }
    },
    destroy(): void {
      is_over = true;
      for (const client of idle.keys()) drop(client);
      idle.clear();
    },
  };
};
