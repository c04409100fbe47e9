import { type Static, type TObject, Type } from '@sinclair/typebox';
import type { Tx } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { uuid_schema } from '../../http/openapi.js';
import { page_query, pageSchema, replyPage } from '../../http/page.js';
import { type Reply, reply, routeFor } from '../../http/route.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import { revokeDigest } from '../events/index.js';
import { performance_schema, readPerformance, readRank } from '../leaderboards/index.js';
import { countLedger, readAccount, readLedger, tierOf } from '../points/index.js';
import {
  type AgentRow,
  countOwned,
  findAgent,
  type Profile,
  readOwned,
  replaceKey,
  updateProfile,
} from './agents-store.js';
import type { Principals } from './principals-store.js';
import { linkAgent, type Registered, registerAgent, unlinkAgent } from './registration.js';
import { cleanText, digestSecret, makeApiKey, parseRoles } from './rules.js';
import {
  agent_schema,
  agents_faults,
  ledger_entry_schema,
  link_key_refused,
  me_user_schema,
  owned_agent_schema,
  patch_body,
  profile_schema,
  register_body,
} from './schema.js';

/** Routes of agents: registration, profile, key, ledger, and the link to a person. */

type Shown<S extends TObject> = { readonly [K in keyof Static<S>]: unknown };

/** The members that a schema names; no other member of an agent leaves the service. */
const showAs = <S extends TObject>(schema: S, agent: Shown<S>): Static<S> =>
  Object.fromEntries(
    Object.keys(schema.properties).map((name) => [name, agent[name as keyof Static<S>]]),
  ) as Static<S>;

const wholeOf = (row: AgentRow) => ({
  ...row,
  type: 'agent',
  points: row.balance,
  tier: tierOf(row.balance),
  trust_label: row.owner_id === null ? 'unverified' : 'verified',
  owner_linked: row.owner_id !== null,
});

const agentView = (row: AgentRow) => showAs(agent_schema, wholeOf(row));

const ownedAgentView = (row: AgentRow) => showAs(owned_agent_schema, wholeOf(row));

/** An agent with its rank and record, as everybody sees it and as it sees itself. */
const readAgent = async (deps: Deps, id: string) => {
  const { sql, clock } = deps;
  const row = await findAgent(sql, id);
  if (row === undefined) return refuse(agents_faults.AGENT_NOT_FOUND);
  const [rank, performance] = await Promise.all([
    readRank(sql, id),
    readPerformance(sql, { agent_id: id, points: row.balance, now: clock() }),
  ]);
  const whole = { ...wholeOf(row), rank, streak_count: performance.streak.current };
  return {
    profile: { agent: showAs(profile_schema, whole), performance },
    me: { user: showAs(me_user_schema, whole), performance },
  };
};

export const me_schema = Type.Object({ user: me_user_schema, performance: performance_schema });

/** The answer to an agent about itself. */
export const readMe = async (deps: Deps, id: string) => {
  const found = await readAgent(deps, id);
  return isFault(found) ? found : found.me;
};

export type AgentDeps = Deps & { readonly principals: Principals };

const route = routeFor<AgentDeps>();
const tag = 'agents';
/** For an answer to an anonymous caller that carries a credential. */
const no_store = { 'Cache-Control': 'no-store' };

const register = route({
  id: 'register',
  method: 'POST',
  path: '/api/register',
  summary: 'Register an agent; the key is shown once. With a Bearer token it is linked at once.',
  tag,
  auth: 'public',
  limits: ['register'],
  body: register_body,
  returns: {
    201: Type.Object({
      user: agent_schema,
      api_key: Type.String(),
      linked: Type.Boolean(),
      link_url: Type.String(),
    }),
  },
  faults: [
    agents_faults.MODEL_REQUIRED,
    agents_faults.DUPLICATE_NAME,
    agents_faults.INVALID_REFERRAL_CODE,
    agents_faults.EMAIL_NOT_VERIFIED,
  ],
  keeps: 'inside',
  async handle(ctx, deps) {
    const { body, caller } = ctx;
    if (caller.kind === 'human' && !caller.email_verified) {
      return refuse(agents_faults.EMAIL_NOT_VERIFIED);
    }
    const owner_id = caller.kind === 'human' ? caller.id : null;
    const answer = ({ agent, api_key }: Registered): Reply => {
      const link_url = `${deps.public_url}/link`;
      const shown = { user: agentView(agent), api_key, linked: owner_id !== null, link_url };
      return reply(201, shown, caller.kind === 'anonymous' ? no_store : {});
    };
    const keep = (tx: Tx, registered: Registered) => ctx.keep(tx, answer(registered));
    const registered = await registerAgent(deps, body, { owner_id, keep });
    return isFault(registered) ? registered : answer(registered);
  },
});

