import { readdirSync, readFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import path from 'node:path';
import { findPort } from '../features/log/log-server.js';
import { admin_key, makeCaller, secret_key } from '../help/app.js';
import { makeTestFolder, project_root, removeTestFolder } from '../help/own-stores.js';
import { askOnce } from '../help/raw-http.js';
import { endService, findPids, launch, putToSleep } from '../help/service.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';
import { connect } from '../help/ws-client.js';
import type { Any } from './world.js';

/**
 * The names, types and units of the metrics of a whole service with two api processes. Each case
 * was written from the documentation alone.
 */

const stores = await openStores(t);
const folder = makeTestFolder();
/** The first port. The other processes use the ports after it. */
const first_port = await findPort();
const service = launch(folder, {
  DATABASE_URL: stores.database_url,
  REDIS_URL: stores.redis_url,
  REDIS_PREFIX: stores.redis_prefix,
  ADMIN_KEY: admin_key,
  SECRET_KEY: secret_key,
  API_PROCESSES: '2',
  METRICS_PORT: String(first_port),
  LIMIT_IP: '100000000',
  LIMIT_REGISTER: '3',
});
t.teardown(async () => {
  await endService(service.child, folder);
  removeTestFolder(folder);
});
const url = await service.url;
const call = makeCaller(url);

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly line: string;
}

interface Family {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly samples: readonly Sample[];
}

const scrapeText = async (port: number): Promise<string> => {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
  return answer.text();
};

const readLabels = (text: string): Readonly<Record<string, string>> => {
  const found = [...text.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)/g)];
  if (found.map(([all]) => all).join('') !== text) throw new Error(`labels: ${text}`);
  return Object.fromEntries(found.map(([, name = '', value]) => [name, value ?? '']));
};

/** Parses the text format of Prometheus. Throws if a line is malformed or in the wrong place. */
const parse = (text: string): readonly Family[] => {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const families: (Omit<Family, 'samples'> & { samples: Sample[] })[] = [];
  let help: readonly [name: string, text: string] = ['', ''];
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const [, kind, about = '', rest = ''] = /^# (HELP|TYPE) (\w+) (.+)$/.exec(line) ?? [];
    if (kind === 'HELP') {
      help = [about, rest];
    } else if (kind === 'TYPE') {
      if (help[0] !== about) throw new Error(`no help before ${line}`);
      if (families.some(({ name }) => name === about)) throw new Error(`twice: ${line}`);
      families.push({ name: about, type: rest, help: help[1], samples: [] });
    } else {
      const [, name = '', labels = '', value = ''] =
        /^([a-z]\w*)(?:\{(.*)\})? (-?[\d.]+(?:e[+-]?\d+)?|\+Inf)$/.exec(line) ?? [];
      const family = families.at(-1);
      if (family === undefined || !name.startsWith(family.name)) throw new Error(`what is ${line}`);
      family.samples.push({ name, labels: readLabels(labels), value: Number(value), line });
    }
  }
  return families;
};

/** The metrics of each process. */
const scrapeAll = async (): Promise<readonly (readonly Family[])[]> =>
  Promise.all(ports.map(async (port) => parse(await scrapeText(port))));

const isOpen = (port: number, host = '127.0.0.1'): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connectTcp(port, host);
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

const ports: number[] = [];
for (let port = first_port; await isOpen(port); port += 1) ports.push(port);
/** The metrics before the first request. */
const fresh = await scrapeAll();
const families = [...new Map(fresh.flat().map((one) => [one.name, one])).values()];
const typeOf = (all: readonly (readonly Family[])[]) =>
  new Map(all.flat().map(({ name, type }) => [name, type]));

const sumOf = (
  all: readonly (readonly Family[])[],
  name: string,
  isWanted = (_: Sample): boolean => true,
): number =>
  all
    .flat()
    .flatMap(({ samples }) => samples)
    .filter((one) => one.name === name && isWanted(one))
    .reduce((sum, { value }) => sum + value, 0);

/* The ports. */

t.test('each process has a port of its own, counting up', async (t) => {
  // Two apis, two relays, a signer and a timer.
  t.equal(ports.length, 6);
  const processes = new Set<string>();
  for (const [n, port] of ports.entries()) {
    for (const probe of ['livez', 'readyz']) {
      t.equal((await fetch(`http://127.0.0.1:${port}/${probe}`)).status, 200);
    }
    processes.add(JSON.stringify(fresh[n]?.[0]?.samples[0]?.labels));
    t.notOk(await isOpen(port, '127.0.0.2'), 'on HOST alone');
  }
  t.equal(processes.size, ports.length);
});

