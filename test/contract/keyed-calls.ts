import { makeId } from '../../src/kit/ids.js';
import type { CallOptions, TestApp } from '../help/app.js';
import {
  type Human,
  makeAgent,
  makeHuman,
  makeOpenQuestion,
  makeReasoning,
} from '../help/story.js';

/** For each POST route a call that has its effect: a new world for it, each time it is asked. */

export interface KeyedCall {
  readonly path: string;
  readonly send: CallOptions;
}

type MakeCall = (app: TestApp) => Promise<KeyedCall>;

let made = 0;
/** A text that no other call has. */
const mark = (): string => {
  made += 1;
  return `k${process.pid.toString(36)}x${made}`;
};

const owners = new WeakMap<TestApp, Promise<Human>>();
/** One owner for all: a password costs a while, and whose agent it is does not matter here. */
const makeLinked = async (app: TestApp) => {
  const owner = owners.get(app) ?? makeHuman(app);
  owners.set(app, owner);
  return makeAgent(app, { human: await owner });
};

const byNobody = (path: string, body: unknown): KeyedCall => ({ path, send: { body } });
const byAdmin = (path: string, body: unknown = {}): KeyedCall => ({
  path,
  send: { admin: true, body },
});
const byAgent = async (app: TestApp, path: string, body: unknown = {}): Promise<KeyedCall> => ({
  path,
  send: { key: (await makeLinked(app)).key, body },
});
/** Nobody votes on what an agent of the same owner wrote. */
const byVoter = async (app: TestApp, path: string): Promise<KeyedCall> => ({
  path,
  send: { key: (await makeAgent(app, { human: await makeHuman(app) })).key },
});

const password = 'correct horse battery';
const newEmail = (): string => `${mark()}@people.dev`;

/** The token of the newest mail to an address. */
const mailedToken = async (app: TestApp, email: string): Promise<string> => {
  const { body } = await app.call('GET', '/dev/outbox');
  const mail = (body as { to: string; links: string[] }[]).find(({ to }) => to === email);
  return new URL(mail?.links[0] ?? '').searchParams.get('token') ?? '';
};

const closes_at = new Date(Date.now() + 40 * 86_400_000).toISOString();

const questionBody = (more: object = {}) => ({
  question: `Will the harbour office publish report ${mark()} before the end of the season?`,
  category: 'society',
  subcategory: 'benefits_public_good',
  closes_at,
  ...more,
});

const forecast = () => ({ prediction: true, confidence: 70, reasoning: makeReasoning(mark()) });

const makeSourced = async (app: TestApp) => {
  const source = { source: 'keyed', source_id: mark() };
  await makeOpenQuestion(app, source);
  return source;
};

const adminPath = async (app: TestApp, publish = true) =>
  `/api/admin/questions/${await makeOpenQuestion(app, { publish })}`;

const makeClosed = async (app: TestApp): Promise<string> => {
  const path = await adminPath(app);
  await app.call('POST', `${path}/close`, { admin: true, body: {} });
  return path;
};

const makePredicted = async (app: TestApp) => {
  const question_id = await makeOpenQuestion(app);
  const { path, send } = await byAgent(app, `/api/questions/${question_id}/predict`, forecast());
  const { body } = await app.call('POST', path, send);
  return { question_id, prediction_id: body.prediction.id as string, key: send.key ?? '' };
};

const content = 'Whoever reads this should compare several independent sources.';

const commentsPath = async (app: TestApp) =>
  `/api/questions/${await makeOpenQuestion(app)}/comments`;

const makeComment = async (app: TestApp): Promise<string> => {
  const { path, send } = await byAgent(app, await commentsPath(app), { content });
  return (await app.call('POST', path, send)).body.comment.id;
};

const because = { reason: 'Reported by a reader, and looked at.' };

/** An act of an admin on a subject that the opposite act was done to, if it has one. */
const act =
  (kind: keyof typeof subjects, name: string, opposite?: string): MakeCall =>
  async (app) => {
    const path = `/api/admin/${kind}/${await subjects[kind](app)}`;
    if (opposite !== undefined) {
      await app.call('POST', `${path}/${opposite}`, { admin: true, body: because });
    }
    return byAdmin(`${path}/${name}`, because);
  };
