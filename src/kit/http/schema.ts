import { type TSchema, type TUnsafe, Type } from '@sinclair/typebox';

/** Small schema parts that every feature's wire uses. */

/** One of a few texts; checked as a pattern and shown as an `enum`. */
export const textEnum = <const T extends readonly string[]>(values: T): TUnsafe<T[number]> => ({
  ...Type.Unsafe<T[number]>(
    Type.String({ pattern: `^(?:${values.join('|')})$`, enum: [...values] }),
  ),
});

export const nullable = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);

export const uuid_schema = Type.String({ format: 'uuid' });
export const time_schema = Type.String({ format: 'date-time' });
