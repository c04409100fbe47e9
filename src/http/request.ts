import uWS, {
  type HttpRequest,
  type HttpResponse,
  type TemplatedApp,
  type us_listen_socket,
  type us_socket_context_t,
  type WebSocket,
} from 'uWebSockets.js';
import { randomBytes } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import ipaddr from 'ipaddr.js';
import { Histogram } from 'prom-client';
import { common_faults, type Fault, refuse } from '../kit/fault.js';
import { hasCredential } from '../kit/log.js';
import { isWithin, parseRange } from '../kit/outbound/addresses.js';
import type { BodyStream } from './body.js';
import { findJsonProblem, parseJson } from './validation.js';

/**
 * The only module that imports uWebSockets.js. The dependency is CommonJS; its types come with it.
 * Its traps are listed, and held, in `test/http/native.test.ts`.
 */

export type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_listen_socket,
  us_socket_context_t,
  WebSocket,
};

/** The remote address of a connection: its raw bytes as latin1. */
export const remoteAddress = (res: HttpResponse): string =>
  Buffer.from(res.getRemoteAddress()).toString('latin1');

export const { App, DISABLED, us_listen_socket_close, us_socket_local_port } = uWS;

/** Listen option: a second process on the same port fails instead of taking half of its traffic. */
export const exclusive_port: number = (
  uWS as unknown as { readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number }
).LIBUS_LISTEN_EXCLUSIVE_PORT;

/** The address a request comes from, and under which name limits count it. */
export interface Address {
  readonly text: string;
  /** IPv4: the address; IPv6: its /64. */
  readonly limit_key: string;
}

const describe = (address: ipaddr.IPv4 | ipaddr.IPv6): Address => {
  const text = address.toString();
  if (address.kind() === 'ipv4') return { text, limit_key: text };
  const prefix = (address as ipaddr.IPv6).parts.slice(0, 4).map((part) => part.toString(16));
  return { text, limit_key: `${prefix.join(':')}::/64` };
};

/** The address that `text` is, as an `AddressReader` gave it. */
export const readAddressText = (text: string): Address => describe(ipaddr.process(text));

export type AddressReader = (remote: string, forwarded_for: string) => Address;

/**
 * Reads the raw remote address (the bytes that uWS gives, as latin1) and X-Forwarded-For. The
 * header is believed only as far as it was written by trusted proxies: read from its right end, the
 * first address that is not a trusted proxy is the client.
 */
export const makeAddressReader = (trusted_proxies: readonly string[]): AddressReader => {
  const trusted = trusted_proxies.map(parseRange);
  const cache = new Map<string, Address>();
  // A client that is gone already has no address any more.
  const readRemote = (remote: string): ipaddr.IPv4 | ipaddr.IPv6 =>
    remote === ''
      ? ipaddr.parse('::')
      : ipaddr.process(ipaddr.fromByteArray([...Buffer.from(remote, 'latin1')]).toString());

  const read = (remote: string, forwarded_for: string): Address => {
    let address = readRemote(remote);
    if (forwarded_for === '') return describe(address);
    for (const hop of forwarded_for.split(',').reverse()) {
      if (!isWithin(address, trusted)) break;
      const text = hop.trim();
      if (!ipaddr.isValid(text)) break;
      address = ipaddr.process(text);
    }
    return describe(address);
  };

  return (remote, forwarded_for) => {
    const header = trusted.length === 0 ? '' : forwarded_for.slice(-500);
    const key = header === '' ? remote : `${remote} ${header}`;
    const known = cache.get(key);
    if (known !== undefined) return known;
    const address = read(remote, header);
    if (cache.size >= 10_000) cache.clear();
    cache.set(key, address);
    return address;
  };
};

export type Headers = readonly (readonly [name: string, value: string])[];

export interface Outgoing {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string | Uint8Array;
  /** Null where there is no body. */
  readonly content_type: string | null;
}

/** An answer whose body is sent piece by piece. */
type OutgoingHead = Omit<Outgoing, 'body'>;

export type BodyRead = { readonly value: unknown } | Fault;

