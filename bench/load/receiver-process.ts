import uWS from 'uWebSockets.js';
import { createHmac } from 'node:crypto';
import { serve } from '../env/child.js';
import { latenciesOf } from './latencies.js';

/**
 * The receivers of all endpoints of the bench `webhooks`: any path answers 204, at once or after
 * `answer_ms`; `/dead/*` takes requests and never answers. A latency counts from `at` in the body to
 * the arrival, both on this machine's clock. Every 64th signature is checked.
 */
export interface ReceiveJob {
  /** Deliveries to wait for, each counted once. */
  readonly wanted: number;
  readonly answer_ms: number;
}

interface Endpoint {
  open: number;
  second: number;
  in_second: number;
}

const longest_ms = 180_000;

const startCount = (job: ReceiveJob) => {
  let onAll = (): void => undefined;
  return {
    job,
    seen: new Set<string>(),
    endpoints: new Map<string, Endpoint>(),
    latencies_ms: [] as number[],
    ...{ requests: 0, first_ms: 0, last_ms: 0, wrong_signatures: 0 },
    /** Most requests that one endpoint had open at one time, or got within a second. */
    ...{ most_open: 0, most_in_a_second: 0 },
    all: new Promise<void>((resolve) => {
      onAll = resolve;
    }),
    onAll: () => onAll(),
  };
};

let count = startCount({ wanted: 0, answer_ms: 0 });
let secret = '';

const countRequest = (path: string, id: string, at_ms: number): Endpoint => {
  const endpoint = count.endpoints.get(path) ?? { open: 0, second: 0, in_second: 0 };
  count.endpoints.set(path, endpoint);
  const second = Math.floor(at_ms / 1_000);
  endpoint.open += 1;
  endpoint.in_second = endpoint.second === second ? endpoint.in_second + 1 : 1;
  endpoint.second = second;
  count.most_open = Math.max(count.most_open, endpoint.open);
  count.most_in_a_second = Math.max(count.most_in_a_second, endpoint.in_second);
  count.requests += 1;
  count.first_ms ||= at_ms;
  count.last_ms = at_ms;
  count.seen.add(`${path} ${id}`);
  return endpoint;
};

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
  const endpoint = countRequest(request.getUrl(), request.getHeader('webhook-id'), at_ms);
  let is_aborted = false;
  response.onAborted(() => {
    is_aborted = true;
    endpoint.open -= 1;
  });
  const respond = (): void => {
    if (is_aborted) return;
    endpoint.open -= 1;
    response.cork(() => void response.writeStatus('204 No Content').endWithoutBody());
    if (count.seen.size >= count.job.wanted) count.onAll();
  };
  response.onData((chunk, is_last) => {
    checkBody(Buffer.from(chunk), signature, at_ms);
    if (!is_last) return;
    if (count.job.answer_ms === 0) respond();
    else setTimeout(respond, count.job.answer_ms);
  });
};

const handlers = {
  listen: (options: { key_file: string; cert_file: string; secret: string }): Promise<number> => {
    secret = options.secret;
    return new Promise((resolve) => {
      uWS
        .SSLApp({ key_file_name: options.key_file, cert_file_name: options.cert_file })
        .post('/dead/*', (response) => void response.onAborted(() => undefined))
        .post('/*', handle)
        .listen('127.0.0.1', 0, (socket) => {
          if (socket !== false) resolve(uWS.us_socket_local_port(socket));
        });
    });
  },
  /** Forgets what came before. */
  expect: (job: ReceiveJob): void => {
    count = startCount(job);
  },
  /** Waits for all that is wanted, or tells what came until the deadline. */
  arrived: async () => {
    await Promise.race([count.all, new Promise((resolve) => setTimeout(resolve, longest_ms))]);
    const { seen, requests, latencies_ms, wrong_signatures } = count;
    const { most_open, most_in_a_second, first_ms, last_ms } = count;
    return {
      ...{ count: seen.size, repeats: requests - seen.size, wrong_signatures },
      ...{ most_open, most_in_a_second, seconds: (last_ms - first_ms) / 1_000 },
      ...latenciesOf(latencies_ms),
    };
  },
};
export type ReceiverHandlers = typeof handlers;
serve(handlers);
