import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Kind, OptionalKind, type TSchema } from '@sinclair/typebox';
import { catalogue } from '../features/events/catalogue.js';
import { faultsOf } from '../http/openapi.js';
import type { Route } from '../http/route.js';
import { common_faults, type FaultDef } from '../kit/fault.js';
import { api_routes } from '../routes.js';
import { makePythonWire } from './python-types.js';

/**
 * Writes `clients/typescript/src/wire.ts`, and the same for Python, if the content has changed. The
 * build runs this. The files describe the service for the client library, and are made from the
 * service's own routes and events. They contain the types of each operation (params, query, body,
 * answers, faults), the types of events, and one line per operation with its address.
 */

const asText = (value: unknown): string =>
  typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : JSON.stringify(value);

const asKey = (name: string): string => (/^[a-z_]\w*$/i.test(name) ? name : asText(name));

const asUnion = (parts: readonly string[]): string => [...new Set(parts)].join(' | ');

const indent = (text: string): string => text.replace(/^(?=.)/gm, '  ');

const inBraces = (lines: readonly string[]): string => `{\n${indent(lines.join('\n'))}\n}`;

const plain: Readonly<Record<string, string>> = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
};

/** Types of named schemas in answers, by name. */
const named_types = new Map<string, string>();

/** Prints the type as text. `sent`: members with a default are optional. */
const print = (schema: TSchema, sent: boolean): string => {
  const { title, description } = schema;
  if (sent || title === undefined) return printWhole(schema, sent);
  named_types.set(
    title,
    `/** ${description} */\nexport type ${title} = ${printWhole(schema, sent)};\n`,
  );
  return title;
};

const printWhole = (schema: TSchema, sent: boolean): string => {
  const members = Object.entries((schema['properties'] ?? {}) as Record<string, TSchema>);
  if (members.length > 0) {
    return inBraces(
      members.map(([name, member]) => {
        const is_optional =
          member[OptionalKind] !== undefined || (sent && member['default'] !== undefined);
        return `readonly ${asKey(name)}${is_optional ? '?' : ''}: ${print(member, sent)};`;
      }),
    );
  }
  const { anyOf, items, patternProperties: others } = schema;
  if (anyOf !== undefined) return asUnion(anyOf.map((one: TSchema) => print(one, sent)));
  if (schema['const'] !== undefined) return asText(schema['const']);
  if (Array.isArray(schema['enum'])) return asUnion(schema['enum'].map(asText));
  if (schema['type'] === 'array') {
    const item = items === undefined ? 'unknown' : print(items, sent);
    return `readonly ${/^[\w.]+$/.test(item) ? item : `(${item})`}[]`;
  }
  if (others !== undefined) {
    const values = Object.values(others as Record<string, TSchema>);
    return `Readonly<Record<string, ${asUnion(values.map((one) => print(one, sent)))}>>`;
  }
  if (schema[Kind] === 'Object') return 'Readonly<Record<string, unknown>>';
  return plain[String(schema['type'])] ?? 'unknown';
};

const routes: readonly Route[] = (api_routes as readonly Route[])
  .filter(({ documented }) => documented)
  .sort((a, b) => (a.id < b.id ? -1 : 1));

const returnsOf = ({ produces, returns }: Route): string => {
  const is_text = produces !== undefined && !produces.startsWith('application/json');
  return asUnion(
    Object.values(returns).map((schema) =>
      is_text ? 'string' : schema === null ? 'undefined' : print(schema, false),
    ),
  );
};

const codesOf = (faults: readonly FaultDef[]): readonly string[] =>
  [...new Set(faults.map(({ code }) => code))].sort().map((code) => `\n  | ${asText(code)}`);

const printOperation = (route: Route): string => {
  const sent = (['params', 'query', 'body'] as const).map((member) => {
    const schema = route[member];
    const type = schema === undefined ? 'undefined' : print(schema, member !== 'params');
    return `readonly ${member}: ${type};`;
  });
  const own = codesOf(faultsOf(route).filter(({ code }) => !(code in common_faults)));
  const lines = [
    ...sent,
    `readonly returns: ${returnsOf(route)};`,
    `readonly faults: CommonFault${own.join('')};`,
  ];
  return `/** ${route.summary}. */\nreadonly ${route.id}: ${inBraces(lines)};`;
};

/** Says how the answers differ from JSON; '' if they do not. */
const markOf = (route: Route): string => {
  const types = typesOf(route);
  if (types.every((type) => type === 'application/json')) return '';
  if (types.includes('text/html')) return 'html';
  if (types.join('') === '') return 'none';
  return types[0] === 'application/json' && !types.includes('') ? 'asked' : 'any';
};

/** The line is short, because a page that loads the library loads the lines of all operations. */
const placeOf = (route: Route): string => {
  const mark = markOf(route);
  const method = route.method === 'GET' && mark === '' ? '' : route.method;
  const words = [mark, method, route.path.replace(/^\/api\//, '')];
  return `${route.id}: ${asText(words.filter((word) => word !== '').join(' '))},`;
};

/** Returns the media types of the answers. The type of an empty answer is ''. */
export const typesOf = ({ produces, also_produces = [], returns }: Route): readonly string[] => {
  const types = Object.values(returns).map((schema) =>
    schema === null ? '' : (produces ?? 'application/json'),
  );
  return [...new Set([...types, ...also_produces].map((type) => type.replace(/;.*/, '')))];
};

const makeClientWire = (): string => {
  const events = catalogue.map(
    ({ name, about, data }) => `/** ${about} */\nreadonly ${asKey(name)}: ${print(data, false)};`,
  );
  const operations = routes.map(printOperation);
  const types = [...named_types.keys()].sort().map((name) => named_types.get(name) ?? '');
  return [
    '/* Generated by the build from the routes and events of the service. Do not edit. */',
    '/**',
    ' * Method (default GET) and path (below /api/ without a slash) of each operation. A word before it: `html` for',
    ' * a page, `none` for no body, `any` for types other than JSON, `asked` for a type that the caller asks for.',
    ' */',
    `export const places = ${inBraces(routes.map(placeOf))} as const;\n`,
    `export interface Operations ${inBraces(operations)}\n`,
    ...types,
    `/** The type of \`data\` of each event. */\nexport interface Events ${inBraces(events)}\n`,
    '/** Codes of refusals that any operation can return. */',
    `export type CommonFault =${codesOf(Object.values(common_faults)).join('')};\n`,
  ].join('\n');
};

const root = path.resolve(import.meta.dirname, '../../..');

const writeWhereDifferent = (name: string, wanted: string): void => {
  const file = path.join(root, name);
  if (existsSync(file) && readFileSync(file, 'utf8') === wanted) return;
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, wanted);
};

writeWhereDifferent('clients/typescript/src/wire.ts', makeClientWire());
writeWhereDifferent(
  'clients/python/prediction_forum/wire.py',
  makePythonWire(routes, catalogue, typesOf),
);
