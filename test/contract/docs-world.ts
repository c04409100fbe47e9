import { example_bodies } from '../../src/features/docs/examples.js';
import type { Route } from '../../src/http/route.js';
import { all_routes } from '../../src/routes.js';
import type { CallOptions, TestApp } from '../help/app.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { type KeyedCall, keyed_calls } from './keyed-calls.js';

/**
 * A call of every operation as the reference shows it, in a world where it works: each placeholder
 * of an example (`$QUESTION_ID`) gets a value.
 */

type Value =
  | string
  | number
  | boolean
  | null
  | readonly Value[]
  | { readonly [name: string]: Value };
type Members = Readonly<Record<string, Value>>;
type Vars = Readonly<Record<string, string>>;

export interface ExampleCall {
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly path: string;
  /** The path with the query. */
  readonly target: string;
  /** The credential and the body. */
  readonly send: CallOptions;
}

const queries: Readonly<Record<string, Members>> = {
  myTransactions: { limit: 20 },
  listQuestions: { status: 'open', category: 'society', sort: 'closing_soon' },
  listPredictions: { sort: 'top', limit: 10 },
  listDiscussions: { tab: 'top' },
  leaderboard: { by: 'brier', period: '30d' },
  listEvents: { after: 0, topic: ['all'], limit: 50 },
  oembed: { url: '$EMBED_URL' },
  streamEvents: { topic: ['all'] },
};

const singular = (name: string): string =>
  name.endsWith('ies') ? `${name.slice(0, -3)}y` : name.replace(/s$/, '');

/** The placeholder of a parameter of a path: `/api/questions/{id}` takes `$QUESTION_ID`. */
const paramOf = (path: string, name: string): string => {
  if (name.endsWith('_id')) return `$${name.toUpperCase()}`;
  const before = path.split(`/{${name}}`)[0]?.split('/').at(-1) ?? '';
  const subject = before === 'embed' ? 'question' : singular(before);
  return `$${subject.replaceAll('-', '_').toUpperCase()}_ID`;
};

/** The body that the reference shows. */
export const bodyOf = ({ id, body }: Route): Value | undefined =>
  body === undefined ? undefined : ((example_bodies[id] ?? {}) as Value);

const exampleOf = (route: Route) => ({
  params: Object.fromEntries(
    Object.keys(route.params?.properties ?? {}).map((name) => [name, paramOf(route.path, name)]),
  ) as Members,
  query: queries[route.id] ?? {},
  body: bodyOf(route),
});

const created = [
  ...['createQuestion', 'predict', 'createPrediction', 'createComment', 'replyToPrediction'],
  'replyToComment',
];

/** The status that the example is answered with. */
export const statusOf = ({ id, returns }: Route): number => {
  if (created.includes(id)) return 201;
  if (['resolveQuestion', 'voidQuestion'].includes(id)) return 202;
  const documented = Object.keys(returns);
  const usual = ['200', '201', '202', '204'].find((one) => documented.includes(one));
  return Number(usual ?? documented[0]);
};

/** The credential that a call is made with. */
export const credentialOf = (
  { id, auth }: Route,
  { API_KEY: key = '', TOKEN: token = '' }: Vars,
): CallOptions => {
  if (id === 'rotateKey' || ['agent', 'linked', 'either', 'member'].includes(auth)) return { key };
  if (auth === 'human') return { token };
  return auth === 'admin' ? { admin: true } : {};
};

/** With a value for each placeholder. */
const fill = (value: Value, vars: Vars): Value => {
  if (typeof value === 'string') {
    const name = /^\$([A-Z][A-Z\d_]*)$/.exec(value)?.[1];
    if (name === undefined) return value;
    if (vars[name] === undefined) throw new Error(`Nothing stands for ${name}.`);
    return vars[name];
  }
  if (Array.isArray(value)) return value.map((one: Value) => fill(one, vars));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, fill(one, vars)]));
};

