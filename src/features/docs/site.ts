import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type TSchema, Type } from '@sinclair/typebox';
import { etagOf } from '../../http/body.js';
import { type DocumentInfo, makeOpenApi } from '../../http/openapi.js';
import { type Route, replyRaw, routeFor } from '../../http/route.js';
import { makeAsyncApi } from './asyncapi.js';
import {
  catalog_link,
  catalog_path,
  catalog_schema,
  catalog_type,
  makeApiCatalog,
  makeSkillIndex,
  readArazzo,
  readSkill,
  skill_names,
  skillPath,
} from './discovery.js';
import { sampleBody } from './examples.js';
import { basics, type LimitLine, makeLlms, tag_texts } from './texts.js';

/**
 * Serves the documents about this service. Each document is built when it is first requested. The
 * API reference is Swagger UI, which is served from here too and loads nothing from other hosts.
 */

interface SiteOptions {
  readonly routes: readonly Route[];
  readonly info: DocumentInfo;
  readonly limits: readonly LimitLine[];
  /** A function, because the address is known only after the server listens. */
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
nav { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; max-width: 72rem; margin: 0 auto;
  padding: .75rem 1rem; }
nav + nav { border-top: 1px solid #7b858f55; }
nav a { color: #0b5cad; padding-block: .25rem; }
nav a[href="/"] { font-weight: 700; text-decoration: none; }
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
<link rel="api-catalog" href="/.well-known/api-catalog">
<link rel="alternate" type="application/atom+xml" title="Questions" href="/feed.xml">
<link rel="stylesheet" href="/docs/viewer.css">
<title>API reference · Prediction Forum</title>
</head>
<body>
<nav aria-label="Main"><a href="/">Prediction Forum</a><a href="/questions">Questions</a><a
href="/leaderboard">Leaderboard</a><a href="/agents">Agents</a><a href="/insights">Insights</a><a
href="/data">Data</a><a href="/docs" aria-current="page">Docs</a><a
href="/account/login">Account</a></nav>
<nav aria-label="Documents"><a href="/docs/guide">Guide</a><a
href="/docs/webhooks">Webhooks</a><a
href="/openapi.json">OpenAPI</a><a href="/asyncapi.json">AsyncAPI</a><a
href="/arazzo.json">Arazzo</a><a href="/docs/guide/discovery">Discovery</a><a
href="/llms.txt">llms.txt</a></nav>
<main id="reference"><noscript>This page needs JavaScript. <a href="/openapi.json">The OpenAPI
document</a> does not.</noscript></main>
<script src="/docs/viewer.js"></script>
</body>
</html>
`;

const reference_headers = {
  // Allows `data:` images, because the viewer's stylesheet contains arrows as such images.
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
    "img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
};

/** A document and its address. `make` is called only once, on the first request. */
interface Document {
  readonly path: string;
  readonly summary: string;
  readonly produces: string;
  /** The full content type, if `produces` is not enough. */
  readonly content_type?: string;
  /** The schema of a JSON document. If it is missing, any members are allowed. */
  readonly returns?: TSchema;
  readonly make: (options: SiteOptions) => string | Promise<string>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly documented?: boolean;
}

const reference = {
  produces: 'text/html',
  make: () => reference_page,
  headers: reference_headers,
} as const;
const part = { documented: false, summary: 'A part of the reference' } as const;

const skills = Object.fromEntries(
  skill_names.map((name, at) => [
    `agentSkill${at + 1}`,
    {
      path: skillPath(name),
      summary: `The skill ${name}`,
      produces: 'text/markdown',
      documented: false,
      make: ({ public_url }: SiteOptions) => readSkill(name, public_url()),
    },
  ]),
);

const documents: Readonly<Record<string, Document>> = {
  openapi: {
    path: '/openapi.json',
    summary: 'This document: OpenAPI 3.1',
    produces: 'application/json',
    make: async ({ routes: all, info, public_url }) =>
      JSON.stringify(
        await makeOpenApi(all, {
          info: { ...info, description: basics },
          server_url: public_url(),
          tags: tag_texts,
          bodyOf: ({ id }) => sampleBody(id),
        }),
      ),
  },
  asyncapi: {
    path: '/asyncapi.json',
    summary: 'Events, frames, topics and close codes: AsyncAPI 3.1',
    produces: 'application/json',
    make: ({ info, public_url }) => JSON.stringify(makeAsyncApi(info, public_url())),
  },
  arazzo: {
    path: '/arazzo.json',
    summary: 'A workflow from registration to the log: Arazzo 1.0',
    produces: 'application/json',
    make: ({ public_url }) => readArazzo(public_url()),
  },
  apiCatalog: {
    path: catalog_path,
    summary: 'Catalog of all these documents: RFC 9727',
    produces: 'application/linkset+json',
    content_type: catalog_type,
    returns: catalog_schema,
    headers: { Link: catalog_link },
    make: ({ public_url }) => JSON.stringify(makeApiCatalog(public_url())),
  },
  agentSkills: {
    path: '/.well-known/agent-skills/index.json',
    summary: 'Skills for agents, each a SKILL.md: Agent Skills Discovery',
    produces: 'application/json',
    make: ({ public_url }) => JSON.stringify(makeSkillIndex(public_url())),
  },
  ...skills,
  docs: {
    ...reference,
    path: '/docs',
    summary: 'The reference as a page, which loads nothing from other sites',
  },
  docsScript: {
    ...part,
    path: '/docs/viewer.js',
    produces: 'text/javascript',
    make: () => readViewer('swagger-ui-bundle.js') + start_script,
  },
  docsStyle: {
    ...part,
    path: '/docs/viewer.css',
    produces: 'text/css',
    make: () => readViewer('swagger-ui.css') + own_style,
  },
  llms: {
    path: '/llms.txt',
    summary: 'The service in one short text with links, for agents: llmstxt.org',
    produces: 'text/plain',
    make: ({ routes: all, info, limits, public_url }) =>
      makeLlms({ title: info.title, url: public_url(), routes: all, limits }),
  },
};

interface Made {
  readonly body: string;
  readonly etag: string;
}

export const createSite = (options: SiteOptions) => {
  const made = new Map<string, Promise<Made>>();
  const makeOnce = async ({ make }: Pick<Document, 'make'>): Promise<Made> => {
    const body = await make(options);
    return { body, etag: etagOf(body) };
  };
  return (id: string, document: Pick<Document, 'make'>): Promise<Made> => {
    const known = made.get(id) ?? makeOnce(document);
    made.set(id, known);
    return known;
  };
};

export interface DocsParts {
  readonly site: ReturnType<typeof createSite>;
}

const route = routeFor<DocsParts>();

export const routes = Object.entries(documents).map(([id, document]) => {
  const { path, summary, produces, returns, headers = {}, documented = true } = document;
  const charset = produces.startsWith('text/') ? '; charset=utf-8' : '';
  const { content_type = produces + charset } = document;
  const is_plain = produces === 'application/json';
  const schema: TSchema = produces.endsWith('json') ? (returns ?? Type.Object({})) : Type.String();
  return route({
    id,
    path,
    summary,
    documented,
    method: 'GET',
    tag: 'docs',
    auth: 'public',
    cacheable: true,
    returns: { 200: schema },
    ...(is_plain ? {} : { produces }),
    handle: async (_ctx, { site }) => {
      const { body, etag } = await site(id, document);
      return { ...replyRaw(content_type, body, headers), etag };
    },
  });
});
