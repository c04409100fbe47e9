import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Test } from 'tap';
import { connectHttp, makeAnswerReader } from '../../bench/load/http-connection.js';
import { type LoadOptions, latenciesOf, quantile, runLoad } from '../../bench/load/load.js';
import { makeConfidence, makeReasoning } from '../../bench/load/predict-texts.js';
import { makeFrame, makeFrameReader } from '../../bench/load/socket-connection.js';
import { checkReasoning } from '../../src/features/predictions/gates.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

t.test('a quantile is the least value that so many do not exceed', async (t) => {
  const values = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
  t.same(
    [0, 0.1, 0.11, 0.5, 0.99, 1].map((share) => quantile(values, share)),
    [1, 1, 2, 5, 10, 10],
  );
  t.equal(quantile([], 0.5), 0);
  t.same(latenciesOf([30, 4, 100]), { p50_ms: 30, p99_ms: 100, max_ms: 100 });
});

t.test('an answer is read whole however it is cut', async (t) => {
  const bytes = Buffer.from(
    'HTTP/1.1 201 Created\r\nX-A: 1\r\nContent-Length: 13\r\n\r\n{"id":"12345"',
  );
  for (let cut = 1; cut < bytes.length; cut++) {
    const reader = makeAnswerReader();
    t.equal(reader.push(bytes.subarray(0, cut)), 0);
    t.equal(reader.push(bytes.subarray(cut)), 201);
    t.equal(reader.body(), '{"id":"12345"');
  }
  const reader = makeAnswerReader();
  t.equal(reader.push(Buffer.from('HTTP/1.1 429 No\r\ncontent-length: 0\r\n\r\n')), 429);
  t.equal(reader.push(bytes), 201, 'the reader goes on with the next answer');
  t.throws(() => reader.push(Buffer.concat([bytes, bytes])), /without a request/);
  t.throws(() => reader.push(Buffer.from('HTTP/1.1 200 OK\r\n\r\n')), /content-length/);
});