/** The values that a call which was prepared elsewhere has for the placeholders of an example. */
const readVars = (example: Value, real: unknown, found: Record<string, string>): void => {
  if (typeof example === 'string' && example.startsWith('$')) {
    found[example.slice(1)] = String(real);
  }
  if (typeof example !== 'object' || example === null) return;
  const values = (real ?? {}) as Readonly<Record<string, unknown>>;
  for (const [name, inner] of Object.entries(example)) readVars(inner, values[name], found);
};

const varsOf = (route: Route, { path, send }: KeyedCall): Vars => {
  const { params, body = {} } = exampleOf(route);
  const pattern = route.path.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)');
  const found: Record<string, string> = {};
  readVars(params, new RegExp(`^${pattern}$`).exec(path)?.groups, found);
  readVars(body, send.body, found);
  return {
    ...found,
    ...(send.key === undefined ? {} : { API_KEY: send.key }),
    ...(send.token === undefined ? {} : { TOKEN: send.token }),
  };
};

/** Operations whose world is that of a POST on the same subject. */
const like: Readonly<Record<string, string>> = {
  dropPredictionUpvote: 'upvotePrediction',
  dropPredictionDownvote: 'downvotePrediction',
  dropCommentUpvote: 'upvoteComment',
  getWebhook: 'redeliverWebhook',
  listWebhooks: 'redeliverWebhook',
  updateWebhook: 'redeliverWebhook',
  deleteWebhook: 'redeliverWebhook',
  listWebhookDeliveries: 'redeliverWebhook',
  getWebhookDelivery: 'redeliverWebhook',
  getDispute: 'withdrawDispute',
  updateQuestion: 'publishQuestion',
  deleteQuestion: 'publishQuestion',
};

/** A question with a forecast and a comment on it, an agent, and its owner. */
const makeCommon = async (app: TestApp): Promise<Vars> => {
  const human = await makeHuman(app);
  const { id, key } = await makeAgent(app, { human });
  const question_id = await makeOpenQuestion(app);
  const path = `/api/questions/${question_id}`;
  const forecast = { prediction: true, confidence: 70, reasoning: makeReasoning() };
  const placed = await app.call('POST', `${path}/predict`, { key, body: forecast });
  const content = 'Whoever reads this should compare several independent sources.';
  const comment = await app.call('POST', `${path}/comments`, { key, body: { content } });
  return {
    QUESTION_ID: question_id,
    PREDICTION_ID: placed.body.prediction.id,
    COMMENT_ID: comment.body.comment.id,
    AGENT_ID: id,
    GUIDE_ID: 'concepts',
    API_KEY: key,
    TOKEN: human.token,
    ADMIN_KEY: app.admin_key,
    EMBED_URL: `${app.url}/embed/${question_id}`,
  };
};

const texts = (members: Members, vars: Vars): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(members).map(([name, value]) => [name, String(fill(value, vars))]),
  );

/** Prepares one run of an example: a new world where the call changes something. */
export const makeDocsWorld = async (app: TestApp) => {
  const common = await makeCommon(app);
  return async (route: Route): Promise<ExampleCall> => {
    const source = like[route.id] ?? route.id;
    const own: Record<string, string> = { ...common };
    if (keyed_calls[source] !== undefined) {
      const source_route = (all_routes as readonly Route[]).find(({ id }) => id === source);
      Object.assign(own, varsOf(source_route!, await keyed_calls[source](app)));
    }
    if (route.id === 'unlinkAgent') {
      const human = await makeHuman(app);
      Object.assign(own, { TOKEN: human.token, AGENT_ID: (await makeAgent(app, { human })).id });
    }
    const example = exampleOf(route);
    const { body } = example;
    const params = texts(example.params, own);
    const query = texts(example.query, own);
    const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(params[name] ?? ''),
    );
    const search = new URLSearchParams(query);
    return {
      ...{ params, query, path, target: search.size === 0 ? path : `${path}?${search}` },
      send: {
        ...credentialOf(route, own),
        ...(body === undefined ? {} : { body: fill(body, own) }),
      },
    };
  };
};
