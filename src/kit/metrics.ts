import { createServer } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { type Service, withDeadline } from './service.js';

/**
 * Serves metrics and probes of one process on its own port, so that they answer while the public
 * port is busy, and never take capacity from clients. Values are read when somebody asks for them.
 */

export interface Measure {
  readonly name: string;
  readonly help: string;
  /** Reads the current value. If the value is undefined, the sample is left out. */
  readonly read: () => number | undefined | Promise<number | undefined>;
}

export type Metric = Measure | Histogram;

interface MonitorOptions {
  readonly port: number;
  readonly host: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly measures: readonly Metric[];
  /** Returns true if the process can do its work now. */
  readonly isReady: () => boolean | Promise<boolean>;
}

const makeRegistry = ({ labels, measures }: MonitorOptions): Registry => {
  const registry = new Registry();
  registry.setDefaultLabels(labels);
  // Metrics of the process itself, under the names that every dashboard knows.
  collectDefaultMetrics({ register: registry });
  for (const one of measures) {
    if (one instanceof Histogram) registry.registerMetric(one);
    else makeMetric(one, registry);
  }
  return registry;
};

/** If reading a value takes longer than this, the value is left out. */
const max_ms = 2_000;

/** Makes a counter if the name ends with `_total`, else a gauge. */
const makeMetric = ({ name, help, read }: Measure, registry: Registry): void => {
  const readInTime = () =>
    withDeadline(Promise.resolve().then(read), max_ms, name).catch(() => undefined);
  const options = { name: `pf_${name}`, help, registers: [registry] };
  if (name.endsWith('_total')) {
    new Counter({
      ...options,
      async collect() {
        const value = await readInTime();
        this.reset();
        if (value === undefined) this.remove();
        else this.inc(value);
      },
    });
    return;
  }
  new Gauge({
    ...options,
    async collect() {
      const value = await readInTime();
      if (value === undefined) this.remove();
      else this.set(value);
    },
  });
};

/** Leaves out values that could not be measured since the last request, such as a delay. */
const withoutGaps = (text: string): string => text.replace(/^[^#].* Nan\n/gm, '');

/** `GET /livez`, `/readyz` and `/metrics`; anything else is 404. */
export const createMonitor = (options: MonitorOptions): Service => {
  const registry = makeRegistry(options);
  const server = createServer((request, response) => {
    const say = (status: number, text: string, type = 'text/plain'): void => {
      const headers = { 'content-type': type, 'x-content-type-options': 'nosniff' };
      response.writeHead(status, headers).end(text);
    };
    // Prometheus adds parameters of its own to the address.
    const [path] = request.url?.split('?') ?? [];
    const answer = async (): Promise<void> => {
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        response.setHeader('allow', 'GET, HEAD');
        say(405, 'This address supports only GET, HEAD.\n');
      } else if (path === '/livez') say(200, 'ok\n');
      else if (path === '/readyz') {
        const ready = await options.isReady();
        say(ready ? 200 : 503, ready ? 'ok\n' : 'not ready\n');
      } else if (path === '/metrics') {
        say(200, withoutGaps(await registry.metrics()), registry.contentType);
      } else say(404, 'GET /livez, /readyz or /metrics\n');
    };
    answer().catch((error: unknown) => say(500, `${String(error)}\n`));
  });
  server.requestTimeout = 5_000;
  return {
    name: 'monitor',
    start: () =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(options.port, options.host, () => resolve());
      }),
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
