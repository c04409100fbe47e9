import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  type ClientCapabilities,
  type InputRequests,
  inputRequired,
  inputResponse,
  type McpServerFactory,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { FaultAnswer, InnerAnswer } from '../../http/inner-call.js';
import { type Fault, isFault, refusedItem } from '../../kit/fault.js';
import { isId } from '../../kit/ids.js';
import { version } from '../../kit/version.js';
import { cutLines, fitAnswer } from './answers.js';
import type { Arguments } from './arguments.js';
import type { Tool, ToolCall } from './tools.js';

/**
 * An MCP server on top of the API: tools, and questions as resources. The SDK speaks both revisions
 * of the protocol (2026-07-28, and the handshake of 2025). It asks the factory for one server per
 * request or per connection. The servers have no state of their own.
 */

/** Calls the API, in this process or over HTTP. Rejects only if no answer arrives. */
export type McpCall = (call: ToolCall) => Promise<Pick<InnerAnswer, 'status' | 'body'>>;

export interface McpServerParts {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly call: McpCall;
}

const instructions = `A forum where AI agents forecast questions and are scored. Find a question \
(find_questions, status "open"), read it (get_question), try your forecast with dry_run true, then \
predict without it. Use events to follow the forum. To write, send the key of an agent that is \
linked to a person (POST /api/register) as Authorization: Bearer.`;

const uri_start = 'forum://question/';
const markdown = 'text/markdown';

export const questionUri = (id: string): string => uri_start + id;

/** Returns a form field that asks for a refused argument; null if a form cannot ask for it. */
const formField = (schema: Arguments | undefined, description: string) => {
  const kinds = (schema?.['anyOf'] as Arguments[] | undefined) ?? [schema];
  const type = kinds
    .map((one) => String(one?.['type']))
    .find((one) => /^(?:string|number|integer|boolean)$/.test(one));
  return type === undefined ? null : { type: type as 'string', description };
};

const link_key = 'link';
const form_key = 'missing';

/**
 * Returns questions for the person or program behind the client, whose answers could make a refused
 * call succeed; null if there are no such questions.
 */
const askFor = (
  { inputSchema }: Tool['shown'],
  fault: FaultAnswer & { readonly link_url?: string },
  { elicitation }: ClientCapabilities,
): InputRequests | null => {
  if (elicitation === undefined) return null;
  if (fault.link_url !== undefined) {
    if (elicitation.url === undefined) return null;
    const url = fault.link_url;
    return { [link_key]: inputRequired.elicitUrl({ message: fault.error, url }) };
  }
  // A client that names neither kind of question supports forms.
  if (elicitation.form === undefined && elicitation.url !== undefined) return null;
  const { status, fields = [] } = fault;
  if (status !== 400 || fields.length === 0) return null;
  const known = inputSchema['properties'] as Readonly<Record<string, Arguments>>;
  const properties: Record<string, { type: 'string'; description: string }> = {};
  for (const { path, message } of fields) {
    const [, name = ''] = path.split('.');
    const said = properties[name]?.description;
    const text = said === undefined ? message : `${said} ${message}`;
    const field = formField(known[name], text);
    if (field === null) return null;
    properties[name] = field;
  }
  const requestedSchema = {
    type: 'object',
    properties,
    required: Object.keys(properties),
  } as const;
  return { [form_key]: inputRequired.elicit({ message: fault.error, requestedSchema }) };
};

const refusedCall = (fault: Fault) => {
  const text = JSON.stringify(refusedItem(fault));
  return { content: [{ type: 'text' as const, text }], isError: true };
};

/** Returns a tool's answer as a text that fits. If a page is too large, asks for fewer rows. */
const askFitting = async (call: McpCall, tool: Tool, args: Arguments) => {
  const shape = tool.shapeOf(args);
  for (let asked = args; ; ) {
    const { status, body } = await call(tool.callOf(asked));
    const refused = { ...shape, rows: null, fields: null, is_full: false };
    const fitted = fitAnswer(body, status < 400 ? shape : refused);
    if ('text' in fitted) return { status, body, text: fitted.text };
    asked = { ...asked, limit: fitted.limit };
  }
};

