import uWS from 'uWebSockets.js';
import { createHmac } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { serve } from '../env/child.js';
import { listenOn } from '../peers/uws.js';
import { latenciesOf } from './load.js';

/**
 * Receivers for all endpoints of the bench `webhooks`. Any path answers 204. Latency runs from `at`
 * in the body to the arrival, both on this machine's clock. Every 64th signature is checked.
 */

const longest_ms = 180_000;

const startCount = (wanted: number) => ({
  wanted,
  /** Path and event of each delivery. */
  seen: new Set<string>(),
  latencies_ms: [] as number[],
  requests: 0,
  first_ms: 0,
  last_ms: 0,
  wrong_signatures: 0,
});

let count = startCount(0);
let secret = '';

const checkBody = (body: Buffer, signature: string, at_ms: number): void => {
  const sent = /"at":(\d+(?:\.\d+)?)/.exec(body.toString('latin1'))?.[1];
  if (sent !== undefined) count.latencies_ms.push(at_ms - Number(sent));
  if (count.requests % 64 !== 0) return;
  const wanted = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  if (signature !== wanted) count.wrong_signatures += 1;
};

const handle = (response: uWS.HttpResponse, request: uWS.HttpRequest): void => {
  const at_ms = performance.timeOrigin + performance.now();
  const signature = request.getHeader('x-svc-signature');
  count.requests += 1;
  count.first_ms ||= at_ms;
  count.last_ms = at_ms;
  count.seen.add(`${request.getUrl()} ${request.getHeader('webhook-id')}`);
  response.onAborted(() => undefined);
  response.onData((chunk, is_last) => {
    checkBody(Buffer.from(chunk), signature, at_ms);
    if (!is_last) return;
    response.cork(() => void response.writeStatus('204 No Content').endWithoutBody());
  });
};

const handlers = {
  listen: (options: { key_file: string; cert_file: string; secret: string }): Promise<number> => {
    secret = options.secret;
    const app = uWS
      .SSLApp({ key_file_name: options.key_file, cert_file_name: options.cert_file })
      .post('/*', handle);
    return listenOn(app);
  },
  /** Forgets earlier deliveries and expects this many. Repeats do not count. */
  expect: (wanted: number): void => {
    count = startCount(wanted);
  },
  /** Waits for all expected deliveries until the deadline. Reports the ones that arrived. */
  arrived: async () => {
    const give_up_ms = performance.now() + longest_ms;
    while (count.seen.size < count.wanted && performance.now() < give_up_ms) await delay(5);
    const { seen, requests, latencies_ms, wrong_signatures, first_ms, last_ms } = count;
    const repeats = requests - seen.size;
    const seconds = (last_ms - first_ms) / 1_000;
    return { count: seen.size, repeats, wrong_signatures, seconds, ...latenciesOf(latencies_ms) };
  },
};
export type ReceiverHandlers = typeof handlers;
serve(handlers);
