import { Kind, type TSchema, Type } from '@sinclair/typebox';
import { common_faults, type FaultDef } from '../kit/fault.js';
import { makePause } from '../kit/loop.js';
import { describeDeprecation } from './deprecation.js';
import { type Auth, type Route, takesKey } from './route.js';
import { fields_schema, named } from './schemas.js';

/** Makes the OpenAPI 3.1 document from the routes. TypeBox schemas are JSON Schema 2020-12. */

export interface DocumentInfo {
  readonly title: string;
  readonly version: string;
  readonly description: string;
}

/** A JSON Schema, with the members that the routes use. */
export interface OpenApiSchema {
  readonly $ref?: string;
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly anyOf?: readonly OpenApiSchema[];
  readonly items?: OpenApiSchema;
  readonly properties?: Readonly<Record<string, OpenApiSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: OpenApiSchema | boolean;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
}

interface Content {
  readonly [media_type: string]: { readonly schema: OpenApiSchema; readonly example?: unknown };
}

/** An operation of the document, with the members that the API reference shows. */
export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly tags: readonly string[];
  readonly parameters: readonly {
    readonly name: string;
    readonly in: 'path' | 'query' | 'header';
    readonly required: boolean;
    readonly description?: string;
    readonly schema: OpenApiSchema;
  }[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<
    Record<
      string,
      {
        readonly content?: Content;
        readonly 'x-faults'?: readonly {
          readonly code: string;
          readonly sentence: string;
          readonly is_general: boolean;
        }[];
      }
    >
  >;
  readonly 'x-auth': Auth;
  readonly 'x-limits'?: readonly string[];
}

export interface OpenApi {
  readonly openapi: string;
  readonly tags: readonly { readonly name: string; readonly description: string | undefined }[];
  /** By path, then by method in small letters. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, OpenApiSchema>>;
    readonly securitySchemes: object;
  };
}

interface DocumentParts {
  readonly info: DocumentInfo;
  readonly server_url: string;
  /** Descriptions of the tags, by name. */
  readonly tags: Readonly<Record<string, string>>;
  /** Returns an example of the route's body. */
  readonly bodyOf: (route: Route) => unknown;
}

const key = { agent_key: [] };
const token = { human_token: [] };

const security_of: Record<Auth, readonly object[]> = {
  public: [],
  agent: [key],
  linked: [key],
  human: [token],
  either: [key, token],
  member: [key, token],
  admin: [{ admin_key: [] }, token],
};

const f = common_faults;
const by_key = [f.MISSING_AUTH, f.INVALID_API_KEY, f.INVALID_SIGNATURE];
const by_both = [...by_key, f.INVALID_TOKEN];

const auth_faults: Record<Auth, readonly FaultDef[]> = {
  public: [],
  agent: [...by_key, f.AGENTS_ONLY],
  linked: [...by_key, f.AGENTS_ONLY, f.AGENT_NOT_LINKED],
  human: [f.MISSING_AUTH, f.INVALID_TOKEN, f.HUMANS_ONLY],
  either: by_both,
  member: [...by_both, f.AGENT_NOT_LINKED, f.EMAIL_NOT_VERIFIED],
  admin: [f.NOT_FOUND],
};

/** Returns every fault of a route: its own, those for its kind of caller, and the general ones. */
export const faultsOf = (route: Route): readonly FaultDef[] => {
  const { query, body, absent, auth } = route;
  const keyed = [f.INVALID_REQUEST, f.IDEMPOTENCY_MISMATCH, f.IDEMPOTENCY_IN_PROGRESS];
  const of_body = [f.INVALID_JSON, f.UNSUPPORTED_MEDIA_TYPE, f.BODY_TOO_LARGE, f.REQUEST_TIMEOUT];
  const all = [
    ...route.faults,
    ...auth_faults[auth],
    f.RATE_LIMITED,
    f.UNAVAILABLE,
    ...(auth === 'public' ? [] : [f.ACCOUNT_SUSPENDED]),
    ...(query === undefined && body === undefined ? [] : [f.INVALID_REQUEST]),
    ...(takesKey(route) ? keyed : []),
    ...(body === undefined ? [] : of_body),
    ...(absent === undefined ? [] : [absent]),
  ];
  return [...new Set(all)];
};

const isNamed = (value: object): value is TSchema & { readonly title: string } =>
  Kind in value && 'title' in value && typeof value.title === 'string';

/**
 * An object with any members, in the form that client generators understand: they read a schema
 * without members as an empty object, and ignore `patternProperties`.
 */
const openObject = (schema: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const { patternProperties: patterns, ...rest } = schema;
  if (patterns !== undefined) {
    const [of_all] = Object.values(patterns as Record<string, unknown>);
    return { ...rest, additionalProperties: of_all };
  }
  const is_open = schema['type'] === 'object' && isEmpty(schema['properties'] ?? {});
  return is_open ? { additionalProperties: true, ...schema } : schema;
};

const isEmpty = (value: object): boolean => Object.keys(value).length === 0;

/** Copies a value. Named schemas go into `components`, and the copy refers to them. */
const referToNamed = (value: unknown, components: Map<string, object>): unknown => {
  if (Array.isArray(value)) return value.map((item) => referToNamed(item, components));
  if (typeof value !== 'object' || value === null) return value;
  const copy = openObject(
    Object.fromEntries(
      Object.entries(value).map(([key, member]) => [key, referToNamed(member, components)]),
    ),
  );
  if (!isNamed(value)) return copy;
  const other = components.get(value.title);
  if (other !== undefined && JSON.stringify(other) !== JSON.stringify(copy)) {
    throw new Error(`two schemas have the name ${value.title}`);
  }
  components.set(value.title, copy);
  return { $ref: `#/components/schemas/${value.title}` };
};

