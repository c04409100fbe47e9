import { createUnsubscribeTokens } from '../../src/features/digests/rules.js';
import { npm_package } from '../../src/features/docs/downloads.js';
import { example_bodies, example_queries, exampleParam } from '../../src/features/docs/examples.js';
import type { Route } from '../../src/http/route.js';
import { makeId } from '../../src/kit/ids.js';
import { bounce_secret, type CallOptions, secret_key, type TestApp } from '../help/app.js';
import {
  type Human,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
  makeReasoning,
} from '../help/story.js';

/**
 * The call of each operation as the reference shows it. Each placeholder of an example
 * (`$QUESTION_ID`) gets a value with which the call takes effect. Anything that a call changes or
 * uses up is created again each time.
 */

type Value =
  | string
  | number
  | boolean
  | null
  | readonly Value[]
  | { readonly [name: string]: Value };
/** By placeholder name. */
type Values = Readonly<Record<string, string>>;

export interface ExampleCall {
  readonly params: Values;
  readonly query: Values;
  readonly path: string;
  /** The path with the query. */
  readonly target: string;
  /** The credentials and the body. */
  readonly send: CallOptions;
  /** The values of all placeholders, by name. */
  readonly values: Values;
}

/** The body that the reference shows. */
export const bodyOf = ({ id, body }: Route): Value | undefined =>
  body === undefined ? undefined : ((example_bodies[id] ?? {}) as Value);

const created = [
  'createQuestion',
  'predict',
  'createPrediction',
  'createComment',
  'replyToPrediction',
  'replyToComment',
];

/** The status of the example's answer. */
export const statusOf = ({ id, returns }: Route): number => {
  if (created.includes(id) || id === 'putFollow') return 201;
  if (['resolveQuestion', 'voidQuestion'].includes(id)) return 202;
  const documented = Object.keys(returns);
  const usual = ['200', '201', '202', '204'].find((one) => documented.includes(one));
  return Number(usual ?? documented[0]);
};

/** The credentials for a call. */
const credentialOf = (
  { id, auth }: Route,
  { API_KEY: key = '', TOKEN: token = '' }: Values,
): CallOptions => {
  if (id === 'takeBounces') return { headers: { 'x-bounce-secret': bounce_secret } };
  if (id === 'rotateKey' || ['agent', 'linked', 'either', 'member'].includes(auth)) return { key };
  if (auth === 'human') return { token };
  return auth === 'admin' ? { admin: true } : {};
};

/** Replaces each placeholder with its value. */
const fill = (value: Value, values: Values): Value => {
  if (typeof value === 'string') {
    return value.replace(/\$([A-Z][A-Z\d_]*)/g, (_, name: string) => {
      if (values[name] === undefined) throw new Error(`Nothing stands for ${name}.`);
      return values[name];
    });
  }
  if (Array.isArray(value)) return value.map((one: Value) => fill(one, values));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, fill(one, values)]));
};

let made = 0;
/** A string that no other call uses. */
const mark = (): string => {
  made += 1;
  return `k${process.pid.toString(36)}x${made}`;
};

const days = (count: number) => new Date(Date.now() + count * 86_400_000).toISOString();
const because = { reason: 'Reported by a reader, and looked at.' };

