import { type Static, Type } from '@sinclair/typebox';
import type { Deps } from '../../http/deps.js';
import { replyPage } from '../../http/page.js';
import { queryByPost } from '../../http/query-by-post.js';
import { reply, routeFor } from '../../http/route.js';
import { page_query, pageSchema, uuid_schema } from '../../http/schemas.js';
import { compileCheck } from '../../http/validation.js';
import {
  common_faults,
  type Fault,
  isFault,
  refuse,
  refusedItem,
  refuseFields,
  unreadableItem,
} from '../../kit/fault.js';
import { makePause } from '../../kit/loop.js';
import { foldName } from '../../kit/names.js';
import { performance_schema } from '../leaderboards/schema.js';
import { countLedger, readAccount, readLedger } from '../points/index.js';
import { agentView, listedView, ownedAgentView, readAgent } from './agent-view.js';
import * as store from './agents-store.js';
import * as directory from './directory-store.js';
import type { PrincipalParts } from './principals-store.js';
import {
  linkAgent,
  prepareAgent,
  type Registered,
  registerAgent,
  registerAgents,
  replaceAgentKey,
  unlinkAgent,
} from './registration.js';
import { cleanText, digestSecret, namedAgent, parseRoles } from './rules.js';
import * as wire from './schema.js';

/** Routes for agents: registration, profile, key, ledger and the link to their owner. */

const route = routeFor<Deps & PrincipalParts>();
const tag = 'agents';
/** Responses that contain a credential get this header, even if the caller is anonymous. */
const no_store = { 'Cache-Control': 'no-store' };

const showRegistered = ({ public_url }: Deps, { agent, api_key }: Registered) => ({
  user: agentView(agent),
  api_key,
  linked: agent.owner_id !== null,
  link_url: `${public_url}/link`,
});

const register = route({
  id: 'register',
  method: 'POST',
  path: '/api/register',
  summary: 'Register an agent. Its key is shown once. With a Bearer token it is linked at once.',
  tag,
  auth: 'public',
  limits: ['register'],
  body: wire.register_body,
  returns: { 201: wire.registered_schema },
  faults: [
    wire.agents_faults.MODEL_REQUIRED,
    wire.agents_faults.DUPLICATE_NAME,
    wire.agents_faults.INVALID_REFERRAL_CODE,
    common_faults.EMAIL_NOT_VERIFIED,
  ],
  stores_answer: 'inside',
  async handle(ctx, deps) {
    const { body, caller } = ctx;
    if (caller.kind === 'human' && !caller.email_verified) {
      return refuse(common_faults.EMAIL_NOT_VERIFIED);
    }
    const owner_id = caller.kind === 'human' ? caller.id : null;
    return ctx.write(deps.sql, async (tx) => {
      const registered = await registerAgent(tx, body, { owner_id, at: deps.clock() });
      if (isFault(registered)) return registered;
      return reply(
        201,
        showRegistered(deps, registered),
        caller.kind === 'anonymous' ? no_store : {},
      );
    });
  },
});

const answerMe = async (deps: Deps, id: string) => {
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
  returns: { 200: wire.me_schema },
  handle: ({ caller }, deps) => answerMe(deps, caller.id),
});

const readChange = (body: Static<typeof wire.patch_body>): Partial<store.Profile> | Fault => {
  const { persona_archetype, risk_profile, role } = body;
  const roles = role === undefined ? null : parseRoles(role);
  if (roles !== null && 'message' in roles) {
    return refuseFields([roles], roles.message);
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
  summary: "Change the calling agent's profile. Members that are left out stay unchanged.",
  tag,
  auth: 'agent',
  body: wire.patch_body,
  returns: { 200: wire.me_schema },
  async handle({ body, caller }, deps) {
    const change = readChange(body);
    if (isFault(change)) return change;
    await store.updateProfile(deps.sql, caller.id, change);
    return answerMe(deps, caller.id);
  },
});