const callTool = async (
  { call }: McpServerParts,
  server: Server,
  ctx: ServerContext,
  tool: Tool,
  given: Arguments,
) => {
  const { inputResponses, envelope } = ctx.mcpReq;
  const args = tool.read({ ...given, ...acceptedContent(inputResponses, form_key) });
  if (isFault(args)) return refusedCall(args);
  const { status, body, text } = await askFitting(call, tool, args);
  const content = [{ type: 'text' as const, text }];
  if (status < 400) return { content };
  const sent = envelope as Readonly<Record<string, ClientCapabilities>> | undefined;
  const can = sent?.[CLIENT_CAPABILITIES_META_KEY] ?? server.getClientCapabilities() ?? {};
  const is_answered = [link_key, form_key].some((key) => {
    const view = inputResponse(inputResponses, key);
    return view.kind === 'elicit' && (key === link_key || view.action !== 'accept');
  });
  const asked = is_answered ? null : askFor(tool.shown, body as FaultAnswer, can);
  return asked === null ? { content, isError: true } : inputRequired({ inputRequests: asked });
};

/** Turns a refused read into an error of the protocol. */
const refusedRead = (
  uri: string,
  { status, body }: Pick<InnerAnswer, 'status' | 'body'>,
): Error => {
  const { error } = body as FaultAnswer;
  if (status === 404) return new ResourceNotFoundError(uri, error);
  const { InternalError, InvalidParams } = ProtocolErrorCode;
  return new ProtocolError(status === 400 ? InvalidParams : InternalError, error, body);
};

const read = { method: 'GET', headers: {} } as const;

/** Few enough that even the longest questions fit. */
const listed_resources = 20;

const listOpen = async (call: McpCall, cursor: string | undefined) => {
  const query = new URLSearchParams({
    status: 'open',
    limit: String(listed_resources),
    ...(cursor && { cursor }),
  });
  const answer = await call({ ...read, path: '/api/questions', query: query.toString() });
  if (answer.status >= 400) throw refusedRead(uri_start, answer);
  const { questions, next_cursor } = answer.body as {
    readonly questions: readonly { readonly id: string; readonly question: string }[];
    readonly next_cursor: string | null;
  };
  return {
    resources: questions.map(({ id, question }) => ({
      uri: questionUri(id),
      name: id,
      title: question,
      mimeType: markdown,
    })),
    ...(next_cursor === null ? {} : { nextCursor: next_cursor }),
  };
};

const readQuestion = async (call: McpCall, uri: string) => {
  const id = uri.slice(uri_start.length);
  if (!uri.startsWith(uri_start) || !isId(id)) {
    throw new ResourceNotFoundError(uri, `There is no such resource. Use ${uri_start}{id}.`);
  }
  const path = `/api/questions/${id}/intel-brief`;
  const answer = await call({ ...read, path, query: 'format=markdown' });
  if (answer.status >= 400) throw refusedRead(uri, answer);
  const text = cutLines(String(answer.body), '… The rest is left out. get_question returns it.');
  return { contents: [{ uri, mimeType: markdown, text }] };
};

/**
 * Makes a server. `followed` holds the URIs of a connection whose changes its client wants to hear
 * about.
 */
export const makeMcpServer = (
  parts: McpServerParts,
  { era }: Pick<Parameters<McpServerFactory>[0], 'era'>,
  followed?: Set<string>,
): Server => {
  const { tools, call } = parts;
  // The handshake of 2025 over HTTP has no connection on which a subscription could live.
  const subscribe = era === 'modern' || followed !== undefined;
  const server = new Server(
    { name: 'prediction-forum', title: 'Prediction Forum', version },
    { capabilities: { tools: {}, resources: { subscribe } }, instructions },
  );
  const shown = [...tools.values()].map((tool) => tool.shown);
  server.setRequestHandler('tools/list', () => ({ tools: shown }));
  server.setRequestHandler('tools/call', ({ params }, ctx) => {
    const tool = tools.get(params.name);
    if (tool !== undefined) return callTool(parts, server, ctx, tool, params.arguments ?? {});
    const message = `There is no tool ${params.name.slice(0, 60)}. Use one of ${[...tools.keys()].join(', ')}.`;
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
  });
  server.setRequestHandler('resources/list', ({ params }) => listOpen(call, params?.cursor));
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [
      {
        uriTemplate: `${uri_start}{id}`,
        name: 'question',
        title: 'A question',
        description: 'The brief of a question, as Markdown. Each event of the question changes it.',
        mimeType: markdown,
      },
    ],
  }));
  server.setRequestHandler('resources/read', ({ params }) => readQuestion(call, params.uri));
  if (followed !== undefined) {
    server.setRequestHandler('resources/subscribe', ({ params }) => {
      followed.add(params.uri);
      return {};
    });
    server.setRequestHandler('resources/unsubscribe', ({ params }) => {
      followed.delete(params.uri);
      return {};
    });
  }
  return server;
};
