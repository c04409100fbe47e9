import { isIPv4, isIPv6 } from 'node:net';
import { type AddressRules, isPortOpenAt } from './addresses.js';

/**
 * Parses the address of an outbound call. The WHATWG parser reads it once, and from then on only
 * the parts found here are used: attackers get past a check if two parsers disagree.
 */

export type TargetProblemCode = 'invalid_url' | 'https_required' | 'target_refused';

interface TargetProblem {
  readonly kind: 'problem';
  readonly code: TargetProblemCode;
  /** One sentence from a fixed list. It repeats no part of the input. */
  readonly sentence: string;
}

export interface Target {
  readonly kind: 'target';
  /** The normalised address. */
  readonly href: string;
  /** The DNS name in lower case without a trailing dot, or the IP literal without brackets. */
  readonly name: string;
  readonly is_literal: boolean;
  /** True for http, without TLS. */
  readonly is_plain: boolean;
  readonly port: number;
  /** Path and query. */
  readonly path: string;
  /** Value of the Host header. */
  readonly host: string;
}

const longest_bytes = 2_048;

/** Suffixes of private networks, and reserved suffixes. */
const special_suffixes = (
  'localhost localdomain local internal intranet lan home corp home.arpa test invalid example ' +
  'onion svc arpa'
).split(' ');

const problem = (code: TargetProblemCode, sentence: string): TargetProblem => ({
  kind: 'problem',
  code,
  sentence,
});

const problems = {
  not_a_url: problem('invalid_url', 'The URL is not valid.'),
  too_long: problem('invalid_url', 'The URL is longer than 2,048 bytes.'),
  scheme: problem('https_required', 'The URL must begin with https://.'),
  no_scheme: problem('invalid_url', 'The URL must begin with http:// or https://.'),
  userinfo: problem('invalid_url', 'The URL must not contain a user name or password.'),
  fragment: problem('invalid_url', 'The URL must not contain a fragment (#…).'),
  bad_name: problem('invalid_url', 'The host of the URL is not a DNS name.'),
  port: problem('target_refused', 'The port must be 443, 8443, or 10000 or above.'),
  plain_port: problem('target_refused', 'The port must be 80, 8080, or 10000 or above.'),
  own_port: problem('target_refused', 'On this machine the port must be 10000 or above.'),
  literal: problem('target_refused', 'The host must be a DNS name, not an IP address.'),
  single_label: problem('target_refused', 'The host must be a full DNS name with a dot in it.'),
  special: problem('target_refused', 'The host name belongs to a private network.'),
} as const;

const label_pattern = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;

const checkName = (name: string): TargetProblem | null => {
  const labels = name.split('.');
  if (name.length > 253 || !labels.every((label) => label_pattern.test(label))) {
    return problems.bad_name;
  }
  if (special_suffixes.some((suffix) => name === suffix || name.endsWith(`.${suffix}`))) {
    return problems.special;
  }
  return labels.length < 2 ? problems.single_label : null;
};

const isPlain = (url: URL): boolean => url.protocol === 'http:';
const portOf = (url: URL): number => {
  if (url.port !== '') return Number(url.port);
  return isPlain(url) ? 80 : 443;
};
const isPortAllowed = (url: URL): boolean => {
  const port = portOf(url);
  return port >= 10_000 || (isPlain(url) ? [80, 8_080] : [443, 8_443]).includes(port);
};
const isTooLong = (text: string): boolean => Buffer.byteLength(text) > longest_bytes;

const checkShape = (url: URL, allow_plain: boolean): TargetProblem | null => {
  if (url.protocol !== 'https:' && !allow_plain) return problems.scheme;
  if (url.protocol !== 'https:' && !isPlain(url)) return problems.no_scheme;
  if (url.username !== '' || url.password !== '') return problems.userinfo;
  // An empty fragment leaves `hash` empty, but the `#` stays in `href`.
  if (url.href.includes('#')) return problems.fragment;
  if (isPortAllowed(url)) return null;
  return isPlain(url) ? problems.plain_port : problems.port;
};

/**
 * Returns the target that `text` names, or the first rule that it breaks. It does not look up
 * names. If `allow_plain` is true, http is accepted too, for calls that reveal nothing.
 */
export const parseTarget = (
  text: string,
  rules: AddressRules,
  allow_plain = false,
): Target | TargetProblem => {
  if (isTooLong(text)) return problems.too_long;
  if (!URL.canParse(text)) return problems.not_a_url;
  const url = new URL(text);
  const misshapen = checkShape(url, allow_plain);
  if (misshapen !== null) return misshapen;

  const bracketed = url.hostname.startsWith('[');
  const bare = bracketed ? url.hostname.slice(1, -1) : url.hostname.replace(/\.$/, '');
  const is_literal = bracketed ? isIPv6(bare) : isIPv4(bare);
  if (is_literal) {
    if (!rules.isAllowedByName(bare)) return problems.literal;
    if (!isPortOpenAt(bare, portOf(url))) return problems.own_port;
  } else {
    const misnamed = checkName(bare);
    if (misnamed !== null) return misnamed;
    url.hostname = bare;
  }
  if (isTooLong(url.href)) return problems.too_long;
  return {
    kind: 'target',
    href: url.href,
    name: bare,
    is_literal,
    is_plain: isPlain(url),
    port: portOf(url),
    path: url.pathname + url.search,
    host: url.host,
  };
};