/** The objects that the examples of changing operations need, by operation. */
const makeWorlds = (app: TestApp, owner: Human) => {
  type World = () => Promise<Values>;

  /** All agents have one owner, because hashing a password for each takes a while. */
  const linked = async () => {
    const { id, key } = await makeAgent(app, { human: owner });
    return { AGENT_ID: id, API_KEY: key };
  };
  /** This agent has its own owner: agents of one owner cannot vote on each other's content. */
  const voter = async () => {
    const { key } = await makeAgent(app, { human: await makeHuman(app) });
    return { API_KEY: key };
  };
  const human = async () => {
    const { email, token } = await makeHuman(app);
    return { EMAIL: email, TOKEN: token };
  };
  /** Makes a call and returns the body of its answer. */
  const post = async (path: string, send: CallOptions) =>
    (await app.call('POST', path, { body: {}, ...send })).body;
  /** Has a token mailed to an address, and returns both. */
  const mailed = async (email: string, path: string, body: object = {}) => {
    await post(path, { body: { email, ...body } });
    const { body: outbox } = await app.call('GET', '/dev/outbox');
    const mail = (outbox as { to: string; links: string[] }[]).find(({ to }) => to === email);
    const MAIL_TOKEN = new URL(mail?.links[0] ?? '').searchParams.get('token') ?? '';
    return { EMAIL: email, MAIL_TOKEN };
  };
  const mine = async () => {
    const one = await makeHuman(app);
    return { TOKEN: one.token, AGENT_ID: (await makeAgent(app, { human: one })).id };
  };
  const question = async () => ({ QUESTION_ID: await makeOpenQuestion(app) });
  const draft = async () => ({ QUESTION_ID: await makeOpenQuestion(app, { publish: false }) });
  const asked = async () => ({ ...(await linked()), ...(await question()) });
  const closed = async () => {
    const values = await question();
    await post(`/api/admin/questions/${values.QUESTION_ID}/close`, { admin: true });
    return values;
  };
  const sourced = async () => {
    const source = { source: 'survey', source_id: mark() };
    await makeOpenQuestion(app, source);
    return { SOURCE: source.source, SOURCE_ID: source.source_id };
  };
  const predicted = async () => {
    const values = await asked();
    const body = { prediction: true, confidence: 70, reasoning: makeReasoning(mark()) };
    const path = `/api/questions/${values.QUESTION_ID}/predict`;
    const { prediction } = await post(path, { key: values.API_KEY, body });
    return { ...values, PREDICTION_ID: prediction.id as string };
  };
  /** A forecast that is more than a minute old. */
  const aged = async () => {
    const values = await predicted();
    await app.sql`
      update predictions
      set created_at = created_at - interval '2 min'
      where id = ${values.PREDICTION_ID}`;
    return values;
  };
  /** A consumer with an event that is leased to its member. */
  const consuming = async () => {
    const values = await linked();
    const send = { key: values.API_KEY };
    const path = `/api/me/consumers/${mark()}`;
    await app.call('PUT', path, { ...send, body: { start: 'beginning' } });
    await app.call('POST', `${path}/take`, { ...send, body: { member: 'worker-1', limit: 1 } });
    return { ...values, CONSUMER_ID: path.slice(path.lastIndexOf('/') + 1) };
  };
  const commented = async () => {
    const values = await asked();
    const content = 'Readers of this should compare several independent sources.';
    const path = `/api/questions/${values.QUESTION_ID}/comments`;
    const { comment } = await post(path, { key: values.API_KEY, body: { content } });
    return { ...values, COMMENT_ID: comment.id as string };
  };
  /** A resolved question with a forecaster who may dispute it. */
  const resolved = async () => {
    const values = await predicted();
    const { QUESTION_ID } = values;
    await app.sql`
      update questions set status = 'closed', closed_at = now() where id = ${QUESTION_ID}`;
    const body = { outcome: false };
    await post(`/api/admin/questions/${QUESTION_ID}/resolve`, { admin: true, body });
    return values;
  };
  const disputed = async () => {
    const values = await resolved();
    const body = { reason: 'The harbour office published the report a day after the deadline.' };
    const path = `/api/questions/${values.QUESTION_ID}/dispute`;
    const { dispute } = await post(path, { key: values.API_KEY, body });
    return { ...values, DISPUTE_ID: dispute.id as string };
  };
  const reported = async () => {
    const { QUESTION_ID } = await question();
    const { API_KEY } = await linked();
    const body = { reason: 'spam' };
    await post(`/api/questions/${QUESTION_ID}/report`, { key: API_KEY, body });
    const { body: queue } = await app.call('GET', '/api/admin/reports', { admin: true });
    return { REPORT_ID: queue.cases[0].id as string };
  };
  /** A webhook with a delivery that is not being sent. */
  const hooked = async () => {
    const values = await linked();
    const body = { url: 'https://127.0.0.1:18443/hook', events: ['question.created'] };
    const { id } = await post('/api/webhooks', { key: values.API_KEY, body });
    const [row] = await app.sql<{ id: string }[]>`
      insert into deliveries
        (webhook_id, event_id, id, event_offset, recorded_on, state, next_at)
      select w.id, e.id, delivery_id(w.id, e.id), 1, '2026-01-02', 'exhausted', now()
      from webhooks w, (select ${makeId()}::uuid as id) e
      where w.id = ${id}
      returning id`;
    return { ...values, WEBHOOK_ID: id as string, DELIVERY_ID: row?.id ?? '' };
  };
  const notified = async () => {
    const values = await linked();
    const NOTIFICATION_ID = makeId();
    await app.sql`
      insert into notifications (agent_id, id, kind, cause, details, created_at)
      values (${values.AGENT_ID}, ${NOTIFICATION_ID}, 'tier.changed', ${mark()}, '{}', now())`;
    return { ...values, NOTIFICATION_ID };
  };
  /** An agent with an item in its inbox. */
  const informed = async () => {
    const values = await linked();
    const ITEM_ID = makeId();
    await app.sql`
      insert into inbox_items (reader_id, id, kind, cause, details, created_at)
      values (${values.AGENT_ID}, ${ITEM_ID}, 'question.moved', ${mark()}, '{}', now())`;
    return { ...values, ITEM_ID };
  };
  /** A person who gets digests. */
  const subscribed = async () => {
    const values = await human();
    const path = '/api/me/account/mail';
    await app.call('PATCH', path, { token: values.TOKEN, body: { digest: 'daily' } });
    const [row] = await app.sql<{ id: string }[]>`
      select id from humans where email = ${values.EMAIL}`;
    const tokens = createUnsubscribeTokens(secret_key);
    return { ...values, UNSUBSCRIBE_TOKEN: tokens.make(row?.id ?? '', 'digest') };
  };
  const following = async () => {
    const values = await asked();
    const path = `/api/me/follows/question/${values.QUESTION_ID}`;
    await app.call('PUT', path, { key: values.API_KEY });
    return values;
  };
  /** Prepares the objects of `world`, and then lets an admin act on one of them. */
  const after =
    (kind: string, act: string, world: World, name: string): World =>
    async () => {
      const values = await world();
      await post(`/api/admin/${kind}/${values[name]}/${act}`, { admin: true, body: because });
      return values;
    };

  const worlds: Readonly<Record<string, World>> = {
    rotateKey: linked,
    linkAgent: async () => ({ ...(await human()), API_KEY: (await makeAgent(app)).key }),
    unlinkAgent: mine,
    myAgent: mine,
    updateMyAgent: mine,
    rotateAgentKey: mine,
    verifyAddress: () =>
      mailed(`${mark()}@people.dev`, '/api/auth/signup', { password: 'correct horse battery' }),
    logIn: human,
    logOut: human,
    resendVerification: human,
    updateAccount: human,
    changePassword: human,
    deleteAccount: human,
    endSession: async () => {
      const values = await human();
      const { body } = await app.call('GET', '/api/me/sessions', { token: values.TOKEN });
      return { ...values, SESSION_ID: body.sessions[0].id };
    },
    forgotPassword: human,
    resetPassword: async () => mailed((await human()).EMAIL, '/api/auth/forgot'),
    readNotifications: notified,
    readInbox: informed,
    putFollow: asked,
    getFollow: following,
    deleteFollow: following,
    visitFollows: subscribed,
    unsubscribe: subscribed,
    takeBounces: subscribed,
    createWebhook: linked,
    suggestQuestion: linked,

    predict: asked,
    createPrediction: asked,
    createPredictions: asked,
    publishQuestion: draft,
    updateQuestion: draft,
    deleteQuestion: draft,
    closeQuestion: question,
    reopenQuestion: closed,
    previewResolution: closed,
    resolveQuestion: closed,
    voidQuestion: question,
    importPredictions: async () => {
      const values = { ...(await sourced()), AGENT_NAME: mark() };
      const body = { items: [{ name: values.AGENT_NAME, model: 'crowd' }] };
      await post('/api/admin/agents/import', { admin: true, body });
      return values;
    },
    importResolutions: sourced,

    hidePrediction: predicted,
    restorePrediction: after('predictions', 'hide', predicted, 'PREDICTION_ID'),
    suspendAgent: linked,
    restoreAgent: after('agents', 'suspend', linked, 'AGENT_ID'),
    hideComment: commented,
    restoreComment: after('comments', 'hide', commented, 'COMMENT_ID'),

    reportQuestion: asked,
    reportPrediction: async () => ({ ...(await predicted()), ...(await voter()) }),
    reportComment: async () => ({ ...(await commented()), ...(await voter()) }),
    reportAgent: async () => ({ ...(await linked()), ...(await voter()) }),
    resolveReport: reported,

    fileDispute: resolved,
    getDispute: disputed,
    withdrawDispute: disputed,
    decideDispute: disputed,

    revisePrediction: aged,
    createComment: asked,
    replyToPrediction: predicted,
    replyToComment: commented,
  };
  const votes = ['upvotePrediction', 'downvotePrediction', 'upvoteComment'];
  return async ({ id, path }: Route): Promise<Values> => {
    if (path.startsWith('/api/webhooks/{id}') || id === 'listWebhooks') return hooked();
    if (path.startsWith('/api/me/consumers/')) return consuming();
    if (votes.includes(id) || /^drop.*vote$/.test(id)) {
      const subject = path.includes('comments') ? await commented() : await predicted();
      return { ...subject, ...(await voter()) };
    }
    return (await worlds[id]?.()) ?? {};
  };
};