t.test('frames are read however they are cut; of unwanted ones only the length', async (t) => {
  const frame = (length: number): Buffer => {
    const payload = Buffer.alloc(length, 'x');
    const extended = Buffer.alloc(length < 126 ? 0 : length < 65_536 ? 2 : 8);
    if (extended.length === 2) extended.writeUInt16BE(length);
    if (extended.length === 8) extended.writeBigUInt64BE(BigInt(length));
    const short = [length, 0, 126, 0, 0, 0, 0, 0, 127][extended.length]!;
    return Buffer.concat([Buffer.from([0x81, short]), extended, payload]);
  };
  const lengths = [0, 5, 125, 126, 300, 70_000];
  const bytes = Buffer.concat(lengths.map(frame));
  for (const size of [1, 7, 1_000, bytes.length]) {
    const read: [number, number | undefined, number][] = [];
    const push = makeFrameReader(
      (length) => length < 200,
      (length, payload, opcode) => void read.push([length, payload?.length, opcode]),
    );
    for (let at = 0; at < bytes.length; at += size) push(bytes.subarray(at, at + size));
    const wanted = lengths.map((length) => [length, length < 200 ? length : undefined, 1]);
    t.same(read, wanted, `in pieces of ${size}`);
  }
  t.same([...makeFrame('ok')], [0x81, 0x82, 0, 0, 0, 0, 0x6f, 0x6b]);
  t.throws(() => makeFrame('x'.repeat(65_536)), /too long/);
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

const request = (_: unknown, n: number): Buffer =>
  Buffer.from(`POST /${n} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}`);

const run = (port: number, more: Partial<LoadOptions> = {}, count = 50_000) =>
  runLoad(
    { port, in_flight: 4, seconds: 0.3, wanted_status: 201, ...more },
    Array.from({ length: count }, request),
    (events) => connectHttp(port, events),
  );

t.test('the closed loop sends each request once and counts every answer', async (t) => {
  const seen = new Map<string, number>();
  const port = await startServer(t, (req, res) => {
    seen.set(req.url ?? '', (seen.get(req.url ?? '') ?? 0) + 1);
    res.writeHead(201, { 'content-length': 2 }).end('ok');
  });
  const result = await run(port);
  t.match(result, { sent: seen.size, done: seen.size, problems: [] });
  t.ok([...seen.values()].every((count) => count === 1));
  t.ok(result.per_second > 0 && result.per_second <= result.done / 0.3);
  t.ok(result.p50_ms <= result.p99_ms && result.p99_ms <= result.max_ms);
});

t.test('connections are one of each agent where that is asked for', async (t) => {
  const seen = new Map<Socket, string[]>();
  const port = await startServer(t, (req, res) => {
    seen.set(req.socket, [...(seen.get(req.socket) ?? []), req.url ?? '']);
    res.writeHead(201, { 'content-length': 0 }).end();
  });
  const result = await run(port, { own_connections: 7 });
  t.equal(seen.size, 7);
  for (const urls of seen.values()) {
    const turns = urls.map((url) => Number(url.slice(1)));
    t.ok(
      turns.every((k, i) => k === (turns[0] ?? 0) + 7 * i),
      'each sends when it is its turn',
    );
  }
  t.equal(result.done, result.sent);
});

t.test('a burst is all requests, and its rate that of all', async (t) => {
  const port = await startServer(t, (_req, res) => {
    res.writeHead(201, { 'content-length': 0 }).end();
  });
  const began_ms = performance.now();
  const result = await run(port, { whole: true, seconds: 30 }, 100);
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
  // If the machine stalls, too few requests are left to judge. Then it tries again.
  const result = await until('a run with most of its requests', async () => {
    arrivals.length = 0;
    const one = await run(port, { in_flight: 1, rate: 100, seconds: 0.5 });
    return one.sent > 40 && one;
  });
  t.equal(result.sent, arrivals.length);
  t.ok(result.sent <= 51, `${result.sent} were sent`);
  // Request n was due at most 10 n ms after the first one, and was not answered before it arrived.
  const first_ms = arrivals[0] as number;
  const delays = arrivals.map((at_ms, n) => at_ms - first_ms - 10 * n).sort((a, b) => a - b);
  const half_ms = delays[(delays.length - 1) >> 1] as number;
  t.ok(half_ms > 50, 'the stall delayed more than half of them');
  t.ok(result.p50_ms > half_ms * 0.95, `${result.p50_ms} ms`);
  t.ok(result.max_ms >= stall_ms);
});

t.test('other answers, broken connections and a list that ends are problems', async (t) => {
  let count = 0;
  const port = await startServer(t, (_req, res) => {
    count += 1;
    if (count === 3) res.socket?.destroy();
    else if (count % 2 === 0) res.writeHead(429, { 'content-length': 4 }).end('slow');
    else res.writeHead(201, { 'content-length': 0 }).end();
  });
  const result = await run(port, { seconds: 0.1 }, 6);
  t.match(result, { sent: 6, done: 2 });
  t.same(result.problems, [
    '3 answers were not 201',
    '429 slow',
    '429 slow',
    '429 slow',
    '1 connections broke',
    'the prepared requests and the time did not end together',
  ]);
  count = 3;
  t.notMatch((await run(port, { allowed_status: 429 }, 2)).problems, ['429']);
});

t.test('the texts of the bench pass the gates of the service and differ', async (t) => {
  const sets: Set<string>[] = [];
  const urls = new Set<string>();
  for (let n = 0; n < 400; n++) {
    const text = makeReasoning(n);
    const checked = checkReasoning(text);
    t.same(checked.failures, [], `text ${n}`);
    t.equal(checked.citations.length, 2);
    t.ok(text.length > 800 && text.length < 1_100, `${text.length} characters`);
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
  const confidences = Array.from({ length: 1_000 }, (_, n) => makeConfidence(n));
  t.ok(confidences.every((c) => Number.isInteger(c) && c >= 51 && c <= 95));
  t.equal(new Set(confidences).size, 45);
});
