import { randomBytes } from 'node:crypto';
import type { TSchema } from '@sinclair/typebox';
import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import { Histogram } from 'prom-client';
import type { Fault } from '../kit/fault.js';
import { hasCredential } from '../kit/log.js';
import { isWithin, parseRange } from '../kit/outbound/addresses.js';
import type { BodyStream } from './body.js';

/** A call over HTTP or a socket: types, request id, trace, address, cookies and headers. */

export type Headers = readonly (readonly [name: string, value: string])[];

export interface Outgoing {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string | Uint8Array;
  /** Null if there is no body. */
  readonly content_type: string | null;
}

/** An answer whose body is sent piece by piece. */
export type OutgoingHead = Omit<Outgoing, 'body'>;

export type BodyRead = { readonly value: unknown } | Fault;

/** The form in which a route of another protocol refuses requests. */
export interface Refusals {
  readonly schema: TSchema;
  /** `body` is the request's body, or undefined if the body has not been read. */
  bodyOf(fault: Fault, request_id: string, body: unknown): object;
}

/** A call of a route: an HTTP request, or a frame of a socket. */
export interface Request {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  /** The headers by lower-case name, including the caller's credentials. */
  readonly headers: Readonly<Record<string, string>>;
  readonly address: Address;
  readonly started_ms: number;
  /** The websocket that the call came through. */
  readonly socket?: string;
  /** True if the client went away. */
  readonly aborted: boolean;
  /** True while the body is still on its way. */
  readonly awaits_body: boolean;
  /** The body as it arrived; empty if there is no body. */
  readonly raw_body: Uint8Array | string;
  /** Maximum time for the answer, if it differs from the usual deadline. */
  longest_ms?: number | undefined;
  /** True if a refusal is shown as a page. */
  shows_page?: boolean;
  /** Set if the refusals of the route have the form of another protocol. */
  refusals?: Refusals | undefined;
  /** True while an answer is sent piece by piece. Then there is only a stall limit, no deadline. */
  readonly is_streaming?: boolean;
  header(name: string): string;
  /** Returns the parsed body. Called at most once, and only if the route takes a body. */
  readBody(): BodyRead;
  /** Like `readBody`, for a page, whose body is a form. */
  readForm?(): BodyRead;
  /** True if a page makes this call to render itself. It is not logged; limits ignore reads. */
  readonly is_inner?: boolean;
  /** Sends the one answer. Returns false if it is too late. */
  send(outgoing: Outgoing): boolean;
  /**
   * Calls `listener` once if the client goes away before the answer, or if the deadline passes.
   * There is one listener at a time.
   */
  onGone?(listener: () => void): void;
  /** Calls the listener once the deadline has passed, so that work for this request ends. */
  giveUp?(): void;
  /** Sends a body piece by piece. If this method is missing, only whole answers can be sent. */
  stream?(head: OutgoingHead, body: BodyStream): Promise<void>;
}

const node_id = randomBytes(4).toString('hex');
let request_count = 0;
const sane_id = /^[A-Za-z0-9._:-]{1,128}$/;

/** Returns the client's id if it is well-formed and contains no credential, otherwise a new id. */
export const requestId = (given: string): string => {
  if (given !== '' && sane_id.test(given) && !hasCredential(given)) return given;
  request_count += 1;
  return `${node_id}-${request_count.toString(36)}`;
};

/** Version, trace, span, flags, and anything that a later version adds. */
const trace_form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/;

/**
 * Reads the trace of a request from its `traceparent` (W3C Trace Context), for log lines in
 * OpenTelemetry's terms. The span is the caller's, because this service makes no spans. Returns
 * null if the header is missing or invalid, which is not an error.
 */
export const readTrace = (
  traceparent: string,
): { readonly trace_id: string; readonly span_id: string } | null => {
  const [, version = 'ff', trace_id = '', span_id = '', rest] = trace_form.exec(traceparent) ?? [];
  const is_known = version !== 'ff' && !(version === '00' && rest !== undefined);
  const is_named = !/^0+$/.test(trace_id) && !/^0+$/.test(span_id);
  return is_known && is_named ? { trace_id, span_id } : null;
};

/** The address that a request comes from, and the key under which limits count it. */
export interface Address {
  readonly text: string;
  /** IPv4: the address; IPv6: its /64. */
  readonly limit_key: string;
}