t.test('the public port has no metrics', async (t) => {
  for (const options of [{}, { admin: true }]) {
    const answer = await call('GET', '/metrics', options);
    t.equal(answer.status, 404);
    t.notMatch(JSON.stringify(answer.body), /pf_http/);
  }
});

/* Names, types and help texts. */

t.test('units are base units', async (t) => {
  for (const { name } of families) {
    t.notMatch(
      name,
      /_(?:ms|millis\w*|micros\w*|us|ns|minutes|hours|kb|mb|kib|mib|percent|pct)(?:_|$)/,
    );
    if (/lag|duration|_time_/.test(name)) t.match(name, /_seconds(?:_total)?$/);
    if (/memory|heap.*size|bytes/.test(name)) t.match(name, /_bytes(?:_total)?$|_memory_bytes/);
  }
});

t.test('what counts ends in _total, and nothing else does', async (t) => {
  for (const { name, type, samples } of families) {
    // Some of Node's usual metrics are gauges whose names end in `_total`.
    if (name.startsWith('nodejs_')) continue;
    t.equal(name.endsWith('_total'), type === 'counter', `${type} ${name}`);
    t.notMatch(name, /_total_total/);
    for (const { value, line } of samples) t.ok(type !== 'counter' || value >= 0, line);
  }
});

t.test('those of the process have their usual names, once', async (t) => {
  const names = families.map(({ name }) => name);
  for (const wanted of [
    'process_cpu_seconds_total',
    'process_resident_memory_bytes',
    'process_start_time_seconds',
    'process_open_fds',
    'nodejs_heap_size_used_bytes',
    'nodejs_eventloop_lag_p99_seconds',
  ]) {
    t.equal(names.filter((name) => name === wanted).length, 1, wanted);
  }
  t.same(
    names.filter((name) => /^pf_(?:process|nodejs)_/.test(name)),
    [],
  );
});

t.test('each has one help, a sentence, and samples that are numbers, each once', async (t) => {
  for (const of_process of fresh) {
    for (const { name, help, samples } of of_process) {
      t.match(help, /\w+ \w+/, name);
      t.not(help, name);
      const series = samples.map((one) => one.line.slice(0, one.line.lastIndexOf(' ')));
      t.equal(new Set(series).size, series.length, name);
      for (const { value, line } of samples) t.notOk(Number.isNaN(value), line);
    }
  }
});

t.test('counters are there before they count', async (t) => {
  for (const name of [
    'pf_http_shed_total',
    'pf_log_lines_dropped_total',
    'pf_webhook_attempts_failed_total',
  ]) {
    const found = families.find((one) => one.name === name);
    t.equal(found?.samples[0]?.value, 0, name);
  }
});

t.test('shares are between 0 and 1', async (t) => {
  for (const { name, samples } of families.filter(({ name }) => /_ratio$|ready$/.test(name))) {
    for (const { value } of samples) t.ok(value >= 0 && value <= 1, name);
  }
});

const isHistogram = ({ type }: Family): boolean => type === 'histogram';

t.test('histograms count up to +Inf, with their sum and count', async (t) => {
  for (let n = 0; n < 20; n += 1) await call('GET', `/api/questions?q=shape${n}`);
  const all = (await scrapeAll()).flat().filter(isHistogram);
  t.ok(all.some(({ name, samples }) => name.startsWith('pf_http') && samples.length > 0));
  for (const { name, samples } of all) {
    const series = new Map<string, Sample[]>();
    for (const one of samples) {
      const { le: _, ...others } = one.labels;
      const key = JSON.stringify(others);
      series.set(key, [...(series.get(key) ?? []), one]);
    }
    for (const some of series.values()) {
      const buckets = some.filter((one) => one.name === `${name}_bucket`);
      const bounds = buckets.map(({ labels }) => Number(labels['le']?.replace('+Inf', 'Infinity')));
      t.same(
        bounds,
        bounds.toSorted((a, b) => a - b),
        name,
      );
      t.equal(bounds.at(-1), Number.POSITIVE_INFINITY);
      const counts = buckets.map(({ value }) => value);
      t.same(
        counts,
        counts.toSorted((a, b) => a - b),
        name,
      );
      const [sum, count] = ['sum', 'count'].map((end) =>
        some.filter((one) => one.name === `${name}_${end}`),
      );
      t.equal(count?.length, 1);
      t.equal(count?.[0]?.value, counts.at(-1));
      t.ok(sum?.length === 1 && (sum[0]?.value ?? -1) >= 0);
      t.notOk([...(sum ?? []), ...(count ?? [])].some(({ labels }) => 'le' in labels));
    }
  }
});

