import { Type } from '@sinclair/typebox';
import { pino } from 'pino';
import { QueueFullError } from '../../src/db/group-commit.js';
import type { StreamParts } from '../../src/http/body.js';
import type { Caller } from '../../src/http/caller.js';
import type { Credentials } from '../../src/http/credentials.js';
import type { Limiter, Window } from '../../src/http/limits.js';
import { makeLocalWindows } from '../../src/http/local-windows.js';
import { mount } from '../../src/http/pipeline.js';
import { createResponseCache } from '../../src/http/response-cache.js';
import { type Route, reply, replyRaw, replyStream, routeFor } from '../../src/http/route.js';
import {
  App,
  exclusive_port,
  us_listen_socket_close,
  us_socket_local_port,
} from '../../src/http/uws.js';
import { common_faults, type Fault, refuse } from '../../src/kit/fault.js';
import { makeCallOp } from '../../src/socket/calls.js';
import type { HubLimits } from '../../src/socket/frames.js';
import { makeCaller } from './app.js';
import { checkAnswers } from './checked.js';
import { mountTestHub } from './hub.js';
import type { Teardown } from './stores.js';

/** A real server with a few meaningless routes, for tests of behaviour that all routes share. */

/** Blocks handlers until a test opens it. */
export type Gate = ReturnType<typeof makeGate>;

export const makeGate = () => {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
};

export interface ToyDeps {
  gate: Gate;
  /** Number of handlers that are waiting. */
  waiting: number;
  /** How many times the slow answer was computed. */
  made: number;
  /** Number of writes carried out. */
  written: number;
  /** The content that `/stream` sends. */
  stream: StreamParts;
  /** The body of `/text` and `/api/text`. */
  text: string;
}

const route = routeFor<ToyDeps>();
const plain = { tag: 'toys', auth: 'public', returns: { 200: Type.Object({}) } } as const;

const get = (id: string, path: string, handle: Parameters<typeof route>[0]['handle']) =>
  route({ ...plain, id, method: 'GET', path, summary: id, handle });

const page = {
  ...({ tag: 'toys', auth: 'human', is_page: true, produces: 'text/html' } as const),
  returns: { 200: Type.String() },
};

const name_body = Type.Object({ name: Type.String({ maxLength: 70_000 }) });

/** Waits for the gate and returns how many times the answer was computed. */
const makeSlowly = async (deps: ToyDeps): Promise<number> => {
  const made = deps.made + 1;
  deps.made = made;
  deps.waiting += 1;
  await deps.gate.opened;
  deps.waiting -= 1;
  return made;
};

