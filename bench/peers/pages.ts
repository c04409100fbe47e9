import path from 'node:path';
import view from '@fastify/view';
import { curveStepAfter, line } from 'd3-shape';
import { Eta } from 'eta';
import fastify, { LogController } from 'fastify';
import pg from 'pg';
import { serve } from '../env/child.js';
import { statements } from './pages-sql.js';

/**
 * The design of most sites of this kind: Fastify, templates, and one prepared query per part of a
 * page, all in parallel. Renders the home page and the question page, with the same parts as the
 * service, from the same rows.
 */

const { DATABASE_URL = '', LOG_FILE = '' } = process.env;

const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 16, idleTimeoutMillis: 0 });

// biome-ignore lint/suspicious/noExplicitAny: rows of queries that the templates know.
type Row = any;

const rowsOf = async (name: keyof typeof statements, ...values: unknown[]): Promise<Row[]> =>
  (await pool.query({ name, text: statements[name], values })).rows;

interface Point {
  readonly at: Date;
  readonly forecast: number;
}

/** The SVG path of a step line through the points, in a box of this size. */
const pathOf = (points: readonly Point[], width: number, height: number): string => {
  const times = points.map(({ at }) => at.getTime());
  const [from = 0, to = 0] = [times[0], times.at(-1)];
  return (
    line<Point>(
      ({ at }) => ((at.getTime() - from) / (to - from || 1)) * width,
      ({ forecast }) => height - (forecast / 100) * height,
    )
      .curve(curveStepAfter)
      .digits(1)([...points]) ?? ''
  );
};

/** Adds the line of the last seven days to each question of the lists. */
const withTrends = async (...lists: Row[][]): Promise<void> => {
  const all = lists.flat();
  const trends = await rowsOf('trends', [...new Set(all.map(({ id }) => id))]);
  for (const question of all) {
    const points = trends.filter(({ question_id }) => question_id === question.id);
    question.path = pathOf(points, 120, 32);
  }
};

const readHome = async () => {
  const [active, closing, resolved, [numbers], top, families, latest] = await Promise.all([
    rowsOf('most_predicted'),
    rowsOf('closing_soon'),
    rowsOf('just_resolved'),
    rowsOf('numbers'),
    rowsOf('top_agents'),
    rowsOf('top_families'),
    rowsOf('latest'),
  ]);
  const moveOf = ({ change }: Row): number => Math.abs(change ?? 0);
  const moving = active.filter((one) => moveOf(one) >= 1).sort((a, b) => moveOf(b) - moveOf(a));
  const shown = (moving.length > 0 ? moving : active).slice(0, 5);
  await withTrends(shown, closing, resolved);
  return { shown, closing, resolved, numbers, top, families, latest, is_moving: moving.length > 0 };
};

const domainOf = (url: string): string => new URL(url).hostname.replace(/^www\./, '');

const readQuestion = async (id: string) => {
  const [[question], course, families, forecasts, stated, cases, comments] = await Promise.all([
    rowsOf('question', id),
    rowsOf('course', id),
    rowsOf('families', id),
    rowsOf('forecasts', id),
    rowsOf('stated', id),
    rowsOf('cases', id),
    rowsOf('comments', id),
  ]);
  for (const one of forecasts) {
    one.domains = one.citations.map((url: string) => ({ url, domain: domainOf(url) }));
    one.bottom_line = /BOTTOM LINE:?\s*(.*)$/s.exec(one.reasoning)?.[1] ?? one.reasoning;
  }
  return {
    question,
    course,
    families,
    forecasts,
    stated,
    cases,
    comments,
    path: pathOf(course, 720, 240),
  };
};

const makeServer = async () => {
  const app = fastify({
    logger: { level: 'info', file: LOG_FILE },
    logController: new LogController({ disableRequestLogging: true }),
  });
  const views = path.join(import.meta.dirname, 'pages');
  const eta = new Eta({ views, cache: true, autoTrim: false });
  await app.register(view, { engine: { eta }, root: views, production: true });
  app.addHook('onResponse', async (request, reply) => {
    request.log.info({ status: reply.statusCode, ms: reply.elapsedTime, path: request.url });
  });
  app.get('/', async (_, reply) => reply.viewAsync('home', await readHome()));
  app.get('/questions/:id', async (request, reply) =>
    reply.viewAsync('question', await readQuestion((request.params as { id: string }).id)),
  );
  return app;
};

const handlers = {
  async listen(): Promise<number> {
    const app = await makeServer();
    return Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port);
  },
};
export type PageHandlers = typeof handlers;
serve(handlers);
