import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../config.js';
import { createWriteWatch, type Tx } from '../db/client.js';
import {
  createLoginLimit,
  createPrincipals,
  createSessions,
  makeAuthenticate,
} from '../features/accounts/index.js';
import { createBriefs, createDays } from '../features/briefs/index.js';
import type { BriefParts } from '../features/briefs/routes.js';
import {
  answerPost,
  type Ballot,
  type CommentParts,
  createCommenting,
  createVoting,
  type PostRequest,
} from '../features/comments/index.js';
import type { VoteParts } from '../features/comments/routes.js';
import {
  type ConsensusParts,
  consensusTopic,
  createHeadlines,
  createHistory,
  createLiveConsensus,
  type HistoryParts,
  makeConsensusTopics,
} from '../features/consensus/index.js';
import {
  type ConsumerParts,
  createConsumers,
  readMostBehind,
  readOldestSeconds,
} from '../features/consumers/index.js';
import { makeConsumeOps } from '../features/consumers/sockets.js';
import { createDownloads, type DownloadParts } from '../features/docs/downloads.js';
import type { HealthParts } from '../features/docs/health.js';
import {
  createReference,
  createSite,
  type DocsParts,
  type SiteOptions,
} from '../features/docs/site.js';
import { limitLines } from '../features/docs/texts.js';
import { createDigestTracker, Follower } from '../features/events/index.js';
import { type LogEntry, wakeUpChannel } from '../features/events/log-entry.js';
import { createRevocationWatch, mountSockets } from '../features/events/sockets.js';
import { makeRecentEvents, PublishedEvent } from '../features/events/topics.js';
import type { ExportParts } from '../features/exports/file-routes.js';
import { createExports } from '../features/exports/index.js';
import type { LeaderboardParts } from '../features/leaderboards/index.js';
import { createBoards } from '../features/leaderboards/index.js';
import { makeLeaderboardTopics } from '../features/leaderboards/routes.js';
import { createLimitReader, type LimitParts } from '../features/limits/routes.js';
import { makeWindowsOf, predictionsWindow } from '../features/limits/rules.js';
import { createLogWatch, type LogParts } from '../features/log/index.js';
import { createMcp } from '../features/mcp/index.js';
import type { McpParts } from '../features/mcp/routes.js';
import { createOperators } from '../features/operators/index.js';
import {
  answerPrediction,
  createLinkCheck,
  createOriginality,
  createPlacing,
  createRevising,
  type PredictionParts,
  type PredictionRequest,
  type ReviseParts,
} from '../features/predictions/index.js';
import type { PredictParts } from '../features/predictions/routes.js';
import { createQuestionCache } from '../features/questions/index.js';
import { lists_tag } from '../features/questions/schema.js';
import { createDocumentSearch, type SearchParts } from '../features/search/documents.js';
import { createTaxonomy, type TaxonomyParts } from '../features/taxonomy/index.js';
import { createUsage, type UsageParts } from '../features/usage/index.js';
import { createWebhooks, deleteWebhooks, type WebhookParts } from '../features/webhooks/index.js';
import { makeAnswerAtHome } from '../http/at-home.js';
import { exchange_counters, request_durations } from '../http/call.js';
import { anonymous } from '../http/caller.js';
import type { Deps } from '../http/deps.js';
import { createIdempotency, type Idempotency } from '../http/idempotency.js';
import { type InnerCall, makeInnerCall } from '../http/inner-call.js';
import { createLimiter, type Limiter } from '../http/limits.js';
import { type Mounted, mount } from '../http/pipeline.js';
import { createResponseCache } from '../http/response-cache.js';
import type { Route } from '../http/route.js';
import {
  App,
  exclusive_port,
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from '../http/uws.js';
import { common_faults, refuse } from '../kit/fault.js';
import { type Running, startAll } from '../kit/service.js';
import { createPngMaker } from '../kit/svg-png.js';
import { isWhole } from '../redis/client.js';
import { createHomeProcesses, type HomeProcesses } from '../redis/home-process.js';
import { api_info, api_routes } from '../routes.js';
import { makeCallOp } from '../socket/calls.js';
import { makeConnectionCounter } from '../socket/connections.js';
import { default_limits } from '../socket/frames.js';
import type { StateSource } from '../socket/states.js';
import { makeFaultPage, type PageDeps, routes as pages } from '../web/index.js';
import { type Base, measure, type RoleOptions } from './base.js';

/** The api process: REST and websockets on one port, and everything that they need. */

/** Everything that the handlers of all routes need; the compiler checks it. */
type Needs = Deps &
  PredictionParts &
  PredictParts &
  ReviseParts &
  CommentParts &
  VoteParts &
  ConsensusParts &
  HistoryParts &
  BriefParts &
  TaxonomyParts &
  LeaderboardParts &
  WebhookParts &
  LimitParts &
  UsageParts &
  LogParts &
  ConsumerParts &
  McpParts &
  ExportParts &
  SearchParts &
  DocsParts &
  DownloadParts &
  HealthParts &
  PageDeps;
type ApiParts = ReturnType<typeof makeApiParts>;

interface Shared {
  readonly limiter: Limiter;
  readonly idempotency: Idempotency;
  readonly homes: HomeProcesses;
  readonly innerCall: InnerCall;
  readonly tick_ms: number;
}

const makeApiParts = (deps: Deps, shared: Shared) => {
  const { sql, config } = deps;
  const { limiter, idempotency, homes, innerCall, tick_ms } = shared;
  const consensus = createLiveConsensus(deps);
  const briefs = createBriefs(deps, consensus);
  const cache = createResponseCache();
  const history = createHistory(deps, consensus);
  const recent = makeRecentEvents();
  const log_watch = createLogWatch(sql, recent, connectionLimits(config));
  const taxonomy = createTaxonomy(deps);
  const originality = createOriginality(sql, config);
  const answerAtHome = makeAnswerAtHome(homes, idempotency);
  const subjectOf = ({ question_id }: { readonly question_id: string }) => question_id;
  const predictAtHome: PredictParts['predictAtHome'] = answerAtHome<PredictionRequest>({
    name: 'predict',
    subjectOf,
    answer: (request) => answerPrediction(parts, request),
  });
  const postAtHome: CommentParts['postAtHome'] = answerAtHome<PostRequest>({
    name: 'comment',
    subjectOf,
    answer: (request) => answerPost(parts, request),
  });
  const voting = createVoting(sql, deps.clock);
  const castAtHome = homes.onHome({
    name: 'vote',
    subjectOf: ({ subject_id }: Ballot) => subject_id,
    run: ({ at, ...ballot }, tried_ms) =>
      voting.add({ at: tried_ms === null ? new Date(at) : deps.clock(), ...ballot }),
  });
  const site_options: SiteOptions = {
    routes: api_routes as readonly Route[],
    info: api_info,
    limits: limitLines(config),
    public_url: () => deps.public_url,
  };
  const parts = {
    ...deps,
    // A getter, because the port is known only once the server listens.
    get public_url() {
      return deps.public_url;
    },
    innerCall,
    consensus,
    briefs,
    cache,
    history,
    pngs: createPngMaker(),
    recent,
    originality,
    log_watch,
    tick_ms,
    taxonomy,
    predictAtHome,
    postAtHome,
    castAtHome,
    placing: createPlacing({ ...deps, originality }),
    revising: createRevising(deps),
    link_check: config.CITATIONS_REACHABLE ? createLinkCheck(config) : null,
    takePrediction: (agent_id: string) => limiter.take([predictionsWindow(config, agent_id)]),
    principals: createPrincipals(deps),
    sessions: createSessions(deps),
    logins: createLoginLimit(config, limiter),
    async endWebhooks(tx: Tx, id: string): Promise<void> {
      await deleteWebhooks(tx, { kind: 'human', id });
    },
    commenting: createCommenting(sql),
    voting,
    questions: createQuestionCache(deps, (id) => {
      briefs.forget(id);
      cache.invalidate(id);
      cache.invalidate(lists_tag);
    }),
    write_watch: createWriteWatch(),
    leaving: new AbortController(),
    days: createDays(deps, consensus),
    headlines: createHeadlines(deps, consensus),
    boards: createBoards(deps),
    webhooks: createWebhooks(config),
    operators: createOperators(deps),
    exports: createExports(deps),
    usage: createUsage(deps, limiter),
    limits: createLimitReader(config, limiter, api_routes as readonly Route[]),
    consumers: createConsumers({ sql, log_watch, taxonomy }),
    mcp: createMcp({
      routes: api_routes as readonly Route[],
      innerCall,
      public_url: () => deps.public_url,
      connections: log_watch.connections,
    }),
    guide_sections: createDocumentSearch(config, api_routes as readonly Route[]),
    digests: createDigestTracker(deps, recent),
    site: createSite(site_options),
    reference: createReference(site_options),
    downloads: createDownloads(),
  };
  return parts satisfies Needs;
};

/** Maximum number of open sockets and streams per caller and per address. */
const connectionLimits = ({ SOCKETS_KEY, SOCKETS_IP }: Config) => ({
  connections_key: SOCKETS_KEY,
  connections_ip: SOCKETS_IP,
});

/** Between two of its turns, the relay waits at least this long. */
const wake_up_every_ms = 30;

/** Wakes the relay, at most once per `wake_up_every_ms`. Commits in between share one message. */
const makeWakeUp = ({ redis, config }: Deps): (() => void) => {
  const channel = wakeUpChannel(config.REDIS_PREFIX);
  let sent_ms = Number.NEGATIVE_INFINITY;
  let is_waiting = false;
  const send = (): void => {
    is_waiting = false;
    sent_ms = performance.now();
    if (redis.status === 'ready') redis.spublish(channel, '').catch(() => undefined);
  };
  return () => {
    if (is_waiting) return;
    const wait_ms = sent_ms + wake_up_every_ms - performance.now();
    is_waiting = wait_ms > 0;
    if (is_waiting) setTimeout(send, wait_ms).unref();
    else send();
  };
};

const redis_away = {
  code: 'REDIS_AWAY',
  text: 'Redis does not answer. Events and leaderboards are delayed. Nothing is lost.',
};

/** The topic `system`: the state of the process that a client is connected to. */
const makeSystemTopic = ({ redis }: Deps, node: string) => {
  let status: 'serving' | 'draining' = 'serving';
  const source: StateSource = {
    every_ms: 1_000,
    resolve: (label) => (label === 'system' ? { topic: label, label } : null),
    read: () => {
      const notices = isWhole(redis) ? [] : [redis_away];
      return { version: Date.now(), data: { node, status, notices } };
    },
  };
  const startDraining = (): void => {
    status = 'draining';
  };
  return { source, startDraining };
};

/** Only events of questions and disputes invalidate lists. The counters in lists may be old. */
const invalidate = ({ cache, questions }: ApiParts, batch: readonly LogEntry[]): void => {
  for (const { question_id, event } of batch) {
    if (question_id === null) continue;
    if (/^(?:question|dispute)\./.test(event)) questions.forget(question_id);
    else cache.invalidate(question_id);
  }
};

/** Mounts everything that this port serves, but does not listen yet. */
const mountAll = ({ deps, openSubscriber }: Base, options: RoleOptions) => {
  const { config, log, sql, redis } = deps;
  const { NODE_ENV, PUBLIC_URL = '', REDIS_PREFIX: prefix } = config;
  const { prepareRoute = (route) => route, tick_ms = default_limits.tick_ms } = options;
  const app = App();
  const limiter = createLimiter({ redis, prefix, processes: config.API_PROCESSES, log });
  const innerCall = makeInnerCall((request) => mounted.call(request));
  const idempotency = createIdempotency({ sql, secret_key: config.SECRET_KEY ?? '', log });
  const { index } = options;
  const homes = createHomeProcesses({ ...deps, prefix, index, openSubscriber });
  const parts = makeApiParts(deps, { limiter, idempotency, homes, innerCall, tick_ms });
  const authenticate = makeAuthenticate(config, parts);
  const windowsOf = makeWindowsOf(config);
  const { TRUSTED_PROXIES: trusted_proxies } = config;
  const mounted: Mounted = mount(app, {
    routes: ([...api_routes, ...pages] as readonly Route<ApiParts>[]).map(prepareRoute),
    deps: parts,
    limiter,
    log,
    trusted_proxies,
    authenticate,
    windowsOf,
    checkSignature: parts.operators.check,
    onThrown: parts.write_watch.note,
    onWritten: makeWakeUp(deps),
    onAnswered: parts.usage.note,
    public_url: () => deps.public_url,
    faultPage: makeFaultPage(deps),
    cache: parts.cache,
    idempotency,
    only_https: NODE_ENV === 'production' && PUBLIC_URL.startsWith('https://'),
  });
  const connections = makeConnectionCounter({ redis, prefix, log });
  const node = `${options.role}-${options.index}`;
  const touch = (topic: string): void => sockets.hub.touch(topic);
  const system = makeSystemTopic(deps, node);
  const sockets = mountSockets(app, {
    sql,
    log,
    node,
    trusted_proxies,
    authenticate,
    connections,
    origin: () => new URL(deps.public_url).origin,
    taxonomy: parts.taxonomy,
    limits: { ...connectionLimits(config), lifetime_ms: config.SOCKET_LIFETIME_S * 1_000, tick_ms },
    ops: { call: makeCallOp(mounted), ...makeConsumeOps(parts) },
    recent: parts.recent,
    digestAt: parts.digests.at,
    admit: async (address) => {
      const taken = await limiter.take(windowsOf({ limits: [] }, anonymous, address));
      return taken.allowed ? null : refuse(common_faults.RATE_LIMITED);
    },
    head: () => follower.head,
    oldest: () => follower.oldest,
    states: [makeConsensusTopics(parts.consensus), makeLeaderboardTopics(parts), system.source],
  });
  const follower = new Follower({
    sql,
    prefix,
    log,
    redis_url: config.REDIS_URL ?? '',
    onEvents: (batch) => {
      for (const id of parts.consensus.onEvents(batch)) touch(consensusTopic(id));
      parts.history.onEvents(batch);
      invalidate(parts, batch);
      parts.digests.onEvents(batch);
      const events = batch.map((entry) => new PublishedEvent(entry));
      sockets.onEvents(events);
      parts.log_watch.onEvents(events);
      parts.mcp.onEvents(events);
    },
  });
  const revocations = createRevocationWatch(deps, {
    onRead: parts.principals.confirm,
    onRevoked(revoked) {
      sockets.onRevoked(revoked);
      parts.log_watch.connections.onRevoked(revoked);
    },
  });
  const { service: usage } = parts.usage;
  const services = [follower, parts.digests, connections, revocations, usage, homes];
  return { app, parts, limiter, mounted, sockets, follower, homes, services, system };
};

type All = ReturnType<typeof mountAll>;

const measuresOf = ({ parts, mounted, sockets, follower }: All) => {
  const { placing, revising, cache, log_watch, sql } = parts;
  const http = exchange_counters;
  const hub = () => sockets.hub.stats();
  return [
    request_durations,
    measure('http_open', 'Requests that are not answered yet.', () => mounted.open.size),
    measure('http_aborted_total', 'Requests whose client went away.', () => http.aborted),
    measure('http_expired_total', 'Requests answered 503 at the deadline.', () => http.expired),
    measure('http_shed_total', 'Writes refused because too many were open.', () => http.shed),
    measure('http_cached_total', 'Responses from the response cache.', () => cache.stats().hits),
    measure('predictions_placed_total', 'Predictions placed.', () => placing.stats.drafts),
    measure('forecasts_revised_total', 'Forecasts revised.', () => revising.stats.drafts),
    measure('prediction_batches_total', 'Commits of predictions.', () => placing.stats.batches),
    measure('prediction_drafts_waiting', 'Predictions to commit.', () => placing.stats.waiting),
    measure('log_head_offset', 'Newest offset that this process has read.', () => follower.head),
    measure(
      'log_lag_p99_seconds',
      'From the time of an event to its delivery to sockets, 99th percentile.',
      () => follower.lagP99() / 1_000,
    ),
    measure('sockets', 'Open websockets.', () => hub().sockets),
    measure('sockets_slow_total', 'How many times a socket read too slowly.', () => hub().slow),
    measure('sockets_unread_bytes', 'Unread bytes of sockets.', () => hub().unread_bytes),
    measure(
      'consumers_behind_offsets',
      'How far the slowest durable consumer is behind the log, in offsets.',
      () => readMostBehind(sql),
    ),
    measure(
      'consumers_oldest_seconds',
      'Age of the oldest event that a durable consumer was offered and has not acknowledged.',
      () => readOldestSeconds(sql),
    ),
    measure('log_visitors', 'Open streams and long polls.', () => log_watch.connections.count()),
  ];
};

const listen = (app: TemplatedApp, config: Config, options: number): Promise<us_listen_socket> =>
  new Promise((resolve, reject) => {
    const done = (socket: us_listen_socket | false): void => {
      if (socket) resolve(socket);
      else reject(new Error(`cannot listen on ${config.HOST}:${config.PORT}; is the port in use?`));
    };
    // The native call also takes options after the port, although its types leave them out.
    (app.listen as (...args: unknown[]) => void).call(app, config.HOST, config.PORT, options, done);
  });

const drain_ms = 10_000;

const waitForOpen = async ({ open }: Mounted): Promise<void> => {
  const until = performance.now() + drain_ms;
  while (open.size > 0 && performance.now() < until) {
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
};

export const startApi = async (base: Base, options: RoleOptions): Promise<Running> => {
  const { config, log } = base.deps;
  const all = mountAll(base, options);
  const { app, parts, limiter, mounted, sockets, follower, homes, system } = all;
  const monitor = base.monitor(measuresOf(all), parts.leaving.signal);
  const services = await startAll([base, ...all.services, ...monitor]);
  // From here on, checks of topics and filters use the taxonomy in memory and do not wait.
  await parts.taxonomy.read();
  await sockets.start();
  parts.log_watch.begin(follower);
  const socket = await listen(app, config, options.shared_port ? 0 : exclusive_port);
  const port = us_socket_local_port(socket);
  base.setPort(port);
  log.info({ port }, 'api: listening');
  return {
    port,
    async stop() {
      parts.leaving.abort();
      await pause(config.DRAIN_DELAY_S * 1_000);
      us_listen_socket_close(socket);
      mounted.startDraining();
      parts.log_watch.end();
      system.startDraining();
      sockets.hub.touch('system');
      await Promise.all([sockets.stop(), parts.mcp.close(drain_ms), waitForOpen(mounted)]);
      await homes.stop();
      const { placing, revising, commenting, voting, consumers } = parts;
      const commits = [placing, revising, commenting, voting, consumers];
      await Promise.all(commits.map((commit) => commit.drain()));
      mounted.stop();
      app.close();
      limiter.stop();
      parts.webhooks.close();
      parts.operators.close();
      await parts.exports.close();
      await parts.pngs.close();
      await services.stop();
    },
  };
};
