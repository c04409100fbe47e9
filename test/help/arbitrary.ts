import { Kind, type TObject, type TSchema } from '@sinclair/typebox';
import fc from 'fast-check';
import { text_kind } from '../../src/http/schemas.js';

/**
 * Generates values from the wire schemas. They have the right shape, and are as extreme as the
 * schema allows or slightly more. `known` supplies values for members by name, so that later checks
 * are reached too.
 */
export type Known = Readonly<Record<string, fc.Arbitrary<unknown>>>;

export const weighted = <T>(
  ...parts: readonly (readonly [weight: number, arbitrary: fc.Arbitrary<T>])[]
): fc.Arbitrary<T> => fc.oneof(...parts.map(([weight, arbitrary]) => ({ weight, arbitrary })));

/** Characters that might break some layer. Each one covers a different risk. */
const characters = fc.constantFrom(
  ...['a', 'Z', '0', ' ', '\n', '\t', '.', ',', '%', '_', '\\', "'", '"', '$1', '{', '}', '/', '<'],
  // Longer when composed, case-folded or in compatibility form.
  ...['\u0958', '\u{1d160}', '\ufdfa', '\u0130', '\u00df', '\u0390', '\u1e9e'],
  // Invisible, directional, combining, beyond the basic plane.
  ...['\u200b', '\u202e', '\ufeff', '\u0301', '\u{1f600}', '\u{10ffff}', '\ufffe', '\u2028'],
  ...['\u0001', '\u001b', '\u007f', '\u0085'],
);

const refused_characters = fc.constantFrom('\u0000', '\ud800', '\udc00');

const repeatTo = (parts: readonly string[], length: number): string => {
  const unit = parts.join('') === '' ? 'x' : parts.join('');
  return unit.repeat(Math.ceil(length / unit.length)).slice(0, length);
};

/** Text with a length at, just over or far below a limit, made of a few odd characters. */
export const oddText = (min: number, max: number): fc.Arbitrary<string> => {
  const lengths = [min, max, max + 1, Math.max(0, min - 1), Math.min(max, min + 3)];
  const length = fc.oneof(fc.constantFrom(...lengths), fc.integer({ min, max }));
  const parts = fc.array(characters, { minLength: 1, maxLength: 6 });
  const built = fc.tuple(parts, length).map(([some, size]) => repeatTo(some, size));
  const refused = fc.tuple(built, refused_characters).map(([text, bad]) => text + bad);
  return weighted([12, built], [1, refused]);
};

const odd_numbers = [
  0,
  -0,
  1,
  -1,
  0.5,
  0.1 + 0.2,
  100,
  101,
  2 ** 31 - 1,
  2 ** 31,
  -(2 ** 31),
  2 ** 53,
  5e-324,
  Number.MAX_VALUE,
  -Number.MAX_VALUE,
  Number.MAX_SAFE_INTEGER,
];

const numberOf = ({ minimum = 0, maximum = 100 }: TSchema): fc.Arbitrary<number> =>
  weighted<number>(
    [4, fc.integer({ min: minimum, max: maximum })],
    [1, fc.constantFrom(minimum, maximum, minimum - 1, maximum + 1)],
    [1, fc.constantFrom(...odd_numbers)],
    [1, fc.double({ noNaN: true, noDefaultInfinity: true })],
  );

const day_ms = 86_400_000;

const time = fc.oneof(
  fc
    .integer({ min: -3, max: 400 })
    .map((days) => new Date(Date.now() + days * day_ms).toISOString()),
  fc.constantFrom(
    ...['1970-01-01T00:00:00Z', '1969-12-31T23:59:59Z', '0000-01-01T00:00Z', '2026-03-01', ''],
    '9999-12-31T23:59:59.999Z',
    ...['2026-02-30T00:00:00Z', '2026-03-01T24:00:00Z', '2026-03-01T00:00:60Z'],
    ...['9999-12-31T23:59:59-23:59', '2026-03-01T00:00:00.123456789+14:00', '+275760-09-13T00:00Z'],
  ),
);

const textOf = (schema: TSchema): fc.Arbitrary<unknown> => {
  if (Array.isArray(schema['enum'])) {
    return weighted([8, fc.constantFrom(...(schema['enum'] as string[]))], [1, oddText(0, 8)]);
  }
  if (schema['format'] === 'uuid') return fc.uuid();
  if (schema['format'] === 'date-time') return time;
  if (schema['pattern'] !== undefined) {
    return fc.oneof(fc.stringMatching(new RegExp(schema['pattern'] as string)), oddText(0, 8));
  }
  return oddText(schema['minLength'] ?? 0, schema['maxLength'] ?? 3_000);
};

const listOf = (schema: TSchema, known: Known): fc.Arbitrary<unknown> => {
  const { minItems = 0, maxItems = 20 } = schema;
  return fc.oneof(
    fc.array(shapedValue(schema['items'], known), {
      minLength: minItems,
      maxLength: Math.min(maxItems, 4),
    }),
    fc
      .tuple(
        shapedValue(schema['items'], known),
        fc.constantFrom(0, minItems, maxItems, maxItems + 1),
      )
      .map(([item, count]) => Array(count).fill(item)),
  );
};

const objectOf = (schema: TSchema, known: Known): fc.Arbitrary<unknown> => {
  const { properties, required = [] } = schema as TObject;
  const members = Object.entries(properties).map(([name, property]) => {
    const shaped = shapedValue(property, known);
    const semantic = known[name];
    const value = semantic === undefined ? shaped : weighted([5, semantic], [1, shaped]);
    return [name, value] as const;
  });
  return fc.record(Object.fromEntries(members), { requiredKeys: [...required] });
};

/** A value that matches the schema, or nearly does. */
export const shapedValue = (schema: TSchema, known: Known): fc.Arbitrary<unknown> => {
  switch (schema[Kind]) {
    case 'Object':
      return objectOf(schema, known);
    case 'Array':
      return listOf(schema, known);
    case 'Union':
      return fc.oneof(...(schema['anyOf'] as TSchema[]).map((one) => shapedValue(one, known)));
    case 'String':
    case text_kind:
      return textOf(schema);
    case 'Integer':
    case 'Number':
      return numberOf(schema);
    case 'Boolean':
      return fc.boolean();
    case 'Literal':
      return fc.constant(schema['const']);
    case 'Null':
      return fc.constant(null);
    case 'Record':
      return fc.dictionary(oddText(0, 20), numberOf({} as TSchema), { maxKeys: 4 });
    default:
      return schema['properties'] === undefined
        ? fc.jsonValue({ maxDepth: 3 })
        : fc.oneof(objectOf(schema, known), fc.jsonValue({ maxDepth: 3 }));
  }
};