/** A call of a route: an HTTP request, or a frame of a socket. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  /** By lower-case name; the credentials of the caller are among them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly address: Address;
  readonly started_ms: number;
  /** The websocket that it came through. */
  readonly socket?: string;
  /** The client went away. */
  readonly aborted: boolean;
  /** True while the body is still on its way. */
  readonly awaits_body: boolean;
  /** The text of the body; empty without one. */
  readonly raw_body: Uint8Array | string;
  /** Longest that the answer may take, where that is not the usual deadline. */
  longest_ms?: number | undefined;
  /** True while an answer is sent piece by piece: that has no deadline, only a stall limit. */
  readonly is_streaming?: boolean;
  header(name: string): string;
  /** The body as a value; called once, and only for a route that takes one. */
  readBody(): BodyRead;
  /** The same of a page, whose body is a form. */
  readForm?(): BodyRead;
  /** True: a page makes this call while it is rendered. Reads cost no limit then; no line is logged. */
  readonly is_inner?: boolean;
  /** Sends the one answer; false when it comes too late. */
  send(outgoing: Outgoing): boolean;
  /** Calls back, once, when the client goes away before the answer is there; one at a time. */
  onGone?(listener: () => void): void;
  /** Sends a body piece by piece; without it only whole answers can be sent. */
  stream?(head: OutgoingHead, body: BodyStream): Promise<void>;
}

const node_id = randomBytes(4).toString('hex');
let request_count = 0;
const sane_id = /^[A-Za-z0-9._:-]{1,128}$/;

/** The id a client sent when it is sane and holds no credential, else one of this process. */
export const requestId = (given: string): string => {
  if (given !== '' && sane_id.test(given) && !hasCredential(given)) return given;
  request_count += 1;
  return `${node_id}-${request_count.toString(36)}`;
};

/** Bytes of a streamed body that are written at once: less than a reader makes room for. */
const write_bytes = 65_536;

/** Largest number of headers and of bytes in them that is looked at; above: 431. */
const header_limit = 64;
const header_bytes_limit = 8_192;

export const isTooLarge = (count: number, bytes: number): boolean =>
  count > header_limit || bytes > header_bytes_limit;

/** Holds the token of a person's session; pages alone look at it. */
export const session_cookie = 'session';

/** The value of a cookie; empty without it. */
export const readCookie = (header: string, name: string): string => {
  const pairs = header.split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1) ?? '';
};

/** Of calls with the usual deadline: streams and calls that wait for an event are left out. */
export const request_durations = new Histogram({
  name: 'pf_http_request_duration_seconds',
  help: 'Requests by the class of their status, from their arrival to the answer.',
  labelNames: ['status'],
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  registers: [],
});
export const exchange_counters = { opened: 0, late: 0, aborted: 0, expired: 0, shed: 0 };

const status_lines = Object.fromEntries(
  Object.entries(STATUS_CODES).map(([code, text]) => [code, `${code} ${text}`]),
);

const exposed =
  'X-Request-Id, RateLimit, RateLimit-Policy, Retry-After, Link, ETag, Location, ' +
  'Deprecation, Sunset, Idempotency-Replayed, X-Log-Next, X-Log-Head, X-Log-Oldest, X-Export-Snapshot, ' +
  'X-Export-As-Of, X-Export-Rows, Content-Disposition';

/** Headers of every answer. With `only_https`, browsers never come without TLS again. */
export const commonHeaders = (only_https: boolean): Headers => [
  ['Access-Control-Allow-Origin', '*'],
  ['Access-Control-Expose-Headers', exposed],
  ['X-Content-Type-Options', 'nosniff'],
  // For a year; of the names below this one nothing is known here.
  ...(only_https ? [['Strict-Transport-Security', 'max-age=31536000'] as const] : []),
];

const no_body = Buffer.alloc(0);
const json_type = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;

/** A refused body may still be on its way: the connection cannot be used for another request. */
const endsConnection = (status: number): boolean =>
  status === 408 || status === 413 || status === 431;

/** The parts that all requests of a server share. */
export interface HttpParts {
  /** Requests without an answer, oldest first. */
  readonly open: Set<Request>;
  readonly readAddress: AddressReader;
  readonly common_headers: Headers;
}

