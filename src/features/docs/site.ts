import { type TSchema, Type } from '@sinclair/typebox';
import { etagOf } from '../../http/body.js';
import { type DocumentInfo, makeOpenApi, type OpenApi } from '../../http/openapi.js';
import { type Route, replyRaw, routeFor } from '../../http/route.js';
import { memo } from '../../kit/memo.js';
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
import { makeReference, type Reference } from './reference.js';
import { basics, type LimitLine, makeLlms, tag_texts } from './texts.js';

/** Serves the documents about this service. Each one is made when it is first requested. */

export interface SiteOptions {
  readonly routes: readonly Route[];
  readonly info: DocumentInfo;
  readonly limits: readonly LimitLine[];
  /** A function, because the address is known only after the server listens. */
  readonly public_url: () => string;
}

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
    make: async (options) => JSON.stringify(await describeApi(options)),
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
  llms: {
    path: '/llms.txt',
    summary: 'The service in one short text with links, for agents: llmstxt.org',
    produces: 'text/plain',
    make: ({ routes: all, info, limits, public_url }) =>
      makeLlms({ title: info.title, url: public_url(), routes: all, limits }),
  },
};

const describeApi = ({ routes: all, info, public_url }: SiteOptions): Promise<OpenApi> =>
  makeOpenApi(all, {
    info: { ...info, description: basics },
    server_url: public_url(),
    tags: tag_texts,
    bodyOf: ({ id }) => sampleBody(id),
  });

interface Made {
  readonly body: string;
  readonly etag: string;
}

export const createSite = (options: SiteOptions) =>
  memo(
    (id: string, _document: Pick<Document, 'make'>) => id,
    async (_id, { make }): Promise<Made> => {
      const body = await make(options);
      return { body, etag: etagOf(body) };
    },
  );

/** Returns a function that makes the API reference when it is first needed. */
export const createReference = (options: SiteOptions): (() => Promise<Reference>) =>
  memo(
    () => '',
    async () => makeReference(await describeApi(options), options.public_url()),
  );

export interface DocsParts {
  readonly site: ReturnType<typeof createSite>;
  readonly reference: ReturnType<typeof createReference>;
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
