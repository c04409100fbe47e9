import { createHash, timingSafeEqual } from 'node:crypto';
import type { Config } from '../config.js';
import { createPrincipals, type Principals } from '../features/agents/index.js';
import { type BriefParts, createBriefs } from '../features/briefs/index.js';
import { type CommentParts, createCommenting } from '../features/comments/index.js';
import { type ConsensusParts, createLiveConsensus } from '../features/consensus/index.js';
import { createSite, type DocsParts } from '../features/docs/index.js';
import {
  createRevocationWatch,
  Follower,
  type LogEntry,
  makeRecentEvents,
  mountSockets,
  nudgeChannel,
  Told,
} from '../features/events/index.js';
import { createExports, type ExportParts } from '../features/exports/index.js';
import type { HealthParts } from '../features/health/index.js';
import { createHistory, type HistoryParts } from '../features/history/index.js';
import {
  bearerToken,
  createLoginLimit,
  createSessions,
  type LoginLimit,
  looksLikeSession,
  type Sessions,
} from '../features/humans/index.js';
import { createDays, type InsightParts } from '../features/insights/index.js';
import {
  countedBy,
  createLimitReader,
  type LimitName,
  type LimitParts,
  limit_table,
  makeWindowsOf,
  predictionsWindow,
} from '../features/limits/index.js';
import { createLogWatch, type LogParts } from '../features/log/index.js';
import {
  createOriginality,
  createPlacing,
  createReach,
  type PlaceParts,
} from '../features/predictions/index.js';
import { createQuestionCache, lists_tag } from '../features/questions/index.js';
import { createBoards, type StandingParts } from '../features/standing/index.js';
import { createTaxonomy, type TaxonomyParts } from '../features/taxonomy/index.js';
import { createVoting, type VoteParts } from '../features/votes/index.js';
import { createWebhooks, type WebhookParts } from '../features/webhooks/index.js';
import type { Deps } from '../kit/deps.js';
import { common_faults, type Fault, isFault, refuse } from '../kit/fault.js';
import { type Mounted, mount } from '../kit/http/mount.js';
import type { Credentials } from '../kit/http/pipeline.js';
import type { Address } from '../kit/http/request.js';
import {
  App,
  exchange_counters,
  exclusive_port,
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from '../kit/http/request.js';
import { createResponseCache, type ResponseCache } from '../kit/http/response-cache.js';
import type { Caller, Route } from '../kit/http/route.js';
import { anonymous } from '../kit/http/route.js';
import { createKeeper } from '../kit/idempotency.js';
import type { Limiter } from '../kit/limits.js';
import { createLimiter } from '../kit/limits.js';
import type { Measure } from '../kit/metrics.js';
import { createWriteWatch } from '../kit/pg/client.js';
import { type Running, startAll } from '../kit/service.js';
import { makeCallOp } from '../kit/ws/calls.js';
import type { Recent } from '../kit/ws/recent.js';
import { createSeats } from '../kit/ws/seats.js';
import { all_routes, api_info } from '../routes.js';
import { type Base, openBase, type RoleOptions } from './base.js';
import { makeStateTopics } from './state-topics.js';

/** Everything the handlers of all routes need; the compiler holds the features to it. */
export type ApiParts = Deps &
  PlaceParts &
  CommentParts &
  VoteParts &
  ConsensusParts &
  HistoryParts &
  BriefParts &
  InsightParts &
  TaxonomyParts &
  StandingParts &
  WebhookParts &
  LimitParts &
  LogParts &
  ExportParts &
  DocsParts &
  HealthParts & {
    readonly principals: Principals;
    readonly sessions: Sessions;
    readonly logins: LoginLimit;
    readonly cache: ResponseCache;
    readonly recent: Recent<Told>;
  };

interface ProcessParts {
  readonly limiter: Limiter;
}

const makeApiParts = (
  deps: Deps,
  { limiter }: ProcessParts,
  nudge = makeNudge(deps),
  principals = createPrincipals(deps),
  sessions = createSessions(deps),
  consensus = createLiveConsensus(deps),
  briefs = createBriefs(deps, consensus),
  cache = createResponseCache(),
  history = createHistory(deps),
  recent = makeRecentEvents(),
): ApiParts => ({
  ...deps,
  ...makePlaceParts(deps, limiter, nudge),
  // Known only once the server listens.
  get public_url() {
    return deps.public_url;
  },
  principals,
  sessions,
  logins: createLoginLimit(deps.config, limiter),
  commenting: createCommenting(deps.sql, nudge),
  voting: createVoting(deps.sql),
  taxonomy: createTaxonomy(deps),
  cache,
  recent,
  questions: createQuestionCache(deps, (id) => {
    briefs.forget(id);
    cache.invalidate(id);
    cache.invalidate(lists_tag);
  }),
  write_watch: createWriteWatch(),
  consensus,
  history,
  briefs,
  days: createDays(deps, history.movers),
  boards: createBoards(deps),
  webhooks: createWebhooks(deps.config),
  exports: createExports(deps),
  limits: createLimitReader(deps.config, limiter, all_routes as readonly Route[]),
  log_watch: createLogWatch(deps.sql, recent),
  site: createSite({
    routes: all_routes as readonly Route[],
    info: api_info,
    limits: limitLines(deps.config),
    public_url: () => deps.public_url,
  }),
});

/** The limits as the documents tell them. */
const limitLines = (config: Config) =>
  Object.entries(limit_table).map(([name, { setting, per }]) => ({
    ...{ name, limit: config[setting] },
    per: per === 'address' ? 'address (IPv6: /64)' : 'agent or person',
    counts: countedBy(name as LimitName, all_routes as readonly Route[]),
  }));

const makePlaceParts = (deps: Deps, limiter: Limiter, committed: () => void) => {
  const originality = createOriginality(deps.sql, deps.config);
  const placing = createPlacing({ ...deps, originality, committed });
  const takePrediction = (agent_id: string) =>
    limiter.take([predictionsWindow(deps.config, agent_id)]);
  const reach = deps.config.CITATIONS_REACHABLE ? createReach(deps.config) : null;
  return { originality, placing, reach, takePrediction };
};

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

const key_as_token = /^(?:bearer +)?sk_/i;

/** A token in the place of a key is refused like any other text, and as late. */
const sayHeader = async (refused: Caller | Fault | Promise<Caller | Fault>) => {
  const who = await refused;
  const message = 'This is the token of a person; send it as Authorization: Bearer.';
  return isFault(who) ? refuse(who.def, { message }) : who;
};

/** Whose credentials these are; an agent key that is cached costs no turn of the event loop. */
const makeAuthenticate = (
  config: Config,
  { principals, sessions }: Pick<ApiParts, 'principals' | 'sessions'>,
) => {
  const admin_digest = config.ADMIN_KEY === undefined ? null : digest(config.ADMIN_KEY);
  return (credentials: Credentials): Caller | Fault | Promise<Caller | Fault> => {
    const { api_key, authorization, admin_key } = credentials;
    if (admin_key !== '') {
      const right = admin_digest !== null && timingSafeEqual(digest(admin_key), admin_digest);
      return right ? { kind: 'admin' } : refuse(common_faults.INVALID_API_KEY);
    }
    if (api_key !== '') {
      const who = principals.byKey(api_key);
      return looksLikeSession(api_key) ? sayHeader(who) : who;
    }
    if (key_as_token.test(authorization)) {
      const message = 'This is the key of an agent; send it in the X-API-Key header.';
      return refuse(common_faults.INVALID_TOKEN, { message });
    }
    const token = bearerToken(authorization);
    if (token === '') return refuse(common_faults.INVALID_TOKEN);
    return sessions.byToken(token);
  };
};

/** After a message the relay looks again by itself for about so long. */
const nudge_every_ms = 10;

/** Wakes the relay, at most once in a while; what is committed meanwhile shares a message. */
const makeNudge = ({ redis, config }: Deps): (() => void) => {
  const channel = nudgeChannel(config.REDIS_PREFIX);
  let sent_ms = Number.NEGATIVE_INFINITY;
  let is_waiting = false;
  const send = (): void => {
    is_waiting = false;
    sent_ms = performance.now();
    if (redis.status === 'ready') redis.publish(channel, '').catch(() => undefined);
  };
  return () => {
    if (is_waiting) return;
    const wait_ms = sent_ms + nudge_every_ms - performance.now();
    is_waiting = wait_ms > 0;
    if (is_waiting) setTimeout(send, wait_ms).unref();
    else send();
  };
};

/** The api process: REST and websockets on one port, and everything they need at hand. */

const listen = (app: TemplatedApp, config: Config, options: number): Promise<us_listen_socket> =>
  new Promise((resolve, reject) => {
    const done = (socket: us_listen_socket | false): void => {
      if (socket) resolve(socket);
      else reject(new Error(`cannot listen on ${config.HOST}:${config.PORT}; is the port taken?`));
    };
    // The native call also takes options after the port, which its types leave out.
    (app.listen as (...args: unknown[]) => void).call(app, config.HOST, config.PORT, options, done);
  });

const drain_ms = 10_000;

const waitForOpen = async (mounted: Mounted): Promise<void> => {
  const until = performance.now() + drain_ms;
  while (mounted.open.size > 0 && performance.now() < until) {
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
};

const isOnlyHttps = ({ NODE_ENV, PUBLIC_URL = '' }: Config): boolean =>
  NODE_ENV === 'production' && PUBLIC_URL.startsWith('https://');

/** The port and what stands behind it, mounted and not yet listening. */
const mountAll = (base: Base, options: RoleOptions) => {
  const { deps } = base;
  const { config, log, sql, redis } = deps;
  const app = App();
  const prefix = config.REDIS_PREFIX;
  const limiter = createLimiter({ redis, prefix, processes: config.API_PROCESSES, log });
  const parts = makeApiParts(deps, { limiter });
  const authenticate = makeAuthenticate(config, parts);
  const windowsOf = makeWindowsOf(config);
  const windowsOfAddress = (address: Address) => windowsOf({ limits: [] }, anonymous, address);
  const mounted = mount(app, {
    routes: all_routes as readonly Route<ApiParts>[],
    deps: parts,
    limiter,
    ...{ log, onThrown: parts.write_watch.note },
    trusted_proxies: config.TRUSTED_PROXIES,
    link_url: () => `${deps.public_url}/link`,
    authenticate,
    windowsOf,
    cache: parts.cache,
    keeper: createKeeper({ sql, secret_key: config.SECRET_KEY ?? '', log }),
    ...{ only_https: isOnlyHttps(config), check_answers: options.check_answers ?? false },
  });
  const seats = createSeats({ redis, prefix, log });
  const node = `${options.role}-${options.index}`;
  const topics = makeStateTopics(parts, { node, touch: (topic) => sockets.hub.touch(topic) });
  const sockets = mountSockets(app, {
    sql,
    log,
    taxonomy: parts.taxonomy,
    node,
    trusted_proxies: config.TRUSTED_PROXIES,
    authenticate,
    seats,
    limits: { connections_key: config.SOCKETS_KEY, connections_ip: config.SOCKETS_IP },
    ops: { call: makeCallOp(mounted) },
    recent: parts.recent,
    admit: async (address) => {
      const taken = await limiter.take(windowsOfAddress(address));
      return taken.allowed ? null : refuse(common_faults.RATE_LIMITED);
    },
    head: () => follower.head,
    oldest: () => follower.oldest,
    states: topics.sources,
  });
  const follower = new Follower({
    sql,
    redis_url: config.REDIS_URL ?? '',
    prefix,
    log,
    onEvents: (batch) => {
      topics.onEvents(batch);
      parts.history.onEvents(batch);
      invalidate(parts, batch);
      const told = batch.map((entry) => new Told(entry));
      sockets.onEvents(told);
      parts.log_watch.onEvents(told);
    },
  });
  const revocations = createRevocationWatch(deps, (revoked) => {
    sockets.onRevoked(revoked);
    parts.log_watch.visitors.onRevoked(revoked);
  });
  return { app, parts, limiter, mounted, seats, sockets, follower, revocations, topics };
};

/** Lists are invalidated by the life of questions alone: their counters may be a second old. */
const invalidate = ({ cache, questions }: ApiParts, batch: readonly LogEntry[]): void => {
  for (const { question_id, event } of batch) {
    if (question_id === null) continue;
    if (/^(?:question|dispute)\./.test(event)) questions.forget(question_id);
    else cache.invalidate(question_id);
  }
};

type All = ReturnType<typeof mountAll>;

const measuresOf = ({ parts, mounted, sockets, follower }: All): readonly Measure[] => [
  { name: 'http_open', help: 'Requests without an answer yet.', read: () => mounted.open.size },
  {
    name: 'http_aborted_total',
    help: 'Requests whose client went away first.',
    read: () => exchange_counters.aborted,
  },
  {
    name: 'http_expired_total',
    help: 'Requests that were answered 503 at their deadline.',
    read: () => exchange_counters.expired,
  },
  {
    name: 'http_shed_total',
    help: 'Writes that were refused with 503 because too many were open.',
    read: () => exchange_counters.shed,
  },
  {
    name: 'http_cached_total',
    help: 'Responses that were sent from the response cache.',
    read: () => parts.cache.stats().hits,
  },
  {
    name: 'predictions_placed_total',
    help: 'Predictions that went through the group commit.',
    read: () => parts.placing.stats.drafts,
  },
  {
    name: 'prediction_batches_total',
    help: 'Group commits of predictions.',
    read: () => parts.placing.stats.batches,
  },
  {
    name: 'log_head_offset',
    help: 'Newest offset this process has followed.',
    read: () => follower.head,
  },
  {
    name: 'log_lag_p99_ms',
    help: 'From the time of an event to its delivery to sockets, 99th percentile.',
    read: () => follower.lagP99(),
  },
  { name: 'sockets', help: 'Open websockets.', read: () => sockets.hub.stats().sockets },
  {
    name: 'sockets_slow_total',
    help: 'Times that a socket read too slowly and left the live stream.',
    read: () => sockets.hub.stats().slow,
  },
  {
    name: 'sockets_unread_bytes',
    help: 'Bytes that sockets have been sent and have not read.',
    read: () => sockets.hub.stats().unread_bytes,
  },
  {
    name: 'log_visitors',
    help: 'Open event streams and calls that wait for an event.',
    read: () => parts.log_watch.visitors.count(),
  },
];

export const startApi = async (config: Config, options: RoleOptions): Promise<Running> => {
  const base = await openBase(config, options);
  const all = mountAll(base, options);
  const { app, parts, limiter, mounted, seats, sockets, follower, revocations, topics } = all;
  const services = await startAll([follower, seats, revocations, ...base.monitor(measuresOf(all))]);
  // Topics and filters are checked without a wait, against what was read.
  await parts.taxonomy.read();
  await sockets.start();
  parts.log_watch.begin(follower);
  const socket = await listen(app, config, options.shared_port ? 0 : exclusive_port);
  const port = us_socket_local_port(socket);
  base.setPort(port);
  base.deps.log.info({ port }, 'api: listening');
  return {
    port,
    async stop() {
      us_listen_socket_close(socket);
      mounted.startDraining();
      parts.log_watch.end();
      topics.startDraining();
      await Promise.all([sockets.stop(), waitForOpen(mounted)]);
      const { placing, commenting, voting } = parts;
      await Promise.all([placing.drain(), commenting.drain(), voting.drain()]);
      mounted.stop();
      app.close();
      limiter.stop();
      parts.webhooks.close();
      await parts.exports.close();
      await parts.history.close();
      await services.stop();
      await base.close();
    },
  };
};
