import { Type } from '@sinclair/typebox';
import { uuid_schema } from '../../http/openapi.js';
import { page_query, pageSchema, replyPage } from '../../http/page.js';
import { reply, routeFor } from '../../http/route.js';
import { common_faults, isFault, refuse } from '../../kit/fault.js';
import { ownedAgentView } from './agent-routes.js';
import { agents_faults, link_key_refused, owned_agent_schema } from './agent-schema.js';
import { type AgentRow, countOwned, readOwned } from './agent-store.js';
import type { AccountDeps } from './auth-routes.js';
import type { Principals } from './principals.js';
import { linkAgent, unlinkAgent } from './registration.js';

const route = routeFor<AccountDeps & { readonly principals: Principals }>();
const tag = 'humans';
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
  tag,
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
  tag,
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
  tag,
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

export const linking_routes = [linkMyAgent, listMyAgents, unlinkMyAgent];
