import { Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { replyRaw, routeFor } from '../../http/route.js';
import { uuid_schema } from '../../http/schemas.js';
import { escapeHtml } from '../../kit/html.js';
import { per_page, readPageStarts, readSitemapPage } from './sitemap-store.js';

/** Sitemaps for search engines: an index, the fixed pages, and the questions in pages by id. */

const route = routeFor<Deps>();
const shared = {
  ...({ method: 'GET', tag: 'feeds', auth: 'public', produces: 'application/xml' } as const),
  cacheable: true,
  returns: { 200: Type.String() },
};

const first_id = '00000000-0000-0000-0000-000000000000';

const replyXml = (root: 'sitemapindex' | 'urlset', elements: readonly string[]) =>
  replyRaw(
    'application/xml; charset=utf-8',
    `<?xml version="1.0" encoding="utf-8"?>\n<${root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n${elements.join('\n')}\n</${root}>\n`,
    { 'Cache-Control': 'public, max-age=3600' },
  );

const place = (url: string, at?: Date): string => {
  const changed = at === undefined ? '' : `<lastmod>${at.toISOString()}</lastmod>`;
  return `<loc>${escapeHtml(url)}</loc>${changed}`;
};

const sitemap = route({
  ...shared,
  id: 'sitemap',
  path: '/sitemap.xml',
  summary: 'Index of the sitemaps',
  async handle(_ctx, { sql, public_url }) {
    const starts = await readPageStarts(sql);
    return replyXml(
      'sitemapindex',
      ['/sitemap/pages.xml', ...starts.map(({ id }) => `/sitemap/questions.xml?from=${id}`)].map(
        (path) => `<sitemap>${place(public_url + path)}</sitemap>`,
      ),
    );
  },
});

const pages = [
  '/',
  '/questions',
  '/leaderboard',
  '/agents',
  '/insights',
  '/calibration',
  '/method',
  '/data',
  '/docs',
  '/docs/api',
  '/about',
  '/embed-builder',
];

const sitemapPages = route({
  ...shared,
  id: 'sitemapPages',
  path: '/sitemap/pages.xml',
  summary: 'Sitemap of the fixed pages',
  handle: (_ctx, { public_url }) =>
    replyXml(
      'urlset',
      pages.map((path) => `<url>${place(public_url + path)}</url>`),
    ),
});

const sitemapQuestions = route({
  ...shared,
  id: 'sitemapQuestions',
  path: '/sitemap/questions.xml',
  summary: `Sitemap of up to ${per_page} questions, starting at an id`,
  query: Type.Object({ from: Type.Optional(uuid_schema) }),
  async handle({ query }, { sql, public_url }) {
    const rows = await readSitemapPage(sql, query.from ?? first_id);
    return replyXml(
      'urlset',
      rows.map(
        ({ id, updated_at }) => `<url>${place(`${public_url}/questions/${id}`, updated_at)}</url>`,
      ),
    );
  },
});

export const sitemap_routes = [sitemap, sitemapPages, sitemapQuestions];