/* Values. */

t.test('requests take seconds', async (t) => {
  const name = 'pf_http_request_duration_seconds';
  const before = await scrapeAll();
  const head = (await call('GET', '/api/events?limit=1')).body.head ?? 0;
  const began = performance.now();
  await call('GET', `/api/events?after=${head}&wait=1`);
  for (let n = 0; n < 50; n += 1) await call('GET', `/api/questions?q=quick${n}`);
  const took_s = (performance.now() - began) / 1_000;
  const after = await scrapeAll();
  const count = sumOf(after, `${name}_count`) - sumOf(before, `${name}_count`);
  const sum = sumOf(after, `${name}_sum`) - sumOf(before, `${name}_sum`);
  t.ok(count >= 50 && count <= 53, `${count} requests`);
  t.ok(sum > 0 && sum < took_s + 0.5, `${sum} of ${took_s} s`);
});

t.test('those of the process are true', async (t) => {
  const pids = findPids(folder, 'api');
  const statusOf = (pid: number, name: string): number =>
    Number(new RegExp(`${name}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  const apis = (await scrapeAll()).slice(0, 2);
  const valuesOf = (name: string): readonly number[] =>
    apis.map((one) => sumOf([one], name)).toSorted((a, b) => a - b);
  const near = (given: readonly number[], wanted: readonly number[], share: number): boolean =>
    given.every((value, n) => Math.abs(value - (wanted[n] ?? 0)) <= share * (wanted[n] ?? 0) + 2);
  const sorted = (read: (pid: number) => number) => pids.map(read).toSorted((a, b) => a - b);
  const rss = sorted((pid) => 1_024 * statusOf(pid, 'VmRSS'));
  t.ok(near(valuesOf('process_resident_memory_bytes'), rss, 0.25));
  const spent_s = (): number =>
    pids
      .map((pid) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [])
      .reduce((sum, fields) => sum + (Number(fields[11]) + Number(fields[12])) / 100, 0);
  const readCpu = async () => sumOf((await scrapeAll()).slice(0, 2), 'process_cpu_seconds_total');
  const [spent, before] = [spent_s(), await readCpu()];
  await until('they have worked for a second', async () => {
    await Promise.all(Array.from({ length: 50 }, (_, n) => call('GET', `/questions?q=work${n}`)));
    return spent_s() - spent >= 1;
  });
  const [grown, wanted] = [(await readCpu()) - before, spent_s() - spent];
  t.ok(Math.abs(grown - wanted) < 0.5 * wanted, `${grown} of ${wanted} s`);
  const open = sorted((pid) => readdirSync(`/proc/${pid}/fd`).length);
  t.ok(near(valuesOf('process_open_fds'), open, 1));
  for (const start of valuesOf('process_start_time_seconds')) {
    t.ok(Math.abs(Date.now() / 1_000 - start) < 120, `${start}`);
  }
});

t.test('the heap is in bytes, and its cleaning in seconds', async (t) => {
  for (const of_process of await scrapeAll()) {
    const used = sumOf([of_process], 'nodejs_heap_size_used_bytes');
    t.ok(used > 5e6 && used < 600e6, `${used}`);
    const cleaning = of_process.find(({ name }) => name === 'nodejs_gc_duration_seconds');
    t.equal(cleaning?.type, 'histogram');
    const took_s = sumOf([of_process], 'nodejs_gc_duration_seconds_sum');
    t.ok(took_s < 60, `${took_s}`);
    t.equal(sumOf([of_process], 'nodejs_version_info'), 1);
  }
});

t.test('sockets are counted up and down', async (t) => {
  const { port } = new URL(url);
  const count = async () => sumOf(await scrapeAll(), 'pf_sockets');
  const before = await count();
  const sockets = await Promise.all(Array.from({ length: 10 }, () => connect(t, Number(port))));
  await until('ten more', async () => (await count()) === before + 10);
  for (const { ws } of sockets) ws.close();
  await until('ten fewer', async () => (await count()) === before);
  t.equal(typeOf(fresh).get('pf_sockets'), 'gauge');
  t.equal(typeOf(fresh).get('pf_redis_ready'), 'gauge');
  const ready = (await scrapeAll()).flat().find(({ name }) => name === 'pf_redis_ready');
  t.equal(ready?.samples[0]?.value, 1);
});

t.test('refusals of limits are counted as requests, and not as shed', async (t) => {
  const refused = (all: readonly (readonly Family[])[]): number =>
    sumOf(
      all,
      'pf_http_request_duration_seconds_count',
      ({ labels }) => labels['status'] === '4xx',
    );
  const before = await scrapeAll();
  const statuses: number[] = [];
  for (let n = 0; n < 10; n += 1) {
    const body = { name: `Refused ${n}`, model: 'm' };
    statuses.push((await call('POST', '/api/register', { body })).status);
  }
  t.same(statuses, [201, 201, 201, ...Array(7).fill(429)]);
  const after = await scrapeAll();
  t.equal(refused(after) - refused(before), 7);
  t.equal(sumOf(after, 'pf_http_shed_total'), sumOf(before, 'pf_http_shed_total'));
});

t.test('what strangers ask for makes no series', async (t) => {
  const seriesOf = (all: readonly (readonly Family[])[]): readonly string[] =>
    all
      .flat()
      .flatMap(({ samples }) => samples.map(({ name, labels }) => JSON.stringify([name, labels])));
  const before = seriesOf(await scrapeAll());
  const { port } = new URL(url);
  await Promise.all(Array.from({ length: 300 }, (_, n) => call('GET', `/x${n}`)));
  for (const start of ['FOO /x', 'BREW /x', 'GET /questions/%0a"}']) {
    await askOnce(Number(port), start).catch(() => undefined);
  }
  const after = seriesOf(await scrapeAll());
  t.ok(after.length < before.length + 60, `${before.length}, then ${after.length}`);
  t.notMatch(after.join('\n'), /x\d\d|BREW|FOO|127\.0\.0\.1/);
});

t.test('counters of a process never fall', async (t) => {
  const counters = (all: readonly Family[]): ReadonlyMap<string, number> =>
    new Map(
      all
        .filter(({ type }) => type === 'counter')
        .flatMap(({ samples }) =>
          samples.map((one) => [JSON.stringify([one.name, one.labels]), one.value]),
        ),
    );
  const before = (await scrapeAll()).map(counters);
  await Promise.all(
    Array.from({ length: 100 }, (_, n) => call('GET', `/api/questions/no-id-${n}`)),
  );
  for (const [n, after] of (await scrapeAll()).map(counters).entries()) {
    for (const [series, value] of before[n] ?? []) {
      t.ok((after.get(series) ?? -1) >= value, series);
    }
  }
});

t.test('what waits in the outbox is told in seconds', async (t) => {
  const lag = async () =>
    // Only the api processes are asked, because the relays are paused.
    Math.max(
      ...(await Promise.all(ports.slice(0, 2).map(scrapeText))).map((text) =>
        sumOf([parse(text)], 'pf_outbox_lag_seconds'),
      ),
    );
  const idle = (await scrapeAll()).map((one) => sumOf([one], 'nodejs_eventloop_lag_p99_seconds'));
  t.ok(Math.max(...idle) < 2, `${idle}`);
  const wakers = findPids(folder, 'relay').map((pid) => putToSleep(pid));
  const began = performance.now();
  try {
    const body = {
      question: 'Will the lag of the outbox be told in seconds this year?',
      category: 'society',
      subcategory: 'benefits_public_good',
      closes_at: '2035-01-01T00:00:00Z',
      publish: true,
    };
    t.equal((await call('POST', '/api/admin/questions', { admin: true, body })).status, 201);
    const found = await until('it grows', async () => {
      const now = await lag();
      return now >= 1 && now;
    });
    t.ok(found <= (performance.now() - began) / 1_000 + 1, `${found} s`);
  } finally {
    for (const wake of wakers) wake();
  }
  await until('it is gone', async () => (await lag()) < 1);
});

/* As HTTP. */

const askMetrics = (start: string, headers: readonly string[] = []) =>
  askOnce(first_port, start, { headers });
const plain = 'text/plain; version=0.0.4; charset=utf-8';

for (const accept of [
  null,
  '*/*',
  'text/plain',
  'text/plain;version=0.0.4',
  'text/html',
  'application/json',
  'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.1',
  'application/openmetrics-text',
  'application/openmetrics-text;q=0, text/plain',
  'APPLICATION/OPENMETRICS-TEXT; Version=1.0.0',
  'application/vnd.google.protobuf',
]) {
  t.test(`it is plain text, and says so: Accept ${String(accept).slice(0, 60)}`, async (t) => {
    const answer = await fetch(`http://127.0.0.1:${first_port}/metrics`, {
      headers: accept === null ? {} : { accept },
    });
    t.equal(answer.status, 200);
    t.equal(answer.headers.get('content-type'), plain);
    t.ok(parse(await answer.text()).length > 20);
  });
}

