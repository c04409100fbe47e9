import { readFileSync } from 'node:fs';
import { Type } from '@sinclair/typebox';
import { groupBy } from '../../kit/group-by.js';
import { sha256 } from '../../kit/ids.js';

/**
 * Lets programs discover the service from its address alone: the API catalog of RFC 9727, the link
 * header of the front page, skills (Agent Skills Discovery 0.2.0), and an example workflow for an
 * agent.
 */

interface Link {
  readonly rel: 'service-desc' | 'service-doc' | 'service-meta' | 'status';
  readonly path: string;
  readonly type: string;
  readonly title: string;
}

const json = 'application/json';

/** Links for the whole API, with the relations of RFC 8631. */
const links: readonly Link[] = [
  { rel: 'service-desc', path: '/openapi.json', type: json, title: 'OpenAPI 3.1' },
  { rel: 'service-desc', path: '/asyncapi.json', type: json, title: 'AsyncAPI 3.1' },
  { rel: 'service-desc', path: '/arazzo.json', type: json, title: 'Workflow in Arazzo 1.0' },
  { rel: 'service-doc', path: '/docs', type: 'text/html', title: 'Documentation' },
  { rel: 'service-doc', path: '/docs/api', type: 'text/html', title: 'API reference' },
  { rel: 'service-doc', path: '/llms.txt', type: 'text/plain', title: 'For agents' },
  {
    rel: 'service-meta',
    path: '/.well-known/agent-skills/index.json',
    type: json,
    title: 'Agent skills',
  },
  { rel: 'status', path: '/health', type: json, title: 'Health' },
];

export const catalog_path = '/.well-known/api-catalog';
export const catalog_type =
  'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"';
export const catalog_link = `<${catalog_path}>; rel="api-catalog"; type="application/linkset+json"`;

/** The `Link` header of the front page. */
export const front_links = [
  catalog_link,
  ...links.map(({ rel, path, type }) => `<${path}>; rel="${rel}"; type="${type}"`),
].join(', ');

const target_schema = Type.Object({
  href: Type.String(),
  type: Type.Optional(Type.String()),
  title: Type.Optional(Type.String()),
});

/** Each context lists its targets by link relation. */
export const catalog_schema = Type.Object({
  linkset: Type.Array(
    Type.Object(
      { anchor: Type.String() },
      { additionalProperties: Type.Union([Type.String(), Type.Array(target_schema)]) },
    ),
  ),
});

/** Returns a linkset (RFC 9264) with one context for each interface of the service. */
export const makeApiCatalog = (url: string): object => {
  const byRel = groupBy(links, ({ rel }) => rel);
  const targets = [...byRel].map(([rel, some]) => [
    rel,
    some.map(({ path, type, title }) => ({ href: url + path, type, title })),
  ]);
  return {
    linkset: [
      { anchor: url + catalog_path, item: ['/', '/mcp'].map((path) => ({ href: url + path })) },
      { anchor: `${url}/`, ...Object.fromEntries(targets) },
      {
        anchor: `${url}/mcp`,
        'service-doc': [{ href: `${url}/docs/guide/mcp`, type: 'text/html', title: 'MCP' }],
      },
    ],
  };
};

const examples = new URL('../../../../examples/', import.meta.url);
const written_address = 'http://127.0.0.1:8080';

/** Reads an example file and inserts the address of this service. */
export const readExample = (file: string, url: string): string =>
  readFileSync(new URL(file, examples), 'utf8').replaceAll(written_address, url);

export const readArazzo = (url: string): string => readExample('arazzo/forecast.json', url);

/** The skills, in the order in which an agent needs them. */
export const skill_names = [
  'register-and-link',
  'forecast-a-question',
  'follow-and-score',
] as const;

export const skillPath = (name: string): string => `/.well-known/agent-skills/${name}/SKILL.md`;

export const readSkill = (name: string, url: string): string =>
  readExample(`skills/${name}/SKILL.md`, url);

export const makeSkillIndex = (url: string): object => ({
  $schema: 'https://schemas.agentskills.io/discovery/0.2.0/schema.json',
  skills: skill_names.map((name) => {
    const text = readSkill(name, url);
    return {
      name,
      type: 'skill-md',
      description: /^description: (.+)$/m.exec(text)?.[1] ?? '',
      url: skillPath(name),
      digest: `sha256:${sha256(text, 'hex')}`,
    };
  }),
});
