import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import { makeKeyBudget } from '../../bench/env/key-budget.js';
import { makeAnswerReader } from '../../bench/load/answer-reader.js';
import { makeHistogram } from '../../bench/load/histogram.js';
import { runLoad } from '../../bench/load/http-load.js';
import { requireClean } from '../../bench/load/loader.js';
import { makeConfidence, makeReasoning } from '../../bench/load/predict-texts.js';
import type { LoadOptions } from '../../bench/load/tally.js';
import { checkReasoning } from '../../src/features/predictions/gates.js';
import { until } from '../help/until.js';

t.test('a quantile is the exact one, at most 1.6 % too high and never too low', async (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 2 ** 30 - 1 }), { minLength: 1, maxLength: 200 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (values, share) => {
        const histogram = makeHistogram();
        for (const value of values) histogram.record(value);
        const sorted = [...values].sort((a, b) => a - b);
        const exact = sorted[Math.max(1, Math.ceil(share * sorted.length)) - 1] as number;
        const found = histogram.quantile(share);
        return (
          found >= exact &&
          found <= exact * (1 + 1 / 64) &&
          histogram.count === values.length &&
          histogram.max_us === sorted.at(-1)
        );
      },
    ),
  );
  t.pass();
});

t.test('an answer is read whole however it is cut', async (t) => {
  const bytes = Buffer.from(
    'HTTP/1.1 201 Created\r\nX-A: 1\r\nContent-Length: 13\r\n\r\n{"id":"12345"}'.slice(0, -1),
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
  t.throws(() => reader.push(Buffer.concat([bytes, bytes])), /nobody asked for/);
  t.throws(() => reader.push(Buffer.from('HTTP/1.1 200 OK\r\n\r\n')), /content-length/);
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

const request = (n: number): Buffer =>
  Buffer.from(`POST /${n} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}`);

const loadOptions = (port: number, more: Partial<LoadOptions> = {}): LoadOptions => ({
  port,
  connections: 4,
  seconds: 0.3,
  requests: Array.from({ length: 50_000 }, (_, n) => request(n)),
  wanted_status: 201,
  ...more,
});

t.test('the closed loop sends each request once and counts every answer', async (t) => {
  const seen = new Map<string, number>();
  const port = await startServer(t, (req, res) => {
    seen.set(req.url ?? '', (seen.get(req.url ?? '') ?? 0) + 1);
    res.writeHead(201, { 'content-length': 2 }).end('ok');
  });
  const result = await runLoad(loadOptions(port));
  t.equal(result.sent, seen.size);
  t.equal(result.done, seen.size);
  t.ok([...seen.values()].every((count) => count === 1));
  t.same(result.statuses, { 201: seen.size });
  t.ok(result.done_in_time <= result.done && result.done_in_time > 0);
  t.equal(result.broken_connections, 0);
  t.equal(result.ran_dry, false);
  t.ok(result.p50_ms <= result.p99_ms && result.p99_ms <= result.max_ms);
  t.doesNotThrow(() => requireClean(result, [201], { name: 'server' }));
});

t.test('connections are one of each agent, or new ones, where that is asked for', async (t) => {
  const seen = new Map<Socket, string[]>();
  const port = await startServer(t, (req, res) => {
    seen.set(req.socket, [...(seen.get(req.socket) ?? []), req.url ?? '']);
    res.writeHead(201, { 'content-length': 0 }).end();
  });
  const own = await runLoad(loadOptions(port, { own_connections: 7 }));
  t.equal(seen.size, 7);
  for (const urls of seen.values()) {
    const turns = urls.map((url) => Number(url.slice(1)));
    t.ok(
      turns.every((k, i) => k === (turns[0] ?? 0) + 7 * i),
      'each sends when it is its turn',
    );
  }
  t.equal(own.done, own.sent);
  seen.clear();
  const fresh = await runLoad(loadOptions(port, { new_connections: true }));
  t.equal(seen.size, fresh.sent, 'one for each request');
  t.match(fresh, { done: fresh.sent, broken_connections: 0 });
});

t.test('a burst is all requests, and its rate that of all', async (t) => {
  const port = await startServer(t, (_req, res) => {
    res.writeHead(201, { 'content-length': 0 }).end();
  });
  const requests = Array.from({ length: 100 }, (_, n) => request(n));
  const began_ms = performance.now();
  const result = await runLoad(loadOptions(port, { requests, whole: true, seconds: 30 }));
  const took_s = (performance.now() - began_ms) / 1_000;
  t.match(result, { sent: 100, done: 100, ran_dry: false, broken_connections: 0 });
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
    const run = await runLoad(loadOptions(port, { connections: 1, rate: 100, seconds: 0.5 }));
    return run.sent > 40 && run;
  });
  t.equal(result.sent, arrivals.length);
  t.ok(result.sent <= 51, `${result.sent} were sent`);
  // Request n was due 10 n ms after the first one, or earlier; it was not answered before it came.
  const first_ms = arrivals[0] as number;
  const delays = arrivals.map((at_ms, n) => at_ms - first_ms - 10 * n).sort((a, b) => a - b);
  const half_ms = delays[(delays.length - 1) >> 1] as number;
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
  const requests = [1, 2, 3, 4, 5, 6].map(request);
  const result = await runLoad(loadOptions(port, { requests, seconds: 0.1 }));
  t.equal(result.sent, 6);
  t.equal(result.ran_dry, true);
  t.equal(result.broken_connections, 1);
  t.same(result.statuses, { 201: 2, 429: 3 });
  t.same(result.odd_answers, ['429 slow', '429 slow', '429 slow']);
  t.throws(
    () => requireClean(result, [201], { name: 'server' }),
    /server: 3 answers were 429\n1 connections broke\nthe prepared requests were used up/,
  );
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

t.test('a key budget refuses a round that alone would meet the limit', async (t) => {
  const budget = makeKeyBudget(10);
  await budget.reserve(10);
  budget.spend(4);
  await budget.reserve(6);
  await t.rejects(budget.reserve(11), /alone would meet the limit/);
});
