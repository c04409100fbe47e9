import { readFileSync } from 'node:fs';
import path from 'node:path';
import { findPort } from '../features/log/log-server.js';
import { startApp } from '../help/app.js';
import { project_root } from '../help/own-stores.js';
import { openStores } from '../help/stores.js';
import { t } from '../help/tap.js';

/** The dashboard and the alert rules of `examples/observe` only use metrics that `/metrics` has. */

const readExample = (name: string): string =>
  readFileSync(path.join(project_root, 'examples', 'observe', name), 'utf8');

interface Target {
  readonly expr: string;
  readonly legendFormat: string;
}

const readTargets = (): readonly Target[] => {
  const { panels } = JSON.parse(readExample('dashboard.json')) as {
    readonly panels: readonly { readonly targets: readonly Target[] }[];
  };
  return panels.flatMap(({ targets }) => targets);
};

const readRules = (): readonly string[] =>
  [...readExample('alerts.yaml').matchAll(/^ +expr: '(.+)'$/gm)].map(([, expr = '']) => expr);

const metricsIn = (expr: string): readonly string[] =>
  expr.match(/\b(?:pf|process|nodejs)_\w+/g) ?? [];

/** Labels in a selector, in `by (…)` and in the legend of a line. */
const labelsIn = (expr: string, legend = ''): readonly string[] => [
  ...[...expr.matchAll(/\{(\w+)=/g)].map(([, name = '']) => name),
  ...[...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(', ')),
  ...[...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, name = '']) => name),
];

/** The labels of each sample. */
const readSamples = async (port: number): Promise<ReadonlyMap<string, ReadonlySet<string>>> => {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const samples = [...text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)];
  return new Map(
    samples.map(([, name = '', labels = '']) => [
      name,
      new Set([...labels.matchAll(/(\w+)="/g)].map(([, label = '']) => label)),
    ]),
  );
};

t.test('every metric and label of the examples exists', async (t) => {
  const stores = await openStores(t);
  const [api_port, signer_port] = [await findPort(), await findPort()];
  const env = (port: number) => ({ METRICS_PORT: String(port) });
  const app = await startApp(t, { stores, roles: ['api'], env: env(api_port) });
  await startApp(t, { stores, roles: ['signer'], env: env(signer_port) });
  t.equal((await app.call('GET', '/api/questions')).status, 200);
  const samples = new Map([...(await readSamples(signer_port)), ...(await readSamples(api_port))]);
  const asked = [
    ...readTargets().map(({ expr, legendFormat }) => ({ expr, legend: legendFormat })),
    ...readRules().map((expr) => ({ expr, legend: '' })),
  ];
  t.ok(asked.length > 30, `${asked.length} expressions`);
  for (const { expr, legend } of asked) {
    // Prometheus itself generates `up` for each target.
    const metrics = metricsIn(expr);
    t.ok(metrics.length > 0 || expr.startsWith('up{'), expr);
    for (const metric of metrics) {
      const labels = samples.get(metric);
      const unknown = labelsIn(expr, legend).filter((label) => !labels?.has(label));
      t.same(labels === undefined ? ['no such metric'] : unknown, [], `${metric} in ${expr}`);
    }
  }
});

t.test('metrics are in base units, and those of the process have their usual names', async (t) => {
  const port = await findPort();
  await startApp(t, { roles: ['api'], env: { METRICS_PORT: String(port) } });
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const types = new Map(
    [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type]) => [name, type]),
  );
  for (const [name, type] of types) {
    t.notMatch(name, /_(?:ms|us|millis\w*|minutes|hours|kb|mb|kib|mib|percent)(?:_|$)/);
    if (name.startsWith('pf_')) t.equal(name.endsWith('_total'), type === 'counter', name);
    t.notMatch(name, /^pf_(?:process|nodejs)_/);
  }
  for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes']) {
    t.ok(types.has(name), name);
  }
  t.ok(types.has('nodejs_eventloop_lag_p99_seconds'));
  t.ok(types.has('pf_outbox_lag_seconds'));
});

t.test('requests are counted by the class of their status, with their durations', async (t) => {
  const port = await findPort();
  const app = await startApp(t, { roles: ['api'], env: { METRICS_PORT: String(port) } });
  const count = async (status: string): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const name = `pf_http_request_duration_seconds_count\\{[^}]*status="${status}"[^}]*\\} (\\d+)`;
    return Number(new RegExp(name).exec(text)?.[1] ?? 0);
  };
  const [good, refused] = [await count('2xx'), await count('4xx')];
  for (const path of ['/api/me', '/api/nothing', '/health']) await app.call('GET', path);
  t.equal(await count('2xx'), good + 1);
  t.equal(await count('4xx'), refused + 2);
});
