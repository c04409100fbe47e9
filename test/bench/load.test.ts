import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { connectHttp, makeAnswerReader } from '../../bench/load/connections.js';
import { quantile } from '../../bench/load/latencies.js';
import { type LoadOptions, runLoad as run } from '../../bench/load/load.js';
import { makeComment, makeConfidence, makeReasoning } from '../../bench/load/predict-texts.js';
import { makeFrameReader } from '../../bench/load/socket-client.js';
import { checkReasoning } from '../../src/features/predictions/gates.js';
import { until } from '../help/until.js';

t.test('a quantile is the least value that the share does not exceed', async (t) => {
  const hundred = Array.from({ length: 100 }, (_, n) => n + 1);
  t.same(
    [0, 0.01, 0.011, 0.5, 0.99, 1].map((share) => quantile(hundred, share)),
    [1, 1, 2, 50, 99, 100],
  );
  t.equal(quantile([], 0.5), 0);
});

t.test('answers are read whole however they are cut', async (t) => {
  const bytes = Buffer.from(
    'HTTP/1.1 201 Created\r\nX-A: 1\r\nContent-Length: 12\r\n\r\n{"id":"1234"' +
      'HTTP/1.1 429 No\r\ncontent-length: 0\r\n\r\n',
  );
  for (let cut = 0; cut <= bytes.length; cut++) {
    const answers: string[] = [];
    const read = makeAnswerReader((status, body) => void answers.push(`${status} ${body()}`));
    read(bytes.subarray(0, cut));
    read(bytes.subarray(cut));
    t.same(answers, ['201 {"id":"1234"', '429 ']);
  }
  const read = makeAnswerReader(() => undefined);
  t.throws(() => read(Buffer.from('HTTP/1.1 200 OK\r\n\r\n')), /content-length/);
});

const frame = (text: string): Buffer => {
  const payload = Buffer.from(text);
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = 0x81;
  head[1] = length < 126 ? length : length < 65_536 ? 126 : 127;
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
};

t.test('frames are read, or only counted, however they are cut', async (t) => {
  const texts = ['', 'a', 'b'.repeat(125), 'c'.repeat(126), 'd'.repeat(70_000), 'e'];
  const bytes = Buffer.concat(texts.map(frame));
  fc.assert(
    fc.property(
      fc.array(fc.nat(bytes.length), { maxLength: 8 }),
      fc.integer({ min: 0, max: 80_000 }),
      (cuts, most) => {
        const seen: (string | number)[] = [];
        const read = makeFrameReader(
          (length) => length <= most,
          (length, payload) => void seen.push(payload?.toString() ?? length),
        );
        const ends = [0, ...cuts.sort((a, b) => a - b), bytes.length];
        for (let i = 1; i < ends.length; i++) read(bytes.subarray(ends[i - 1], ends[i]));
        const wanted = texts.map((text) => (text.length <= most ? text : text.length));
        return JSON.stringify(seen) === JSON.stringify(wanted);
      },
    ),
  );
  t.pass();
});

const startServer = async (t: Test, listener: RequestListener): Promise<number> => {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
};

const makeRequests = (count: number): readonly Buffer[] =>
  Array.from({ length: count }, (_, n) =>
    Buffer.from(`POST /${n} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}`),
  );

const runLoad = (port: number, more: Partial<LoadOptions> = {}, count = 50_000) =>
  run(
    { port, in_flight: 4, seconds: 0.3, wanted_status: 201, ...more },
    makeRequests(count),
    (events) => connectHttp(port, events),
  );

t.test('the closed loop sends each request once and counts every answer', async (t) => {
  const seen = new Map<string, number>();
  const port = await startServer(t, (req, res) => {
    seen.set(req.url ?? '', (seen.get(req.url ?? '') ?? 0) + 1);
    res.writeHead(201, { 'content-length': 2 }).end('ok');
  });
  const result = await runLoad(port);
  t.match(result, { sent: seen.size, done: seen.size, problems: [] });
  t.ok([...seen.values()].every((count) => count === 1));
  t.ok(result.per_second > 0 && result.per_second * 0.3 <= result.done);
  t.ok(result.p50_ms <= result.p99_ms && result.p99_ms <= result.max_ms);
});

