import type { PostgresType } from 'postgres';

/**
 * Arrays of the types that the schema and its queries use, one-dimensional. postgres.js would ask
 * every new connection for them, in a query that nobody waits for: a Postgres that goes away in the
 * middle of it then ends the process with an unhandled rejection, and each connect costs one round
 * trip more.
 */

interface Element {
  readonly array_oid: number;
  /** What it writes never needs quotes. */
  readonly bare?: true;
  readonly write: (value: never) => string;
  readonly read: (text: string) => unknown;
}

const asItIs = (value: unknown): string => String(value);

const elements = {
  booleans: { array_oid: 1000, bare: true, write: asItIs, read: (text) => text === 't' },
  smallints: { array_oid: 1005, bare: true, write: asItIs, read: Number },
  integers: { array_oid: 1007, bare: true, write: asItIs, read: Number },
  bigints: { array_oid: 1016, bare: true, write: asItIs, read: Number },
  doubles: { array_oid: 1022, bare: true, write: asItIs, read: Number },
  texts: {
    array_oid: 1009,
    write: asItIs,

    read: (text) => text,
  },
  varchars: { array_oid: 1015, write: asItIs, read: (text) => text },
  uuids: { array_oid: 2951, write: asItIs, read: (text) => text },
  byteas: {
    array_oid: 1001,
    write: (bytes: Uint8Array) => `\\x${Buffer.from(bytes).toString('hex')}`,
    read: (text) => Buffer.from(text.slice(2), 'hex'),
  },
  dates: { array_oid: 1182, write: asItIs, read: (text) => new Date(text) },
  timestamptzs: {
    array_oid: 1185,
    write: (time: Date | string) => (time instanceof Date ? time.toISOString() : time),
    read: (text) => new Date(text),
  },
} satisfies Record<string, Element>;

const quoteElement = (text: string): string =>
  text.includes('"') || text.includes('\\') ? `"${text.replace(/[\\"]/g, '\\$&')}"` : `"${text}"`;

/** The text of an array as Postgres reads it; texts are quoted, so that none is mistaken. */
const writeArray = (values: readonly unknown[], { write, bare }: Element): string => {
  const texts = values.map((value) => {
    if (value === null) return 'null';
    const text = write(value as never);
    return bare === true ? text : quoteElement(text);
  });
  return `{${texts.join(',')}}`;
};

const element_pattern = /"([^"\\]*(?:\\.[^"\\]*)*)"|([^,{}"]+)/gs;

const readArray = (text: string, read: (text: string) => unknown): unknown[] =>
  Array.from(text.matchAll(element_pattern), ([, quoted, bare]) => {
    if (quoted !== undefined) return read(quoted.replace(/\\(.)/gs, '$1'));
    return bare === 'NULL' ? null : read(bare as string);
  });

/** For the `types` of a client that does not fetch any. A text that is given passes as it is. */
export const array_types: Readonly<Record<string, PostgresType>> = Object.fromEntries(
  Object.entries<Element>(elements).map(([name, element]) => [
    name,
    {
      to: element.array_oid,
      from: [element.array_oid],
      serialize: (values: readonly unknown[] | string) =>
        typeof values === 'string' ? values : writeArray(values, element),
      parse: (text: string) => readArray(text, element.read),
    },
  ]),
);
