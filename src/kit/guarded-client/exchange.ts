import { type AnswerLimits, AnswerReader } from './answer-reader.js';
import type { CallErrorCode } from './call-errors.js';
import type { Connection, Connections, Dial } from './connections.js';
import type { Target } from './target.js';

/** One request and its answer over one connection to one vetted address. */

export interface Request {
  readonly target: Target;
  /** POST when absent. */
  readonly method?: 'POST' | 'HEAD' | 'GET';
  readonly headers: Readonly<Record<string, string>>;
  /** Of a POST. */
  readonly body?: Uint8Array;
}

export interface Exchange {
  readonly connections: Connections;
  readonly address: string;
  /** The wall clock of the call, on `performance.now()`. */
  readonly ends_ms: number;
  readonly connect_ms: number;
  readonly limits: AnswerLimits;
}

export interface Answered {
  readonly status: number | null;
  readonly error: CallErrorCode | null;
  readonly answer: string;
  readonly retry_after: string;
  /** The Location header as sent; '' when absent. */
  readonly location: string;
  /** The connection had been used before and broke before any answer: worth a fresh one. */
  readonly is_stale: boolean;
}

export const failedAs = (error: CallErrorCode): Answered => ({
  status: null,
  error,
  answer: '',
  retry_after: '',
  location: '',
  is_stale: false,
});

export const exchangeOnce = async (request: Request, exchange: Exchange): Promise<Answered> => {
  const { target } = request;
  const bytes = makeRequest(request);
  const dial: Dial = {
    is_plain: target.is_plain,
    address: exchange.address,
    port: target.port,
    name: target.is_literal ? '' : target.name,
    connect_ms: exchange.connect_ms,
    left_ms: exchange.ends_ms - performance.now(),
  };
  const connection = exchange.connections.take(dial) ?? (await exchange.connections.connect(dial));
  if (typeof connection === 'string') return failedAs(connection);
  const reader = new AnswerReader(exchange.limits, request.method !== 'HEAD');
  return talk(connection, bytes, { reader, ends_ms: exchange.ends_ms });
};

const talk = (
  connection: Connection,
  bytes: Buffer,
  { reader, ends_ms }: { readonly reader: AnswerReader; readonly ends_ms: number },
): Promise<Answered> =>
  new Promise((settle) => {
    const { is_used } = connection;
    const wall = setTimeout(() => connection.abort('timeout'), ends_ms - performance.now());
    connection.talk(bytes, reader, (error) => {
      clearTimeout(wall);
      settle({
        status: reader.status,
        error,
        answer: toText(reader.kept()),
        retry_after: reader.field('retry-after'),
        location: reader.field('location'),
        is_stale: error === 'connection_lost' && is_used && reader.is_untouched,
      });
    });
  });

/** What may not stand in a line of a request. */
const forbidden_pattern = /[^\t\x20-\x7e]/;

/** The whole request in one piece, for one record of TLS. */
const makeRequest = ({ method = 'POST', target, headers, body }: Request): Buffer => {
  let head = '';
  const add = (line: string): void => {
    if (forbidden_pattern.test(line)) throw new Error('a request holds what it may not');
    head += `${line}\r\n`;
  };
  add(`${method} ${target.path} HTTP/1.1`);
  add(`Host: ${target.host}`);
  for (const name of Object.keys(headers)) add(`${name}: ${headers[name]}`);
  if (body === undefined) return Buffer.from(`${head}\r\n`, 'latin1');
  add(`Content-Length: ${body.length}`);
  head += '\r\n';
  const request = Buffer.allocUnsafe(head.length + body.length);
  request.write(head, 'latin1');
  request.set(body, head.length);
  return request;
};

/** Text that any store takes: broken UTF-8 and NUL are replaced. */
const toText = (bytes: Uint8Array): string =>
  bytes.length === 0 ? '' : Buffer.from(bytes).toString('utf8').replaceAll('\0', '\uFFFD');
