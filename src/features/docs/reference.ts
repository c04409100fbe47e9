import type { Sample } from '../../kit/http/openapi.js';
import type { Shape } from './shape.js';
import {
  findObjects,
  type Member,
  membersOf,
  type Objects,
  readShape,
  type Schema,
} from './shape.js';

/** The reference as a value, read from the OpenAPI document; the pages and Markdown show it. */

export interface FaultLine {
  readonly code: string;
  readonly status: number;
  readonly sentence: string;
  readonly retryable: boolean;
  /** Whatever is called may be refused with it. */
  readonly is_general: boolean;
}

export interface Parameter extends Member {
  readonly place: 'path' | 'query' | 'header';
}

export interface SuccessLine {
  readonly status: number;
  /** The first is what `shape` is about; none without a body. */
  readonly content_types: readonly string[];
  readonly shape: Shape | null;
}

export interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly auth: string;
  readonly limits: readonly string[];
  readonly is_cacheable: boolean;
  readonly parameters: readonly Parameter[];
  readonly body: Shape | null;
  readonly successes: readonly SuccessLine[];
  readonly faults: readonly FaultLine[];
  readonly samples: readonly Sample[];
}

export interface Group {
  readonly name: string;
  readonly about: string;
  readonly operations: readonly Operation[];
}

export interface NamedObject {
  readonly name: string;
  readonly members: readonly Member[];
}

export interface Reference {
  readonly title: string;
  readonly version: string;
  readonly server_url: string;
  readonly groups: readonly Group[];
  readonly objects: readonly NamedObject[];
  readonly faults: readonly FaultLine[];
}

const schemaIn = (content: Schema): Schema | undefined =>
  (Object.values(content ?? {})[0] as Schema | undefined)?.schema;

const isFailure = (response: Schema): boolean => response['x-faults'] !== undefined;

const responsesOf = (operation: Schema): readonly (readonly [string, Schema])[] =>
  Object.entries(operation.responses as Record<string, Schema>);

const successesOf = (operation: Schema, objects: Objects): readonly SuccessLine[] =>
  responsesOf(operation)
    .filter(([, response]) => !isFailure(response))
    .map(([status, { content }]) => {
      const schema = schemaIn(content);
      return {
        status: Number(status),
        content_types: Object.keys(content ?? {}),
        shape: schema === undefined ? null : readShape(schema, objects),
      };
    });

const faultsOf = (operation: Schema): readonly FaultLine[] =>
  responsesOf(operation).flatMap(([status, response]) =>
    (response['x-faults'] ?? []).map((fault: Omit<FaultLine, 'status'>) => ({
      ...fault,
      status: Number(status),
    })),
  );

const parametersOf = (operation: Schema, objects: Objects): readonly Parameter[] =>
  (operation.parameters as readonly Schema[]).map(
    ({ name, in: place, required, schema, description }) => ({
      ...readShape(schema, objects),
      ...{ name, place, required },
      description: String(description ?? schema.description ?? ''),
    }),
  );

/** Every operation of the document, with its method and path. */
const operationsIn = (document: Schema) =>
  Object.entries(document.paths as Record<string, Schema>).flatMap(([path, methods]) =>
    Object.entries(methods as Record<string, Schema>).map(([method, operation]) => ({
      ...{ method: method.toUpperCase(), path, operation },
    })),
  );

type Found = ReturnType<typeof operationsIn>[number];

const readOperation = ({ method, path, operation }: Found, objects: Objects): Operation => {
  const body = schemaIn(operation.requestBody?.content);
  return {
    ...{ id: operation.operationId, method, path, summary: operation.summary },
    auth: operation['x-auth'],
    limits: operation['x-limits'] ?? [],
    is_cacheable: operation['x-cacheable'] === true,
    parameters: parametersOf(operation, objects),
    body: body === undefined ? null : readShape(body, objects),
    successes: successesOf(operation, objects),
    faults: faultsOf(operation),
    samples: operation['x-codeSamples'] ?? [],
  };
};

const schemasOf = ({ operation }: Found): readonly Schema[] => [
  schemaIn(operation.requestBody?.content),
  ...responsesOf(operation)
    .filter(([, response]) => !isFailure(response))
    .map(([, { content }]) => schemaIn(content)),
];

/** Every fault that any operation lists, by code and status. */
const allFaults = (operations: readonly Operation[]): readonly FaultLine[] => {
  const lines = new Map<string, FaultLine>();
  for (const { faults } of operations) {
    for (const fault of faults) lines.set(`${fault.code} ${fault.status}`, fault);
  }
  return [...lines].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, fault]) => fault);
};

const byPlace = (names: readonly string[]) => (a: Group, b: Group) =>
  names.indexOf(a.name) - names.indexOf(b.name);

/** What readers need first stands first; names that are not here come before the last of them. */
const first_groups = ['agents', 'humans', 'questions', 'predictions', 'consensus'];

const orderOf = (tags: readonly string[]): readonly string[] => [
  ...first_groups.filter((name) => tags.includes(name)),
  ...tags.filter((name) => !first_groups.includes(name)),
];

export const readReference = (document: Schema): Reference => {
  const found = operationsIn(document);
  const { objects, named } = findObjects(found.flatMap(schemasOf));
  const read = found.map((one) => ({
    tag: String(one.operation.tags[0]),
    operation: readOperation(one, objects),
  }));
  const tags = document.tags as readonly { name: string; description?: string }[];
  const groups = tags.map(({ name, description = '' }) => ({
    ...{ name, about: description },
    operations: read.filter(({ tag }) => tag === name).map(({ operation }) => operation),
  }));
  const { Error: error } = document.components.schemas;
  return {
    ...{ title: document.info.title, version: document.info.version },
    server_url: document.servers[0].url,
    groups: groups.sort(byPlace(orderOf(tags.map(({ name }) => name)))),
    objects: [
      ...[...named].map(([name, schema]) => ({ name, members: membersOf(schema, objects) })),
      { name: 'error', members: membersOf(error, objects) },
    ],
    faults: allFaults(read.map(({ operation }) => operation)),
  };
};
