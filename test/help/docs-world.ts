import type { Route } from '../../src/http/route.js';
import { all_routes } from '../../src/routes.js';
import type { TestApp } from './app.js';
import { type Example, exampleOf, type Value } from './examples.js';
import { type KeyedCall, keyed_calls } from './keyed-calls.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from './story.js';

/** What the examples of the reference need: a value for each placeholder, by operation. */

export type Vars = Readonly<Record<string, string>>;

const routes = all_routes as readonly Route[];
const routeOf = (id: string): Route => {
  const found = routes.find((route) => route.id === id);
  if (found === undefined) throw new Error(`there is no operation ${id}`);
  return found;
};

/** Names of what a caller must have for it, each once. */
const placeholdersOf = (example: Example): readonly string[] => {
  const found = new Set<string>();
  const look = (value: Value): void => {
    if (typeof value === 'string' && /^\$[A-Z][A-Z0-9_]*$/.test(value)) found.add(value.slice(1));
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(look);
  };
  for (const part of [example.params, example.query, example.body ?? {}]) look(part);
  return [...found];
};

/** What a placeholder stands for where the same call was made up elsewhere. */
const fillFrom = (example: Value, real: unknown, found: Record<string, string>): void => {
  if (typeof example === 'string') {
    if (example.startsWith('$')) found[example.slice(1)] = String(real);
    return;
  }
  if (typeof example !== 'object' || example === null) return;
  const values = (real ?? {}) as Readonly<Record<string, unknown>>;
  for (const [name, inner] of Object.entries(example)) fillFrom(inner, values[name], found);
};

const paramsIn = (pattern: string, path: string): Readonly<Record<string, string>> => {
  const real = path.split('/');
  return Object.fromEntries(
    pattern
      .split('/')
      .map((part, at) => [part, real[at] ?? ''] as const)
      .filter(([part]) => part.startsWith('{'))
      .map(([part, value]) => [part.slice(1, -1), value]),
  );
};

/** The values of a call that was prepared for an operation. */
const varsOf = (route: Route, example: Example, { path, send }: KeyedCall): Vars => {
  const found: Record<string, string> = {};
  fillFrom(example.params, paramsIn(route.path, path), found);
  fillFrom(example.body ?? {}, send.body, found);
  if (send.key !== undefined) found['API_KEY'] = send.key;
  if (send.token !== undefined) found['TOKEN'] = send.token;
  return found;
};

/** Operations whose world is that of a POST on the same thing. */
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

/** A question with a forecast and a comment on it, an agent, and the person behind it. */
const makeCommon = async (app: TestApp): Promise<Vars> => {
  const human = await makeHuman(app);
  const agent = await makeAgent(app, { human });
  const { key } = agent;
  const question_id = await makeOpenQuestion(app);
  const said = { prediction: true, confidence: 70, reasoning: makeReasoning() };
  const placed = await app.call('POST', `/api/questions/${question_id}/predict`, {
    ...{ key, body: said },
  });
  const content = 'Whoever reads this should compare several independent sources.';
  const comment = await app.call('POST', `/api/questions/${question_id}/comments`, {
    ...{ key, body: { content } },
  });
  return {
    QUESTION_ID: question_id,
    PREDICTION_ID: placed.body.prediction.id,
    COMMENT_ID: comment.body.comment.id,
    AGENT_ID: agent.id,
    API_KEY: key,
    TOKEN: human.token,
    ADMIN_KEY: app.admin_key,
    EMBED_URL: `${app.url}/embed/${question_id}`,
  };
};

/** Values for one run of an example: a new world where the call changes something. */
export const makeDocsWorld = async (app: TestApp) => {
  const common = await makeCommon(app);
  return async (route: Route): Promise<Vars> => {
    const source = like[route.id] ?? route.id;
    const prepare = keyed_calls[source];
    const own: Record<string, string> = { ...common };
    if (prepare !== undefined) {
      const like_route = routeOf(source);
      Object.assign(own, varsOf(like_route, exampleOf(like_route), await prepare(app)));
    }
    if (route.id === 'unlinkAgent') {
      const human = await makeHuman(app);
      own['TOKEN'] = human.token;
      own['AGENT_ID'] = (await makeAgent(app, { human })).id;
    }
    const missing = placeholdersOf(exampleOf(route)).filter((name) => own[name] === undefined);
    if (missing.length > 0) throw new Error(`${route.id}: nothing stands for ${missing.join()}`);
    return own;
  };
};
