import uWS, {
  type HttpRequest,
  type HttpResponse,
  type TemplatedApp,
  type us_listen_socket,
  type us_socket_context_t,
  type WebSocket,
} from 'uWebSockets.js';
import { STATUS_CODES } from 'node:http';
import { common_faults, refuse } from '../kit/fault.js';
import type { BodyStream } from './body.js';
import {
  type Address,
  type AddressReader,
  type BodyRead,
  exchange_counters,
  type Headers,
  isTooLarge,
  type Outgoing,
  type OutgoingHead,
  type Refusals,
  type Request,
} from './call.js';
import { findJsonProblem, parseJson } from './validation.js';

/**
 * The only module that imports uWebSockets.js. That package is CommonJS and includes its types. The
 * traps of the engine are listed, and tested, in `test/http/native.test.ts`.
 */

export type {
  HttpRequest,
  HttpResponse,
  TemplatedApp,
  us_listen_socket,
  us_socket_context_t,
  WebSocket,
};

/** Returns the remote address of a connection: its raw bytes, as latin1. */
export const remoteAddress = (res: HttpResponse): string =>
  Buffer.from(res.getRemoteAddress()).toString('latin1');

export const { App, DISABLED, us_listen_socket_close, us_socket_local_port } = uWS;

/**
 * Turns text into bytes for the engine. Bodies, frames and close reasons must be bytes. If a string
 * such as "bär" has only Latin-1 characters and not only ASCII, the engine writes it as Latin-1 on
 * Node 24. Status lines and headers are ASCII (`isHeaderText`), so they can be strings.
 */
export const toBytes = (text: string | Uint8Array): Uint8Array =>
  typeof text === 'string' ? Buffer.from(text) : text;

/** Listen option: a second process on the same port fails instead of taking half of its traffic. */
export const exclusive_port: number = (
  uWS as unknown as { readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number }
).LIBUS_LISTEN_EXCLUSIVE_PORT;

/** Bytes per write of a streamed body. They fit into the buffers of a reader. */
const write_bytes = 65_536;

const status_lines = Object.fromEntries(
  Object.entries(STATUS_CODES).map(([code, text]) => [code, `${code} ${text}`]),
);

const no_body = Buffer.alloc(0);
const json_type = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;

/** A refused body may still be on its way, so the connection cannot be used for another request. */
const endsConnection = (status: number): boolean =>
  status === 408 || status === 413 || status === 431;

/**
 * Adds one more line to a header. A proxy may split cookies into several lines. Two `traceparent`
 * headers contradict each other, so neither counts. For other headers, the last line counts.
 */
const joinHeader = (name: string, before: string | undefined, value: string): string => {
  if (before === undefined) return value;
  if (name === 'cookie') return `${before}; ${value}`;
  return name === 'traceparent' ? '' : value;
};

/** Returns the cookies of all `Cookie` lines of a request, as one text. */
export const readCookies = (req: HttpRequest): string => {
  let cookies: string | undefined;
  req.forEach((name, value) => {
    if (name === 'cookie') cookies = joinHeader(name, cookies, value);
  });
  return cookies ?? '';
};

/** The parts that all requests of a server share. */
export interface HttpParts {
  /** Requests without an answer, oldest first. */
  readonly open: Set<Request>;
  readonly readAddress: AddressReader;
  readonly common_headers: Headers;
}

/**
 * One HTTP request and its one answer. The first statement of every uWS handler must create it. It
 * owns the abort handler, copies everything from `req` while `req` exists, limits the body that it
 * reads, and sends at most one answer, corked. Late answers are dropped and counted.
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
  shows_page = false;
  refusals: Refusals | undefined;
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
      this.headers[name] = joinHeader(name, this.headers[name], value);
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
   * Receives the body. Call it before the uWS handler returns. `onBody` gets true when the body is
   * here, and false if it is larger than `limit`. After an abort, `onBody` is not called.
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

  /** A field that occurs several times becomes a list of strings, any other field one string. */
  readForm(): BodyRead {
    const type = this.header('content-type').split(';', 1)[0]?.trim().toLowerCase();
    if (type !== 'application/x-www-form-urlencoded') {
      return refuse(common_faults.UNSUPPORTED_MEDIA_TYPE, {
        message: 'Send the form that is on the page.',
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

  /** Sends the answer. Returns false if it is too late. A HEAD request gets only the headers. */
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
      // Half an answer cannot be taken back. Without this close, the client would wait forever.
      this.#res.close();
      throw error;
    }
    return true;
  }

  onGone(listener: () => void): void {
    // If the deadline has already answered the call, the work ends as if the client had gone away.
    if (this.aborted || (this.done && !this.is_streaming)) listener();
    else this.#on_gone = listener;
  }

  giveUp(): void {
    this.#on_gone?.();
  }

  /**
   * Sends a body piece by piece, at the pace of its reader. If a piece cannot be made, cuts the
   * connection and rejects.
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
    /** Waits for the reader. If it takes nothing for too long, the connection is cut. */
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
      const bytes = toBytes(piece);
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
    else res.end(toBytes(body), close);
  }

  /** Without `close`, passes no argument at all: uWS would treat `undefined` as a length. */
  #endWithoutBody(close: boolean): void {
    if (close) this.#res.endWithoutBody(0, true);
    else this.#res.endWithoutBody();
  }

  /** If uWS got the length as an argument, it would wait for the body and drop the connection. */
  #endHead(body: string | Uint8Array, close: boolean): void {
    if (!close) this.#res.writeHeader('Content-Length', String(toBytes(body).byteLength));
    this.#endWithoutBody(close);
  }

  /** The last resort after a bug: sends an empty 500 and closes the connection. Never throws. */
  abandon(): void {
    try {
      this.send({ status: 500, headers: [], body: '', content_type: null }, true);
    } catch {
      // The response object is gone, so no answer can be sent.
    }
  }
}
