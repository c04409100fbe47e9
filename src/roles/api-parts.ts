import { createHash, timingSafeEqual } from 'node:crypto';
import type { Config } from '../config.js';
import { createPrincipals, type Principals } from '../features/agents/index.js';
import { type BriefParts, createBriefs } from '../features/briefs/index.js';
import { type CommentParts, createCommenting } from '../features/comments/index.js';
import { type ConsensusParts, createLiveConsensus } from '../features/consensus/index.js';
import { createSite, type DocsParts } from '../features/docs/index.js';
import { makeRecentEvents, nudgeChannel, type Told } from '../features/events/index.js';
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
  predictionsWindow,
} from '../features/limits/index.js';
import { createLogDoors, type LogParts } from '../features/log/index.js';
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
import type { Caller } from '../kit/http/caller.js';
import type { Credentials } from '../kit/http/credentials.js';
import { createResponseCache, type ResponseCache } from '../kit/http/response-cache.js';
import type { Route } from '../kit/http/route.js';
import type { Limiter } from '../kit/limits.js';
import { createWriteWatch } from '../kit/pg/client.js';
import type { Recent } from '../kit/ws/recent.js';
import { all_routes, api_info } from '../routes.js';

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

export interface ProcessParts {
  readonly limiter: Limiter;
}

export const makeApiParts = (
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
  log_doors: createLogDoors({
    sql: deps.sql,
    log: deps.log,
    recent,
  }),
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
export const makeAuthenticate = (
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