t.test('it is packed only for those who take that', async (t) => {
  for (const coding of ['gzip', 'gzip;q=0', 'identity']) {
    const answer = await fetch(`http://127.0.0.1:${first_port}/metrics`, {
      headers: { 'accept-encoding': coding },
    });
    t.ok(coding === 'gzip' || answer.headers.get('content-encoding') === null);
    t.ok(parse(await answer.text()).length > 20, coding);
  }
});

t.test('other methods and addresses are refused', async (t) => {
  const head = await askMetrics('HEAD /metrics');
  t.match(head, { status: 200, text: '', headers: { 'content-type': plain } });
  for (const method of ['POST', 'PUT', 'DELETE']) {
    const answer = await askMetrics(`${method} /metrics`);
    t.match(answer, { status: 405, headers: { allow: 'GET, HEAD' } }, method);
  }
  t.ok((await askMetrics('OPTIONS /metrics')).status < 500);
  for (const path of ['/', '/metrics/x', '/nothing']) {
    t.equal((await askMetrics(`GET ${path}`)).status, 404, path);
  }
  // Prometheus may add parameters to the URL, as configured for a job.
  const asked = await fetch(`http://127.0.0.1:${first_port}/metrics?name[]=pf_http_open`);
  t.equal(asked.status, 200);
  t.ok(parse(await asked.text()).length > 0);
});

