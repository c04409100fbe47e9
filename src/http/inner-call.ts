import type { Fault, FaultDef, FaultField } from '../kit/fault.js';
import type { Address, BodyRead, Outgoing } from './call.js';
import type { WholeCall } from './pipeline.js';
import type { Context } from './route.js';

/**
 * A call that a page makes to a route of the same process while it renders. It passes the same
 * steps as every other call (caller, limits, validation, handler), so a page shows exactly the
 * answers of the API. Limits do not count its reads, because the page itself was counted.
 */

interface InnerCallParts {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface InnerAnswer {
  readonly status: number;
  readonly headers: Outgoing['headers'];
  /** If the answer is JSON, the parsed value; otherwise the text. */
  readonly body: unknown;
}

class InnerRequest implements WholeCall {
  readonly is_inner = true;
  readonly started_ms = performance.now();
  readonly aborted = false;
  readonly awaits_body = false;
  ends_credentials = false;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly address: Address;
  readonly raw_body: string;

  constructor(
    readonly ctx: Context,
    readonly parts: InnerCallParts,
    readonly onAnswer: (answer: InnerAnswer) => void,
  ) {
    this.method = parts.method;
    this.path = parts.path;
    this.query = parts.query;
    this.address = ctx.request.address;
    const traceparent = ctx.header('traceparent');
    this.headers = { ...parts.headers, traceparent, 'x-request-id': ctx.request_id };
    this.raw_body = parts.body === undefined ? '' : JSON.stringify(parts.body);
  }

  header(name: string): string {
    return this.headers[name] ?? '';
  }

  readBody(): BodyRead {
    return { value: this.parts.body === undefined ? {} : JSON.parse(this.raw_body) };
  }

  onGone(listener: () => void): void {
    this.ctx.onGone(listener);
  }

  exceeds(): boolean {
    // The size of the body of the page itself was checked before.
    return false;
  }

  send({ status, headers, body, content_type }: Outgoing): boolean {
    const text = typeof body === 'string' ? body : Buffer.from(body).toString('utf8');
    const is_json = content_type === 'application/json' && text !== '';
    this.onAnswer({ status, headers, body: is_json ? JSON.parse(text) : text });
    return true;
  }
}

/** Calls a mounted route. Always resolves: a failure is an answer with its status. */
export type InnerCall = (ctx: Context, parts: InnerCallParts) => Promise<InnerAnswer>;

export const makeInnerCall =
  (call: (request: WholeCall) => void): InnerCall =>
  (ctx, parts) =>
    new Promise((resolve) => {
      call(new InnerRequest(ctx, parts, resolve));
    });

/** The body of a refusal, which has the same form on every route. */
export interface FaultAnswer {
  readonly error: string;
  readonly code: string;
  readonly status: number;
  readonly category: FaultDef['category'];
  readonly retryable: boolean;
  readonly fields?: readonly FaultField[];
  /** Seconds, as in the header `Retry-After`. */
  readonly retry_after?: string;
}

/** Returns the refusal in an answer, with its `Retry-After`. */
export const readFault = ({ body, headers }: InnerAnswer): FaultAnswer => {
  const [, retry_after] = headers.find(([name]) => name === 'Retry-After') ?? [];
  return { ...(body as FaultAnswer), ...(retry_after === undefined ? {} : { retry_after }) };
};

export const retryHeaders = (
  fault: FaultAnswer | null | undefined,
): Readonly<Record<string, string>> =>
  fault?.retry_after === undefined ? {} : { 'Retry-After': fault.retry_after };

/** Turns the refusal of an inner call into a refusal by the page itself. */
export const asFault = (body: FaultAnswer): Fault => {
  const { error: sentence, fields, code, status, category, retryable } = body;
  return {
    kind: 'fault',
    def: { code, status, category, retryable, sentence },
    message: sentence,
    headers: retryHeaders(body),
    ...(fields === undefined ? {} : { fields }),
  };
};
