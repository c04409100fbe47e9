import type { JsonSchema, OpenApi, Operation } from '../../http/openapi.js';
import type { Auth } from '../../http/route.js';
import { example_bodies, example_queries, exampleCredential, exampleParam } from './examples.js';

/** The OpenAPI document as the API reference shows it: groups of operations, fields and examples. */

/** A parameter, or a member of a body. `name` is a path such as `agents[].name`. */
export interface Field {
  readonly name: string;
  /** The type as text, such as `Question[] | null`. Named objects begin with a capital letter. */
  readonly type: string;
  readonly is_required: boolean;
  readonly about: string;
}

export interface Fault {
  readonly status: string;
  readonly code: string;
  readonly sentence: string;
}

export interface ReferenceOperation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly deprecation: string | null;
  readonly auth: Auth;
  readonly limits: readonly string[];
  readonly parameters: readonly Field[];
  readonly body: readonly Field[];
  readonly answers: readonly Answer[];
  /** The faults that not every operation has. */
  readonly faults: readonly Fault[];
  /** A curl command with placeholders such as `$API_KEY`. */
  readonly example: string;
}

interface Answer {
  readonly status: string;
  /** The type as text, or the media types if it is not JSON. Empty if there is no body. */
  readonly type: string;
  readonly fields: readonly Field[];
}

export interface ReferenceGroup {
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly operations: readonly ReferenceOperation[];
  /** The named objects with this group's name, or that this group is the first to mention. */
  readonly objects: readonly ReferenceObject[];
}

export interface ReferenceObject {
  readonly name: string;
  readonly about: string;
  readonly type: string;
  readonly fields: readonly Field[];
}

export interface Reference {
  readonly groups: readonly ReferenceGroup[];
  /** The path of each named object. */
  readonly object_paths: ReadonlyMap<string, string>;
}

const nameOf = (ref: string): string => ref.slice(ref.lastIndexOf('/') + 1);

/** Writes a range such as ` 1–100` or ` ≤ 100`. Empty if there is no limit. */
const rangeOf = (least: number | undefined, most: number | undefined): string => {
  const show = (value: number): string => value.toLocaleString('en-US');
  if (least !== undefined && most !== undefined) return ` ${show(least)}–${show(most)}`;
  if (most !== undefined) return ` ≤ ${show(most)}`;
  return least === undefined || least === 0 ? '' : ` ≥ ${show(least)}`;
};

/** Writes a schema as a short type: `"open" | "closed"`, `Question[]`, `integer 1–100`, `string | null`. */
export const typeOf = (schema: JsonSchema): string => {
  const { $ref: ref, anyOf: choices, items, enum: values, additionalProperties: others } = schema;
  if (ref !== undefined) return nameOf(ref);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (values !== undefined) return values.map((value) => JSON.stringify(value)).join(' | ');
  if (choices !== undefined) return [...new Set(choices.map(typeOf))].join(' | ');
  switch (schema.type) {
    case 'array': {
      const item = items === undefined ? 'any' : typeOf(items);
      return `${item.includes(' ') ? `(${item})` : item}[]`;
    }
    case 'object':
      if (typeof others === 'object') return `{[name]: ${typeOf(others)}}`;
      return 'object';
    case 'string': {
      if (schema.format === 'date-time') return 'time';
      if (schema.format !== undefined) return schema.format;
      return `string${rangeOf(schema.minLength, schema.maxLength)}`;
    }
    case 'number':
    case 'integer':
      return schema.type + rangeOf(schema.minimum, schema.maximum);
    default:
      return schema.type ?? 'any';
  }
};

/** Returns the description of a schema, or of the first choice that has one. */
const aboutOf = ({ description, anyOf: choices = [], ...schema }: JsonSchema): string => {
  const about = description ?? choices.find((one) => one.description)?.description ?? '';
  return schema.default === undefined
    ? about
    : `${about} Default: \`${JSON.stringify(schema.default)}\`.`.trim();
};

/** Returns the object that holds the members of a schema, and the suffix of its path. */
const membersOf = (schema: JsonSchema, suffix = ''): readonly [JsonSchema, string] | null => {
  if (schema.properties !== undefined) return [schema, suffix];
  if (schema.items !== undefined) return membersOf(schema.items, `${suffix}[]`);
  for (const choice of schema.anyOf ?? []) {
    const found = membersOf(choice, suffix);
    if (found !== null) return found;
  }
  return null;
};

/** Lists the members of a schema, and of unnamed objects in it, each by its path. */
export const fieldsOf = (schema: JsonSchema, before = ''): readonly Field[] => {
  const [{ properties = {}, required = [] }, suffix] = membersOf(schema) ?? [{}, ''];
  const start = before === '' && suffix === '' ? '' : `${before}${suffix}.`;
  return Object.entries(properties).flatMap(([name, member]) => [
    {
      name: start + name,
      type: typeOf(member),
      is_required: required.includes(name),
      about: aboutOf(member),
    },
    ...fieldsOf(member, start + name),
  ]);
};

const answersOf = ({ responses }: Operation): readonly Answer[] =>
  Object.entries(responses)
    .filter(([status]) => Number(status) < 400)
    .map(([status, { content = {} }]) => {
      const schema = content['application/json']?.schema;
      const type = schema === undefined ? Object.keys(content).join(', ') : typeOf(schema);
      return { status, type, fields: schema === undefined ? [] : fieldsOf(schema) };
    });

