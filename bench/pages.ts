import { gzipSync } from 'node:zlib';
import { type BrowserPage, openBrowser } from '../test/help/browser.js';
import { publicPages } from '../test/help/pages.js';
import { makeLoad, runRound } from './env/load-rounds.js';
import { questionId, seedForecasts } from './env/seed.js';
import { startForum, startLoader, startPeer, type Target } from './env/setup.js';
import { type Bench, figureOf, ratioOf, type Sample, type Subject } from './frame/bench.js';
import { makeComment } from './load/predict-texts.js';
import type { PageHandlers } from './peers/pages.js';

/**
 * The pages for people while forecasts arrive on all open questions. Measures how long a visitor
 * waits for the last byte at a steady rate, the number of pages per second, and the rendering in a
 * browser. The conventional peer renders pages with the same parts from the same rows.
 */

const agents = 20_000;
/** Open questions, each with this many forecasts and comments. Readers visit all of them. */
const questions = 200;
const forecasts = 100;
const comments = 10;
/** The last questions are resolved, so that agents have ranks. */
const resolved = 6;
const placed_per_second = 50;
const read_per_second = 200;
const connections = 64;
const max_per_second = 60_000;
/** Factor by which the CPU of the browser is slowed down. */
const slower = 4;

const open = Array.from({ length: questions }, (_, n) => questionId(n));
const paths = {
  home: ['/'],
  question: open.map((id) => `/questions/${id}`),
  /** Cached JSON, for comparison. */
  json: open.map((id) => `/api/questions/${id}/consensus`),
};
type Kind = keyof typeof paths;
const kinds = ['home', 'question'] as const;

const admin_key = 'bench-admin-key-0123456789abcdefghij';

/** Makes an API call. Throws if the call fails. */
const post = async (
  { port }: Target,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: object,
): Promise<void> => {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
};

const read = async ({ port }: Target, path: string): Promise<string> => {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.text();
};

const kilobytesOf = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + gzipSync(text).length, 0) / 1_024;