/**
 * One HTTP request and its one answer, made by the first statement of every uWS handler: it owns
 * the abort handler, copies everything that dies with `req`, reads the body with limits of its own,
 * and sends at most one answer, corked. Late answers are dropped and counted.
 */
export class HttpCall implements Request {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly #remote: string;
  readonly headers: Record<string, string> = {};
  readonly started_ms = performance.now();
  headers_too_large = false;
  /** True once an answer was sent or the client went away. */
  done = false;
  aborted = false;
  /** True while the body is still on its way. */
  awaits_body = false;
  is_streaming = false;
  longest_ms: number | undefined;
  raw_body: Buffer = no_body;
  #on_gone: (() => void) | null = null;
  #res: HttpResponse;
  #parts: HttpParts;

  constructor(res: HttpResponse, req: HttpRequest, parts: HttpParts) {
    const { open } = parts;
    exchange_counters.opened += 1;
    this.#res = res;
    this.#parts = parts;
    open.add(this);
    res.onAborted(() => {
      this.aborted = true;
      exchange_counters.aborted += 1;
      this.done = true;
      open.delete(this);
      this.#on_gone?.();
    });
    this.method = req.getCaseSensitiveMethod();
    this.path = req.getUrl();
    this.query = req.getQuery() ?? '';
    this.#remote = remoteAddress(res);
    this.#copyHeaders(req);
  }