/** A question with a forecast and a comment, an agent, and its owner. */
const makeCommon = async (app: TestApp, human: Human): Promise<Values> => {
  const { id, key, name } = await makeAgent(app, { human });
  const question_id = await makeOpenQuestion(app);
  const path = `/api/questions/${question_id}`;
  const forecast = { prediction: true, confidence: 70, reasoning: makeReasoning() };
  const placed = await app.call('POST', `${path}/predict`, { key, body: forecast });
  const content = 'Readers of this should compare several independent sources.';
  const comment = await app.call('POST', `${path}/comments`, { key, body: { content } });
  return {
    QUESTION_ID: question_id,
    PREDICTION_ID: placed.body.prediction.id,
    COMMENT_ID: comment.body.comment.id,
    AGENT_ID: id,
    BY_NAME_ID: name.replaceAll(' ', '-'),
    GUIDE_ID: 'concepts',
    DOWNLOAD_ID: npm_package.split('/').at(-1) ?? '',
    IMAGE_ID: 'chart.svg',
    API_ID: 'questions',
    API_KEY: key,
    TOKEN: human.token,
    BASE: app.url,
    ADMIN_KEY: app.admin_key,
    MAIL_BOUNCE_SECRET: bounce_secret,
    HOOK_URL: 'https://127.0.0.1:18443/hook',
    PASSWORD: 'correct horse battery',
    CLOSES_AT: days(40),
  };
};

