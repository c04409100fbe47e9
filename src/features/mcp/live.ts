import {
  createMcpHandler,
  InMemoryServerEventBus,
  type McpHttpHandler,
} from '@modelcontextprotocol/server';
import type { InnerCall } from '../../http/inner-call.js';
import { type Context, type Reply, type Route, replyStream } from '../../http/route.js';
import { makeMcpServer, questionUri } from './server.js';
import { makeTools } from './tools.js';

/** The handler of the SDK behind `POST /mcp`, and the changes of questions that it tells of. */

interface McpOptions {
  readonly routes: readonly Route[];
  readonly innerCall: InnerCall;
  readonly public_url: () => string;
}

/** What places an event. */
interface About {
  readonly about: { readonly question_id: string | null; readonly audience_id: string | null };
}

const key_as_token = /^bearer (sk_.*)$/i;

/** Of a request of MCP, as the calls of the API take them. */
const credentialsOf = (ctx: Context): Record<string, string> => {
  const [api_key, authorization] = [ctx.header('x-api-key'), ctx.header('authorization')];
  const key = key_as_token.exec(authorization)?.[1];
  if (key !== undefined) return { 'x-api-key': key };
  return {
    ...(api_key === '' ? {} : { 'x-api-key': api_key }),
    ...(authorization === '' ? {} : { authorization }),
  };
};

async function* chunksOf(body: ReadableStream<Uint8Array>, signal: AbortSignal) {
  const reader = body.getReader();
  const end = (): void => void reader.cancel().catch(() => undefined);
  signal.addEventListener('abort', end);
  for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
}

/** Other statuses of the SDK are requests that are not well made. */
const statuses = [200, 202, 400, 404];

const replyOf = async (response: Response): Promise<Reply> => {
  const type = response.headers.get('content-type') ?? '';
  if (type.startsWith('text/event-stream') && response.body !== null) {
    const { body } = response;
    return replyStream(type, { produce: (signal) => chunksOf(body, signal) });
  }
  const status = statuses.includes(response.status) ? response.status : 400;
  const text = await response.text();
  return {
    ...{ kind: 'reply', status, body: text === '' ? undefined : text },
    ...(text === '' ? {} : { content_type: 'application/json' }),
  };
};

const either_type = 'application/json, text/event-stream';
/** What a header of a `Request` may hold, and all that the protocol uses. */
const printable = /^[ -~]+$/;
const passed_headers = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name'];

export const createMcp = ({ routes, innerCall, public_url }: McpOptions) => {
  const tools = makeTools(routes);
  const bus = new InMemoryServerEventBus();
  /** The request that a server is made for: the factory gets what the handler was called with. */
  const contexts = new WeakMap<Request, Context>();
  const handler: McpHttpHandler = createMcpHandler(
    ({ era, requestInfo }) => {
      const ctx = contexts.get(requestInfo as Request) as Context;
      const credentials = credentialsOf(ctx);
      const call = (parts: Parameters<InnerCall>[1]) =>
        innerCall(ctx, { ...parts, headers: { ...parts.headers, ...credentials } });
      return makeMcpServer({ tools, call }, { era });
    },
    { bus },
  );
  return {
    async answer(ctx: Context): Promise<Reply> {
      const headers = new Headers();
      for (const name of passed_headers) {
        const value = ctx.header(name);
        if (printable.test(value)) headers.set(name, value);
      }
      // The protocol wants both named; who names none, or anything, takes either.
      if (/^(?:\*\/\*)?$/.test(ctx.header('accept'))) headers.set('accept', either_type);
      const request = new Request(`${public_url()}/mcp`, { method: 'POST', headers });
      contexts.set(request, ctx);
      return replyOf(await handler.fetch(request, { parsedBody: ctx.body }));
    },
    /** Tells subscribers once for each question of a batch. */
    onEvents(batch: readonly About[]): void {
      if (bus.listenerCount === 0) return;
      const ids = batch.map(({ about }) => (about.audience_id === null ? about.question_id : null));
      for (const id of new Set(ids))
        if (id !== null) handler.notify.resourceUpdated(questionUri(id));
    },
    /** Ends what is open; nothing is opened after it. */
    close: (): Promise<void> => handler.close(),
  };
};

export type Mcp = ReturnType<typeof createMcp>;