const describe = (address: ipaddr.IPv4 | ipaddr.IPv6): Address => {
  const text = address.toString();
  if (address.kind() === 'ipv4') return { text, limit_key: text };
  const prefix = (address as ipaddr.IPv6).parts.slice(0, 4).map((part) => part.toString(16));
  return { text, limit_key: `${prefix.join(':')}::/64` };
};

/** Reads an address from the text that an `AddressReader` made. */
export const readAddressText = (text: string): Address => describe(ipaddr.process(text));

export type AddressReader = (remote: string, forwarded_for: string) => Address;

/**
 * Reads the raw remote address (the bytes that uWS gives, as latin1) and X-Forwarded-For. Only the
 * part of the header that trusted proxies wrote counts. From the right, the first address that does
 * not belong to a trusted proxy is the client's.
 */
export const makeAddressReader = (trusted_proxies: readonly string[]): AddressReader => {
  const trusted = trusted_proxies.map(parseRange);
  const cache = new LRUCache<string, Address>({ max: 10_000 });
  // A client that is gone has no address.
  const readRemote = (remote: string): ipaddr.IPv4 | ipaddr.IPv6 =>
    remote === ''
      ? ipaddr.parse('::')
      : ipaddr.process(ipaddr.fromByteArray([...Buffer.from(remote, 'latin1')]).toString());

  const read = (remote: string, forwarded_for: string): Address => {
    let address = readRemote(remote);
    if (forwarded_for === '') return describe(address);
    for (const hop of forwarded_for.split(',').reverse()) {
      if (!isWithin(address, trusted)) break;
      const text = hop.trim();
      if (!ipaddr.isValid(text)) break;
      address = ipaddr.process(text);
    }
    return describe(address);
  };

  return (remote, forwarded_for) => {
    const header = trusted.length === 0 ? '' : forwarded_for.slice(-500);
    const key = header === '' ? remote : `${remote} ${header}`;
    const known = cache.get(key);
    if (known !== undefined) return known;
    const address = read(remote, header);
    cache.set(key, address);
    return address;
  };
};

/**
 * Returns true if the text may be the value of a header: only printable ASCII. The engine writes it
 * unchanged: a line break would start another header, and Node 24 garbles other characters.
 */
export const isHeaderText = (value: string): boolean => /^[\t -~]*$/.test(value);

/** Maximum number of headers, and of bytes in them. A request with more gets 431. */
const header_limit = 64;
const header_bytes_limit = 8_192;

export const isTooLarge = (count: number, bytes: number): boolean =>
  count > header_limit || bytes > header_bytes_limit;

/** With https the name starts with `__Host-`, so no other host of the domain can set the cookie. */
export const sessionCookieName = (public_url: string): string =>
  public_url.startsWith('https://') ? '__Host-session' : 'session';

/**
 * Returns the token of a person's session, or an empty string. Only pages use it. If two cookies
 * have this name, somebody else set one of them, so neither counts.
 */
export const readSession = (cookies: string, public_url: string): string => {
  const start = `${sessionCookieName(public_url)}=`;
  const pairs = cookies.split(';').map((pair) => pair.trim());
  const [found, ...others] = pairs.filter((pair) => pair.startsWith(start));
  return found === undefined || others.length > 0 ? '' : found.slice(start.length);
};

/** Covers calls with the usual deadline. Streams and calls that wait for an event are left out. */
export const request_durations = new Histogram({
  name: 'pf_http_request_duration_seconds',
  help: 'Seconds from the arrival of a request to its answer, by class of status.',
  labelNames: ['status'],
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  registers: [],
});
export const exchange_counters = { opened: 0, late: 0, aborted: 0, expired: 0, shed: 0 };

const exposed =
  'X-Request-Id, RateLimit, RateLimit-Policy, Retry-After, Link, ETag, Location, ' +
  'Deprecation, Sunset, Idempotency-Replayed, X-Log-Next, X-Log-Head, X-Log-Oldest, X-Export-Snapshot, ' +
  'X-Export-As-Of, X-Export-Rows, Content-Disposition';

/** The headers of every answer. With `only_https`, browsers use only TLS from then on. */
export const commonHeaders = (only_https: boolean): Headers => [
  ['Access-Control-Allow-Origin', '*'],
  ['Access-Control-Expose-Headers', exposed],
  ['X-Content-Type-Options', 'nosniff'],
  // For one year. Subdomains are left out, because this service knows nothing about them.
  ...(only_https ? [['Strict-Transport-Security', 'max-age=31536000'] as const] : []),
];
