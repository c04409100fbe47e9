import { type TSchema, Type } from '@sinclair/typebox';
import { replyPrepared, routeFor } from '../../kit/http/route.js';
import { docs_headers } from '../../web/docs-page.js';
import type { Site } from './site.js';

/** Documents about the service that the service itself serves. */

export interface DocsParts {
  readonly site: () => Site;
}

const route = routeFor<DocsParts>();

interface Served {
  readonly id: string;
  readonly path: string;
  readonly summary: string;
  readonly produces: string;
  readonly content: keyof Site;
  readonly headers?: Readonly<Record<string, string>>;
}

const serve = ({ id, path, summary, produces, content, headers = {} }: Served) =>
  route({
    ...{ id, method: 'GET', path, summary, tag: 'docs', auth: 'public', cacheable: true },
    returns: {
      200: (produces === 'application/json' ? Type.Object({}) : Type.String()) as TSchema,
    },
    ...(produces === 'application/json' ? {} : { produces }),
    handle: (_ctx, { site }) => {
      const charset = produces.startsWith('text/') ? '; charset=utf-8' : '';
      return replyPrepared(`${produces}${charset}`, site()[content], headers);
    },
  });

export { makeAsyncApi } from './asyncapi.js';
export { createSite, type Site } from './site.js';
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
    summary: 'The reference as a page: every operation with examples, nothing from elsewhere',
    headers: docs_headers,
  }),
  serve({
    ...{ id: 'home', path: '/', produces: 'text/html', content: 'reference' },
    summary: 'The same page, for whoever comes to the address of the service',
    headers: docs_headers,
  }),
  serve({
    ...{ id: 'eventDocs', path: '/docs/events', produces: 'text/html', content: 'events' },
    summary: 'A page about events: fields, frames, deliveries, topics and close codes',
    headers: docs_headers,
  }),
  serve({
    ...{ id: 'llms', path: '/llms.txt', produces: 'text/plain', content: 'llms' },
    summary: 'The service in one short text with links, for agents: llmstxt.org',
  }),
  serve({
    ...{ id: 'llmsFull', path: '/llms-full.txt', produces: 'text/plain', content: 'llms_full' },
    summary: 'The whole reference as Markdown',
  }),
];
