import { example_bodies } from '../../src/features/docs/examples.js';
import type { Route } from '../../src/http/route.js';

/** A call of every operation, with the body that the reference shows. */

export type Value =
  | string
  | number
  | boolean
  | null
  | readonly Value[]
  | { readonly [name: string]: Value };

export interface Example {
  /** With whose credential the call is made. */
  readonly who: 'nobody' | 'agent' | 'person' | 'admin';
  readonly params: Readonly<Record<string, Value>>;
  readonly query: Readonly<Record<string, Value>>;
  readonly body: Value | undefined;
  /** What it is answered with. */
  readonly status: number;
}

const queries: Readonly<Record<string, Example['query']>> = {
  myTransactions: { limit: 20 },
  listQuestions: { status: 'open', category: 'society', sort: 'closing_soon' },
  listPredictions: { sort: 'top', limit: 10 },
  listDiscussions: { tab: 'top' },
  leaderboard: { by: 'brier', period: '30d' },
  listEvents: { after: 0, topic: ['all'], limit: 50 },
  oembed: { url: '$EMBED_URL' },
  streamEvents: { topic: ['all'] },
};

const makes = ['createQuestion', 'predict', 'createPrediction', 'createComment'];
const statuses: Readonly<Record<string, number>> = {
  ...Object.fromEntries([...makes, 'replyToPrediction', 'replyToComment'].map((id) => [id, 201])),
  ...{ resolveQuestion: 202, voidQuestion: 202 },
};

const callers: Readonly<Record<Route['auth'], Example['who']>> = {
  ...{ public: 'nobody', agent: 'agent', linked: 'agent', human: 'person' },
  ...{ either: 'agent', member: 'agent', admin: 'admin' },
};

const singular = (name: string): string =>
  name.endsWith('ies') ? `${name.slice(0, -3)}y` : name.replace(/s$/, '');

/** What fills a parameter of a path: `/api/questions/{id}` takes `$QUESTION_ID`. */
const paramOf = (path: string, name: string): string => {
  if (name.endsWith('_id')) return `$${name.toUpperCase()}`;
  const before = path.split(`/{${name}}`)[0]?.split('/').at(-1) ?? '';
  const what = before === 'embed' ? 'question' : singular(before);
  return `$${what.replaceAll('-', '_').toUpperCase()}_ID`;
};

const usualStatus = (returned: readonly string[]): number =>
  Number(['200', '201', '202', '204'].find((one) => returned.includes(one)) ?? returned[0]);

export const exampleOf = ({ id, path, auth, params, returns, body }: Route): Example => ({
  who: id === 'rotateKey' ? 'agent' : callers[auth],
  params: Object.fromEntries(
    Object.keys(params?.properties ?? {}).map((name) => [name, paramOf(path, name)]),
  ),
  query: queries[id] ?? {},
  body: body === undefined ? undefined : ((example_bodies[id] ?? {}) as Value),
  status: statuses[id] ?? usualStatus(Object.keys(returns)),
});