/** Stylesheets and scripts that the pages reference, and the modules that these import. */
const readAssets = async (service: Target, pages: readonly string[]) => {
  const found = new Map<string, string>();
  const follow = async (path: string): Promise<void> => {
    if (found.has(path)) return;
    found.set(path, '');
    const text = await read(service, path);
    found.set(path, text);
    const folder = path.slice(0, path.lastIndexOf('/') + 1);
    for (const [, name = ''] of text.matchAll(
      /\b(?:from|import)\s*\(?['"]\.\/([\w.-]+\.js)['"]/g,
    )) {
      await follow(folder + name);
    }
  };
  const named = pages.flatMap((page) => [
    ...page.matchAll(/<(?:script\b[^>]* src|link rel="stylesheet" href)="(\/[^"]+)"/g),
  ]);
  for (const [, path = ''] of named) await follow(path);
  const endingWith = (end: string): readonly string[] =>
    [...found].filter(([path]) => path.endsWith(end)).map(([, text]) => text);
  return { scripts: endingWith('.js'), styles: endingWith('.css') };
};

/** Observes layout shifts and the largest paint of a page while it loads and afterwards. */
const observer = `
  window.vitals = { cls: 0, lcp_ms: 0 };
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries()) {
      if (!hadRecentInput) window.vitals.cls += value;
    }
  }).observe({ type: 'layout-shift', buffered: true });
  new PerformanceObserver((list) => {
    for (const { startTime } of list.getEntries()) window.vitals.lcp_ms = startTime;
  }).observe({ type: 'largest-contentful-paint', buffered: true });`;

interface Vitals {
  readonly cls: number;
  readonly lcp_ms: number;
}

const sizes = { phone: { width: 375, height: 700 }, screen: { width: 1_280, height: 800 } };

const openSlowly = async (visitor: BrowserPage, url: string): Promise<void> => {
  const { page } = visitor;
  const session = await page.context().newCDPSession(page);
  await session.send('Emulation.setCPUThrottlingRate', { rate: slower });
  await page.addInitScript(observer);
  await page.goto(url);
};

export const bench: Bench = {
  question: 'How fast, how large and how stable are the pages while forecasts come in?',
  figures: {
    ...Object.fromEntries(
      kinds.flatMap((kind): [string, Bench['figures'][string]][] => [
        [
          `${kind}_p99_over_json`,
          { of: ratioOf(`${kind}_at_200_service`, 'json_at_200_service', 'p99_ms'), max: 3 },
        ],
        [`${kind}_over_fastify`, { of: ratioOf(`${kind}_service`, `${kind}_fastify`), min: 3 }],
        [
          `${kind}_cpu_over_fastify`,
          { of: ratioOf(`${kind}_service`, `${kind}_fastify`, 'us_all'), max: 1 / 3 },
        ],
      ]),
    ),
    html_kb: { of: figureOf('sizes', 'html_kb'), max: 30 },
    scripts_kb: { of: figureOf('sizes', 'scripts_kb'), max: 40 },
    style_kb: { of: figureOf('sizes', 'style_kb'), max: 10 },
    cls: { of: figureOf('browser', 'cls'), max: 0.02 },
    lcp_ms: { of: figureOf('browser', 'lcp_ms'), max: 1_000 },
  },
  async prepare(context) {
    const { setup, keys, keys_file, service } = await startForum(context, {
      agents,
      questions: questions + resolved,
      env: { ADMIN_KEY: admin_key },
      async fill(sql) {
        for (let question = 0; question < questions + resolved; question += 1) {
          const first_agent = agents - forecasts;
          await seedForecasts(sql, { question, first_agent, count: forecasts, events: true });
        }
      },
    });
    for (let n = 0; n < resolved; n += 1) {
      const act = (name: string, body: object): Promise<void> => {
        const path = `/api/admin/questions/${questionId(questions + n)}/${name}`;
        return post(service, path, { 'x-admin-key': admin_key }, body);
      };
      await act('close', {});
      await act('resolve', { outcome: n % 2 === 0, resolution_note: 'As reported.' });
    }
    for (let n = 0; n < questions * comments; n += 1) {
      const path = `/api/questions/${open[n % questions]}/comments`;
      await post(service, path, { 'x-api-key': keys[n]! }, { content: makeComment(n) });
    }
    const peer = await startPeer<PageHandlers>(setup, {
      name: 'fastify',
      module: 'pages',
      env: { DATABASE_URL: setup.urlOf('service') },
    });

    const place = makeLoad({ ...setup, loader: startLoader(context) }, service, {
      kind: 'predict',
      keys_file,
      agents,
      in_flight: 32,
    });
    /**
     * Places forecasts on all questions at a steady rate during the work, and waits for the last
     * ones at the end.
     */
    const whilePlacing = async <T>(seconds: number, work: () => Promise<T>): Promise<T> => {
      const placed = place({ seconds, rate: placed_per_second, subjects: open });
      // Awaited below. Until then, a rejection must not end the process.
      placed.catch(() => undefined);
      const result = await work();
      await placed;
      return result;
    };

    const makeRead = (kind: Kind, target: Target, rate?: number): Subject => {
      const run = async (seconds: number): Promise<Sample> => {
        const at_most = Math.ceil(seconds * (rate === undefined ? max_per_second : rate * 1.1));
        const { sample } = await whilePlacing(seconds + 1, () =>
          runRound(setup, {
            target,
            // These are pages that people read: only the first visitor of a page waits for it.
            async beforeGo() {
              for (const path of paths[kind]) await read(target, path);
            },
            job: {
              requests: { kind: 'read', paths: paths[kind], count: at_most + connections },
              in_flight: connections,
              seconds,
              wanted_status: 200,
              ...(rate === undefined ? {} : { rate }),
            },
          }),
        );
        return sample;
      };
      const name = `${kind}${rate === undefined ? '' : `_at_${rate}`}_${target.name}`;
      return { name, warmUp: () => run(context.quick ? 1 : 3), round: () => run(context.seconds) };
    };

    /** Measures the largest page, and all scripts and styles of the pages. */
    const measureSizes = async (): Promise<Sample> => {
      const [row] = await service.sql<{ agent: string; prediction: string }[]>`
        select agent_id as agent, id as prediction
        from predictions
        where question_id = ${open[0]!}
        limit 1`;
      const addresses = publicPages({ question: open[0]!, ...row! });
      const pages = await Promise.all(addresses.map((path) => read(service, path)));
      const { scripts, styles } = await readAssets(service, pages);
      return {
        html_kb: Math.max(...pages.map((page) => kilobytesOf([page]))),
        scripts_kb: kilobytesOf(scripts),
        style_kb: kilobytesOf(styles),
      };
    };

    const browser = await openBrowser({ teardown: (close) => context.onClose(close) });
    /** The worst figures of both pages on both screen sizes. A new visitor opens each page. */
    const measureVitals = (): Promise<Sample> =>
      whilePlacing(context.seconds, async () => {
        const found: Vitals[] = [];
        for (const viewport of Object.values(sizes)) {
          for (const kind of kinds) {
            const visitor = await browser.visit({ viewport });
            await openSlowly(visitor, `http://127.0.0.1:${service.port}${paths[kind][0]}`);
            await visitor.page.waitForTimeout((context.seconds * 1_000) / 5);
            found.push(await visitor.evaluate<Vitals>('window.vitals'));
            await visitor.page.context().close();
          }
        }
        const worst = (name: keyof Vitals): number => Math.max(...found.map((one) => one[name]));
        return { cls: worst('cls'), lcp_ms: worst('lcp_ms') };
      });

    return [
      () => [{ name: 'sizes', round: measureSizes }],
      () => [{ name: 'browser', round: measureVitals }],
      () => [...kinds, 'json' as const].map((kind) => makeRead(kind, service, read_per_second)),
      ...kinds.map((kind) => () => [service, peer].map((target) => makeRead(kind, target))),
    ];
  },
};
