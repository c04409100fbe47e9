import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/**
 * A webhook receiver as a subscriber would write it: HTTPS, the signature of Standard Webhooks over
 * the raw bytes compared in constant time, repeats recognised by their `webhook-id`.
 */
export interface Receiver {
  readonly port: number;
  /** Ids of the verified events `prediction.placed` of own questions, each once. */
  readonly verified: ReadonlySet<string>;
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

interface Delivered {
  readonly event?: string;
  readonly data?: { readonly question_id?: string };
}

export const startReceiver = async ({ isOwn, ...tls }: ReceiverOptions): Promise<Receiver> => {
  const verified = new Set<string>();
  let secret = '';
  let rejected = 0;

  /** The status to answer with. */
  const take = (body: Buffer, headers: IncomingHttpHeaders): number => {
    if (secret === '') return 503;
    if (!isSigned(secret, headers, body)) {
      rejected += 1;
      return 401;
    }
    const { event, data } = JSON.parse(body.toString('utf8')) as Delivered;
    const is_counted = event === 'prediction.placed' && isOwn(data?.question_id ?? '');
    if (is_counted) verified.add(String(headers['webhook-id']));
    return 200;
  };

  const server = createServer(tls, async (request, response) => {
    const body = await buffer(request).catch(() => null);
    if (body !== null) response.writeHead(take(body, request.headers)).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
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