export const toys: readonly Route<ToyDeps>[] = [
  route({
    ...plain,
    id: 'listToys',
    method: 'GET',
    path: '/api/toys',
    summary: 'All toys',
    query: Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 9 })) }),
    cacheable: true,
    handle: ({ query }) => reply(200, { toys: ['bär'], limit: query.limit ?? null }),
  }),
  route({
    ...plain,
    id: 'makeToy',
    method: 'POST',
    path: '/api/toys',
    summary: 'One more',
    body: name_body,
    returns: { 201: Type.Object({ length: Type.Integer() }) },
    handle: ({ body }) => reply(201, { length: body.name.length }),
  }),
  route({
    ...plain,
    id: 'makeTinyToy',
    method: 'POST',
    path: '/api/tiny',
    summary: 'A small one',
    body: name_body,
    body_limit: 20,
    handle: () => reply(200, {}),
  }),
  route({
    ...plain,
    id: 'getToy',
    method: 'GET',
    path: '/api/toys/{id}',
    summary: 'One toy',
    params: Type.Object({ id: Type.String({ maxLength: 20 }) }),
    handle: (ctx) => {
      const { params, ip, body_digest } = ctx;
      return reply(200, { id: params.id, ip, said: ctx.header('x-said'), body_digest });
    },
  }),
  route({
    ...plain,
    id: 'dropToy',
    method: 'DELETE',
    path: '/api/toys/{id}',
    summary: 'One less',
    params: Type.Object({ id: Type.String() }),
    returns: { 204: null },
    handle: () => reply(204, undefined),
  }),
  route({
    ...plain,
    id: 'secretToy',
    method: 'GET',
    path: '/api/admin/toys',
    summary: 'Hidden',
    auth: 'admin',
    handle: () => reply(200, { secret: true }),
  }),
  route({
    ...plain,
    id: 'myToy',
    method: 'GET',
    path: '/api/me/toy',
    summary: 'Mine',
    auth: 'agent',
    handle: ({ caller }) => reply(200, { mine: caller.name }),
  }),
  route({
    ...plain,
    id: 'picture',
    method: 'GET',
    path: '/picture',
    summary: 'picture',
    produces: 'image/png',
    handle: () => replyRaw('image/png', Buffer.from([0x89, 0, 0xff])),
  }),
  get('page', '/page', () => replyRaw('text/html', '<p>bär</p>')),
  get('svg', '/picture.svg', () => replyRaw('image/svg+xml', Buffer.from('<svg/>'))),
  route({
    ...plain,
    id: 'big',
    method: 'GET',
    path: '/big/{chars}',
    summary: 'A long answer',
    params: Type.Object({ chars: Type.String() }),
    handle: ({ params }) => reply(200, { pad: 'x'.repeat(Number(params.chars)) }),
  }),
  route({
    ...plain,
    id: 'held',
    method: 'GET',
    path: '/held/{chars}',
    summary: 'Long and late',
    params: Type.Object({ chars: Type.String() }),
    handle: async ({ params }, deps) => {
      deps.waiting += 1;
      await deps.gate.opened;
      return reply(200, { pad: 'x'.repeat(Number(params.chars)) });
    },
  }),
  get('refuses', '/refuses', () => refuse(common_faults.INVALID_REQUEST, { extra: { hint: 1 } })),
  get('throws', '/throws', () => {
    throw new Error('the secret of /etc/passwd');
  }),
  get('rejects', '/rejects', async () => {
    throw Object.assign(new Error('select secret'), { code: '42P01' });
  }),
  get('throwsNothing', '/throws-nothing', () => Promise.reject(undefined)),
  get('outage', '/outage', async () => {
    throw Object.assign(new Error('10.0.0.3 is away'), { code: 'ECONNREFUSED' });
  }),
  get('full', '/full', async () => {
    throw new QueueFullError('too many');
  }),
  get('breaksHeader', '/breaks-header', () => reply(200, {}, { Link: 'a\r\nSet-Cookie: b' })),
  get('wrongBody', '/wrong-body', () => ({ ...reply(200, 7), content_type: 'text/plain' })),
  get('unsendable', '/unsendable', () => reply(200, { big: 10n })),
  get('unlisted', '/unlisted', () => reply(202, {})),
  get('misshapen', '/misshapen', () => reply(200, [])),
  get('waits', '/waits', async (_ctx, deps) => {
    const { gate } = deps;
    deps.waiting += 1;
    await gate.opened;
    return reply(200, { waited: true });
  }),
  get('streams', '/stream', (_ctx, { stream }) => replyStream('text/plain', stream)),
  route({
    ...plain,
    id: 'patient',
    method: 'GET',
    path: '/patient',
    summary: 'A long wait',
    longest_ms: 60_000,
    handle: async (ctx, deps) => {
      deps.waiting += 1;
      ctx.onGone(() => {
        deps.waiting -= 1;
      });
      await deps.gate.opened;
      return reply(200, { waited: true });
    },
  }),
  ...[60_000, 100].map((longest_ms) =>
    route({
      ...plain,
      id: `lateStream${longest_ms}`,
      method: 'GET',
      path: `/late-stream/${longest_ms}`,
      summary: 'A stream that may begin late',
      longest_ms,
      handle: (_ctx, { stream }) => replyStream('text/plain', stream),
    }),
  ),
  get('text', '/text', (_ctx, { text }) => replyRaw('text/plain', text)),
  route({
    ...plain,
    id: 'cachedText',
    method: 'GET',
    path: '/api/text',
    summary: 'A text that is cached',
    query: Type.Object({ n: Type.Integer() }),
    produces: 'text/plain',
    cacheable: true,
    cache: { tag: () => 'text' },
    handle: (_ctx, { text }) => replyRaw('text/plain', text),
  }),
  get('never', '/never', () => new Promise(() => undefined)),
  route({
    ...plain,
    id: 'slowToy',
    method: 'GET',
    path: '/api/slow',
    summary: 'Made slowly',
    cacheable: true,
    cache: { tag: () => 'slow' },
    handle: async (_, deps) => reply(200, { made: await makeSlowly(deps) }),
  }),
  route({
    ...plain,
    id: 'oldToy',
    method: 'GET',
    path: '/api/old',
    summary: 'The old way',
    query: Type.Object({ limit: Type.Optional(Type.Integer({ minimum: 1 })) }),
    cacheable: true,
    cache: { tag: () => 'old' },
    deprecated: {
      since: '2026-01-01',
      sunset: '2026-07-01',
      link: '/docs/guide/discovery',
      successor: '/api/toys',
    },
    handle: () => reply(200, {}),
  }),
  route({
    ...page,
    id: 'slowPage',
    method: 'GET',
    path: '/slow',
    summary: 'A page made slowly',
    auth: 'public',
    cacheable: true,
    cache: { tag: () => 'slow' },
    handle: async (_, deps) => replyRaw('text/html', `made ${await makeSlowly(deps)}`),
  }),
  route({
    ...page,
    id: 'minePage',
    method: 'GET',
    path: '/mine',
    summary: 'Of a person',
    handle: ({ caller }) => replyRaw('text/html', caller.id),
  }),
  route({
    ...page,
    id: 'mineForm',
    method: 'POST',
    path: '/mine',
    summary: 'A form',
    body: Type.Object({ name: Type.String({ maxLength: 20 }), tags: Type.Unknown() }),
    handle: ({ body }) => replyRaw('text/html', JSON.stringify(body)),
  }),
  route({
    ...page,
    id: 'shownPage',
    method: 'GET',
    path: '/shown',
    summary: 'Of everybody',
    auth: 'public',
    handle: ({ caller }) => replyRaw('text/html', caller.kind),
  }),
];