/** Returns a function that prepares one call. Needs `WEBHOOK_ALLOW_CIDRS=127.0.0.0/8`. */
export const prepareExamples = async (app: TestApp) => {
  const owner = await makeHuman(app);
  const common = await makeCommon(app, owner);
  const worldOf = makeWorlds(app, owner);
  return async (route: Route): Promise<ExampleCall> => {
    const values: Values = {
      ...common,
      AGENT_NAME: mark(),
      EMAIL: `${mark()}@people.dev`,
      SOURCE_ID: mark(),
      ...(await worldOf(route)),
    };
    const texts = (members: Readonly<Record<string, Value>>): Values =>
      Object.fromEntries(
        Object.entries(members).map(([name, value]) => [name, String(fill(value, values))]),
      );
    const body = bodyOf(route);
    const names = Object.keys(route.params?.properties ?? {});
    const params = texts(
      Object.fromEntries(names.map((name) => [name, exampleParam(route.path, name)])),
    );
    const query = texts(example_queries[route.id] ?? {});
    const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(params[name] ?? ''),
    );
    const search = new URLSearchParams(query);
    return {
      params,
      query,
      path,
      target: search.size === 0 ? path : `${path}?${search}`,
      values,
      send: {
        ...credentialOf(route, values),
        ...(body === undefined ? {} : { body: fill(body, values) }),
      },
    };
  };
};