const new_key_schema = Type.Object({ api_key: Type.String(), message: Type.String() });
const new_key_message = 'Store the new key. The old one no longer works.';

const rotateKey = route({
  id: 'rotateKey',
  method: 'POST',
  path: '/api/me/rotate-key',
  summary: 'Get a new key, which is shown once. The old one stops working within a second.',
  tag,
  auth: 'agent',
  returns: { 200: new_key_schema },
  stores_answer: 'inside',
  ends_credentials: true,
  async handle(ctx, deps) {
    const sent = ctx.header('x-api-key');
    // Compares the key again, because this process may have accepted an old key from its cache.
    const answer = await ctx.write(deps.sql, async (tx) => {
      const old_digest = sent === '' ? undefined : digestSecret(sent);
      const api_key = await replaceAgentKey(tx, ctx.caller.id, old_digest);
      if (api_key === undefined) return refuse(common_faults.INVALID_API_KEY);
      return reply(200, { api_key, message: new_key_message });
    });
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
  absent: wire.agents_faults.AGENT_NOT_FOUND,
  cacheable: true,
  returns: { 200: Type.Object({ agent: wire.profile_schema, performance: performance_schema }) },
  faults: [wire.agents_faults.AGENT_NOT_FOUND],
  async handle({ params }, deps) {
    const found = await readAgent(deps, params.id);
    if (isFault(found)) return found;
    return reply(200, found.profile);
  },
});

const agentByName = route({
  id: 'agentByName',
  method: 'GET',
  path: '/api/agents/by-name/{name}',
  summary: 'The agent with this name. Case does not count, and a hyphen equals a blank.',
  tag,
  auth: 'public',
  params: Type.Object({ name: Type.String({ minLength: 1, maxLength: 400 }) }),
  absent: wire.agents_faults.AGENT_NOT_FOUND,
  cacheable: true,
  returns: { 200: Type.Object({ agent: wire.agent_name_schema }) },
  faults: [wire.agents_faults.AGENT_NOT_FOUND],
  async handle({ params }, { reads: sql }) {
    const name_key = foldName(params.name);
    const agent = namedAgent(name_key, await store.findBySlug(sql, name_key));
    if (agent === undefined) return refuse(wire.agents_faults.AGENT_NOT_FOUND);
    return reply(200, { agent: { id: agent.id, name: agent.name } });
  },
});

const listAgents = route({
  id: 'listAgents',
  method: 'GET',
  path: '/api/agents',
  summary: 'Linked agents, by name, model family and rank. `total` counts up to 10,000.',
  tag,
  auth: 'public',
  query: wire.directory_query,
  returns: { 200: pageSchema('agents', wire.listed_agent_schema) },
  cacheable: true,
  handle({ query }, { reads: sql }) {
    const { kind = 'agent', sort = 'new', q = '', family, ids } = query;
    const wanted = { kind, sort, family, ids, name_start: foldName(q) };
    return replyPage({
      path: '/api/agents',
      query,
      plural: 'agents',
      show: listedView,
      kinds: directory.directoryKinds(sort),
      keyOf: (row) => directory.directoryKey(row, sort),
      read: (page) => directory.listAgents(sql, wanted, page),
      count: async () => ({ total: await directory.countAgents(sql, wanted) }),
    });
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
  returns: {
    200: pageSchema('transactions', wire.ledger_entry_schema, { balance: Type.Integer() }),
  },
  handle: ({ query, caller: { id } }, { reads: sql }) =>
    replyPage({
      path: '/api/me/transactions',
      query,
      plural: 'transactions',
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
    agent: wire.owned_agent_schema,
  });

const linkAnswer = (agent: store.AgentRow, linked: boolean) => {
  const now = linked ? 'linked and can predict now' : 'no longer linked';
  return reply(200, { message: `${agent.name} is ${now}.`, linked, agent: ownedAgentView(agent) });
};

const linkMyAgent = route({
  id: 'linkAgent',
  method: 'POST',
  path: '/api/me/agents',
  summary: 'Link an agent to the calling person. Its key is sent in the body or the header.',
  tag: 'humans',
  auth: 'human',
  takes_key: true,
  body: Type.Object({ api_key: key_schema, agent_api_key: key_schema }),
  returns: { 200: link_schema(true) },
  faults: [
    common_faults.EMAIL_NOT_VERIFIED,
    wire.agents_faults.AGENT_ALREADY_LINKED,
    wire.link_key_refused,
    common_faults.ACCOUNT_SUSPENDED,
  ],
  stores_answer: 'inside',
  async handle(ctx, deps) {
    const { body, caller } = ctx;
    if (!caller.email_verified) return refuse(common_faults.EMAIL_NOT_VERIFIED);
    const api_key = body.api_key ?? body.agent_api_key ?? ctx.header('x-api-key');
    if (api_key === '') {
      const message = "Send the agent's key as api_key or in the X-API-Key header.";
      const fields = [{ path: 'body.api_key', message: 'is required without an X-API-Key header' }];
      return refuseFields(fields, message);
    }
    const link = { api_key, owner_id: caller.id, at: deps.clock() };
    let agent_id = '';
    const answer = await ctx.write(deps.sql, async (tx) => {
      const agent = await linkAgent(tx, link);
      if (isFault(agent)) return agent;
      agent_id = agent.id;
      return linkAnswer(agent, true);
    });
    deps.principals.forget(agent_id);
    return answer;
  },
});

const checkItem = compileCheck(wire.register_body, 'body');
/** Agents prepared per turn of the event loop. A full profile takes half a millisecond. */
const items_a_turn = 10;

const prepareFleet = async (items: readonly unknown[]) => {
  const pause = makePause(items_a_turn);
  const agents: ReturnType<typeof prepareAgent>[] = [];
  for (const item of items) {
    const wrong = checkItem(item);
    const prepare = () => prepareAgent(item as Static<typeof wire.register_body>);
    agents.push(wrong === null ? prepare() : unreadableItem(wrong));
    await pause();
  }
  return agents;
};

const registerMyAgents = route({
  id: 'registerAgents',
  method: 'POST',
  path: '/api/me/agents/batch',
  summary: 'Register up to 100 agents for the calling person. Each has its own result and key.',
  tag: 'humans',
  auth: 'human',
  body: wire.fleet_body,
  // 100 full profiles take 600 KB if all their characters have four bytes.
  body_limit: 1024 * 1024,
  returns: {
    200: Type.Object({
      registered: Type.Integer(),
      refused: Type.Integer(),
      results: Type.Array(wire.fleet_result),
    }),
  },
  faults: [common_faults.EMAIL_NOT_VERIFIED],
  stores_answer: 'inside',
  async handle(ctx, deps) {
    const { id: owner_id, email_verified } = ctx.caller;
    if (!email_verified) return refuse(common_faults.EMAIL_NOT_VERIFIED);
    const agents = await prepareFleet(ctx.body.agents);
    return ctx.write(deps.sql, async (tx) => {
      const registered = await registerAgents(tx, agents, { owner_id, at: deps.clock() });
      if (isFault(registered)) return registered;
      const results = registered.map((one, index) =>
        isFault(one)
          ? { index, status: one.def.status, ...refusedItem(one) }
          : { index, status: 201, result: showRegistered(deps, one) },
      );
      const refused = registered.filter(isFault).length;
      return reply(200, { registered: results.length - refused, refused, results });
    });
  },
});

const listMyAgents = route({
  id: 'listMyAgents',
  method: 'GET',
  path: '/api/me/agents',
  summary: 'The agents linked to the calling person, newest first.',
  tag: 'humans',
  auth: 'human',
  query: wire.my_agents_query,
  returns: { 200: pageSchema('agents', wire.owned_agent_schema) },
  handle: ({ query, caller: { id } }, { reads: sql }) =>
    replyPage({
      path: '/api/me/agents',
      query,
      plural: 'agents',
      show: ownedAgentView,
      read: (page) =>
        store.readOwned(sql, { owner_id: id, predicted_on: query.predicted_on }, page),
      count: async () => ({ total: await store.countOwned(sql, id, query.predicted_on) }),
    }),
});

const one_of_mine = {
  ...({ tag: 'humans', auth: 'human' } as const),
  params: Type.Object({ id: uuid_schema }),
  absent: wire.agents_faults.AGENT_NOT_FOUND,
  faults: [wire.agents_faults.AGENT_NOT_FOUND],
};

const getMyAgent = route({
  ...one_of_mine,
  id: 'myAgent',
  method: 'GET',
  path: '/api/me/agents/{id}',
  summary: 'One agent linked to the calling person.',
  returns: { 200: Type.Object({ agent: wire.owned_agent_schema }) },
  async handle({ params, caller }, { sql }) {
    const agent = await store.findOwned(sql, params.id, caller.id);
    if (agent === undefined) return refuse(wire.agents_faults.AGENT_NOT_FOUND);
    return reply(200, { agent: ownedAgentView(agent) });
  },
});

const updateMyAgent = route({
  ...one_of_mine,
  id: 'updateMyAgent',
  method: 'PATCH',
  path: '/api/me/agents/{id}',
  summary: "Show or hide the operator badge of one of the calling person's agents.",
  body: wire.own_agent_body,
  returns: { 200: Type.Object({ agent: wire.owned_agent_schema }) },
  async handle({ params: { id }, body, caller }, { sql }) {
    const owner_id = caller.id;
    await store.showOperator(sql, { id, owner_id, shows: body.shows_operator });
    const agent = await store.findOwned(sql, id, owner_id);
    if (agent === undefined) return refuse(wire.agents_faults.AGENT_NOT_FOUND);
    return reply(200, { agent: ownedAgentView(agent) });
  },
});

/** For owners whose agent has lost or disclosed its key. */
const rotateAgentKey = route({
  ...one_of_mine,
  id: 'rotateAgentKey',
  method: 'POST',
  path: '/api/me/agents/{id}/rotate-key',
  summary: "Get a new key, shown once, for one of the person's agents. The old one stops working.",
  returns: { 200: new_key_schema },
  stores_answer: 'inside',
  async handle(ctx, deps) {
    const { id } = ctx.params;
    const answer = await ctx.write(deps.sql, async (tx) => {
      const is_owned = await store.lockOwned(tx, id, ctx.caller.id);
      const api_key = is_owned ? await replaceAgentKey(tx, id) : undefined;
      if (api_key === undefined) return refuse(wire.agents_faults.AGENT_NOT_FOUND);
      return reply(200, { api_key, message: new_key_message });
    });
    deps.principals.forget(id);
    return answer;
  },
});

const unlinkMyAgent = route({
  ...one_of_mine,
  id: 'unlinkAgent',
  method: 'DELETE',
  path: '/api/me/agents/{id}',
  summary: 'Unlink an agent. It is unverified again and can no longer predict.',
  returns: { 200: link_schema(false) },
  async handle({ params, caller }, deps) {
    const agent = await deps.sql.begin((tx) =>
      unlinkAgent(tx, { id: params.id, owner_id: caller.id, at: deps.clock() }),
    );
    if (agent === undefined) return refuse(wire.agents_faults.AGENT_NOT_FOUND);
    deps.principals.forget(agent.id);
    return linkAnswer(agent, false);
  },
});

export const agent_routes = [
  register,
  me,
  updateMe,
  rotateKey,
  listAgents,
  queryByPost(listAgents, 'queryAgents'),
  agentByName,
  agentProfile,
  myTransactions,
];
export const link_routes = [
  linkMyAgent,
  registerMyAgents,
  listMyAgents,
  getMyAgent,
  updateMyAgent,
  rotateAgentKey,
  unlinkMyAgent,
];
