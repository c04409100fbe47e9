/** What a JSON Schema says, in a form that is read: types in words, members with their limits. */

// biome-ignore lint/suspicious/noExplicitAny: a JSON document of many shapes.
export type Schema = any;

export interface Shape {
  /** `string`, `integer`, `array of question`. */
  readonly type: string;
  /** Limits and formats: `at most 200 characters`. */
  readonly notes: readonly string[];
  /** Of the object, or of the objects in the array. */
  readonly members: readonly Member[];
  /** The name of the object that is described elsewhere. */
  readonly object: string | null;
  /** Where it is one of several objects: each of them. */
  readonly choices: readonly Shape[];
}

export interface Member extends Shape {
  readonly name: string;
  readonly required: boolean;
  readonly description: string;
}

/** Objects that are described once, by the text of their schema. */
export type Objects = ReadonlyMap<string, string>;

const showNumber = (value: number): string => value.toLocaleString('en-US');

const range = (low?: number, most?: number, unit = ''): readonly string[] => {
  const high = most === Number.MAX_SAFE_INTEGER ? undefined : most;
  if (low !== undefined && high !== undefined) {
    const span = `${showNumber(low)} to ${showNumber(high)}`;
    return [`${low === high ? `exactly ${showNumber(low)}` : span}${unit}`];
  }
  if (low !== undefined) return [`at least ${showNumber(low)}${unit}`];
  return high === undefined ? [] : [`at most ${showNumber(high)}${unit}`];
};

const show = (value: unknown): string => JSON.stringify(value);

const notesOf = (schema: Schema): readonly string[] => [
  ...range(schema.minimum, schema.maximum),
  ...(schema.minLength === 1 && schema.maxLength === undefined
    ? ['not empty']
    : range(schema.minLength, schema.maxLength, ' characters')),
  ...range(schema.minItems, schema.maxItems, ' items'),
  ...(schema.pattern !== undefined && schema.enum === undefined ? [`like ${schema.pattern}`] : []),
  ...(schema.default === undefined ? [] : [`${show(schema.default)} unless told`]),
];

const formats: Readonly<Record<string, string>> = { uuid: 'UUID', 'date-time': 'time' };

const scalarName = ({ type, format }: Schema): string =>
  typeof type === 'string' ? (formats[format] ?? type) : 'any value';

const shape = (type: string, more: Partial<Shape> = {}): Shape => ({
  ...{ type, notes: [], members: [], object: null, choices: [] },
  ...more,
});

const isNull = (schema: Schema): boolean => schema.type === 'null';

const unionOf = (choices: readonly Schema[], objects: Objects): Shape => {
  const shapes = choices.filter((one) => !isNull(one)).map((one) => readShape(one, objects));
  const types = [...new Set(shapes.map(({ type }) => type))];
  if (choices.some(isNull)) types.push('null');
  const objects_in = shapes.filter(({ members }) => members.length > 0);
  if (objects_in.length > 1) return shape(`one of ${shapes.length} objects`, { choices: shapes });
  return shape(types.join(' or '), {
    notes: [...new Set(shapes.flatMap(({ notes }) => notes))],
    members: shapes.flatMap(({ members }) => members),
    object: shapes.map(({ object }) => object).find((name) => name !== null) ?? null,
  });
};

const objectOf = (schema: Schema, objects: Objects): Shape => {
  const [values] = Object.values(schema.patternProperties ?? {}) as Schema[];
  if (values !== undefined && schema.properties === undefined) {
    const inner = readShape(values, objects);
    return shape(`map of text to ${inner.type}`, { ...inner, type: `map of ${inner.type}` });
  }
  return shape('object', { members: membersOf(schema, objects) });
};

/** The members of an object. */
export const membersOf = (schema: Schema, objects: Objects): readonly Member[] => {
  const required = new Set<string>(schema.required ?? []);
  return Object.entries((schema.properties ?? {}) as Record<string, Schema>).map(([name, one]) => ({
    ...readShape(one, objects),
    name,
    required: required.has(name),
    description: String(one.description ?? ''),
  }));
};

export const readShape = (schema: Schema, objects: Objects): Shape => {
  const known = objects.get(JSON.stringify(schema));
  if (known !== undefined) return shape(known, { object: known });
  if (schema.$ref !== undefined) {
    const name = String(schema.$ref).split('/').at(-1) ?? '';
    return shape(name.toLowerCase(), { object: name.toLowerCase() });
  }
  if (schema.const !== undefined) return shape(show(schema.const));
  if (schema.anyOf !== undefined) return unionOf(schema.anyOf, objects);
  if (schema.enum !== undefined) {
    return shape(schema.enum.map(show).join(' | '), { notes: notesOf(schema) });
  }
  if (schema.type === 'array') {
    const inner = readShape(schema.items ?? {}, objects);
    const notes = [...notesOf(schema), ...inner.notes.map((note) => `each ${note}`)];
    return { ...inner, type: `array of ${inner.type}`, notes };
  }
  if (schema.type === 'object') return objectOf(schema, objects);
  return shape(scalarName(schema), { notes: notesOf(schema) });
};

const isObject = (schema: Schema): boolean =>
  schema?.type === 'object' && Object.keys(schema.properties ?? {}).length >= 5;

const least_uses = 3;
const least_length = 700;

interface Seen {
  readonly schema: Schema;
  uses: number;
  name: string;
}

const singular = (name: string): string =>
  name.endsWith('ies') ? `${name.slice(0, -3)}y` : name.replace(/s$/, '');

/**
 * Objects that stand in several places and are long: each gets a name, from the members that hold
 * it, and is described once.
 */
export const findObjects = (schemas: readonly Schema[]) => {
  const seen = new Map<string, Seen>();
  const look = (schema: Schema, name: string): void => {
    if (typeof schema !== 'object' || schema === null) return;
    if (isObject(schema) && name !== '') {
      const text = JSON.stringify(schema);
      const one = seen.get(text) ?? { schema, uses: 0, name };
      one.uses += 1;
      if (name.length < one.name.length) one.name = name;
      seen.set(text, one);
    }
    for (const [key, one] of Object.entries(schema.properties ?? {})) look(one, key);
    for (const one of [schema.items, ...(schema.anyOf ?? [])]) look(one, name);
  };
  for (const schema of schemas) look(schema, '');
  const objects = new Map<string, string>();
  const named = new Map<string, Schema>();
  for (const [text, { schema, uses, name }] of seen) {
    const short = singular(name);
    if (uses < least_uses || text.length < least_length || named.has(short)) continue;
    objects.set(text, short);
    named.set(short, schema);
  }
  return { objects, named };
};
