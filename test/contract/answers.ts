import type { FaultDef } from '../../src/kit/fault.js';
import type { Answered } from '../help/app.js';

/** The contract that every answer of the API must meet. */

const members = {
  error: 'string',
  code: 'string',
  status: 'number',
  category: 'string',
  retryable: 'boolean',
  request_id: 'string',
} as const;

const isSentence = (text: string): boolean => text.length <= 2_000 && /^\S.*[.!?]$/s.test(text);

/** Routes for people explain an error on a page. */
const isPage = (headers: Headers, body: unknown): boolean =>
  headers.get('content-type') === 'text/html; charset=utf-8' &&
  headers.get('cache-control') === 'no-store' &&
  typeof body === 'string' &&
  /^<!doctype html>/i.test(body);

/** A Model Context Protocol error. It contains the API's refusal, unless the SDK itself refused. */
const isOfJsonRpc = (body: Answered['body']): boolean =>
  body?.jsonrpc === '2.0' && typeof body.error?.code === 'number';

/** The refusal in an answer. */
export const refusalIn = ({ body }: Pick<Answered, 'body'>): Answered['body'] =>
  isOfJsonRpc(body) ? body.error.data : body;

const problemOfError = (answer: Answered, known: readonly FaultDef[]): string | null => {
  const { status, headers } = answer;
  if (isPage(headers, answer.body)) return null;
  const body = refusalIn(answer);
  if (body === undefined && isOfJsonRpc(answer.body)) return null;
  if (typeof body !== 'object' || body === null) return 'an error without a JSON body';
  for (const [name, type] of Object.entries(members)) {
    if (typeof body[name] !== type) return `${name} is ${JSON.stringify(body[name])}`;
  }
  if (body.status !== status) return `the body says ${body.status}`;
  if (body.request_id !== headers.get('x-request-id')) return 'another request id in the header';
  if (!isSentence(body.error)) return `not a sentence: ${body.error}`;
  if (headers.get('cache-control') !== 'no-store') return 'an error that may be stored';
  for (const field of body.fields ?? []) {
    if (typeof field.path !== 'string' || typeof field.message !== 'string') return 'odd fields';
  }
  const def = known.find((one) => one.code === body.code && one.status === status);
  if (def === undefined) return `${body.code} with ${status} is not among the faults here`;
  if (def.category !== body.category) return `category ${body.category}`;
  return def.retryable === body.retryable ? null : `retryable: ${body.retryable}`;
};

/** `/health` or `/readyz` answers this if a probe took over a second on a busy machine. */
const isProbeLate = ({ status, body }: Answered): boolean =>
  status === 503 && body?.status === 'down' && body.lag_ms !== undefined;

/**
 * Returns the problem with an answer, or null. An answer must not be a 5xx and must have a request
 * id. An error must have the contract's shape and a code that this route may answer.
 */
export const findAnswerProblem = (answer: Answered, known: readonly FaultDef[]): string | null => {
  const { status, headers } = answer;
  if (isProbeLate(answer)) return null;
  if (status >= 500) return `a ${status}: ${JSON.stringify(answer.body)}`;
  if (!/^[A-Za-z0-9._:-]{1,128}$/.test(headers.get('x-request-id') ?? '')) return 'no request id';
  if (headers.get('access-control-allow-origin') !== '*') return 'no CORS header';
  return status >= 400 ? problemOfError(answer, known) : null;
};
