import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';

/**
 * A webhook receiver as a subscriber would write it: HTTPS, the signature of Standard Webhooks over
 * the raw bytes compared in constant time, repeats recognised by their `webhook-id`.
 */
export interface Receiver {
  readonly port: number;
  /** Ids of the verified events `prediction.placed` of own questions, each once. */
  readonly verified: ReadonlySet<string>;
  /** Deliveries whose signature was wrong. */
  readonly rejected: number;
  /** Known only once the webhook exists; deliveries before that are refused and come again. */
  setSecret(secret: string): void;
  close(): void;
}

export interface ReceiverOptions {
  readonly cert: string;
  readonly key: string;
  isOwn(question_id: string): boolean;
}

const tolerance_s = 300;

/** Whether one of the signatures is right: `v1,` and the HMAC-SHA256 of id, time and body. */
export const isSigned = (secret: string, headers: IncomingHttpHeaders, body: Buffer): boolean => {
  const header = (name: string): string => String(headers[`webhook-${name}`] ?? '');
  const timestamp = header('timestamp');
  if (!(Math.abs(Date.now() / 1_000 - Number(timestamp)) <= tolerance_s)) return false;
  const hmac = createHmac('sha256', secret)
    .update(`${header('id')}.${timestamp}.`)
    .update(body);
  const wanted = Buffer.from(`v1,${hmac.digest('base64')}`);
  return header('signature')
    .split(' ')
    .map((signature) => Buffer.from(signature))
    .some((given) => given.length === wanted.length && timingSafeEqual(given, wanted));
};

const body_limit = 65_536;
/** The service calls no port between these and 1024 but 8443. */
const first_port = 10_000;
const port_tries = 20;

const listenOn = (server: Server, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => resolve(true));
  });

const listen = async (server: Server): Promise<number> => {
  for (let i = 0; i < port_tries; i++) {
    const port = first_port + Math.floor(Math.random() * 50_000);
    if (await listenOn(server, port)) return (server.address() as AddressInfo).port;
  }
  throw new Error('No free port was found for the webhook receiver.');
};

interface Delivered {
  readonly event?: string;
  readonly data?: { readonly question_id?: string };
}

export const startReceiver = async (options: ReceiverOptions): Promise<Receiver> => {
  const verified = new Set<string>();
  const known = new Set<string>();
  let secret = '';
  let rejected = 0;

  /** The status to answer with. */
  const take = (body: Buffer, headers: IncomingHttpHeaders): number => {
    if (secret === '') return 503;
    if (!isSigned(secret, headers, body)) {
      rejected += 1;
      return 401;
    }
    const id = String(headers['webhook-id']);
    if (known.has(id)) return 200;
    known.add(id);
    const { event, data } = JSON.parse(body.toString('utf8')) as Delivered;
    if (event === 'prediction.placed' && options.isOwn(data?.question_id ?? '')) verified.add(id);
    return 200;
  };

  const server = createServer({ cert: options.cert, key: options.key }, (request, response) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > body_limit) request.destroy();
      else chunks.push(chunk);
    });
    request.on('end', () => {
      const status = take(Buffer.concat(chunks), request.headers);
      response.writeHead(status).end();
    });
  });
  const port = await listen(server);
  return {
    port,
    verified,
    get rejected() {
      return rejected;
    },
    setSecret: (value) => {
      secret = value;
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
};
