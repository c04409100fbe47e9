import { Kind, OptionalKind, type TSchema } from '@sinclair/typebox';

/**
 * TypeScript types as texts, from the TypeBox schemas of the wire: for the client library, which
 * knows nothing of TypeBox. An object that stands in several places becomes an interface of its
 * own, named after the member under which it was found first.
 */

/** `sent`: what has a default may be left out. `name` is what it is called where it is shared. */
export interface TypeAsk {
  readonly schema: TSchema;
  readonly name: string;
  readonly sent: boolean;
}

export interface PrintedTypes {
  /** In the order of what was asked for. */
  readonly types: readonly string[];
  /** The shared shapes, each a declaration. */
  readonly interfaces: readonly string[];
}

const least_shared_members = 4;

export const toPascalCase = (text: string): string =>
  text.replace(/(?:^|[^a-zA-Z0-9]+)([a-zA-Z0-9])/g, (_, letter: string) => letter.toUpperCase());

const toSingular = (name: string): string => name.replace(/ies$/, 'y').replace(/([^s])s$/, '$1');

export const asKey = (name: string): string =>
  /^[a-z_]\w*$/i.test(name) ? name : `'${name.replaceAll("'", "\\'")}'`;

export const asText = (value: unknown): string =>
  typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : JSON.stringify(value);

export const asUnion = (parts: readonly string[]): string => [...new Set(parts)].join(' | ');

const membersOf = (schema: TSchema): [string, TSchema][] =>
  Object.entries((schema['properties'] ?? {}) as Record<string, TSchema>);

/** The schemas directly inside, each with the name of its place. */
const partsOf = (schema: TSchema, name: string): [string, TSchema][] => [
  ...membersOf(schema),
  ...((schema['anyOf'] ?? []) as TSchema[]).map((one): [string, TSchema] => [name, one]),
  ...Object.values((schema['patternProperties'] ?? {}) as Record<string, TSchema>).map(
    (one): [string, TSchema] => [name, one],
  ),
  ...(schema['items'] === undefined
    ? []
    : [[toSingular(name), schema['items']] as [string, TSchema]]),
];

const plain: Readonly<Record<string, string>> = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
};

type Shared = Map<string, { readonly wished: string; count: number; name: string | null }>;

const keyOf = ({ schema, sent }: TypeAsk): string => `${sent} ${JSON.stringify(schema)}`;

const isShareable = (schema: TSchema): boolean => membersOf(schema).length >= least_shared_members;

/** A shape inside one that is counted for the second time is part of that one. */
const countShapes = (shared: Shared, ask: TypeAsk): void => {
  if (isShareable(ask.schema)) {
    const known = shared.get(keyOf(ask)) ?? {
      wished: toPascalCase(ask.name),
      count: 0,
      name: null,
    };
    known.count += 1;
    shared.set(keyOf(ask), known);
    if (known.count > 1) return;
  }
  for (const [name, schema] of partsOf(ask.schema, ask.name)) {
    countShapes(shared, { ...ask, schema, name });
  }
};

export const printTypes = (asks: readonly TypeAsk[]): PrintedTypes => {
  const shared: Shared = new Map();
  for (const ask of asks) countShapes(shared, ask);
  const declared = new Map<string, string>();

  const printMembers = ({ schema, sent }: TypeAsk): string => {
    const lines = membersOf(schema).map(([name, member]) => {
      const optional =
        member[OptionalKind] !== undefined || (sent && member['default'] !== undefined);
      const type = print({ schema: member, name, sent });
      return `readonly ${asKey(name)}${optional ? '?' : ''}: ${type};`;
    });
    return `{\n${lines.join('\n').replace(/^/gm, '  ')}\n}`;
  };

  const printObject = (ask: TypeAsk): string => {
    const known = shared.get(keyOf(ask));
    if (known === undefined || known.count === 1) return printMembers(ask);
    if (known.name === null) {
      let name = known.wished;
      for (let n = 2; declared.has(name); n += 1) name = `${known.wished}${n}`;
      known.name = name;
      declared.set(name, '');
      declared.set(name, `export interface ${name} ${printMembers(ask)}`);
    }
    return known.name;
  };

  const print = (ask: TypeAsk): string => {
    const { schema } = ask;
    if (membersOf(schema).length > 0) return printObject(ask);
    const inner = partsOf(schema, ask.name).map(([name, part]) =>
      print({ ...ask, name, schema: part }),
    );
    if (schema['anyOf'] !== undefined) return asUnion(inner);
    if (schema['const'] !== undefined) return asText(schema['const']);
    if (Array.isArray(schema['enum'])) return asUnion(schema['enum'].map(asText));
    if (schema['type'] === 'array') {
      return `readonly ${/ /.test(inner[0] ?? '') ? `(${inner[0]})` : inner[0]}[]`;
    }
    if (schema['patternProperties'] !== undefined) return `Readonly<Record<string, ${inner[0]}>>`;
    if (schema[Kind] === 'Object') return 'Readonly<Record<string, unknown>>';
    return plain[String(schema['type'])] ?? 'unknown';
  };

  const types = asks.map(print);
  return { types, interfaces: [...declared.values()] };
};
