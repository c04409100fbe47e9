import uWS from 'uWebSockets.js';
import { createHmac } from 'node:crypto';
import { makeHistogram } from './histogram.js';

/**
 * The receivers of all endpoints of a bench in one process: `/h/<n>` answers 204, at once or after
 * `answer_ms`; `/dead` takes requests and never answers. A latency counts from `at` in the body to
 * the arrival, both on this machine's clock. Every 64th signature is checked.
 */

export interface ReceiveJob {
  /** Deliveries to wait for, each counted once. */
  readonly wanted: number;
  readonly answer_ms: number;
}

export interface Arrived {
  readonly count: number;
  /** Arrived before, and came again. */
  readonly repeats: number;
  readonly first_ms: number;
  readonly last_ms: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly max_ms: number;
  /** Most requests that one endpoint had open at one time. */
  readonly most_open: number;
  /** Most requests to one endpoint within one second of the clock. */
  readonly most_in_a_second: number;
  readonly wrong_signatures: number;
}

export type ToReceivers =
  | {
      readonly op: 'listen';
      readonly key_file: string;
      readonly cert_file: string;
      readonly secret: string;
    }
  | { readonly op: 'expect'; readonly job: ReceiveJob }
  | { readonly op: 'tell' };
export type FromReceivers =
  | { readonly op: 'listening'; readonly port: number }
  | { readonly op: 'expecting' }
  | { readonly op: 'arrived'; readonly arrived: Arrived };

const now = (): number => performance.timeOrigin + performance.now();

interface Endpoint {
  open: number;
  second: number;
  in_second: number;
}

const startCount = (job: ReceiveJob) => ({
  job,
  seen: new Set<string>(),
  endpoints: new Map<string, Endpoint>(),
  latencies: makeHistogram(),
  requests: 0,
  first_ms: 0,
  last_ms: 0,
  most_open: 0,
  most_in_a_second: 0,
  wrong_signatures: 0,
  is_said: false,
});

let count = startCount({ wanted: 0, answer_ms: 0 });
let secret = '';

const tell = (message: FromReceivers): void => {
  process.send?.(message);
};

const tellArrived = (): void => {
  if (count.is_said) return;
  count.is_said = true;
  const { seen, requests, first_ms, last_ms, most_open, most_in_a_second } = count;
  const quantile = (share: number): number => count.latencies.quantile(share) / 1_000;
  tell({
    op: 'arrived',
    arrived: {
      count: seen.size,
      repeats: requests - seen.size,
      ...{ first_ms, last_ms, most_open, most_in_a_second },
      ...{ p50_ms: quantile(0.5), p99_ms: quantile(0.99), max_ms: count.latencies.max_us / 1_000 },
      wrong_signatures: count.wrong_signatures,
    },
  });
};

const endpointOf = (path: string): Endpoint => {
  const known = count.endpoints.get(path);
  if (known !== undefined) return known;
  const made = { open: 0, second: 0, in_second: 0 };
  count.endpoints.set(path, made);
  return made;
};

interface Request {
  readonly path: string;
  readonly id: string;
  readonly signature: string;
}

const noteBegin = ({ path, id }: Request): Endpoint => {
  const at_ms = now();
  const endpoint = endpointOf(path);
  endpoint.open += 1;
  const second = Math.floor(at_ms / 1_000);
  endpoint.in_second = endpoint.second === second ? endpoint.in_second + 1 : 1;
  endpoint.second = second;
  count.most_open = Math.max(count.most_open, endpoint.open);
  count.most_in_a_second = Math.max(count.most_in_a_second, endpoint.in_second);
  count.requests += 1;
  if (count.seen.size === 0) count.first_ms = at_ms;
  count.seen.add(`${path} ${id}`);
  count.last_ms = at_ms;
  return endpoint;
};

const at_pattern = /"at":(\d+(?:\.\d+)?)/;

const noteBody = ({ signature }: Request, body: Buffer, at_ms: number): void => {
  const sent = at_pattern.exec(body.toString('latin1'))?.[1];
  if (sent !== undefined) count.latencies.record((at_ms - Number(sent)) * 1_000);
  if (count.requests % 64 !== 0) return;
  const wanted = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  if (signature !== wanted) count.wrong_signatures += 1;
};

const handle = (response: uWS.HttpResponse, request: uWS.HttpRequest): void => {
  const at_ms = now();
  const one: Request = {
    path: request.getUrl(),
    id: request.getHeader('webhook-id'),
    signature: request.getHeader('x-svc-signature'),
  };
  let is_aborted = false;
  const endpoint = noteBegin(one);
  const answer = (): void => {
    if (is_aborted) return;
    endpoint.open -= 1;
    response.cork(() => void response.writeStatus('204 No Content').endWithoutBody());
    if (count.seen.size >= count.job.wanted) tellArrived();
  };
  response.onAborted(() => {
    is_aborted = true;
    endpoint.open -= 1;
  });
  response.onData((chunk, is_last) => {
    noteBody(one, Buffer.from(chunk), at_ms);
    if (!is_last) return;
    if (count.job.answer_ms === 0) answer();
    else setTimeout(answer, count.job.answer_ms);
  });
};

const listen = (key_file: string, cert_file: string): void => {
  uWS
    .SSLApp({ key_file_name: key_file, cert_file_name: cert_file })
    .post('/dead', (response) => void response.onAborted(() => undefined))
    .post('/*', handle)
    .listen('127.0.0.1', 0, (socket) => {
      if (socket !== false) tell({ op: 'listening', port: uWS.us_socket_local_port(socket) });
    });
};

process.on('message', (message: ToReceivers) => {
  if (message.op === 'listen') {
    secret = message.secret;
    listen(message.key_file, message.cert_file);
  } else if (message.op === 'expect') {
    count = startCount(message.job);
    tell({ op: 'expecting' });
  } else tellArrived();
});
process.on('disconnect', () => process.exit(0));
