import type { TSchema } from '@sinclair/typebox';

/**
 * Describes arguments in the part of JSON Schema that every client accepts. Some clients reject a
 * whole list of tools because of `patternProperties`, a property without a type, or an unknown
 * format.
 */

export type JsonSchema = Readonly<Record<string, unknown>>;

const kept = ['description', 'default', 'enum', 'minimum', 'maximum', 'maxLength', 'minItems'];

const keep = (schema: TSchema, names: readonly string[]): JsonSchema =>
  Object.fromEntries(names.flatMap((name) => (name in schema ? [[name, schema[name]]] : [])));

/** Returns the alternatives of a schema, except null, because null means a missing argument. */
const kindsOf = (schema: TSchema): readonly TSchema[] =>
  schema['anyOf'] === undefined
    ? [schema].filter(({ type }) => type !== 'null')
    : (schema['anyOf'] as readonly TSchema[]).flatMap(kindsOf);

const describe = (schema: TSchema): string | undefined =>
  schema.description ??
  (schema['anyOf'] as readonly TSchema[] | undefined)?.map(describe).find((said) => said) ??
  (schema['format'] === 'uuid' ? 'A UUID.' : undefined);

const openObject = (schema: TSchema): JsonSchema => {
  const [of_all] = Object.values((schema['patternProperties'] ?? {}) as Record<string, TSchema>);
  if (of_all !== undefined) return { additionalProperties: strictSchema(of_all) };
  const { properties = {}, required = [] } = schema;
  return objectSchema(properties, required);
};

/** Describes the members of an object. `required` is left out if it is empty. */
const objectSchema = (
  properties: Readonly<Record<string, TSchema>>,
  required: readonly string[],
): JsonSchema => ({
  properties: Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, strictSchema(schema)]),
  ),
  ...(required.length === 0 ? {} : { required }),
});

const strictSchema = (schema: TSchema): JsonSchema => {
  const description = describe(schema);
  const about = description === undefined ? {} : { description };
  const [first, ...others] = kindsOf(schema) as [TSchema, ...TSchema[]];
  // Some clients allow nothing beside `anyOf`, so its first branch carries the description.
  if (others.length > 0) {
    return { anyOf: [{ ...strictSchema(first), ...about }, ...others.map(strictSchema)] };
  }
  const { type, items, format } = first;
  // Without a type, any value is allowed. Clients send it as text, and an object as JSON text.
  if (type === undefined) return { type: 'string', ...about };
  return {
    type,
    ...keep(first, kept),
    ...(format === 'date-time' ? { format } : {}),
    ...(type === 'array' ? { items: strictSchema(items) } : {}),
    ...(type === 'object' ? openObject(first) : {}),
    ...about,
  };
};

/** Returns the schema of a tool's arguments. Other arguments are not allowed. */
export const inputSchema = (
  members: Readonly<Record<string, TSchema>>,
  required: readonly string[],
): { readonly type: 'object' } & JsonSchema => ({
  type: 'object',
  ...objectSchema(members, required),
  additionalProperties: false,
});
