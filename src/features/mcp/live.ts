import { setTimeout as pause } from 'node:timers/promises';
import {
  createMcpHandler,
  InMemoryServerEventBus,
  type McpHttpHandler,
} from '@modelcontextprotocol/server';
import { keyInToken } from '../../http/credentials.js';
import type { InnerCall } from '../../http/inner-call.js';
import { type Context, type Reply, type Route, reply, replyStream } from '../../http/route.js';
import { common_faults, type Fault, isFault, refuse } from '../../kit/fault.js';
import type { LogConnection, LogWatch } from '../log/index.js';
import { readMessage } from './messages.js';
import { makeMcpServer, questionUri } from './server.js';
import { makeTools } from './tools.js';

/** Handles `POST /mcp` with the SDK, and notifies subscribers when a question changes. */

interface McpOptions {
  readonly routes: readonly Route[];
  readonly innerCall: InnerCall;
  readonly public_url: () => string;
  readonly connections: Pick<LogWatch['connections'], 'open'>;
}

/** The parts of an event that decide whether to notify subscribers. */
interface About {
  readonly about: { readonly question_id: string | null; readonly audience_id: string | null };
}

/** Returns the credentials of an MCP request as headers for API calls. */
const credentialsOf = (ctx: Context): Record<string, string> => {
  const authorization = ctx.header('authorization');
  const api_key = keyInToken(authorization) ?? ctx.header('x-api-key');
  return api_key === '' ? { authorization } : { 'x-api-key': api_key };
};

/** Maximum number of resources per subscription. Each one is compared with every change. */
const max_followed = 100;

interface Message {
  readonly method?: unknown;
  readonly params?: { readonly notifications?: { readonly resourceSubscriptions?: unknown } };
}

/** A subscription stays open, so it counts like an event stream, and it ends with its key. */
const openConnection = (
  ctx: Context,
  connections: McpOptions['connections'],
): LogConnection | Fault | null => {
  const { method, params } = ctx.body as unknown as Message;
  if (method !== 'subscriptions/listen') return null;
  const followed = params?.notifications?.resourceSubscriptions;
  if (Array.isArray(followed) && followed.length > max_followed) {
    const message = `Subscribe to at most ${max_followed} resources at once.`;
    return refuse(common_faults.INVALID_REQUEST, { message });
  }
  const credentials = credentialsOf(ctx);
  const header = (name: string): string => credentials[name] ?? '';
  return connections.open({ caller: ctx.caller, ip: ctx.ip, header });
};

async function* chunksOf(reader: ReadableStreamDefaultReader<Uint8Array>) {
  for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
}

/** Statuses to pass on. Other statuses of the SDK mean a malformed request, and become 400. */
const statuses = [200, 202, 400, 404, 406];

const replyOf = async (response: Response, connection: LogConnection | null): Promise<Reply> => {
  const type = response.headers.get('content-type') ?? '';
  if (type.startsWith('text/event-stream') && response.body !== null) {
    const reader = response.body.getReader();
    const cancel = (): void => void reader.cancel().catch(() => undefined);
    if (connection !== null) connection.endWait = cancel;
    const onEnd = (): void => {
      cancel();
      connection?.close();
    };
    // Proxies that buffer answers would hold back a stream forever.
    const headers = { 'X-Accel-Buffering': 'no' };
    return replyStream(type, { produce: () => chunksOf(reader), onEnd }, headers);
  }
  connection?.close();
  const status = statuses.includes(response.status) ? response.status : 400;
  const text = await response.text();
  return {
    kind: 'reply',
    status,
    body: text === '' ? undefined : text,
    ...(text === '' ? {} : { content_type: 'application/json' }),
  };
};

const either_type = 'application/json, text/event-stream';
/** Characters that a header of a `Request` may contain. The protocol uses no others. */
const printable = /^[ -~]+$/;
const passed_headers = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name'];

export const createMcp = ({ routes, innerCall, public_url, connections }: McpOptions) => {
  const tools = makeTools(routes);
  const bus = new InMemoryServerEventBus();
  /** The context of each request. The server factory gets only the request that the handler got. */
  const contexts = new WeakMap<Request, Context>();
  const handler: McpHttpHandler = createMcpHandler(
    ({ era, requestInfo }) => {
      const ctx = contexts.get(requestInfo as Request) as Context;
      const credentials = credentialsOf(ctx);
      const call = (parts: Parameters<InnerCall>[1]) =>
        innerCall(ctx, { ...parts, headers: { ...parts.headers, ...credentials } });
      return makeMcpServer({ tools, call }, { era });
    },
    // Subscriptions are limited per caller and per address instead.
    { bus, maxSubscriptions: Number.POSITIVE_INFINITY },
  );
  /** Calls in progress. */
  const calls = new Set<Promise<Response>>();
  let is_closed = false;
  return {
    async answer(ctx: Context): Promise<Reply | Fault> {
      if (is_closed) {
        return refuse(common_faults.UNAVAILABLE, { headers: { 'Retry-After': '1' } });
      }
      const read = readMessage(ctx.body);
      if ('error' in read) return reply(read.error.error.code === -32_600 ? 400 : 200, read.error);
      const connection = openConnection(ctx, connections);
      if (isFault(connection)) return connection;
      const headers = new Headers();
      for (const name of passed_headers) {
        const value = ctx.header(name);
        if (printable.test(value)) headers.set(name, value);
      }
      // The protocol requires the client to name both types. If it sends no type, or `*/*`, it gets
      // either.
      if (/^(?:\*\/\*)?$/.test(ctx.header('accept'))) headers.set('accept', either_type);
      const request = new Request(`${public_url()}/mcp`, { method: 'POST', headers });
      contexts.set(request, ctx);
      const call = handler.fetch(request, { parsedBody: read.message });
      calls.add(call);
      try {
        return await replyOf(await call, connection);
      } finally {
        calls.delete(call);
      }
    },
    /** Notifies subscribers once per question of a batch. */
    onEvents(batch: readonly About[]): void {
      if (bus.listenerCount === 0) return;
      const ids = batch.map(({ about }) => (about.audience_id === null ? about.question_id : null));
      for (const id of new Set(ids))
        if (id !== null) handler.notify.resourceUpdated(questionUri(id));
    },
    /**
     * Refuses new calls, waits up to `longest_ms` for the calls in progress, and ends open
     * subscriptions.
     */
    async close(longest_ms: number): Promise<void> {
      is_closed = true;
      const late = pause(longest_ms, undefined, { ref: false });
      await Promise.race([Promise.allSettled(calls), late]);
      await handler.close();
    },
  };
};

export type Mcp = ReturnType<typeof createMcp>;
