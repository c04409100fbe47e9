import { Kind, OptionalKind, type TSchema } from '@sinclair/typebox';
import { type Route, takesKey } from '../http/route.js';
import type { EventDef } from '../kit/event.js';

/**
 * Makes the module `wire.py` of the Python client: one method for each operation, and the types of
 * its input and output as TypedDicts, named after the operation and the member.
 */

const keywords = new Set(
  [
    'and as assert async await break class continue def del elif else except finally',
    'for from global if import in is lambda nonlocal not or pass raise return try',
    'while with yield',
  ].flatMap((line) => line.split(' ')),
);

const snake = (name: string): string => name.replace(/[A-Z]/g, (one) => `_${one.toLowerCase()}`);

const pascal = (name: string): string =>
  name.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, one: string) => one.toUpperCase());

const isName = (name: string): boolean => /^[a-z_]\w*$/i.test(name) && !keywords.has(name);

const asText = (value: unknown): string =>
  typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value);

const asUnion = (parts: readonly string[]): string => [...new Set(parts)].join(' | ');

const plain: Readonly<Record<string, string>> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
};

/** Definitions by name. Each definition comes after the ones that it uses. */
const definitions = new Map<string, string>();

const define = (name: string, members: Readonly<Record<string, TSchema>>, sent: boolean): void => {
  const fields = Object.entries(members).map(([key, member]) => {
    const may_lack =
      member[OptionalKind] !== undefined || (sent && member['default'] !== undefined);
    const type = print(member, `${name}${pascal(key)}`, sent);
    return [key, may_lack ? `NotRequired[${type}]` : type] as const;
  });
  const is_plain = fields.every(([key]) => isName(key));
  definitions.set(
    name,
    is_plain
      ? `class ${name}(TypedDict):\n${fields.map(([key, type]) => `    ${key}: ${type}\n`).join('')}`
      : `${name} = TypedDict("${name}", {${fields.map(([key, type]) => `${asText(key)}: ${asText(type)}`).join(', ')}})\n`,
  );
};

/** Prints the type as text. `sent`: members with a default are optional. */
const print = (schema: TSchema, name: string, sent: boolean): string => {
  const own = sent || schema.title === undefined ? name : schema.title;
  const members = Object.entries((schema['properties'] ?? {}) as Record<string, TSchema>);
  if (members.length > 0) {
    if (!definitions.has(own)) define(own, Object.fromEntries(members), sent);
    return own;
  }
  const { anyOf, items, patternProperties: others } = schema;
  if (anyOf !== undefined) {
    return asUnion(
      anyOf.map((one: TSchema, n: number) => print(one, n === 0 ? own : `${own}${n + 1}`, sent)),
    );
  }
  if (schema['const'] !== undefined) return `Literal[${asText(schema['const'])}]`;
  if (Array.isArray(schema['enum'])) return `Literal[${schema['enum'].map(asText).join(', ')}]`;
  if (schema['type'] === 'array') {
    return `list[${items === undefined ? 'Any' : print(items, `${own}Item`, sent)}]`;
  }
  if (others !== undefined) {
    const values = Object.values(others as Record<string, TSchema>);
    return `dict[str, ${asUnion(values.map((one) => print(one, `${own}Value`, sent)))}]`;
  }
  if (schema[Kind] === 'Object') return 'dict[str, Any]';
  return plain[String(schema['type'])] ?? 'Any';
};

const returnsOf = ({ id, produces, returns }: Route): string => {
  const is_json = produces === undefined || produces.startsWith('application/json');
  const is_text = !is_json && !/^image\/png/.test(produces);
  return asUnion(
    Object.values(returns).map((schema, n) => {
      if (schema === null) return 'None';
      if (!is_json) return is_text ? 'str' : 'bytes';
      return print(schema, `${pascal(id)}Answer${n === 0 ? '' : n + 1}`, false);
    }),
  );
};

