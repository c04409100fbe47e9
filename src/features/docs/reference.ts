import type { OpenApi, OpenApiSchema, Operation } from '../../http/openapi.js';
import type { Auth } from '../../http/route.js';
import { makePause } from '../../kit/loop.js';
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

interface ShownFault {
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
  readonly faults: readonly ShownFault[];
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

/** Writes a schema as a short type: `"open" | "closed"`, `Question[]`, `integer 1–100`. */
const typeOf = (schema: OpenApiSchema): string => {
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
const aboutOf = ({ description, anyOf: choices = [], ...schema }: OpenApiSchema): string => {
  const about = description ?? choices.find((one) => one.description)?.description ?? '';
  return schema.default === undefined
    ? about
    : `${about} Default: \`${JSON.stringify(schema.default)}\`.`.trim();
};

/** Returns the objects that hold the members of a schema, each with the suffix of its path. */
const membersOf = (
  schema: OpenApiSchema,
  suffix = '',
): readonly (readonly [OpenApiSchema, string])[] => {
  if (schema.properties !== undefined) return [[schema, suffix]];
  if (schema.items !== undefined) return membersOf(schema.items, `${suffix}[]`);
  return (schema.anyOf ?? []).flatMap((choice) => membersOf(choice, suffix));
};

/**
 * Lists the members of a schema, and of unnamed objects in it, each by its path. A member that
 * several alternatives have is listed once.
 */
const fieldsOf = (schema: OpenApiSchema, before = ''): readonly Field[] => {
  const all = membersOf(schema).flatMap(([{ properties = {}, required = [] }, suffix]) => {
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
  });
  return [...new Map([...all].reverse().map((field) => [field.name, field])).values()].reverse();
};

const answersOf = ({ responses }: Operation): readonly Answer[] =>
  Object.entries(responses)
    .filter(([status]) => Number(status) < 400)
    .map(([status, { content = {} }]) => {
      const schema = content['application/json']?.schema;
      const type = schema === undefined ? Object.keys(content).join(', ') : typeOf(schema);
      return { status, type, fields: schema === undefined ? [] : fieldsOf(schema) };
    });

const faultsOf = ({ responses }: Operation): readonly ShownFault[] =>
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
        about: aboutOf({ ...one.schema, ...(one.description && { description: one.description }) }),
      })),
    body: body === undefined ? [] : fieldsOf(body),
    answers: answersOf(operation),
    faults: faultsOf(operation),
    example: exampleOf(operation, place),
  };
};

/** Number of groups per turn of the event loop. All of them together take 80 ms. */
const groups_a_turn = 4;

const titles: Readonly<Record<string, string>> = { mcp: 'MCP', humans: 'People' };

const groupTitle = (name: string): string =>
  titles[name] ?? name.charAt(0).toUpperCase() + name.slice(1);

const ref_pattern = /"#\/components\/schemas\/(\w+)"/g;

/** Returns a function that lists the objects that a part mentions, also through other objects. */
const makeMentions = ({ components }: OpenApi) => {
  const namesIn = (part: unknown): readonly string[] =>
    Array.from(JSON.stringify(part).matchAll(ref_pattern), ([, name = '']) => name);
  const of_objects = new Map(
    Object.entries(components.schemas).map(([name, schema]) => [name, namesIn(schema)]),
  );
  return (part: unknown): ReadonlySet<string> => {
    const found = new Set<string>();
    const add = (name: string): void => {
      if (found.has(name)) return;
      found.add(name);
      of_objects.get(name)?.forEach(add);
    };
    namesIn(part).forEach(add);
    return found;
  };
};

const objectOf = (name: string, schema: OpenApiSchema): ReferenceObject => ({
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
export const makeReference = async (document: OpenApi, url: string): Promise<Reference> => {
  const pause = makePause(groups_a_turn);
  const mentionedBy = makeMentions(document);
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const operationsOf = (name: string) =>
    operations.filter(({ operation }) => operation.tags[0] === name);
  const names = document.tags.map(({ name }) => name);
  const homes = new Map<string, string>();
  for (const name of names) {
    for (const object of mentionedBy(operationsOf(name))) {
      if (object.endsWith('Request') || homes.has(object)) continue;
      homes.set(object, names.find((one) => one.startsWith(object.toLowerCase())) ?? name);
    }
    await pause();
  }
  const groups: ReferenceGroup[] = [];
  for (const { name, description = '' } of document.tags) {
    const own = operationsOf(name);
    const objects = [...homes.keys()].filter((object) => homes.get(object) === name).sort();
    groups.push({
      name,
      title: groupTitle(name),
      about: description,
      operations: own.map(({ operation, ...place }) =>
        describeOperation(operation, { ...place, url }, document),
      ),
      objects: objects.map((object) => objectOf(object, document.components.schemas[object] ?? {})),
    });
    await pause();
  }
  const object_paths = new Map(
    [...homes].map(([object, home]) => [object, `${groupPath(home)}#${object}`]),
  );
  return { groups, object_paths };
};
