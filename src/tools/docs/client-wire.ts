import type { TSchema } from '@sinclair/typebox';
import { catalogue } from '../../features/events/index.js';
import { common_faults, type FaultDef } from '../../kit/fault.js';
import { faultsOf } from '../../kit/http/openapi.js';
import type { Route } from '../../kit/http/route.js';
import { all_routes } from '../../routes.js';
import { asKey, asText, asUnion, printTypes, type TypeAsk } from './wire-types.js';

/**
 * `src/client/wire.ts`: what the client library knows of the service, from the values that the
 * service itself is made of. Types of params, query, body, answers and faults by operation, types
 * of events, and one line for each operation that says where it is.
 */

export const wire_file = 'src/client/wire.ts';

const routes: readonly Route[] = (all_routes as readonly Route[])
  .filter(({ documented }) => documented)
  .sort((a, b) => (a.id < b.id ? -1 : 1));

const isText = ({ produces }: Route): boolean =>
  produces !== undefined && !produces.startsWith('application/json');

interface Part {
  readonly route: Route;
  readonly member: string;
  readonly ask: TypeAsk | null;
}

const partsOf = (route: Route): readonly Part[] => {
  const sent = (['params', 'query', 'body'] as const).map((member): Part => {
    const schema = route[member];
    const name = `${route.id}_${member}`;
    return {
      route,
      member,
      ask: schema === undefined ? null : { schema, name, sent: member !== 'params' },
    };
  });
  const returned = Object.values(route.returns)
    .flatMap((schema) => (schema?.['anyOf'] as TSchema[] | undefined) ?? [schema])
    .map((schema): Part => {
      const name = `${route.id}_answer`;
      const ask = schema === null || isText(route) ? null : { schema, name, sent: false };
      return { route, member: 'returns', ask };
    });
  return [...sent, ...returned];
};

const codesOf = (faults: readonly FaultDef[]): readonly string[] =>
  [...new Set(faults.map(({ code }) => code))].sort();

const indent = (text: string): string => text.replace(/^(?=.)/gm, '  ');

const printOperation = (route: Route, typeOf: (part: Part) => string, parts: readonly Part[]) => {
  const member = (name: string): string =>
    asUnion(parts.filter((part) => part.member === name).map(typeOf));
  const own = codesOf(faultsOf(route)).filter((code) => !(code in common_faults));
  const lines = [
    ...['params', 'query', 'body', 'returns'].map((name) => `readonly ${name}: ${member(name)};`),
    `readonly faults: ${['CommonFault', ...own.map((code) => `\n  | ${asText(code)}`)].join('')};`,
  ];
  return `/** ${route.summary}. */\nreadonly ${route.id}: {\n${indent(lines.join('\n'))}\n};`;
};

const head = `/* Written by \`npm run docs\` from the routes and events of the service; not by hand. */

/** Where each operation is: GET where no method is named, below /api/ where there is no slash. */`;

/** Short, because every page that loads the library loads all of them. */
const placeOf = ({ method, path }: Route): string =>
  `${method === 'GET' ? '' : `${method} `}${path.replace(/^\/api\//, '')}`;

/** The whole file. */
export const makeClientWire = (): string => {
  const parts = routes.flatMap(partsOf);
  const asked = parts.filter(({ ask }) => ask !== null);
  const event_asks = catalogue.map(({ name, data }) => ({ name, schema: data, sent: false }));
  const asks = [...asked.map(({ ask }) => ask as TypeAsk), ...event_asks];
  const { types, interfaces } = printTypes(asks);
  const typeOf = (part: Part): string => {
    const at = asked.indexOf(part);
    if (at >= 0) return types[at] ?? 'unknown';
    return part.member === 'returns' && isText(part.route) ? 'string' : 'undefined';
  };
  const operations = routes.map((route) =>
    printOperation(
      route,
      typeOf,
      parts.filter((part) => part.route === route),
    ),
  );
  const places = routes.map((route) => `${route.id}: ${asText(placeOf(route))},`);
  const events = catalogue.map(
    ({ name, about }, at) =>
      `/** ${about} */\nreadonly ${asKey(name)}: ${types[asked.length + at]};`,
  );
  return [
    `${head}\nexport const places = {\n${indent(places.join('\n'))}\n} as const;`,
    `export interface Operations {\n${indent(operations.join('\n'))}\n}`,
    `/** What \`data\` of each event holds. */\nexport interface Events {\n${indent(events.join('\n'))}\n}`,
    `/** Codes that any operation may be refused with. */\nexport type CommonFault =${codesOf(
      Object.values(common_faults),
    )
      .map((code) => `\n  | ${asText(code)}`)
      .join('')};`,
    ...interfaces,
    '',
  ].join('\n\n');
};