const subjects = {
  predictions: async (app: TestApp) => (await makePredicted(app)).prediction_id,
  agents: async (app: TestApp) => (await makeLinked(app)).id,
  comments: makeComment,
};

const hook_body = { url: 'https://127.0.0.1:18443/hook', events: ['question.created'] };

const makeHook = async (app: TestApp) => {
  const { path, send } = await byAgent(app, '/api/webhooks', hook_body);
  const { id } = (await app.call('POST', path, send)).body;
  return { id, path: `/api/webhooks/${id}`, key: send.key ?? '' };
};

/** A call about a webhook of its owner. */
const onHook =
  (name: string, body: unknown = {}): MakeCall =>
  async (app) => {
    const { path, key } = await makeHook(app);
    return { path: `${path}/${name}`, send: { key, body } };
  };

const reason = 'The harbour office published the report a day after the deadline.';

/** The call that files a dispute of a forecaster on a resolved question. */
const makeDispute: MakeCall = async (app) => {
  const { question_id, key } = await makePredicted(app);
  await app.sql`
    update questions set status = 'closed', closed_at = now() where id = ${question_id}`;
  const outcome = { admin: true, body: { outcome: false } };
  await app.call('POST', `/api/admin/questions/${question_id}/resolve`, outcome);
  return { path: `/api/questions/${question_id}/dispute`, send: { key, body: { reason } } };
};

const fileDispute = async (app: TestApp) => {
  const { path, send } = await makeDispute(app);
  const { body } = await app.call('POST', path, send);
  return { id: body.dispute.id as string, key: send.key ?? '' };
};

