import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport,
} from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Test } from 'tap';

/** Clients of the standard SDKs: one for the 2026 revision, one with the handshake of 2025. */

export interface ToolResult {
  readonly isError?: boolean;
  readonly content: readonly { readonly text?: string }[];
  /** The parsed text of the result. Missing if the call was refused. */
  // biome-ignore lint/suspicious/noExplicitAny: an answer is read by tests that know its shape.
  readonly answer?: any;
}

export const readResult = (given: unknown): ToolResult => {
  const result = given as ToolResult;
  if (result.isError === true) return result;
  return { ...result, answer: JSON.parse(result.content[0]?.text ?? 'null') };
};

export type CallTool = (name: string, args?: Record<string, unknown>) => Promise<ToolResult>;

const info = { name: 'test', version: '1.0.0' };

const optionsOf = (key: string | null) =>
  key === null ? {} : { requestInit: { headers: { authorization: `Bearer ${key}` } } };

export const openModern = async (t: Test, url: string, key: string | null, capabilities = {}) => {
  const client = new ModernClient(info, { capabilities, versionNegotiation: { mode: 'auto' } });
  const connect = () => client.connect(new ModernTransport(new URL(`${url}/mcp`), optionsOf(key)));
  t.teardown(() => client.close());
  const callTool: CallTool = async (name, args = {}) =>
    readResult(await client.callTool({ name, arguments: args }));
  return { client, connect, callTool };
};

export const openOld = async (t: Test, url: string, key: string | null) => {
  const client = new OldClient(info, { capabilities: {} });
  const transport = new OldTransport(new URL(`${url}/mcp`), optionsOf(key));
  const connect = () => client.connect(transport as Parameters<OldClient['connect']>[0]);
  t.teardown(() => client.close());
  const callTool: CallTool = async (name, args = {}) =>
    readResult(await client.callTool({ name, arguments: args }));
  return { client, connect, callTool };
};