const error_fields = {
  error: Type.String({ description: 'Explains the problem and what to do.' }),
  code: Type.String({ description: 'Its meaning and status never change.' }),
  status: Type.Integer(),
  category: Type.String(),
  retryable: Type.Boolean({ description: 'True if the same request may succeed later.' }),
  fields: Type.Optional(fields_schema),
  request_id: Type.String(),
};
const error_schema = named('Error', 'Why a request was refused.', Type.Object(error_fields));

const json_type = 'application/json';

/** The media types of a success answer. `schema` describes the first of them. */
const contentsOf = ({ produces = json_type, also_produces }: Route, schema: TSchema) => {
  const others = also_produces.map((type) => [
    type,
    { schema: { type: type === json_type ? 'object' : 'string' } },
  ]);
  return { [produces]: { schema }, ...Object.fromEntries(others) };
};

const successes = (route: Route): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(route.returns).map(([status, schema]) => [
      status,
      {
        description: schema === null ? 'Done, without a body' : 'Done',
        headers: { 'X-Request-Id': { schema: { type: 'string' } } },
        ...(schema === null ? {} : { content: contentsOf(route, schema) }),
      },
    ]),
  );

const refusals = (route: Route): Record<string, unknown> => {
  const by_status = new Map<number, FaultDef[]>();
  for (const def of faultsOf(route)) {
    by_status.set(def.status, [...(by_status.get(def.status) ?? []), def]);
  }
  return Object.fromEntries(
    [...by_status].map(([status, defs]) => [
      String(status),
      {
        description: defs.map((def) => `\`${def.code}\` ${def.sentence}`).join('\n\n'),
        content: { [json_type]: { schema: route.refusals?.schema ?? error_schema } },
        'x-faults': defs.map(({ code, category, retryable, sentence }) => ({
          code,
          category,
          retryable,
          sentence,
          is_general: Object.hasOwn(common_faults, code),
        })),
      },
    ]),
  );
};

const idempotency_parameter = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'A value that nobody else can guess, such as a random UUID. If the same request is sent ' +
    'again with it within 24 hours, it has no further effect and returns the first answer, with ' +
    '`Idempotency-Replayed: true`.',
  schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[ -~]+$' },
} as const;

const parametersOf = (route: Route): unknown[] => {
  const list: unknown[] = [];
  for (const [name, schema] of Object.entries(route.params?.properties ?? {})) {
    list.push({ name, in: 'path', required: true, schema });
  }
  const required = new Set(route.query?.required ?? []);
  for (const [name, schema] of Object.entries(route.query?.properties ?? {})) {
    const must = required.has(name) && schema.default === undefined;
    const { description } = schema;
    const about = description === undefined ? {} : { description };
    list.push({ name, in: 'query', required: must, ...about, schema });
  }
  if (takesKey(route)) list.push(idempotency_parameter);
  return list;
};

/** Names a body after its operation: `PredictRequest` for `predict`. */
const namedBody = (id: string, body: TSchema): TSchema => {
  const title = `${id.charAt(0).toUpperCase()}${id.slice(1)}Request`;
  return named(title, body.description ?? `The body of \`${id}\`.`, body);
};

const operationOf = (route: Route, { bodyOf }: DocumentParts): Record<string, unknown> => ({
  operationId: route.id,
  summary: route.summary,
  ...(route.deprecated && { deprecated: true, description: describeDeprecation(route.deprecated) }),
  tags: [route.tag],
  security: route.takes_key ? [token, { ...token, ...key }] : security_of[route.auth],
  parameters: parametersOf(route),
  ...(route.body === undefined
    ? {}
    : {
        requestBody: {
          required: !route.takes_key,
          content: {
            [json_type]: { schema: namedBody(route.id, route.body), example: bodyOf(route) },
          },
        },
      }),
  responses: { ...successes(route), ...refusals(route) },
  'x-auth': route.auth,
  ...(route.limits.length > 0 ? { 'x-limits': route.limits } : {}),
  ...(route.cacheable ? { 'x-cacheable': true } : {}),
});

/** Number of routes described per turn of the event loop. All of them together take 60 ms. */
const routes_a_turn = 10;

/** Returns the document. Routes with `documented: false` are left out. */
export const makeOpenApi = async (
  routes: readonly Route[],
  parts: DocumentParts,
): Promise<OpenApi & Readonly<Record<string, unknown>>> => {
  const pause = makePause(routes_a_turn);
  const { info, server_url, tags } = parts;
  const names = routes.filter(({ documented }) => documented).map(({ tag }) => tag);
  const paths: Record<string, Record<string, Operation>> = {};
  const components = new Map<string, object>();
  for (const route of routes) {
    if (!route.documented) continue;
    const path = paths[route.path] ?? {};
    path[route.method.toLowerCase()] = referToNamed(
      operationOf(route, parts),
      components,
    ) as Operation;
    paths[route.path] = path;
    await pause();
  }
  return {
    openapi: '3.1.0',
    info: { ...info, license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    servers: [{ url: server_url }],
    tags: [...new Set(names)].map((name) => ({ name, description: tags[name] })),
    paths,
    components: {
      schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: {
        agent_key: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
        human_token: { type: 'http', scheme: 'bearer' },
        admin_key: { type: 'apiKey', in: 'header', name: 'X-Admin-Key' },
      },
    },
  };
};