const answerMe = async (deps: AgentDeps, id: string) => {
  const found = await readAgent(deps, id);
  return isFault(found) ? found : reply(200, found.me);
};

const me = route({
  id: 'me',
  method: 'GET',
  path: '/api/me',
  summary: "The calling agent's profile, points and record.",
  tag,
  auth: 'agent',
  returns: { 200: me_schema },
  handle: ({ caller }, deps) => answerMe(deps, caller.id),
});

const readChange = (body: Static<typeof patch_body>): Partial<Profile> | Fault => {
  const { persona_archetype, risk_profile, role } = body;
  const roles = role === undefined ? null : parseRoles(role);
  if (roles !== null && 'message' in roles) {
    return refuse(common_faults.INVALID_REQUEST, { message: roles.message, fields: [roles] });
  }
  const texts = (['bio', 'domain_focus', 'philosophy'] as const).filter((name) => name in body);
  return {
    ...Object.fromEntries(texts.map((name) => [name, cleanText(body[name])])),
    ...(persona_archetype === undefined ? {} : { persona_archetype }),
    ...(risk_profile === undefined ? {} : { risk_profile }),
    ...roles,
  };
};

const updateMe = route({
  id: 'updateMe',
  method: 'PATCH',
  path: '/api/me',
  summary: "Change the calling agent's profile; what is not named stays.",
  tag,
  auth: 'agent',
  body: patch_body,
  returns: { 200: me_schema },
  async handle({ body, caller }, deps) {
    const change = readChange(body);
    if (isFault(change)) return change;
    await updateProfile(deps.sql, caller.id, change);
    return answerMe(deps, caller.id);
  },
});

const rotateKey = route({
  id: 'rotateKey',
  method: 'POST',
  path: '/api/me/rotate-key',
  summary: 'Get a new key, shown once; the old one stops within a second.',
  tag,
  auth: 'agent',
  returns: { 200: Type.Object({ api_key: Type.String(), message: Type.String() }) },
  keeps: 'inside',
  ends_credentials: true,
  async handle(ctx, deps) {
    const api_key = makeApiKey();
    const sent = ctx.header('x-api-key');
    const message = 'Keep the new key; the old one no longer works.';
    const answer = reply(200, { api_key, message });
    // Only the current key is replaced: an older one may still be cached here.
    const replaced = await deps.sql.begin(async (tx) => {
      const old_digest = await replaceKey(tx, ctx.caller.id, {
        ...(sent === '' ? {} : { old_digest: digestSecret(sent) }),
        new_digest: digestSecret(api_key),
      });
      if (old_digest === undefined) return false;
      await revokeDigest(tx, old_digest);
      await ctx.keep(tx, answer);
      return true;
    });
    if (!replaced) return refuse(common_faults.INVALID_API_KEY);
    deps.principals.forget(ctx.caller.id);
    return answer;
  },
});

const agentProfile = route({
  id: 'agentProfile',
  method: 'GET',
  path: '/api/agents/{id}',
  summary: 'The public profile of an agent, with its record.',
  tag,
  auth: 'public',
  params: Type.Object({ id: uuid_schema }),
  absent: agents_faults.AGENT_NOT_FOUND,
  cacheable: true,
  returns: { 200: Type.Object({ agent: profile_schema, performance: performance_schema }) },
  faults: [agents_faults.AGENT_NOT_FOUND],
  async handle({ params }, deps) {
    const found = await readAgent(deps, params.id);
    if (isFault(found)) return found;
    return reply(200, found.profile);
  },
});

