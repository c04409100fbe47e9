import { type TSchema, Type } from '@sinclair/typebox';
import { Prepared } from '../../kit/http/body.js';
import { type DocumentInfo, makeOpenApi } from '../../kit/http/openapi.js';
import { type Route, replyPrepared, routeFor } from '../../kit/http/route.js';
import { makeAsyncApi } from './asyncapi.js';
import { exampleOf } from './examples.js';
import { makeLlms } from './llms.js';
import {
  reference_headers,
  reference_page,
  renderEvents,
  viewerScript,
  viewerStyle,
} from './pages.js';
import { basics, type LimitLine, parameter_texts, tag_texts } from './texts.js';

/** Documents about the service that the service itself serves, each made when it is asked for. */

export interface SiteOptions {
  readonly routes: readonly Route[];
  readonly info: DocumentInfo;
  readonly limits: readonly LimitLine[];
  /** Known only once the server listens. */
  readonly public_url: () => string;
}

const countGroups = (routes: readonly Route[]): ReadonlyMap<string, number> => {
  const groups = new Map<string, number>();
  for (const { tag, documented } of routes) {
    if (documented) groups.set(tag, (groups.get(tag) ?? 0) + 1);
  }
  return groups;
};

const makers = {
  openapi: ({ routes, info, public_url }: SiteOptions) =>
    JSON.stringify(
      makeOpenApi(routes, {
        ...{ info: { ...info, description: basics }, server_url: public_url() },
        ...{ tags: tag_texts, parameters: parameter_texts },
        bodyOf: (route) => exampleOf(route).body,
      }),
    ),
  asyncapi: ({ info, public_url }: SiteOptions) => JSON.stringify(makeAsyncApi(info, public_url())),
  reference: () => reference_page,
  viewer_script: viewerScript,
  viewer_style: viewerStyle,
  events: () => renderEvents().html,
  llms: ({ routes, info, limits, public_url }: SiteOptions) =>
    makeLlms({ title: info.title, url: public_url(), groups: countGroups(routes), limits }),
};

type Document = keyof typeof makers;

export type Site = (name: Document) => Prepared;

export const createSite = (options: SiteOptions): Site => {
  const made = new Map<Document, Prepared>();
  return (name) => {
    const known = made.get(name) ?? new Prepared(makers[name](options));
    made.set(name, known);
    return known;
  };
};

export interface DocsParts {
  readonly site: Site;
}

const route = routeFor<DocsParts>();

interface Served {
  readonly id: string;
  readonly path: string;
  readonly summary: string;
  readonly produces: string;
  readonly content: Document;
  readonly headers?: Readonly<Record<string, string>>;
  readonly documented?: boolean;
}

const serve = ({ produces, content, headers = {}, ...one }: Served) =>
  route({
    ...{ ...one, method: 'GET', tag: 'docs', auth: 'public', cacheable: true },
    returns: {
      200: (produces === 'application/json' ? Type.Object({}) : Type.String()) as TSchema,
    },
    ...(produces === 'application/json' ? {} : { produces }),
    handle: (_ctx, { site }) => {
      const charset = produces.startsWith('text/') ? '; charset=utf-8' : '';
      return replyPrepared(`${produces}${charset}`, site(content), headers);
    },
  });

const { 'Cache-Control': _, ...events_headers } = renderEvents().headers;

export { makeAsyncApi } from './asyncapi.js';
export const routes = [
  serve({
    ...{ id: 'openapi', path: '/openapi.json', produces: 'application/json', content: 'openapi' },
    summary: 'This document: OpenAPI 3.1',
  }),
  serve({
    ...{ id: 'asyncapi', path: '/asyncapi.json', produces: 'application/json' },
    summary: 'Events, frames, topics and close codes: AsyncAPI 3.0',
    content: 'asyncapi',
  }),
  serve({
    ...{ id: 'docs', path: '/docs', produces: 'text/html', content: 'reference' },
    summary: 'The reference as a page: every operation, nothing from elsewhere',
    headers: reference_headers,
  }),
  serve({
    ...{ id: 'home', path: '/', produces: 'text/html', content: 'reference' },
    summary: 'The same page, at the address of the service',
    headers: reference_headers,
  }),
  serve({
    ...{ id: 'docsScript', path: '/docs/viewer.js', produces: 'text/javascript' },
    ...{ summary: 'The script of the reference', content: 'viewer_script', documented: false },
  }),
  serve({
    ...{ id: 'docsStyle', path: '/docs/viewer.css', produces: 'text/css' },
    ...{ summary: 'The style of the reference', content: 'viewer_style', documented: false },
  }),
  serve({
    ...{ id: 'eventDocs', path: '/docs/events', produces: 'text/html', content: 'events' },
    summary: 'A page about events: fields, topics and close codes',
    headers: events_headers,
  }),
  serve({
    ...{ id: 'llms', path: '/llms.txt', produces: 'text/plain', content: 'llms' },
    summary: 'The service in one short text with links, for agents: llmstxt.org',
  }),
];