  #copyHeaders(req: HttpRequest): void {
    let count = 0;
    let bytes = 0;
    req.forEach((name, value) => {
      count += 1;
      bytes += name.length + value.length;
      // Two of them contradict each other.
      const is_second = name === 'traceparent' && name in this.headers;
      this.headers[name] = is_second ? '' : value;
    });
    this.headers_too_large = isTooLarge(count, bytes);
  }

  header(name: string): string {
    return this.headers[name] ?? '';
  }

  get address(): Address {
    return this.#parts.readAddress(this.#remote, this.header('x-forwarded-for'));
  }

  /**
   * Receives the body; must be called in the turn of the uWS handler. `onBody`
   * gets whether it is here, or is more than `limit`. It is not called after an abort.
   */
  receiveBody(limit: number, onBody: (is_here: boolean) => void): void {
    if (Number(this.header('content-length')) > limit) {
      onBody(false);
      return;
    }
    this.awaits_body = true;
    const parts: Buffer[] = [];
    let size = 0;
    this.#res.onData((chunk, is_last) => {
      if (!this.awaits_body || this.done) return;
      size += chunk.byteLength;
      this.awaits_body = !is_last && size <= limit;
      if (size > limit) {
        onBody(false);
        return;
      }
      // uWS detaches the chunk after this callback, so each one is copied, exactly once.
      parts.push(Buffer.from(Buffer.from(chunk)));
      if (!is_last) return;
      this.raw_body = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
      onBody(true);
    });
  }

  readBody(): BodyRead {
    if (!json_type.test(this.header('content-type'))) {
      return refuse(common_faults.UNSUPPORTED_MEDIA_TYPE);
    }
    const parsed = parseJson(this.raw_body);
    return parsed.ok ? parsed : refuse(common_faults.INVALID_JSON, { message: parsed.problem });
  }

  /** Of a field that comes several times, all texts; of any other its text. */
  readForm(): BodyRead {
    const type = this.header('content-type').split(';', 1)[0]?.trim().toLowerCase();
    if (type !== 'application/x-www-form-urlencoded') {
      return refuse(common_faults.UNSUPPORTED_MEDIA_TYPE, {
        message: 'Send the form of the page.',
      });
    }
    const given = new URLSearchParams(this.raw_body.toString('utf8'));
    const names = [...new Set(given.keys())];
    const fields = names.map((name) => {
      const texts = given.getAll(name).map((text) => text.replaceAll('\r\n', '\n'));
      return [name, texts.length === 1 ? texts[0] : texts] as const;
    });
    const value = Object.fromEntries(fields);
    const problem = findJsonProblem(value);
    if (problem !== null) return refuse(common_faults.INVALID_REQUEST, { message: problem });
    return { value };
  }

  /** Sends the answer; false when it came too late. A HEAD request gets the headers only. */
  send(outgoing: Outgoing, close = endsConnection(outgoing.status)): boolean {
    if (this.done) {
      exchange_counters.late += 1;
      return false;
    }
    this.done = true;
    this.#parts.open.delete(this);
    try {
      this.#res.cork(() => this.#write(outgoing, close));
    } catch (error) {
      // Half an answer cannot be taken back; without this the client would wait for ever.
      this.#res.close();
      throw error;
    }
    return true;
  }

  onGone(listener: () => void): void {
    if (this.aborted) listener();
    else this.#on_gone = listener;
  }

  /**
   * Sends a body piece by piece, at the pace of its reader. Rejects when a piece could not be made;
   * the connection is cut then.
   */
  async stream(head: OutgoingHead, body: BodyStream): Promise<void> {
    if (this.done) {
      exchange_counters.late += 1;
      body.close();
      return;
    }
    this.done = true;
    this.is_streaming = true;
    const res = this.#res;
    let wake = (): void => undefined;
    this.onGone(() => {
      body.close();
      wake();
    });
    res.onWritable(() => {
      wake();
      return true;
    });
    /** A reader that takes nothing for too long is cut, which counts as gone. */
    const untilRead = (): Promise<void> =>
      new Promise((resolve) => {
        const timer = setTimeout(() => res.close(), body.stall_ms);
        wake = () => {
          clearTimeout(timer);
          wake = () => undefined;
          resolve();
        };
      });
    try {
      res.cork(() => this.#writeHead(head));
      if (this.method !== 'HEAD') await this.#sendPieces(body, untilRead);
      if (!this.aborted) {
        res.cork(() => (this.method === 'HEAD' ? this.#endWithoutBody(false) : res.end()));
      }
    } catch (error) {
      if (!this.aborted) res.close();
      throw error;
    } finally {
      this.#parts.open.delete(this);
      body.close();
    }
  }

  async #sendPieces(body: BodyStream, untilRead: () => Promise<void>): Promise<void> {
    for (let piece = await body.next(); piece !== null; piece = await body.next()) {
      const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
      for (let at = 0; at < bytes.byteLength; at += write_bytes) {
        if (this.aborted) return;
        let is_read = true;
        this.#res.cork(() => {
          is_read = this.#res.write(bytes.subarray(at, at + write_bytes));
        });
        if (!is_read) await untilRead();
      }
    }
  }

  #writeHead({ status, headers, content_type }: OutgoingHead): void {
    const res = this.#res;
    res.writeStatus(status_lines[status] ?? String(status));
    for (const [name, value] of this.#parts.common_headers) res.writeHeader(name, value);
    if (content_type !== null) res.writeHeader('Content-Type', content_type);
    for (const [name, value] of headers) res.writeHeader(name, value);
  }

  #write(outgoing: Outgoing, close: boolean): void {
    const res = this.#res;
    const { status, body } = outgoing;
    this.#writeHead(outgoing);
    if (status === 204 || status === 304) this.#endWithoutBody(close);
    else if (this.method === 'HEAD') this.#endHead(body, close);
    else res.end(body, close);
  }

  /** Without an argument, because uWS takes `undefined` for a length. */
  #endWithoutBody(close: boolean): void {
    if (close) this.#res.endWithoutBody(0, true);
    else this.#res.endWithoutBody();
  }

  /** Given the length as an argument, uWS would wait for the body and drop the connection. */
  #endHead(body: string | Uint8Array, close: boolean): void {
    const length = typeof body === 'string' ? Buffer.byteLength(body) : body.byteLength;
    if (!close) this.#res.writeHeader('Content-Length', String(length));
    this.#endWithoutBody(close);
  }

  /** The last resort after a bug: an empty 500, and the connection is closed. Never throws. */
  abandon(): void {
    try {
      this.send({ status: 500, headers: [], body: '', content_type: null }, true);
    } catch {
      // The response object is gone; there is nobody left to answer.
    }
  }
}
