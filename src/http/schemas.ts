import {
  Kind,
  type StringOptions,
  type TSchema,
  type TUnsafe,
  Type,
  TypeRegistry,
} from '@sinclair/typebox';
import { explainText } from '../kit/text.js';

/** Schema parts that the routes and schemas of every feature use. */

/** One of a few strings. The check uses a pattern, and the documents show an `enum`. */
export const textEnum = <const T extends readonly string[]>(
  values: T,
  options: { readonly description?: string } = {},
): TUnsafe<T[number]> => ({
  ...Type.Unsafe<T[number]>(
    Type.String({ pattern: `^(?:${values.join('|')})$`, enum: [...values], ...options }),
  ),
});

export const text_kind = 'Text';
TypeRegistry.Set<TSchema>(
  text_kind,
  ({ minLength = 0, maxLength }, value) =>
    typeof value === 'string' &&
    value.length >= minLength &&
    explainText(value, maxLength) === null,
);

/**
 * A text that is stored in NFC; `maxLength` counts the characters of the NFC text. If a text is far
 * too long, the validator refuses it before any other work.
 */
export const textSchema = (
  options: StringOptions & { readonly maxLength: number },
): TUnsafe<string> => ({ ...Type.Unsafe<string>(Type.String(options)), [Kind]: text_kind });

const judged_later = Symbol('judged later');

/** A text whose handler checks length and combining marks, and refuses with its own error code. */
export const textJudgedLater = () => ({ ...Type.String(), [judged_later]: true });
export const isJudgedLater = (schema: TSchema): boolean =>
  judged_later in schema || schema[Kind] === each_itself;

const each_itself = 'EachItself';
TypeRegistry.Set(each_itself, () => true);

/**
 * An item of a list whose items are refused one by one. It is documented as `schema` and checked by
 * the handler, so that a wrong item does not affect the other items.
 */
export const judgedAlone = (schema: TSchema): TUnsafe<unknown> => ({
  ...Type.Unsafe<unknown>(schema),
  [Kind]: each_itself,
});

export const nullable = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);

export const uuid_schema = Type.String({ format: 'uuid' });
export const time_schema = Type.String({ format: 'date-time' });

/**
 * Gives a schema a name. The schema becomes a component of the document, so that other schemas can
 * refer to it, and a type in generated clients.
 */
export const named = <S extends TSchema>(title: string, description: string, schema: S): S => ({
  ...schema,
  title,
  description,
});

export const fields_schema = Type.Array(
  Type.Object({ path: Type.String(), message: Type.String(), code: Type.Optional(Type.String()) }),
  { description: 'All parts of the request that are wrong.' },
);

const offset_limit = 10_000;

/** The schema of a page size. Values above `most` are reduced to it. */
export const limitQuery = (most: number, usual: number) =>
  Type.Integer({
    minimum: 1,
    maximum: most,
    default: usual,
    description: `Items per page. A larger number is reduced to ${most}.`,
  });
export const limit_query = limitQuery(100, 20);

/** The query parameters of every list: spread them into the route's query schema. */
export const page_query = {
  limit: limit_query,
  cursor: Type.Optional(
    Type.String({ maxLength: 512, description: '`next_cursor` of the previous page.' }),
  ),
  offset: Type.Optional(Type.Integer({ minimum: 0, maximum: offset_limit })),
};

/** Returns the schema of a list's answer. */
export const pageSchema = (plural: string, row: TSchema, more: Record<string, TSchema> = {}) =>
  Type.Object({
    total: Type.Integer(),
    ...more,
    [plural]: Type.Array(row),
    next_cursor: nullable(Type.String()),
  });
