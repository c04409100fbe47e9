import http from 'node:http';
import type { Auth } from '../../src/http/route.js';
import type { Answered, TestApp } from '../help/app.js';
import { admin_email } from '../help/principals.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import type { FuzzRequest, FuzzWorld } from './fuzz-requests.js';

/** Sends fuzzed requests, and keeps the credentials alive that some of them end. */

export interface FuzzClient {
  readonly world: FuzzWorld;
  /** Rejects when there is no answer. */
  send(request: FuzzRequest): Promise<Answered>;
}

const answer_ms = 20_000;

interface Pillar {
  readonly subcategories: readonly { readonly tags: readonly string[] }[];
}

type HeaderLines = Readonly<Record<string, string>>;

const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });

/** The rest of a file has its type and is not whole. */
const isRest = (status: number, path: string): boolean =>
  status === 200 && /[?&]skip_bytes=/.test(path);

const readAnswer = async (message: http.IncomingMessage, path: string): Promise<Answered> => {
  const chunks: Buffer[] = [];
  // A stream without an end is left again once it has begun.
  const is_endless = message.headers['content-type'] === 'text/event-stream';
  if (is_endless) message.destroy();
  else for await (const chunk of message) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString('utf8');
  const headers = new Headers();
  for (const [name, value] of Object.entries(message.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  const status = message.statusCode ?? 0;
  const is_json = headers.get('content-type')?.startsWith('application/json') === true;
  const body = is_json && text !== '' && !isRest(status, path) ? JSON.parse(text) : text;
  return { status, headers, body };
};

/** How a fuzzed request is sent, with the credentials of who sends it among its headers. */
export type FuzzExchange = (
  port: number,
  request: FuzzRequest,
  credentials: HeaderLines,
) => Promise<Answered>;

const overHttp: FuzzExchange = (
  port: number,
  { method, path, body, headers: given },
  credentials,
) =>
  new Promise((resolve, reject) => {
    const length = body === null ? {} : { 'content-length': String(body.length) };
    const headers = { ...given, ...credentials, ...length };
    const request = http.request(
      { host: '127.0.0.1', port, agent, method, path, headers },
      (message) => readAnswer(message, path).then(resolve, reject),
    );
    request.setTimeout(answer_ms, () => request.destroy(new Error('no answer in time')));
    request.on('error', reject);
    if (body === null) request.end();
    else request.end(body);
  });

const password = 'correct horse battery';

const logIn = async (app: TestApp, email: string): Promise<HeaderLines> => {
  const { body } = await app.call('POST', '/api/auth/login', { body: { email, password } });
  return { authorization: `Bearer ${body.token}` };
};

const addHook = async (app: TestApp, headers: HeaderLines): Promise<string> => {
  const { body } = await app.call('POST', '/api/webhooks', {
    headers,
    body: { url: 'https://127.0.0.1:18443/hook', events: ['question.created'] },
  });
  return body.id;
};

const makePeople = async (app: TestApp) => {
  const human = await makeHuman(app);
  const admin = await makeHuman(app, admin_email);
  const linked = await makeAgent(app, { human });
  const unlinked = await makeAgent(app);
  const credentials: Record<string, HeaderLines> = {
    nobody: {},
    linked: { 'x-api-key': linked.key },
    unlinked: { 'x-api-key': unlinked.key },
    human: { authorization: `Bearer ${human.token}` },
    admin: { authorization: `Bearer ${admin.token}` },
    admin_key: { 'x-admin-key': app.admin_key },
    bad_key: { 'x-api-key': `sk_${'\u00ff'.repeat(49)}` },
    long_key: { 'x-api-key': 'sk_'.repeat(900) },
    bad_token: { authorization: 'Bearer  \u00e9,, x' },
    no_scheme: { authorization: '=' },
    both: { 'x-api-key': linked.key, authorization: `Bearer ${human.token}` },
  };
  return { human, admin, linked, unlinked, credentials };
};

type People = Awaited<ReturnType<typeof makePeople>>;

const makeThings = async (app: TestApp, { linked, unlinked }: People) => {
  const open = await Promise.all(Array.from({ length: 40 }, () => makeOpenQuestion(app)));
  const options = ['Red', 'Green', 'Blue'];
  const multi = await makeOpenQuestion(app, { question_type: 'multi', options });
  const drafts = await Promise.all(
    Array.from({ length: 8 }, () => makeOpenQuestion(app, { publish: false })),
  );
  const placed = await app.call('POST', `/api/questions/${multi}/predict`, {
    key: linked.key,
    body: { selected_option: 'Red', confidence: 60, reasoning: makeReasoning() },
  });
  return {
    questions: [multi, ...drafts, ...open],
    predictions: [placed.body.prediction.id],
    agents: [linked.id, unlinked.id],
    webhooks: [await addHook(app, { 'x-api-key': linked.key })],
  };
};

/** Steps that take a question away from what later calls are about: another one takes its place. */
const ends_open = /^\/api\/admin\/questions\/([^/?]+)\/(?:void|resolve)\/?(?:\?|$)/;
const ends_draft = /^\/api\/admin\/questions\/([^/?]+)(?:\/publish)?\/?(?:\?|$)/;

const replaceQuestion = async (
  app: TestApp,
  ids: { questions: string[] },
  { method, path }: FuzzRequest,
): Promise<void> => {
  const open = ends_open.exec(path)?.[1];
  const draft =
    method === 'DELETE' || /\/publish/.test(path) ? ends_draft.exec(path)?.[1] : undefined;
  const gone = ids.questions.indexOf((open ?? draft ?? '').toLowerCase());
  if (gone === -1) return;
  ids.questions[gone] = await makeOpenQuestion(app, { publish: open !== undefined });
};

/** Makes again what a good answer ended or took away. */
const makeHealer =
  (app: TestApp, people: People, ids: { webhooks: string[]; questions: string[] }) =>
  async (request: FuzzRequest, { status, body }: Answered): Promise<void> => {
    const { as, method, path } = request;
    if (status === 200 || status === 202) await replaceQuestion(app, ids, request);
    if (status !== 200) return;
    const { credentials, human, admin, linked } = people;
    if (path.startsWith('/api/me/rotate-key')) credentials[as] = { 'x-api-key': body.api_key };
    if (path.startsWith('/api/auth/logout')) {
      credentials[as] = await logIn(app, as === 'admin' ? admin.email : human.email);
    }
    if (method === 'DELETE' && path.startsWith('/api/webhooks/')) {
      ids.webhooks = [await addHook(app, credentials['linked'] ?? {})];
    }
    if (path.startsWith(`/api/me/agents/${linked.id}`)) {
      const api_key = credentials['linked']?.['x-api-key'];
      const headers = credentials['human'] ?? {};
      await app.call('POST', '/api/me/agents', { headers, body: { api_key } });
    }
  };

const admitted: Record<Auth, readonly string[]> = {
  public: ['nobody', 'linked', 'human', 'admin_key'],
  agent: ['linked', 'unlinked'],
  linked: ['linked'],
  human: ['human', 'admin'],
  either: ['linked', 'unlinked', 'human'],
  member: ['linked', 'human'],
  admin: ['admin', 'admin_key'],
};

/** Needs a service with `ADMIN_EMAILS=admin@people.dev` and limits that nobody reaches. */
export const makeFuzzClient = async (
  app: TestApp,
  exchange: FuzzExchange = overHttp,
): Promise<FuzzClient> => {
  const people = await makePeople(app);
  const ids = await makeThings(app, people);
  const heal = makeHealer(app, people, ids);
  const { body: pillars } = await app.call('GET', '/api/taxonomy');
  return {
    world: {
      ids,
      keys: [people.linked.key, people.unlinked.key],
      tags: pillars.flatMap((pillar: Pillar) => pillar.subcategories.flatMap((s) => s.tags)),
      callers: Object.keys(people.credentials),
      admitted: (auth) => admitted[auth],
    },
    async send(request) {
      const answer = await exchange(app.port, request, people.credentials[request.as] ?? {});
      await heal(request, answer);
      return answer;
    },
  };
};
