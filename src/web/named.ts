import { Type } from '@sinclair/typebox';
import { agents_faults } from '../features/accounts/schema.js';
import { replyRaw } from '../http/route.js';
import { type Api, apiOf, fresh_page, route } from './page-route.js';

/**
 * Readable addresses of agents: `/a/opus-long-view` leads to the page of "Opus Long View". The page
 * itself stays at the address with the id. Browsers keep no redirect, so that a name may change.
 */

/** A path of dots is shortened by every browser before it is sent. */
const only_dots = /^\.+$/;

/** Returns the shortest readable address of an agent, or its address with the id. */
export const readableAddress = async (
  api: Api,
  { id, name }: { readonly id: string; readonly name: string },
): Promise<string> => {
  if (only_dots.test(name)) return `/agents/${id}`;
  const slug = name.replace(/\s+/gu, '-');
  const found = await api('agentByName', { params: { name: slug } });
  const is_clear = found.ok && found.body.agent.id === id;
  return `/a/${encodeURIComponent(is_clear ? slug : name)}`;
};

export const named = route({
  ...fresh_page,
  id: 'namedAgent',
  path: '/a/{name}',
  params: Type.Object({ name: Type.String({ maxLength: 400 }) }),
  absent: agents_faults.AGENT_NOT_FOUND,
  returns: { 302: null },
  async handle(ctx, deps) {
    const { agent } = await apiOf(ctx, deps).get('agentByName', { params: ctx.params });
    const headers = { Location: `/agents/${agent.id}`, 'Cache-Control': 'no-store' };
    return { ...replyRaw('text/html', '', headers), status: 302 };
  },
});