t.test('every agent has a connection of its own and sends when it is its turn', async (t) => {
  const seen = new Map<Socket, number[]>();
  const port = await startServer(t, (req, res) => {
    const n = Number(req.url?.slice(1));
    seen.set(req.socket, [...(seen.get(req.socket) ?? []), n]);
    res.writeHead(201, { 'content-length': 0 }).end();
  });
  const result = await runLoad(port, { own_connections: 7 });
  t.equal(seen.size, 7);
  for (const turns of seen.values()) {
    t.ok(turns.every((k, i) => k === turns[0]! + 7 * i));
  }
  t.match(result, { done: result.sent, problems: [] });
});

t.test('a burst is all requests, and its rate that of all', async (t) => {
  const port = await startServer(t, (_req, res) => {
    res.writeHead(201, { 'content-length': 0 }).end();
  });
  const began_ms = performance.now();
  const result = await runLoad(port, { whole: true, seconds: 30 }, 100);
  const took_s = (performance.now() - began_ms) / 1_000;
  t.match(result, { sent: 100, done: 100, problems: [] });
  t.ok(took_s < 30 && result.per_second >= 100 / took_s, `${result.per_second}/s in ${took_s} s`);
});

t.test('an open loop keeps its rate and charges a stall to every request it delayed', async (t) => {
  const stall_ms = 400;
  const arrivals: number[] = [];
  const port = await startServer(t, async (_req, res) => {
    const began_ms = performance.now();
    arrivals.push(began_ms);
    if (arrivals.length === 1) {
      await until('the end of the stall', () => performance.now() - began_ms >= stall_ms);
    }
    res.writeHead(201, { 'content-length': 0 }).end();
  });
  // A machine that stalls itself leaves too few requests to tell anything; then once more.
  const result = await until('a run with most of its requests', async () => {
    arrivals.length = 0;
    const run = await runLoad(port, { in_flight: 1, rate: 100, seconds: 0.5 });
    return run.sent > 40 && run;
  });
  t.equal(result.sent, arrivals.length);
  t.ok(result.sent <= 51, `${result.sent} were sent`);
  // Request n was due 10 n ms after the first one, or earlier; it was not answered before it came.
  const first_ms = arrivals[0]!;
  const delays = arrivals.map((at_ms, n) => at_ms - first_ms - 10 * n).sort((a, b) => a - b);
  const half_ms = delays[(delays.length - 1) >> 1]!;
  t.ok(half_ms > 50, 'the stall delayed more than half of them');
  t.ok(result.p50_ms > half_ms * 0.95, `${result.p50_ms} ms`);
  t.ok(result.max_ms >= stall_ms);
});

t.test('other answers, broken connections and a list that ends are reported', async (t) => {
  let count = 0;
  const port = await startServer(t, (_req, res) => {
    count += 1;
    if (count === 3) res.socket?.destroy();
    else if (count % 2 === 0) res.writeHead(429, { 'content-length': 4 }).end('slow');
    else res.writeHead(201, { 'content-length': 0 }).end();
  });
  const result = await runLoad(port, { seconds: 0.1 }, 6);
  t.match(result, { sent: 6, done: 2 });
  t.same(result.problems, [
    '3 answers were 429',
    '1 connections broke',
    'the prepared requests and the time did not end together',
    ...['  429 slow', '  429 slow', '  429 slow'],
  ]);
});

t.test('the texts of the bench pass the gates of the service and differ', async (t) => {
  const sets: Set<string>[] = [];
  const urls = new Set<string>();
  for (let n = 0; n < 400; n++) {
    const text = makeReasoning(n);
    const checked = checkReasoning(text);
    t.same(checked.failures, [], `text ${n}`);
    t.equal(checked.citations.length, 2);
    t.ok(text.length > 600 && text.length < 1_400, `${text.length} characters`);
    for (const url of checked.citations) urls.add(url);
    sets.push(new Set(text.toLowerCase().match(/[a-z]+/g)));
  }
  t.equal(urls.size, 800, 'no source comes twice');
  let closest = 0;
  for (const [i, one] of sets.entries()) {
    for (const other of sets.slice(0, i)) {
      let shared = 0;
      for (const word of one) if (other.has(word)) shared++;
      closest = Math.max(closest, shared / (one.size + other.size - shared));
    }
  }
  t.ok(closest < 0.55, `two texts share ${closest} of their words`);
  t.equal(makeReasoning(7), makeReasoning(7), 'a text can be made again');
  t.not(makeComment(7), makeComment(8));
  const confidences = Array.from({ length: 1_000 }, (_, n) => makeConfidence(n));
  t.ok(confidences.every((c) => Number.isInteger(c) && c >= 51 && c <= 95));
  t.equal(new Set(confidences).size, 45);
});
