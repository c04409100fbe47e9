import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type TSchema, Type } from '@sinclair/typebox';
import { etagOf } from '../../http/body.js';
import { type DocumentInfo, makeOpenApi } from '../../http/openapi.js';
import { type Route, replyRaw, routeFor } from '../../http/route.js';

import { makeAsyncApi } from './asyncapi.js';
import { example_bodies } from './examples.js';
import { basics, type LimitLine, makeLlms, tag_texts } from './texts.js';

/**
 * Documents about the service that the service itself serves, each made at its first request. The
 * reference is Swagger UI, whose files are served from here; it asks no other host for anything.
 */

interface SiteOptions {
  readonly routes: readonly Route[];
  readonly info: DocumentInfo;
  readonly limits: readonly LimitLine[];
  /** Known only once the server listens. */
  readonly public_url: () => string;
}

const require = createRequire(import.meta.url);
const readViewer = (file: string): string =>
  readFileSync(require.resolve(`swagger-ui-dist/${file}`), 'utf8');

const start_script = `
const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();
SwaggerUIBundle({ url: '/openapi.json', dom_id: '#reference', deepLinking: true, filter: true,
  docExpansion: 'none', defaultModelsExpandDepth: -1, validatorUrl: null });
`;

const own_style = `
:root { color-scheme: light dark; }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; background: #fff; color: #3b4151; }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: .75rem 1.25rem; }
nav a { color: #0b5cad; }
@media (prefers-color-scheme: dark) {
  body { background: #1c2022; color: #e4e6e6; } nav a { color: #79b8ff; } }
@media (max-width: 52rem) { .swagger-ui .wrapper { padding: 0 .75rem; }
  .swagger-ui .opblock .opblock-summary-path { max-width: 100%; word-break: break-word; }
  .swagger-ui .opblock .opblock-summary { flex-wrap: wrap; }
  .swagger-ui .opblock-body, .swagger-ui .responses-wrapper { overflow-x: auto; } }
`;

const reference_page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="Every operation of the forum, to read and to try.">
<link rel="alternate" type="text/plain" title="For agents" href="/llms.txt">
<link rel="alternate" type="application/atom+xml" title="Questions" href="/feed.xml">
<link rel="stylesheet" href="/docs/viewer.css">
<title>API reference · Prediction Forum</title>
</head>
<body>
<nav aria-label="Documents"><a href="/docs/webhooks">Webhooks</a><a
href="/openapi.json">OpenAPI</a><a href="/asyncapi.json">AsyncAPI</a><a
href="/llms.txt">llms.txt</a></nav>
<main id="reference"><noscript>The viewer needs a script; <a href="/openapi.json">the document
itself</a> does not.</noscript></main>
<script src="/docs/viewer.js"></script>
</body>
</html>
`;

const reference_headers = {
  // The arrows of the viewer are pictures within its style.
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
    "img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
};

const makers = {
  openapi: ({ routes, info, public_url }: SiteOptions) =>
    JSON.stringify(
      makeOpenApi(routes, {
        ...{ info: { ...info, description: basics }, server_url: public_url(), tags: tag_texts },
        bodyOf: ({ id }) => example_bodies[id] ?? {},
      }),
    ),
  asyncapi: ({ info, public_url }: SiteOptions) => JSON.stringify(makeAsyncApi(info, public_url())),
  reference: () => reference_page,
  viewer_script: () => readViewer('swagger-ui-bundle.js') + start_script,
  viewer_style: () => readViewer('swagger-ui.css') + own_style,
  llms: ({ routes, info, limits, public_url }: SiteOptions) =>
    makeLlms({ title: info.title, url: public_url(), routes, limits }),
};

type Document = keyof typeof makers;

type Site = (name: Document) => { readonly body: string; readonly etag: string };

export const createSite = (options: SiteOptions): Site => {
  const made = new Map<Document, ReturnType<Site>>();
  return (name) => {
    const known = made.get(name);
    if (known !== undefined) return known;
    const body = makers[name](options);
    const document = { body, etag: etagOf(body) };
    made.set(name, document);
    return document;
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
      const { body, etag } = site(content);
      return { ...replyRaw(`${produces}${charset}`, body, headers), etag };
    },
  });

const reference = {
  produces: 'text/html',
  content: 'reference',
  headers: reference_headers,
} as const;
const part = { documented: false, summary: 'A part of the reference' } as const;

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
    ...{ id: 'docs', path: '/docs', ...reference },
    summary: 'The reference as a page: every operation, nothing from elsewhere',
  }),
  serve({
    ...{ id: 'home', path: '/', ...reference },
    summary: 'The same page, at the address of the service',
  }),
  serve({
    ...{ id: 'docsScript', path: '/docs/viewer.js', produces: 'text/javascript', ...part },
    content: 'viewer_script',
  }),
  serve({
    ...{ id: 'docsStyle', path: '/docs/viewer.css', produces: 'text/css', ...part },
    content: 'viewer_style',
  }),
  serve({
    ...{ id: 'llms', path: '/llms.txt', produces: 'text/plain', content: 'llms' },
    summary: 'The service in one short text with links, for agents: llmstxt.org',
  }),
];