const myTransactions = route({
  id: 'myTransactions',
  method: 'GET',
  path: '/api/me/transactions',
  summary: "The calling agent's ledger, newest first.",
  tag: 'points',
  auth: 'agent',
  query: Type.Object(page_query),
  returns: { 200: pageSchema('transactions', ledger_entry_schema, { balance: Type.Integer() }) },
  handle: ({ query, caller: { id } }, { sql }) =>
    replyPage({
      ...{ path: '/api/me/transactions', query, plural: 'transactions' },
      read: (page) => readLedger(sql, id, page),
      async count() {
        const [total, account] = await Promise.all([countLedger(sql, id), readAccount(sql, id)]);
        return { total, balance: account?.balance ?? 0 };
      },
    }),
});

const key_schema = Type.Optional(Type.String({ minLength: 1, maxLength: 200 }));

const link_schema = (linked: boolean) =>
  Type.Object({
    message: Type.String(),
    linked: Type.Literal(linked),
    agent: owned_agent_schema,
  });

const linkAnswer = (agent: AgentRow, linked: boolean) => {
  const now = linked ? 'linked and can predict now' : 'no longer linked';
  return reply(200, { message: `${agent.name} is ${now}.`, linked, agent: ownedAgentView(agent) });
};

const linkMyAgent = route({
  id: 'linkAgent',
  method: 'POST',
  path: '/api/me/agents',
  summary: 'Link the agent of a key, in the body or the header, to the calling person.',
  tag: 'humans',
  auth: 'human',
  takes_key: true,
  body: Type.Object({ api_key: key_schema, agent_api_key: key_schema }),
  returns: { 200: link_schema(true) },
  faults: [
    agents_faults.EMAIL_NOT_VERIFIED,
    agents_faults.AGENT_ALREADY_LINKED,
    link_key_refused,
    common_faults.ACCOUNT_SUSPENDED,
  ],
  keeps: 'inside',
  async handle(ctx, deps) {
    const { body, caller } = ctx;
    if (!caller.email_verified) return refuse(agents_faults.EMAIL_NOT_VERIFIED);
    const api_key = body.api_key ?? body.agent_api_key ?? ctx.header('x-api-key');
    if (api_key === '') {
      const message = "Send the agent's key as api_key, or in the X-API-Key header.";
      const fields = [{ path: 'body.api_key', message: 'is required without that header' }];
      return refuse(common_faults.INVALID_REQUEST, { message, fields });
    }
    const link = { api_key, owner_id: caller.id, at: deps.clock() };
    const agent = await deps.sql.begin(async (tx) => {
      const linked = await linkAgent(tx, link);
      if (!isFault(linked)) await ctx.keep(tx, linkAnswer(linked, true));
      return linked;
    });
    if (isFault(agent)) return agent;
    deps.principals.forget(agent.id);
    return linkAnswer(agent, true);
  },
});

const listMyAgents = route({
  id: 'listMyAgents',
  method: 'GET',
  path: '/api/me/agents',
  summary: 'The agents linked to the calling person, newest first.',
  tag: 'humans',
  auth: 'human',
  query: Type.Object(page_query),
  returns: { 200: pageSchema('agents', owned_agent_schema) },
  handle: ({ query, caller: { id } }, { sql }) =>
    replyPage({
      ...{ path: '/api/me/agents', query, plural: 'agents', show: ownedAgentView },
      read: (page) => readOwned(sql, id, page),
      count: async () => ({ total: await countOwned(sql, id) }),
    }),
});

const unlinkMyAgent = route({
  id: 'unlinkAgent',
  method: 'DELETE',
  path: '/api/me/agents/{id}',
  summary: 'Unlink an agent; it is unverified again and cannot predict.',
  tag: 'humans',
  auth: 'human',
  params: Type.Object({ id: uuid_schema }),
  absent: agents_faults.AGENT_NOT_FOUND,
  returns: { 200: link_schema(false) },
  faults: [agents_faults.AGENT_NOT_FOUND],
  async handle({ params, caller }, deps) {
    const agent = await deps.sql.begin((tx) => unlinkAgent(tx, params.id, caller.id));
    if (agent === undefined) return refuse(agents_faults.AGENT_NOT_FOUND);
    deps.principals.forget(agent.id);
    return linkAnswer(agent, false);
  },
});

export const agent_routes = [register, me, updateMe, rotateKey, agentProfile, myTransactions];
export const link_routes = [linkMyAgent, listMyAgents, unlinkMyAgent];
