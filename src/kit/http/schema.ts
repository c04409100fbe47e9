import { Kind, type TSchema, type TUnsafe, Type, TypeRegistry } from '@sinclair/typebox';

/** Small schema parts that every feature's wire uses. */

/** One of a few texts; checked as a pattern and shown as an `enum`. */
export const textEnum = <const T extends readonly string[]>(values: T): TUnsafe<T[number]> => ({
  ...Type.Unsafe<T[number]>(
    Type.String({ pattern: `^(?:${values.join('|')})$`, enum: [...values] }),
  ),
});

const each_itself = 'EachItself';
TypeRegistry.Set(each_itself, () => true);

/**
 * An item of a list whose items are refused one by one: documented as `schema`, and checked by the
 * handler, so that what is wrong with one item refuses no other.
 */
export const judgedAlone = (schema: TSchema): TUnsafe<unknown> => ({
  ...Type.Unsafe<unknown>(schema),
  [Kind]: each_itself,
});

export const nullable = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);

export const uuid_schema = Type.String({ format: 'uuid' });
export const time_schema = Type.String({ format: 'date-time' });
