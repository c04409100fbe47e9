import http from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { faultsOf } from '../../src/http/openapi.js';
import { type Auth, makeRouter, type Route } from '../../src/http/route.js';
import { common_faults } from '../../src/kit/fault.js';
import { api_routes } from '../../src/routes.js';
import { routes as pages } from '../../src/web/index.js';
import { type Answered, no_limits, type TestApp } from '../help/app.js';
import { admin_email } from '../help/principals.js';
import { makeAgent, makeHuman, makeOpenQuestion, makeReasoning } from '../help/story.js';
import { findAnswerProblem } from './answers.js';
import type { FuzzRequest, FuzzWorld } from './fuzz-requests.js';

/** Sends fuzzed requests and checks the answers. */

export const fuzz_env = {
  ...no_limits,
  ADMIN_EMAILS: admin_email,
  WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
  TRUSTED_PROXIES: '127.0.0.1',
};

/** These operations remove objects that all other calls need, so they run last. */
const destructive = [
  'closeQuestion',
  'publishQuestion',
  'deleteQuestion',
  'voidQuestion',
  'resolveQuestion',
  'deleteWebhook',
  'endOtherSessions',
  'suspendAgent',
  'unlinkAgent',
  'logOut',
  'rotateKey',
  'rotateAgentKey',
  'deleteAccount',
];

export const fuzz_routes: readonly Route[] = [
  ...(api_routes as readonly Route[]),
  ...(pages as readonly Route[]),
].sort((a, b) => destructive.indexOf(a.id) - destructive.indexOf(b.id));

type HeaderLines = Readonly<Record<string, string>>;

/** Sends a fuzzed request with the credentials of its caller as headers. */
export type FuzzExchange = (
  port: number,
  request: FuzzRequest,
  credentials: HeaderLines,
) => Promise<Answered>;

const answer_ms = 20_000;
const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });

const readAnswer = async (message: http.IncomingMessage, path: string): Promise<Answered> => {
  const headers = new Headers();
  for (const [name, value] of Object.entries(message.headers)) {
    if (value !== undefined) headers.set(name, String(value));
  }
  const type = headers.get('content-type') ?? '';
  // An endless stream is closed as soon as it has started.
  if (type === 'text/event-stream') message.destroy();
  const text = type === 'text/event-stream' ? '' : await readText(message);
  const status = message.statusCode ?? 0;
  // An export that skips bytes (`skip_bytes`) has the same type but is not complete JSON.
  const is_rest = status === 200 && /[?&]skip_bytes=/.test(path);
  const is_json = type.startsWith('application/json') && text !== '' && !is_rest;
  return { status, headers, body: is_json ? JSON.parse(text) : text };
};

/** Rejects if there is no answer. */
export const overHttp: FuzzExchange = (port, { method, path, body, headers: given }, credentials) =>
  new Promise((resolve, reject) => {
    const length = body === null ? {} : { 'content-length': String(body.length) };
    const headers = { ...given, ...credentials, ...length };
    const request = http.request(
      { host: '127.0.0.1', port, agent, method, path, headers },
      (message) => readAnswer(message, path).then(resolve, reject),
    );
    request.setTimeout(answer_ms, () => request.destroy(new Error('no answer in time')));
    request.on('error', reject);
    request.end(body ?? undefined);
  });

const admitted: Record<Auth, readonly string[]> = {
  public: ['nobody', 'linked', 'human', 'admin_key'],
  agent: ['linked', 'unlinked'],
  linked: ['linked'],
  human: ['human', 'admin'],
  either: ['linked', 'unlinked', 'human'],
  member: ['linked', 'human'],
  admin: ['admin', 'admin_key'],
};

/** People, agents and objects for a service with `fuzz_env`. */
export const makeFuzzWorld = async (app: TestApp) => {
  const human = await makeHuman(app);
  const admin = await makeHuman(app, admin_email);
  const linked = await makeAgent(app, { human });
  const unlinked = await makeAgent(app);
  const credentials: Readonly<Record<string, HeaderLines>> = {
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
  const makeQuestions = (count: number, fields: object = {}) =>
    Promise.all(Array.from({ length: count }, () => makeOpenQuestion(app, { ...fields })));
  const options = ['Red', 'Green', 'Blue'];
  const [multi = ''] = await makeQuestions(1, { question_type: 'multi', options });
  const placed = await app.call('POST', `/api/questions/${multi}/predict`, {
    key: linked.key,
    body: { selected_option: 'Red', confidence: 60, reasoning: makeReasoning() },
  });
  const hook = await app.call('POST', '/api/webhooks', {
    key: linked.key,
    body: { url: 'https://127.0.0.1:18443/hook', events: ['question.created'] },
  });
  const { body: pillars } = await app.call('GET', '/api/taxonomy');
  const world: FuzzWorld = {
    ids: {
      questions: [
        multi,
        ...(await makeQuestions(8, { publish: false })),
        ...(await makeQuestions(40)),
      ],
      predictions: [placed.body.prediction.id],
      agents: [linked.id, unlinked.id],
      webhooks: [hook.body.id],
    },
    keys: [linked.key, unlinked.key],
    tags: (pillars as { subcategories: { tags: string[] }[] }[]).flatMap((pillar) =>
      pillar.subcategories.flatMap((s) => s.tags),
    ),
    callers: Object.keys(credentials),
    admitted: (auth) => admitted[auth],
  };
  return { world, credentials };
};

/** Short enough to read, complete enough to send again. */
export const describeRequest = ({ body, ...rest }: FuzzRequest): string =>
  JSON.stringify({ ...rest, body: body?.toString('utf8').slice(0, 2_000) ?? null });

const all_faults = fuzz_routes.flatMap((route) => faultsOf(route));
const router = makeRouter(fuzz_routes.map((route) => ({ route, entry: route })));

/** If a request's head arrives in parts, the native parser may answer (see `garbage.test.ts`). */
const isOfParser = ({ status, headers }: Answered): boolean =>
  (status === 505 || status === 431) && headers.get('x-request-id') === null;

/** Finds the problem with an answer. The route that really answers counts, not the intended one. */
export const findFuzzProblem = (request: FuzzRequest, answer: Answered): string | null => {
  if (isOfParser(answer)) return null;
  const { method, path } = request;
  const found = router.find(method.toUpperCase(), path.replace(/\?.*$/s, ''));
  // A page may show any refusal of the API.
  const is_page = found.kind === 'route' && found.entry.is_page;
  const own = is_page ? all_faults : found.kind === 'route' ? faultsOf(found.entry) : [];
  const known = [...own, ...Object.values(common_faults)];
  const problem = method === 'HEAD' ? null : findAnswerProblem(answer, known);
  return problem ?? (answer.status >= 500 ? String(answer.status) : null);
};
