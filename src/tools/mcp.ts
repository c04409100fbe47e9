import { setTimeout as pause } from 'node:timers/promises';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { tryOnce } from '#client/calls.js';
import { createClient, NoAnswer, Refused } from '#client/node.js';
import { makeTools } from '../features/mcp/index.js';
import { type McpCall, makeMcpServer, questionUri } from '../features/mcp/server.js';
import type { Route } from '../http/route.js';
import { api_routes } from '../routes.js';
import { type Call, checkUrl, runCommand, service_options, startCommand } from './command.js';
import { MessageLines } from './mcp-lines.js';

/**
 * `prediction-forum mcp`: the tools of `POST /mcp` over standard input and output, for clients of
 * the Model Context Protocol that start their servers themselves.
 */

const help = `Usage: prediction-forum mcp [--url URL]

Serves the Model Context Protocol on standard input and output, for a running service. A client that
can connect to an address does not need this command: the address is URL/mcp.

  --url URL   the service (default: the one in this folder, else port 8080 or PORT)

FORUM_KEY has the key of the agent. Without it, everything public can be read.

{"mcpServers": {"forum": {
  "command": "npx", "args": ["prediction-forum", "mcp", "--url", "https://forum.example"],
  "env": {"FORUM_KEY": "sk_…"}}}}`;

/** A tool may wait a minute for an event. */
const answer_ms = 70_000;

const max_wait_ms = 3_000;

const makeCall =
  (base_url: string, api_key: string): McpCall =>
  async ({ method, path, query, body, headers }) => {
    const target = `${path}${query === '' ? '' : `?${query}`}`;
    const request = {
      method,
      url: base_url + target,
      target,
      headers: {
        ...headers,
        ...(api_key === '' ? {} : { 'x-api-key': api_key }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      expects: 'any',
    };
    const answer = await tryOnce(request, { timeout_ms: answer_ms, signal: undefined });
    if (!(answer instanceof NoAnswer)) {
      // The body of a redirect is already a refusal.
      return { ...answer, status: Math.floor(answer.status / 100) === 3 ? 503 : answer.status };
    }
    const said = `${base_url} does not answer: ${answer.message} The call may have taken effect.`;
    return { status: 503, body: { error: said, code: 'NO_ANSWER', status: 503 } };
  };

const serve = async (base_url: string, { stop }: Call): Promise<number> => {
  const tools = makeTools(api_routes as readonly Route[]);
  const call = makeCall(base_url, (process.env['FORUM_KEY'] ?? '').trim());
  const client = createClient({ base_url });
  let onLive = (): void => undefined;
  const live = new Promise<void>((resolve) => {
    onLive = resolve;
  });
  const stream = client.stream({
    topics: ['all'],
    onStatus: ({ status }) => status === 'live' && onLive(),
  });
  const followed = new Set<string>();
  const servers = new Set<ReturnType<typeof makeMcpServer>>();
  let is_old = false;
  const lines = new MessageLines((error) => {
    process.stdout.write(`${JSON.stringify(error)}\n`);
  });
  const transport = new StdioServerTransport(process.stdin.pipe(lines));
  const handle = serveStdio(
    async ({ era }) => {
      // Waits for the stream, so that no event is missed if a client follows a question
      // immediately. Without a service, the tools still work and report the problem.
      await Promise.race([live, pause(max_wait_ms)]);
      is_old = era === 'legacy';
      const server = makeMcpServer({ tools, call }, { era }, followed);
      server.onclose = () => servers.delete(server);
      servers.add(server);
      return server;
    },
    { transport },
  );
  const end = (): void => {
    process.stdin.unpipe(lines).pause();
    void Promise.all([handle.close(), stream.return?.()]);
  };
  // The SDK pauses the input when it ends the connection itself, for example when its output
  // closes.
  for (const event of ['end', 'pause']) lines.once(event, end);
  stop?.addEventListener('abort', end);
  const ended = new Promise((resolve) => {
    for (const event of ['end', 'pause']) lines.once(event, resolve);
  });
  const follow = async (): Promise<void> => {
    for await (const { data } of stream) {
      const { question_id } = data as { readonly question_id?: string };
      if (question_id === undefined) continue;
      const uri = questionUri(question_id);
      // With the newer protocol revision, the SDK manages the subscriptions itself.
      if (is_old && !followed.has(uri)) continue;
      for (const server of servers) await server.sendResourceUpdated({ uri });
    }
  };
  await follow().catch(async (error: unknown) => {
    if (!(error instanceof Refused)) throw error;
    // The tools report the reason, for example a redirected address.
    await ended;
  });
  return 0;
};

export const runMcp = (call: Call): Promise<number> =>
  runCommand(call, {
    help,
    options: service_options,
    work: ({ url }) => serve(checkUrl(url), call),
  });

await startCommand(import.meta.filename, runMcp, true);
