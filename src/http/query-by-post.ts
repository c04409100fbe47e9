import { type TObject, type TSchema, Type } from '@sinclair/typebox';
import { type Fault, isFault } from '../kit/fault.js';
import type { Answer, Route } from './route.js';

/**
 * Every read that takes many ids in its URL also exists as POST, with the query as a JSON body. A
 * URL above 1,400 bytes arrives in several segments, and on Node 20 the engine refuses it.
 */
export const queryByPost = <D>(read: Route<D>, id: string): Route<D> => {
  const { query, path } = read;
  if (query === undefined) throw new Error(`${read.id} has no query`);
  return {
    ...read,
    id,
    method: 'POST',
    path: `${path}/query`,
    summary: `The same as GET ${path}, with the query in the body`,
    query: undefined,
    body: makeBody(query),
    cacheable: false,
    cache: undefined,
    stores_answer: 'never',
    // The call changes nothing, so it does not count as an open write.
    waits: true,
    async handle(ctx, deps) {
      ctx.query = readMembers(query, ctx.body as Members);
      return withoutUrl(await read.handle(ctx, deps));
    },
  };
};

type Members = Readonly<Record<string, unknown>>;

/** As in a query, members with a default are optional, and a `limit` may exceed its maximum. */
export const makeBody = ({ properties }: TObject): TObject => {
  const members = Object.entries(properties).map(([name, schema]): [string, TSchema] => {
    if (schema.default === undefined) return [name, schema];
    const { maximum: _, ...without_maximum } = schema;
    return [name, Type.Optional((name === 'limit' ? without_maximum : schema) as TSchema)];
  });
  return Type.Object(Object.fromEntries(members));
};

const readMembers = ({ properties }: TObject, body: Members): Members =>
  Object.fromEntries(
    Object.entries(properties).flatMap(([name, { default: fallback, maximum }]) => {
      const value = body[name] ?? fallback;
      if (value === undefined) return [];
      return [[name, name === 'limit' ? Math.min(value as number, maximum) : value]];
    }),
  );

const nameBody = (text: string): string => text.replace(/^query\b/, 'body');

/** Refusals name members of the body. Answers are not cached and have no link to a long URL. */
const withoutUrl = (answer: Answer): Answer => {
  if (isFault(answer)) {
    const fields = answer.fields?.map((field) => ({ ...field, path: nameBody(field.path) }));
    const message = nameBody(answer.message);
    return { ...answer, message, ...(fields && { fields }) } satisfies Fault;
  }
  const { Link: _link, 'Cache-Control': _rule, ...headers } = answer.headers ?? {};
  return { ...answer, headers };
};
