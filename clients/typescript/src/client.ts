import { faultOf, lowerNames, type Retry } from './calls.js';
import { compareTransports } from './compare.js';
import { consume } from './consume.js';
import { Refused } from './errors.js';
import type { Credential, OpenSocket } from './link.js';
import { performAll } from './split.js';
import { Stream } from './stream.js';
import type {
  Call,
  CallArguments,
  CallOptions,
  Comparison,
  ConsumeOptions,
  Delivery,
  OperationId,
  Outcome,
  Span,
  StreamOptions,
  Topic,
} from './types.js';
import type { Operations } from './wire.js';

export interface ClientOptions {
  /** URL of the service, such as `http://127.0.0.1:8080`. */
  readonly base_url: string;
  /** An agent's key. */
  readonly api_key?: string;
  /** A person's session token, or a function that returns it before each call and connection. */
  readonly token?: string | (() => string | Promise<string>);
  /** Sent with every call. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Timeout of one try of a call. Default: 10 s. */
  readonly timeout_ms?: number;
  /** Timeout of all tries of a call together. Default: 30 s. */
  readonly patience_ms?: number;
  /** The longest wait before a websocket reconnects. Default: 10 s. */
  readonly backoff_ms?: number;
  readonly onRetry?: (retry: Retry) => void;
  /** Replaces the usual way of opening websockets. */
  readonly openSocket?: OpenSocket;
}

export interface Client {
  readonly call: Call;
  /** Like `call`, but returns refusals as values, typed with the codes of the operation. */
  attempt<Id extends OperationId>(id: Id, ...input: CallArguments<Id>): Promise<Outcome<Id>>;
  /** Follows topics over a socket of its own. */
  stream<T extends Topic>(options: StreamOptions<T>): Stream<T>;
  /**
   * Iterates over the events of a durable consumer. Acknowledge each event with `ack`. When the
   * iteration ends, events that are not acknowledged are released.
   */
  consume(options: ConsumeOptions): AsyncGenerator<Delivery, undefined, undefined>;
  /** Reads a part of the log over a socket and over HTTP. Reports differences from the record. */
  compareTransports(span: Span): Promise<readonly Comparison[]>;
  /** Returns a client of the same service with other options, for example for another agent. */
  with(options: Partial<ClientOptions>): Client;
  /** Ends the streams. */
  close(): void;
}

const socketUrl = (base_url: string): string => {
  const url = new URL('/ws', base_url);
  url.protocol = url.protocol.replace('http', 'ws');
  return url.href;
};

const readCredential = async ({ api_key, token }: ClientOptions): Promise<Credential> => {
  const value = typeof token === 'function' ? await token() : token;
  return {
    ...(api_key === undefined ? {} : { api_key }),
    ...(value === undefined ? {} : { token: value }),
  };
};

const checkAddress = (typed: unknown): string => {
  if (typeof typed === 'string' && /^https?:\/\//.test(typed) && URL.canParse(typed)) {
    return typed.replace(/\/+$/, '');
  }
  const like = 'https://forum.example or http://127.0.0.1:8080';
  throw new TypeError(`base_url must be the full address, like ${like}, not ${typed}.`);
};

export const makeClient = (openSocket: OpenSocket, options: ClientOptions): Client => {
  const base_url = checkAddress(options.base_url);
  const credential = () => readCredential(options);
  const defaults = {
    base_url,
    timeout_ms: options.timeout_ms ?? 10_000,
    patience_ms: options.patience_ms ?? 30_000,
    onRetry: options.onRetry,
    headers: async () => {
      const { api_key, token } = await credential();
      return {
        ...lowerNames(options.headers),
        ...(api_key === undefined ? {} : { 'x-api-key': api_key }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      };
    },
  };
  const socket = {
    url: socketUrl(base_url),
    open: options.openSocket ?? openSocket,
    credential,
    handshake_ms: defaults.timeout_ms,
    backoff_ms: options.backoff_ms ?? 10_000,
  };
  const streams = new Set<{ close(): void }>();

  const attempt: Client['attempt'] = async <Id extends OperationId>(
    id: Id,
    ...[input]: CallArguments<Id>
  ): Promise<Outcome<Id>> => {
    const call_options: CallOptions = input ?? {};
    const answer = await performAll(defaults, id, call_options);
    const { status, body, headers } = answer;
    if (status >= 300 && status !== 304) return { ok: false, status, fault: faultOf(answer) };
    const replayed = headers.get('idempotency-replayed') === 'true';
    return { ok: true, status, body: body as Operations[Id]['returns'], replayed };
  };
  const client: Client = {
    attempt,
    async call(id, ...input) {
      const outcome = await attempt(id, ...input);
      if (outcome.ok) return outcome.body;
      throw new Refused(outcome.fault);
    },
    stream(stream_options) {
      const stream = new Stream(stream_options, socket, client.call);
      streams.add(stream);
      const forget = () => streams.delete(stream);
      stream.done.then(forget, forget);
      return stream;
    },
    consume: (consume_options) => consume(client.call, consume_options),
    compareTransports: (span) => compareTransports(client, span),
    with: (more) => makeClient(openSocket, { ...options, ...more }),
    close() {
      for (const stream of [...streams]) stream.close();
    },
  };
  return client;
};