t.test('fifty ask at once', async (t) => {
  const texts = await Promise.all(Array.from({ length: 50 }, () => scrapeText(first_port)));
  for (const text of texts) t.ok(parse(text).length > 20);
});

/* Names in dashboards, alerts and documents. */

const read = (...names: readonly string[]): string =>
  readFileSync(path.join(project_root, ...names), 'utf8');
const baseOf = (name: string): string => name.replace(/_(?:bucket|sum|count)$/, '');

t.test('each name in the documents is one', async (t) => {
  const types = typeOf(await scrapeAll());
  const docs = readdirSync(path.join(project_root, 'docs'), { encoding: 'utf8', recursive: true });
  const pages = docs.filter((name) => name.endsWith('.md'));
  const named = pages.flatMap((name) =>
    [...read('docs', name).matchAll(/`((?:pf|nodejs)_\w+)`/g)].map(([, metric = '']) => metric),
  );
  t.ok(named.length > 5);
  for (const metric of new Set(named)) {
    t.ok(types.has(metric) || types.has(baseOf(metric)), metric);
  }
});

t.test('the examples ask each for what its type has', async (t) => {
  const types = typeOf(await scrapeAll());
  const { panels } = JSON.parse(read('examples', 'observe', 'dashboard.json')) as Any;
  const exprs: readonly string[] = [
    ...panels.flatMap(({ targets }: Any) => targets.map(({ expr }: Any) => expr)),
    ...[...read('examples', 'observe', 'alerts.yaml').matchAll(/^ +expr: '(.+)'$/gm)].map(
      ([, expr = '']) => expr,
    ),
  ];
  for (const expr of exprs) {
    for (const [, name = ''] of expr.matchAll(/(?:rate|increase)\((\w+)/g)) {
      t.match(types.get(name) ?? types.get(baseOf(name)), /counter|histogram/, expr);
    }
    for (const [, name = ''] of expr.matchAll(/\b((?:pf|process|nodejs)_\w+_bucket)\b/g)) {
      t.equal(types.get(baseOf(name)), 'histogram', expr);
      t.match(expr, /histogram_quantile\(.*\ble\b/);
    }
  }
});
