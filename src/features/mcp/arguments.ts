import { Kind, type TSchema } from '@sinclair/typebox';
import { convert, isExact, parseJson } from '../../http/validation.js';
import { common_faults, type Fault, refuse } from '../../kit/fault.js';

/** Reads the arguments of a tool. Clients send them as values, or as text that represents them. */

export type Arguments = Readonly<Record<string, unknown>>;
export type Members = Readonly<Record<string, TSchema>>;

const isObject = (value: unknown): value is Arguments =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isText = (schema: TSchema): boolean => schema['type'] === 'string';

const looksNested = (text: string): boolean => /^\s*[[{]/.test(text);

/** Reads a list or an object from JSON text; null if the text contains neither. */
const readNested = (text: string): object | null => {
  if (!looksNested(text)) return null;
  const parsed = parseJson(Buffer.from(text));
  return parsed.ok ? (parsed.value as object) : null;
};

/** Reads a string as a value of this kind; returns the string itself if it cannot be read. */
const readText = (kind: string, text: string): unknown => {
  const nested = readNested(text);
  switch (kind) {
    case 'Boolean':
      return /^(?:true|false)$/i.test(text) ? /^t/i.test(text) : text;
    case 'Integer':
    case 'Number':
      return isExact(text) ? convert(kind, text) : text;
    case 'Array':
      if (looksNested(text)) return Array.isArray(nested) ? nested : text;
      return (convert(kind, text) as string[]).map((item) => item.trim());
    case 'Object':
    case 'Record':
    case 'Unknown':
      return isObject(nested) ? nested : text;
    default:
      return text;
  }
};

/** Returns the schema of an object's member; undefined if the member is unknown. */
const memberOf = ({ properties, patternProperties }: TSchema, name: string): TSchema | undefined =>
  Object.hasOwn(properties ?? {}, name)
    ? properties[name]
    : (Object.values(patternProperties ?? {})[0] as TSchema | undefined);

/** Reads a string by the first schema that accepts it; if none does, it stays a string. */
const readAsOneOf = (schemas: readonly TSchema[], value: unknown): unknown => {
  for (const schema of schemas) {
    const read = isText(schema) ? value : readAs(schema, value);
    if (read !== value) return read;
  }
  return value;
};

/**
 * Reads strings as values of their schema, at any depth. An unreadable string stays as it is, so
 * that the route's check refuses and names it.
 */
const readAs = (schema: TSchema, value: unknown): unknown => {
  if (schema[Kind] === 'Union') return readAsOneOf(schema['anyOf'], value);
  const read = typeof value === 'string' ? readText(schema[Kind], value) : value;
  const { items } = schema;
  if (Array.isArray(read) && items !== undefined) return read.map((one) => readAs(items, one));
  if (!isObject(read) || (schema['properties'] ?? schema['patternProperties']) === undefined) {
    return read;
  }
  const entries = Object.entries(read).map(([name, one]) => {
    const member = memberOf(schema, name);
    return [name, member === undefined ? one : readAs(member, one)];
  });
  return Object.fromEntries(entries);
};

/** A null counts as a missing argument, because many clients send every argument. */
export const readArguments = (members: Members, given: Arguments): Arguments =>
  Object.fromEntries(
    Object.entries(given)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => {
        const schema = Object.hasOwn(members, name) ? members[name] : undefined;
        return [name, schema === undefined ? value : readAs(schema, value)];
      }),
  );

const max_named = 20;

/** Refuses arguments that the tool does not take; null if it takes all of them. */
export const refuseUnknown = (tool: string, members: Members, args: Arguments): Fault | null => {
  const unknown = Object.keys(args)
    .filter((name) => !Object.hasOwn(members, name))
    .map((name) => name.slice(0, 60))
    .slice(0, max_named);
  if (unknown.length === 0) return null;
  const known = Object.keys(members).join(', ');
  return refuse(common_faults.INVALID_REQUEST, {
    message: `${tool} does not take ${unknown.join(', ')}. It takes ${known}.`,
    fields: unknown.map((name) => ({ path: `arguments.${name}`, message: 'is not known here' })),
  });
};
