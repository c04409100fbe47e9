import { Type } from '@sinclair/typebox';
import { routeFor } from '../../http/route.js';
import { judgedAlone } from '../../http/schemas.js';
import { ws_faults } from '../../socket/frames.js';
import { wait_most_s } from '../log/schema.js';
import type { Mcp } from './live.js';
import { rpc_refusals } from './messages.js';

export interface McpParts {
  readonly mcp: Mcp;
}

const route = routeFor<McpParts>();

const message = Type.Object({}, { description: 'A JSON-RPC 2.0 message.' });

export const routes = [
  route({
    id: 'mcp',
    method: 'POST',
    path: '/mcp',
    summary: 'The Model Context Protocol: tools and resources on top of this API',
    tag: 'mcp',
    auth: 'public',
    takes_key_as_token: true,
    body: judgedAlone(message),
    returns: { 200: message, 202: null, 400: message, 404: message, 406: message },
    also_produces: ['text/event-stream'],
    faults: [ws_faults.TOO_MANY_CONNECTIONS],
    refusals: rpc_refusals,
    is_endless: true,
    waits: true,
    // A tool may wait for an event.
    longest_ms: (wait_most_s + 15) * 1_000,
    handle: (ctx, { mcp }) => mcp.answer(ctx),
  }),
];