/** Prints a method. `is_async` says which of the two clients it belongs to. */
const printMethod = (route: Route, is_async: boolean): string => {
  const { id, method, path, summary, params, query, body } = route;
  const names = Object.keys(params?.properties ?? {});
  const type = body && print(body, `${pascal(id)}Body`, true);
  const may_lack = body?.[OptionalKind] !== undefined || route.takes_key;
  const sent = [
    ...names.map((name) => `${name}: str`),
    ...(type === undefined ? [] : [`body: ${type}${may_lack ? ' | None = None' : ''}`]),
  ];
  const asked = Object.entries((query?.properties ?? {}) as Record<string, TSchema>);
  const named = asked.map(([name, schema]) => {
    const word = isName(name) ? name : `${name}_`;
    const needed = schema[OptionalKind] === undefined && schema['default'] === undefined;
    const one = print(schema, `${pascal(id)}${pascal(name)}`, true);
    return `${word}: ${one}${needed ? '' : ' | None = None'}`;
  });
  const keyed = takesKey(route);
  const options = [...named, ...(keyed ? ['idempotency_key: str | None = None'] : [])];
  const list = ['self', ...sent, ...(options.length > 0 ? ['*', ...options] : [])];
  const values = asked.map(([name]) => `${asText(name)}: ${isName(name) ? name : `${name}_`}`);
  const words = [
    asText(method),
    asText(path),
    ...(names.length > 0 ? [`{${names.map((name) => `"${name}": ${name}`).join(', ')}}`] : ['{}']),
    `{${values.join(', ')}}`,
    ...(type === undefined ? ['None'] : ['body']),
    ...(keyed ? ['idempotency_key'] : ['None']),
  ];
  return [
    `    ${is_async ? 'async ' : ''}def ${snake(id)}(${list.join(', ')}) -> ${returnsOf(route)}:`,
    `        """${summary}."""`,
    `        return ${is_async ? 'await ' : ''}self.request(${words.join(', ')})  # type: ignore[no-any-return]\n`,
  ].join('\n');
};

const printClass = (name: string, routes: readonly Route[], is_async: boolean): string =>
  [
    `class ${name}:`,
    `    ${is_async ? 'async ' : ''}def request(self, method: str, path: str, params: dict[str, Any], query: dict[str, Any], body: Any, idempotency_key: str | None) -> Any:`,
    '        raise NotImplementedError\n',
    ...routes.map((route) => printMethod(route, is_async)),
  ].join('\n');

/** Makes `wire.py` from the routes, in the order of their ids, and the events of the catalogue. */
export const makePythonWire = (
  routes: readonly Route[],
  events: readonly EventDef[],
  typesOf: (route: Route) => readonly string[],
): string => {
  const called = routes.filter(({ is_endless }) => !is_endless);
  const classes = [
    printClass('AsyncOperations', called, true),
    printClass('Operations', called, false),
  ];
  const kinds = events.map(({ name, data }) => {
    const one = pascal(name);
    print(data, `${one}Data`, false);
    definitions.set(
      `${one}Event`,
      `class ${one}Event(TypedDict):\n    offset: int\n    id: str\n    event: Literal["${name}"]\n    data: ${one}Data\n    timestamp: str\n`,
    );
    return `${one}Event`;
  });
  const types = called
    .map((route) => [`${route.method} ${route.path}`, typesOf(route)] as const)
    .filter(([, one]) => one.join() !== 'application/json')
    .map(([place, one]) => `    ${asText(place)}: [${one.map(asText).join(', ')}],`);
  return [
    '"""Generated by the build from the routes and events of the service. Do not edit."""\n',
    'from __future__ import annotations\n',
    'from typing import TYPE_CHECKING, Any, Literal, TypedDict, Union\n',
    'if TYPE_CHECKING:\n    from typing_extensions import NotRequired\n',
    ...definitions.values(),
    '# Media types of operations that do not answer only with JSON. "" is an empty answer.',
    `ANSWER_TYPES: dict[str, list[str]] = {\n${types.join('\n')}\n}\n`,
    `LogEvent = Union[${kinds.join(', ')}]\n`,
    ...classes,
  ].join('\n');
};