const agent: Caller = {
  kind: 'agent',
  id: 'a1',
  name: 'Toy agent',
  model: 'm',
  model_family: 'other',
  owner_id: null,
};

const person: Caller = {
  kind: 'human',
  id: 'p1',
  email_verified: true,
  is_admin: false,
  expires_at: new Date('2100-01-01'),
};

const authenticate = ({ api_key, admin_key, authorization }: Credentials): Caller | Fault => {
  if (admin_key === 'right') return { kind: 'admin' };
  if (api_key === 'right') return agent;
  if (authorization === 'Bearer person') return person;
  return refuse(authorization === '' ? common_faults.INVALID_API_KEY : common_faults.INVALID_TOKEN);
};

export interface ToyOptions {
  readonly deadline_ms?: number;
  readonly windows?: readonly Window[];
  readonly check_answers?: boolean;
  readonly trusted_proxies?: readonly string[];
  /** Limits for its sockets. Without limits, it has no sockets. */
  readonly sockets?: Partial<HubLimits>;
}

export type ToyApp = Awaited<ReturnType<typeof startToyApp>>;

export const startToyApp = async (t: Teardown, options: ToyOptions = {}) => {
  const logged: Record<string, unknown>[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => logged.push(JSON.parse(line)) });
  const deps: ToyDeps = {
    gate: makeGate(),
    waiting: 0,
    made: 0,
    written: 0,
    stream: { produce: async function* () {} },
    text: '',
  };
  const local = makeLocalWindows(1);
  const limiter: Limiter = {
    take: async (windows) => local.take(windows),
    look: async (windows) => local.look(windows),
    giveBack: async (windows, taken) => {
      local.giveBack(windows, taken);
      return local.look(windows);
    },
    stop: () => undefined,
  };
  const app = App();
  const cache = createResponseCache();
  const mounted = mount(app, {
    routes: options.check_answers === true ? toys.map(checkAnswers) : toys,
    deps,
    log,
    limiter,
    trusted_proxies: options.trusted_proxies ?? [],
    public_url: () => 'http://forum',
    faultPage: ({ def }, _, request_id) => ({
      ...replyRaw('text/html; charset=utf-8', `${def.code} ${request_id}`),
      status: def.status,
    }),
    authenticate,
    windowsOf: () => options.windows ?? [],
    onWritten: () => {
      deps.written += 1;
    },
    cache,
    ...(options.deadline_ms === undefined ? {} : { deadline_ms: options.deadline_ms }),
  });
  const { sockets } = options;
  const hub =
    sockets === undefined
      ? null
      : mountTestHub(app, {
          log,
          authenticate,
          limits: sockets,
          ops: { call: makeCallOp(mounted) },
        });
  const port = await new Promise<number>((resolve, reject) => {
    app.listen(0, exclusive_port, (socket) => {
      if (!socket) return reject(new Error('no port'));
      t.teardown(() => {
        us_listen_socket_close(socket);
        hub?.close();
        mounted.stop();
        app.close();
      });
      return resolve(us_socket_local_port(socket));
    });
  });
  const url = `http://127.0.0.1:${port}`;
  return { url, port, mounted, cache, hub, deps, logged, call: makeCaller(url) };
};