/** By the id of the route. */
export const keyed_calls: Readonly<Record<string, MakeCall>> = {
  register: async () => byNobody('/api/register', { name: mark(), model: 'gpt-4o' }),
  rotateKey: (app) => byAgent(app, '/api/me/rotate-key'),
  linkAgent: async (app) => {
    const { key: api_key } = await makeAgent(app);
    const { token } = await makeHuman(app);
    return { path: '/api/me/agents', send: { token, body: { api_key } } };
  },
  signUp: async () => byNobody('/api/auth/signup', { email: newEmail(), password }),
  verifyAddress: async (app) => {
    const email = newEmail();
    await app.call('POST', '/api/auth/signup', { body: { email, password } });
    return byNobody('/api/auth/verify', { token: await mailedToken(app, email) });
  },
  logIn: async (app) =>
    byNobody('/api/auth/login', { email: (await makeHuman(app)).email, password }),
  logOut: async (app) => ({
    path: '/api/auth/logout',
    send: { token: (await makeHuman(app)).token, body: {} },
  }),
  forgotPassword: async (app) =>
    byNobody('/api/auth/forgot', { email: (await makeHuman(app)).email }),
  resetPassword: async (app) => {
    const { email } = await makeHuman(app);
    await app.call('POST', '/api/auth/forgot', { body: { email } });
    const token = await mailedToken(app, email);
    return byNobody('/api/auth/reset', { token, password: `new ${password}` });
  },
  readNotifications: async (app) => {
    const { id: agent_id, key } = await makeLinked(app);
    const id = makeId();
    await app.sql`
      insert into notifications (agent_id, id, kind, cause, details, created_at)
      values (${agent_id}, ${id}, 'tier.changed', ${mark()}, '{}', now())`;
    return { path: '/api/me/notifications/read', send: { key, body: { ids: [id] } } };
  },

  predict: async (app) =>
    byAgent(app, `/api/questions/${await makeOpenQuestion(app)}/predict`, forecast()),
  createPrediction: async (app) =>
    byAgent(app, '/api/predictions', { question_id: await makeOpenQuestion(app), ...forecast() }),
  createPredictions: async (app) =>
    byAgent(app, '/api/predictions/batch', {
      predictions: [{ question_id: await makeOpenQuestion(app), ...forecast() }],
    }),
  simulatePoints: async () => byNobody('/api/points/simulate', { weight: 1, probability: 80 }),

  createQuestion: async () => byAdmin('/api/admin/questions', questionBody()),
  publishQuestion: async (app) => byAdmin(`${await adminPath(app, false)}/publish`),
  suggestQuestion: (app) => byAgent(app, '/api/questions/suggest', questionBody()),
  closeQuestion: async (app) => byAdmin(`${await adminPath(app)}/close`),
  reopenQuestion: async (app) => byAdmin(`${await makeClosed(app)}/reopen`, { closes_at }),
  resolveQuestion: async (app) => byAdmin(`${await makeClosed(app)}/resolve`, { outcome: true }),
  voidQuestion: async (app) =>
    byAdmin(`${await adminPath(app)}/void`, {
      resolution_note: 'The report is not made any more.',
    }),
  addTaxonomyTags: async () =>
    byAdmin('/api/admin/taxonomy/tags', {
      subcategory: 'benefits_public_good',
      tags: [`#${mark()}`],
    }),

  importQuestions: async () =>
    byAdmin('/api/admin/questions/import', {
      items: [questionBody({ source: 'keyed', source_id: mark() })],
    }),
  importAgents: async () =>
    byAdmin('/api/admin/agents/import', { items: [{ name: mark(), model: 'crowd' }] }),
  importPredictions: async (app) => {
    const agent = mark();
    const agents = { admin: true, body: { items: [{ name: agent, model: 'crowd' }] } };
    await app.call('POST', '/api/admin/agents/import', agents);
    const items = [{ ...(await makeSourced(app)), agent, probability: 70 }];
    return byAdmin('/api/admin/predictions/import', { items });
  },
  importResolutions: async (app) =>
    byAdmin('/api/admin/resolutions/import', {
      items: [{ ...(await makeSourced(app)), outcome: true }],
    }),

  hidePrediction: act('predictions', 'hide'),
  restorePrediction: act('predictions', 'restore', 'hide'),
  suspendAgent: act('agents', 'suspend'),
  restoreAgent: act('agents', 'restore', 'suspend'),
  hideComment: act('comments', 'hide'),
  restoreComment: act('comments', 'restore', 'hide'),

  fileDispute: makeDispute,
  withdrawDispute: async (app) => {
    const { id, key } = await fileDispute(app);
    return { path: `/api/disputes/${id}/withdraw`, send: { key, body: {} } };
  },
  decideDispute: async (app) =>
    byAdmin(`/api/admin/disputes/${(await fileDispute(app)).id}/resolve`, {
      ...{ status: 'upheld', outcome: true, note: 'It was in time.' },
    }),

  createWebhook: (app) => byAgent(app, '/api/webhooks', hook_body),
  testWebhook: onHook('test'),
  rotateWebhookSecret: onHook('rotate-secret', { overlap_hours: 1 }),
  replayWebhook: onHook('replay', { after: 0 }),
  redeliverWebhook: async (app) => {
    const { id, path, key } = await makeHook(app);
    // A delivery of it that nobody sends now.
    const [row] = await app.sql<{ id: string }[]>`
      insert into deliveries
        (webhook_id, event_id, id, event_offset, recorded_on, state, next_at)
      select w.id, e.id, delivery_id(w.id, e.id), 1, '2026-01-02', 'exhausted', now()
      from webhooks w, (select ${makeId()}::uuid as id) e
      where w.id = ${id}
      returning id`;
    return { path: `${path}/deliveries/${row?.id}/redeliver`, send: { key, body: {} } };
  },

  createComment: async (app) => byAgent(app, await commentsPath(app), { content }),
  replyToPrediction: async (app) => {
    const { question_id, prediction_id } = await makePredicted(app);
    const path = `/api/questions/${question_id}/predictions/${prediction_id}/reply`;
    return byAgent(app, path, { content });
  },
  replyToComment: async (app) =>
    byAgent(app, `/api/comments/${await makeComment(app)}/reply`, { content }),
  upvotePrediction: async (app) =>
    byVoter(app, `/api/predictions/${(await makePredicted(app)).prediction_id}/upvote`),
  downvotePrediction: async (app) =>
    byVoter(app, `/api/predictions/${(await makePredicted(app)).prediction_id}/downvote`),
  upvoteComment: async (app) => byVoter(app, `/api/comments/${await makeComment(app)}/upvote`),
};
