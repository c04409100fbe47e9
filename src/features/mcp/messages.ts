import { isJSONRPCNotification, isJSONRPCRequest } from '@modelcontextprotocol/server';
import { Type } from '@sinclair/typebox';
import type { Refusals } from '../../http/call.js';
import { parseJson } from '../../http/validation.js';
import { type Fault, faultBody } from '../../kit/fault.js';

/**
 * Checks JSON-RPC 2.0 messages before the SDK gets them, and builds the errors for bad ones.
 * Clients match an answer to its request by `id`, which is null if the request could not be read.
 */

const rpc_codes = {
  parse_error: -32_700,
  invalid_request: -32_600,
  invalid_params: -32_602,
  internal_error: -32_603,
  /** Any error for which the protocol has no code, such as a rate limit. */
  server_error: -32_000,
} as const;

export interface RpcError {
  readonly jsonrpc: '2.0';
  readonly id: string | number | null;
  readonly error: { readonly code: number; readonly message: string; readonly data?: unknown };
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const idOf = (message: unknown): RpcError['id'] => {
  const id = isObject(message) ? message['id'] : null;
  return typeof id === 'string' || typeof id === 'number' ? id : null;
};

const makeError = (
  code: keyof typeof rpc_codes,
  message: string,
  { id = null, data }: { id?: RpcError['id']; data?: unknown } = {},
): RpcError => ({
  jsonrpc: '2.0',
  id,
  error: { code: rpc_codes[code], message, ...(data === undefined ? {} : { data }) },
});

const codeOf = ({ def }: Fault, message: unknown): keyof typeof rpc_codes => {
  if (def.code === 'INVALID_JSON') return 'parse_error';
  if (def.code === 'INTERNAL') return 'internal_error';
  if (def.code === 'BODY_TOO_LARGE') return 'invalid_request';
  if (def.category !== 'validation') return 'server_error';
  return isJSONRPCRequest(message) ? 'invalid_params' : 'invalid_request';
};

/** Refusals of `POST /mcp`. The `data` of the error is the body that the API would return. */
export const rpc_refusals: Refusals = {
  schema: Type.Object({
    jsonrpc: Type.Literal('2.0'),
    id: Type.Union([Type.String(), Type.Number(), Type.Null()]),
    error: Type.Object({ code: Type.Integer(), message: Type.String(), data: Type.Object({}) }),
  }),
  bodyOf: (fault, request_id, message) =>
    makeError(codeOf(fault, message), fault.message, {
      id: idOf(message),
      data: faultBody(fault, request_id),
    }),
};

/** The required text parameter of each method. */
const needed: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'resources/read': 'uri',
  'resources/subscribe': 'uri',
  'resources/unsubscribe': 'uri',
  initialize: 'protocolVersion',
};

type MessageRead = { readonly message: object } | { readonly error: RpcError };

/** Many clients send null if there are no arguments. Some clients send arguments as JSON text. */
const readArguments = (given: unknown): unknown => {
  if (typeof given !== 'string') return given ?? {};
  const parsed = parseJson(Buffer.from(given));
  return parsed.ok ? parsed.value : given;
};

/** Returns the message in the form that the SDK takes, or the error that answers it. */
export const readMessage = (message: unknown): MessageRead => {
  const id = idOf(message);
  if (!isJSONRPCRequest(message)) {
    const is_response = isObject(message) && ('result' in message || 'error' in message);
    if (is_response || isJSONRPCNotification(message)) return { message: message as object };
    const said = 'Send one JSON-RPC 2.0 request with jsonrpc, id and method.';
    return { error: makeError('invalid_request', said, { id }) };
  }
  const { method, params = {} } = message;
  const name = Object.hasOwn(needed, method) ? needed[method] : undefined;
  if (name !== undefined && typeof params[name] !== 'string') {
    return {
      error: makeError('invalid_params', `${method} needs params.${name}, a string.`, { id }),
    };
  }
  if (method !== 'tools/call') return { message };
  const args = readArguments(params['arguments']);
  if (isObject(args)) return { message: { ...message, params: { ...params, arguments: args } } };
  return { error: makeError('invalid_params', 'params.arguments must be an object.', { id }) };
};

/** Reads a message from a line of text. */
export const readLine = (line: Buffer): MessageRead => {
  const parsed = parseJson(line);
  return parsed.ok
    ? readMessage(parsed.value)
    : { error: makeError('parse_error', parsed.problem.replace('The body', 'The line')) };
};

export const lineTooLong = (max_bytes: number): RpcError =>
  makeError('invalid_request', `The line is too long. Send at most ${max_bytes} bytes.`);
