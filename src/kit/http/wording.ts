import { Kind, type TSchema } from '@sinclair/typebox';
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors';

/** What is wrong with a value of the wire, in words for whoever sent it. */

/** What a schema of this kind asks for, whatever its bounds are. */
const kinds: Readonly<Record<string, string>> = {
  String: 'a string',
  Integer: 'a whole number',
  Number: 'a number',
  Boolean: 'true or false',
  Array: 'an array',
  Object: 'an object',
  Record: 'an object',
  Null: 'null',
};

const formats: Readonly<Record<string, string>> = {
  uuid: 'must be an id (a UUID)',
  'date-time': 'must be a time with its zone, such as 2026-03-01T12:00:00Z',
};

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? '' : 's'}`;

const nameOf = (schema: TSchema): string =>
  schema[Kind] === 'Literal'
    ? JSON.stringify(schema['const'])
    : (kinds[schema[Kind]] ?? 'another value');

const sayPattern = (schema: TSchema): string => {
  if (Array.isArray(schema['enum'])) return `must be one of ${schema['enum'].join(', ')}`;
  return schema.description?.replace(/[.]$/, '') ?? `must match ${schema['pattern']}`;
};

type Say = (schema: TSchema) => string;

const bounds = (): Partial<Record<ValueErrorType, Say>> => {
  const atLeast: Say = ({ minimum }) => `must be at least ${minimum}`;
  const atMost: Say = ({ maximum }) => `must be at most ${maximum}`;
  const moreThan: Say = ({ exclusiveMinimum }) => `must be more than ${exclusiveMinimum}`;
  const lessThan: Say = ({ exclusiveMaximum }) => `must be less than ${exclusiveMaximum}`;
  return {
    [ValueErrorType.IntegerMinimum]: atLeast,
    [ValueErrorType.IntegerMaximum]: atMost,
    [ValueErrorType.IntegerExclusiveMinimum]: moreThan,
    [ValueErrorType.IntegerExclusiveMaximum]: lessThan,
    [ValueErrorType.NumberMinimum]: atLeast,
    [ValueErrorType.NumberMaximum]: atMost,
    [ValueErrorType.NumberExclusiveMinimum]: moreThan,
    [ValueErrorType.NumberExclusiveMaximum]: lessThan,
  };
};

const said: Partial<Record<ValueErrorType, Say>> = {
  ...bounds(),
  [ValueErrorType.ObjectRequiredProperty]: () => 'is required',
  [ValueErrorType.ObjectAdditionalProperties]: () => 'is not known here',
  [ValueErrorType.ObjectMinProperties]: ({ minProperties }) =>
    `must have at least ${count(minProperties, 'member')}`,
  [ValueErrorType.ObjectMaxProperties]: ({ maxProperties }) =>
    `must have at most ${count(maxProperties, 'member')}`,
  [ValueErrorType.ArrayMinItems]: ({ minItems }) =>
    minItems === 1 ? 'must not be empty' : `must have at least ${minItems} items`,
  [ValueErrorType.ArrayMaxItems]: ({ maxItems }) => `must have at most ${count(maxItems, 'item')}`,
  [ValueErrorType.ArrayUniqueItems]: () => 'must not have the same item twice',
  [ValueErrorType.StringMinLength]: ({ minLength }) =>
    minLength === 1 ? 'must not be empty' : `must have at least ${minLength} characters`,
  [ValueErrorType.StringMaxLength]: ({ maxLength }) =>
    `must have at most ${count(maxLength, 'character')}`,
  [ValueErrorType.StringPattern]: sayPattern,
  [ValueErrorType.StringFormat]: ({ format }) => formats[format] ?? `must be a ${format}`,
  [ValueErrorType.Union]: ({ anyOf }) => {
    const names = new Set((anyOf as readonly TSchema[]).map(nameOf));
    return `must be ${[...names].join(' or ')}`;
  },
};

/** What is wrong at the path of the error, to be read behind it; without a full stop. */
export const wordError = ({ type, schema, message }: ValueError): string => {
  const say = said[type];
  if (say !== undefined) return say(schema);
  return schema[Kind] in kinds || schema[Kind] === 'Literal'
    ? `must be ${nameOf(schema)}`
    : message;
};

const isOfAnotherKind = (errors: readonly ValueError[], path: string): boolean =>
  errors.some(({ type, path: at }) => at === path && said[type] === undefined);

/**
 * The errors, each at the innermost place that can be told: where a value has the kind of just one
 * of several alternatives, those within that one.
 */
export function* innermost(errors: Iterable<ValueError>): Generator<ValueError> {
  for (const error of errors) {
    const meant = error.errors
      .map((within) => [...within])
      .filter((within) => !isOfAnotherKind(within, error.path));
    if (meant.length === 1) yield* innermost(meant[0] as readonly ValueError[]);
    else yield error;
  }
}
