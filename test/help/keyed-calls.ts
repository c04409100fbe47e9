import { makeId } from '../../src/kit/ids.js';
import type { CallOptions, TestApp } from './app.js';
import { type Human, makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from './story.js';

/** For each POST route a call that has its effect: a new world for it, each time it is asked. */

export interface KeyedCall {
  readonly path: string;
  readonly send: CallOptions;
}

export type MakeCall = (app: TestApp) => Promise<KeyedCall>;

let made = 0;
const mark = (): string => {
  made += 1;
  return `k${process.pid.toString(36)}x${made}`;
};

const closes_at = new Date(Date.now() + 40 * 86_400_000).toISOString();
const password = 'correct horse battery';

const questionBody = (more: Readonly<Record<string, unknown>> = {}) => ({
  question: `Will the harbour office publish report ${mark()} before the end of the season?`,
  category: 'society',
  subcategory: 'benefits_public_good',
  closes_at,
  ...more,
});

const owners = new WeakMap<TestApp, Promise<Human>>();
/** One owner for all: a password costs a while, and whose agent it is does not matter here. */
const ownerIn = (app: TestApp): Promise<Human> => {
  const known = owners.get(app) ?? makeHuman(app);
  owners.set(app, known);
  return known;
};

const makeLinked = async (app: TestApp) => makeAgent(app, { human: await ownerIn(app) });

/** Nobody votes on what an agent of the same owner wrote. */
const makeVoter = async (app: TestApp) => makeAgent(app, { human: await makeHuman(app) });

/** The token of the newest mail to an address. */
const mailedToken = async (app: TestApp, email: string): Promise<string> => {
  const { body } = await app.call('GET', '/dev/outbox');
  const mail = (body as { to: string; links: string[] }[]).find(({ to }) => to === email);
  return new URL(mail?.links[0] ?? '').searchParams.get('token') ?? '';
};

const asAdmin = (path: string, body: unknown = {}): KeyedCall => ({
  path,
  send: { admin: true, body },
});

const draft = (app: TestApp): Promise<string> => makeOpenQuestion(app, { publish: false });

const accounts: Readonly<Record<string, MakeCall>> = {
  register: async () => ({
    path: '/api/register',
    send: { body: { name: mark(), model: 'gpt-4o' } },
  }),
  rotateKey: async (app) => ({
    path: '/api/me/rotate-key',
    send: { key: (await makeLinked(app)).key, body: {} },
  }),
  linkAgent: async (app) => {
    const { key: api_key } = await makeAgent(app);
    const { token } = await makeHuman(app);
    return { path: '/api/me/agents', send: { token, body: { api_key } } };
  },
  signUp: async () => ({
    path: '/api/auth/signup',
    send: { body: { email: `${mark()}@people.dev`, password } },
  }),
  verifyAddress: async (app) => {
    const email = `${mark()}@people.dev`;
    await app.call('POST', '/api/auth/signup', { body: { email, password } });
    return {
      path: '/api/auth/verify',
      send: { body: { token: await mailedToken(app, email) } },
    };
  },
  logIn: async (app) => {
    const { email } = await makeHuman(app);
    return { path: '/api/auth/login', send: { body: { email, password } } };
  },
  logOut: async (app) => {
    const { token } = await makeHuman(app);
    return { path: '/api/auth/logout', send: { token, body: {} } };
  },
  forgotPassword: async (app) => {
    const { email } = await makeHuman(app);
    return { path: '/api/auth/forgot', send: { body: { email } } };
  },
  resetPassword: async (app) => {
    const { email } = await makeHuman(app);
    await app.call('POST', '/api/auth/forgot', { body: { email } });
    const token = await mailedToken(app, email);
    return { path: '/api/auth/reset', send: { body: { token, password: `new ${password}` } } };
  },
};

const notices: Readonly<Record<string, MakeCall>> = {
  readNotifications: async (app) => {
    const { id: agent_id, key } = await makeLinked(app);
    const [row] = await app.sql<{ id: string }[]>`
      insert into notifications (agent_id, id, kind, cause, details, created_at)
      values (${agent_id}, ${makeId()}, 'tier.changed', ${mark()}, '{}', now())
      returning id`;
    return { path: '/api/me/notifications/read', send: { key, body: { ids: [row?.id] } } };
  },
};

const forecasts: Readonly<Record<string, MakeCall>> = {
  predict: async (app) => {
    const id = await makeOpenQuestion(app);
    const { key } = await makeLinked(app);
    const body = { prediction: true, confidence: 70, reasoning: makeReasoning(mark()) };
    return { path: `/api/questions/${id}/predict`, send: { key, body } };
  },
  createPrediction: async (app) => {
    const question_id = await makeOpenQuestion(app);
    const { key } = await makeLinked(app);
    const said = { prediction: true, confidence: 70, reasoning: makeReasoning(mark()) };
    return { path: '/api/predictions', send: { key, body: { question_id, ...said } } };
  },
  createPredictions: async (app) => {
    const question_id = await makeOpenQuestion(app);
    const { key } = await makeLinked(app);
    const said = { prediction: true, confidence: 70, reasoning: makeReasoning(mark()) };
    const predictions = [{ question_id, ...said }];
    return { path: '/api/predictions/batch', send: { key, body: { predictions } } };
  },
};

const makeSourced = async (app: TestApp) => {
  const source = { source: 'keyed', source_id: mark() };
  await makeOpenQuestion(app, source);
  return source;
};

const imports: Readonly<Record<string, MakeCall>> = {
  importAgents: async () =>
    asAdmin('/api/admin/agents/import', { items: [{ name: mark(), model: 'crowd' }] }),
  importPredictions: async (app) => {
    const source = await makeSourced(app);
    const name = mark();
    const agents = { admin: true, body: { items: [{ name, model: 'crowd' }] } };
    await app.call('POST', '/api/admin/agents/import', agents);
    const items = [{ ...source, agent: name, probability: 70 }];
    return asAdmin('/api/admin/predictions/import', { items });
  },
  importResolutions: async (app) =>
    asAdmin('/api/admin/resolutions/import', {
      items: [{ ...(await makeSourced(app)), outcome: true }],
    }),
};

const administration: Readonly<Record<string, MakeCall>> = {
  createQuestion: async () => asAdmin('/api/admin/questions', questionBody()),
  publishQuestion: async (app) => asAdmin(`/api/admin/questions/${await draft(app)}/publish`),
  suggestQuestion: async (app) => ({
    path: '/api/questions/suggest',
    send: { key: (await makeLinked(app)).key, body: questionBody() },
  }),
  closeQuestion: async (app) =>
    asAdmin(`/api/admin/questions/${await makeOpenQuestion(app)}/close`),
  reopenQuestion: async (app) => {
    const path = `/api/admin/questions/${await makeOpenQuestion(app)}`;
    await app.call('POST', `${path}/close`, { admin: true, body: {} });
    return asAdmin(`${path}/reopen`, { closes_at });
  },
  importQuestions: async () => {
    const items = [questionBody({ source: 'keyed', source_id: mark() })];
    return asAdmin('/api/admin/questions/import', { items });
  },
  ...imports,
  addTaxonomyTags: async () =>
    asAdmin('/api/admin/taxonomy/tags', {
      subcategory: 'benefits_public_good',
      tags: [`#${mark()}`],
    }),
};

const because = { reason: 'Reported by a reader, and looked at.' };

const placed = async (app: TestApp): Promise<string> => {
  const id = await makeOpenQuestion(app);
  const { key } = await makeLinked(app);
  const body = { prediction: true, confidence: 70, reasoning: makeReasoning(mark()) };
  const answer = await app.call('POST', `/api/questions/${id}/predict`, { key, body });
  return answer.body.prediction.id;
};

/** An act of an admin on something that the opposite act was done to, if it has one. */
const act =
  (find: (app: TestApp) => Promise<string>, name: string, opposite?: string): MakeCall =>
  async (app) => {
    const path = await find(app);
    if (opposite !== undefined) {
      await app.call('POST', `${path}/${opposite}`, { admin: true, body: because });
    }
    return asAdmin(`${path}/${name}`, because);
  };
const aPrediction = async (app: TestApp) => `/api/admin/predictions/${await placed(app)}`;
const anAgent = async (app: TestApp) => `/api/admin/agents/${(await makeLinked(app)).id}`;

const moderation: Readonly<Record<string, MakeCall>> = {
  hidePrediction: act(aPrediction, 'hide'),
  restorePrediction: act(aPrediction, 'restore', 'hide'),
  suspendAgent: act(anAgent, 'suspend'),
  restoreAgent: act(anAgent, 'restore', 'suspend'),
};

const decisions: Readonly<Record<string, MakeCall>> = {
  resolveQuestion: async (app) => {
    const id = await makeOpenQuestion(app);
    await app.call('POST', `/api/admin/questions/${id}/close`, { admin: true, body: {} });
    return asAdmin(`/api/admin/questions/${id}/resolve`, { outcome: true });
  },
  voidQuestion: async (app) =>
    asAdmin(`/api/admin/questions/${await makeOpenQuestion(app)}/void`, {
      resolution_note: 'The report is not made any more.',
    }),
  simulatePoints: async () => ({
    path: '/api/points/simulate',
    send: { body: { weight: 1, probability: 80 } },
  }),
};

const hook_body = { url: 'https://127.0.0.1:18443/hook', events: ['question.created'] };

const makeHook = async (app: TestApp) => {
  const { key } = await makeLinked(app);
  const hook = await app.call('POST', '/api/webhooks', { key, body: hook_body });
  return { key, path: `/api/webhooks/${hook.body.id}` };
};

/** A delivery of it that nobody sends now. */
const makeDelivery = async (app: TestApp) => {
  const { key, path } = await makeHook(app);
  const [row] = await app.sql<{ id: string }[]>`
    insert into deliveries
      (webhook_id, event_id, id, event_offset, recorded_on, state, next_at)
    select w.id, e.id, delivery_id(w.id, e.id), 1, '2026-01-02', 'exhausted', now()
    from webhooks w, (select ${makeId()}::uuid as id) e
    where w.id = ${path.split('/').at(-1) ?? ''}
    returning id`;
  return { key, path: `${path}/deliveries/${row?.id}/redeliver` };
};

const hooks: Readonly<Record<string, MakeCall>> = {
  createWebhook: async (app) => ({
    path: '/api/webhooks',
    send: { key: (await makeLinked(app)).key, body: hook_body },
  }),
  testWebhook: async (app) => {
    const { key, path } = await makeHook(app);
    return { path: `${path}/test`, send: { key, body: {} } };
  },
  rotateWebhookSecret: async (app) => {
    const { key, path } = await makeHook(app);
    return { path: `${path}/rotate-secret`, send: { key, body: { overlap_hours: 1 } } };
  },
  replayWebhook: async (app) => {
    const { key, path } = await makeHook(app);
    return { path: `${path}/replay`, send: { key, body: { after: 0 } } };
  },
  redeliverWebhook: async (app) => {
    const { key, path } = await makeDelivery(app);
    return { path, send: { key, body: {} } };
  },
};

const content = 'Whoever reads this should compare several independent sources.';

const makeComment = async (app: TestApp): Promise<string> => {
  const path = `/api/questions/${await makeOpenQuestion(app)}/comments`;
  const { key } = await makeLinked(app);
  return (await app.call('POST', path, { key, body: { content } })).body.comment.id;
};

const conversation: Readonly<Record<string, MakeCall>> = {
  createComment: async (app) => {
    const path = `/api/questions/${await makeOpenQuestion(app)}/comments`;
    return { path, send: { key: (await makeLinked(app)).key, body: { content } } };
  },
  replyToPrediction: async (app) => {
    const prediction_id = await placed(app);
    const { body } = await app.call('GET', `/api/predictions/${prediction_id}`);
    const { question_id } = body.prediction;
    const path = `/api/questions/${question_id}/predictions/${prediction_id}/reply`;
    return { path, send: { key: (await makeLinked(app)).key, body: { content } } };
  },
  replyToComment: async (app) => {
    const path = `/api/comments/${await makeComment(app)}/reply`;
    return { path, send: { key: (await makeLinked(app)).key, body: { content } } };
  },
  upvotePrediction: async (app) => ({
    path: `/api/predictions/${await placed(app)}/upvote`,
    send: { key: (await makeVoter(app)).key },
  }),
  downvotePrediction: async (app) => ({
    path: `/api/predictions/${await placed(app)}/downvote`,
    send: { key: (await makeVoter(app)).key },
  }),
  upvoteComment: async (app) => ({
    path: `/api/comments/${await makeComment(app)}/upvote`,
    send: { key: (await makeVoter(app)).key },
  }),
};

const aComment = async (app: TestApp) => `/api/admin/comments/${await makeComment(app)}`;

const hidden_comments: Readonly<Record<string, MakeCall>> = {
  hideComment: act(aComment, 'hide'),
  restoreComment: act(aComment, 'restore', 'hide'),
};

const dispute_reason = 'The harbour office published the report a day after the deadline.';

/** A resolved question with a dispute of one of its forecasters, and its key. */
const makeDisputed = async (app: TestApp) => {
  const question_id = await makeOpenQuestion(app);
  const { key } = await makeLinked(app);
  const body = { prediction: true, confidence: 70, reasoning: makeReasoning(mark()) };
  await app.call('POST', `/api/questions/${question_id}/predict`, { key, body });
  await app.sql`
    update questions set status = 'closed', closed_at = now() where id = ${question_id}`;
  const outcome = { admin: true, body: { outcome: false } };
  await app.call('POST', `/api/admin/questions/${question_id}/resolve`, outcome);
  return { path: `/api/questions/${question_id}/dispute`, key };
};

const makeDispute = async (app: TestApp) => {
  const { path, key } = await makeDisputed(app);
  const filed = await app.call('POST', path, { key, body: { reason: dispute_reason } });
  return { id: filed.body.dispute.id as string, key };
};

const disputes: Readonly<Record<string, MakeCall>> = {
  fileDispute: async (app) => {
    const { path, key } = await makeDisputed(app);
    return { path, send: { key, body: { reason: dispute_reason } } };
  },
  withdrawDispute: async (app) => {
    const { id, key } = await makeDispute(app);
    return { path: `/api/disputes/${id}/withdraw`, send: { key, body: {} } };
  },
  decideDispute: async (app) => {
    const { id } = await makeDispute(app);
    const body = { status: 'upheld', outcome: true, note: 'It was in time.' };
    return asAdmin(`/api/admin/disputes/${id}/resolve`, body);
  },
};

/** By the id of the route. */
export const keyed_calls: Readonly<Record<string, MakeCall>> = {
  ...accounts,
  ...notices,
  ...forecasts,
  ...administration,
  ...decisions,
  ...moderation,
  ...hidden_comments,
  ...disputes,
  ...hooks,
  ...conversation,
};
