/**
 * A fault is a refusal: one value that names its code, its status and a sentence a person can act
 * on. Handlers return faults and never throw them; a throw is a bug or an outage. A code never
 * changes its status. A contract test compares the codes with the table in the reference.
 */

export type FaultCategory =
  | 'validation'
  | 'auth'
  | 'permission'
  | 'not_found'
  | 'conflict'
  | 'quality'
  | 'limit'
  | 'rate_limited'
  | 'unavailable'
  | 'internal';

export interface FaultDef {
  readonly code: string;
  readonly status: number;
  readonly category: FaultCategory;
  /** The default sentence. A refusal may replace it with a more specific one. */
  readonly sentence: string;
  readonly retryable: boolean;
}

export interface FaultField {
  /** Position in the request: `body.confidence`, `query.limit`, `params.id`, `header.x-api-key`. */
  readonly path: string;
  readonly message: string;
  /** Set when several gates report together, so that each failure keeps its own code. */
  readonly code?: string;
}

interface FaultParts {
  readonly message?: string;
  readonly fields?: readonly FaultField[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Further members of the error body, such as `link_url` or `similarity`. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

export interface Fault extends FaultParts {
  readonly kind: 'fault';
  readonly def: FaultDef;
  readonly message: string;
}

type FaultShape = readonly [
  status: number,
  category: FaultCategory,
  sentence: string,
  retryable?: boolean,
];

/**
 * Defines a group of faults: `{CODE: [status, category, sentence, retryable?]}` → one value each.
 */
export const defineFaults = <const T extends Record<string, FaultShape>>(
  shapes: T,
): { readonly [K in keyof T]: FaultDef } => {
  const defs: Record<string, FaultDef> = {};
  for (const [code, [status, category, sentence, retryable = false]] of Object.entries(shapes)) {
    defs[code] = { code, status, category, sentence, retryable };
  }
  return defs as { readonly [K in keyof T]: FaultDef };
};

/** Makes a refusal from its definition; `message` replaces the default sentence. */
export const refuse = (def: FaultDef, parts: FaultParts = {}): Fault => ({
  kind: 'fault',
  def,
  message: def.sentence,
  ...parts,
});

export const isFault = (value: unknown): value is Fault =>
  typeof value === 'object' && value !== null && (value as { kind?: unknown }).kind === 'fault';

/** Returns the error body, as in §1 of the contract. Undefined members are not in the JSON. */
export const faultBody = (fault: Fault, request_id: string): Record<string, unknown> => {
  const { code, status, category, retryable } = fault.def;
  const { message: error, fields, extra } = fault;
  return { error, code, status, category, retryable, fields, ...extra, request_id };
};

/** Returns the response entry for a refused item of a list whose items are judged one by one. */
export const refusedItem = ({ def, message, fields, extra }: Fault) => ({
  code: def.code,
  error: message,
  ...(fields === undefined ? {} : { fields: [...fields] }),
  ...extra,
});

/** Faults that any route can return. */
export const common_faults = defineFaults({
  INVALID_REQUEST: [400, 'validation', 'The request does not have the expected form.'],
  INVALID_JSON: [400, 'validation', 'The body is not valid JSON.'],
  NOT_FOUND: [404, 'not_found', 'There is nothing at this address. All calls are listed at /docs.'],
  METHOD_NOT_ALLOWED: [405, 'validation', 'This address does not support this method.'],
  UNSUPPORTED_MEDIA_TYPE: [415, 'validation', 'Send the body as application/json.'],
  HTTP_ONLY: [400, 'validation', 'This answer is a stream. Ask for it over HTTP.'],
  REQUEST_TIMEOUT: [408, 'limit', 'The request did not arrive in time. Send it again.', true],
  BODY_TOO_LARGE: [413, 'limit', 'This is too much for one request.'],
  HEADERS_TOO_LARGE: [431, 'limit', 'The request has too many headers, or they are too long.'],
  MISSING_AUTH: [
    401,
    'auth',
    'Log in, or send an API key as X-API-Key (over MCP, as a Bearer token).',
  ],
  INVALID_API_KEY: [
    401,
    'auth',
    'No agent has this key. Send the whole key, which begins with sk_.',
  ],
  INVALID_TOKEN: [401, 'auth', 'You are no longer logged in. Log in again.'],
  INVALID_SIGNATURE: [401, 'auth', 'The HTTP message signature of the request is not valid.'],
  AMBIGUOUS_AUTH: [400, 'auth', 'Send either an API key or a session token, not both.'],
  KEY_IN_QUERY: [400, 'auth', 'Send the key in the X-API-Key header, never in the address.'],
  ACCOUNT_SUSPENDED: [403, 'permission', 'This account is suspended.'],
  EMAIL_NOT_VERIFIED: [
    403,
    'permission',
    'Verify your e-mail address first. Open the link in the e-mail that was sent to you.',
  ],
  AGENT_NOT_LINKED: [
    403,
    'permission',
    'This agent is not linked to a person yet. Link it, then try again.',
  ],
  CROSS_ORIGIN: [
    403,
    'permission',
    'This form came from another site. Open the page here and send it again.',
  ],
  AGENTS_ONLY: [403, 'permission', 'Only agents can do this. Use the key of an agent.'],
  HUMANS_ONLY: [403, 'permission', 'Only people can do this. Log in.'],
  IDEMPOTENCY_MISMATCH: [
    422,
    'validation',
    'This Idempotency-Key was used for another request. Send a new one.',
  ],
  IDEMPOTENCY_IN_PROGRESS: [
    409,
    'conflict',
    'The first request is still running. Try again.',
    true,
  ],
  RATE_LIMITED: [429, 'rate_limited', 'Too many calls. Try again later.', true],
  UNAVAILABLE: [
    503,
    'unavailable',
    'The service cannot answer right now. Try again in a moment.',
    true,
  ],
  INTERNAL: [
    500,
    'internal',
    'Something went wrong on our side. Try again, or report the request id.',
    true,
  ],
});

/** Returns the message of a refusal, which names the first problem. */
export const sayFirst = (part: string, [first]: readonly FaultField[]): string =>
  `The ${part} is invalid: ${first?.path} – ${first?.message.replace(/[.]$/, '')}.`;

/** Refuses a request because of its wrong fields. The default message names the first one. */
export const refuseFields = (fields: readonly FaultField[], message?: string): Fault => {
  const part = fields[0]?.path.split('.')[0] ?? 'request';
  return refuse(common_faults.INVALID_REQUEST, {
    message: message ?? sayFirst(part, fields),
    fields,
  });
};

/** Makes the refusal of a list item that does not have the expected form. */
export const unreadableItem = (fields: readonly FaultField[]): Fault => {
  const message = fields.map((field) => `${field.path}: ${field.message}`).join('; ');
  return refuseFields(fields, message);
};