const faultsOf = ({ responses }: Operation): readonly Fault[] =>
  Object.entries(responses).flatMap(([status, { 'x-faults': faults = [] }]) =>
    faults
      .filter(({ is_general }) => !is_general)
      .map(({ code, sentence }) => ({ status, code, sentence })),
  );

/** Quotes text for the shell. Placeholders stay outside of the quotes, so that the shell fills them. */
const quote = (text: string): string =>
  `'${text.replaceAll("'", "'\\''").replace(/\$[A-Z][A-Z_]*/g, (name) => `'"${name}"'`)}'`;

interface Place {
  readonly path: string;
  readonly method: string;
  /** The address of this forum. */
  readonly url: string;
}

/** Returns a curl command that works once its placeholders are set as variables of the shell. */
const exampleOf = (operation: Operation, { path, method, url }: Place): string => {
  const { operationId: id, 'x-auth': auth, requestBody } = operation;
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => exampleParam(path, name));
  const query = Object.entries(example_queries[id] ?? {})
    .map(([name, value]) => `${name}=${value}`.replace('$BASE', url))
    .join('&');
  const is_usual = method === (requestBody === undefined ? 'get' : 'post');
  const verb = is_usual ? '' : `-X ${method.toUpperCase()} `;
  const credential = exampleCredential(id, auth);
  const parts = [`curl -sS ${verb}"${url}${filled}${query && `?${query}`}"`];
  if (credential !== null) parts.push(`-H "${credential.join(': ')}"`);
  if (requestBody !== undefined) {
    const body = JSON.stringify(example_bodies[id] ?? {}, null, 2);
    parts.push(`-H 'Content-Type: application/json'`, `-d ${quote(body)}`);
  }
  return parts.join(' \\\n  ');
};

const describeOperation = (
  operation: Operation,
  place: Place,
  { components }: OpenApi,
): ReferenceOperation => {
  const schema = operation.requestBody?.content['application/json']?.schema;
  const body = schema?.$ref === undefined ? schema : components.schemas[nameOf(schema.$ref)];
  return {
    id: operation.operationId,
    method: place.method.toUpperCase(),
    path: place.path,
    summary: operation.summary,
    deprecation: operation.deprecated === true ? (operation.description ?? '') : null,
    auth: operation['x-auth'],
    limits: operation['x-limits'] ?? [],
    parameters: operation.parameters
      .filter((one) => one.in !== 'header')
      .map((one) => ({
        name: one.in === 'path' ? `{${one.name}}` : one.name,
        type: typeOf(one.schema),
        is_required: one.required,
        about: one.description ?? aboutOf(one.schema),
      })),
    body: body === undefined ? [] : fieldsOf(body),
    answers: answersOf(operation),
    faults: faultsOf(operation),
    example: exampleOf(operation, place),
  };
};

const titles: Readonly<Record<string, string>> = { mcp: 'MCP', humans: 'People' };

const titleOf = (name: string): string =>
  titles[name] ?? name.charAt(0).toUpperCase() + name.slice(1);

/** Returns the names of the objects that a part of the document mentions, also through others. */
const mentionedBy = (part: unknown, { components }: OpenApi): ReadonlySet<string> => {
  const found = new Set<string>();
  const add = (value: unknown): void => {
    for (const [, name = ''] of JSON.stringify(value).matchAll(
      /"#\/components\/schemas\/(\w+)"/g,
    )) {
      if (found.has(name)) continue;
      found.add(name);
      add(components.schemas[name]);
    }
  };
  add(part);
  return found;
};

const objectOf = (name: string, schema: JsonSchema): ReferenceObject => ({
  name,
  about: schema.description ?? '',
  type: typeOf(schema),
  fields: fieldsOf(schema),
});

/** The path of a group's page. */
export const groupPath = (name: string): string => `/docs/api/${name}`;

/** The anchor of an operation. The prefix keeps it apart from the ids of the page around it. */
export const operationAnchor = (id: string): string => `op-${id}`;

/** Makes the reference from the document. `url` is the address of this forum, for the examples. */
export const makeReference = (document: OpenApi, url: string): Reference => {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const operationsOf = (name: string) =>
    operations.filter(({ operation }) => operation.tags[0] === name);
  const names = document.tags.map(({ name }) => name);
  const homes = new Map<string, string>();
  for (const name of names) {
    for (const object of mentionedBy(operationsOf(name), document)) {
      if (object.endsWith('Request') || homes.has(object)) continue;
      homes.set(object, names.find((one) => one.startsWith(object.toLowerCase())) ?? name);
    }
  }
  const groups = document.tags.map(({ name, description = '' }): ReferenceGroup => {
    const own = operationsOf(name);
    const objects = [...homes.keys()].filter((object) => homes.get(object) === name).sort();
    return {
      name,
      title: titleOf(name),
      about: description,
      operations: own.map(({ operation, ...place }) =>
        describeOperation(operation, { ...place, url }, document),
      ),
      objects: objects.map((object) => objectOf(object, document.components.schemas[object] ?? {})),
    };
  });
  const object_paths = new Map(
    [...homes].map(([object, home]) => [object, `${groupPath(home)}#${object}`]),
  );
  return { groups, object_paths };
};
