import { domainToASCII } from 'node:url';

/** Pure rules of human accounts: addresses, names, tokens, and how long each token lives. */

const minute_ms = 60_000;
const hour_ms = 60 * minute_ms;
const day_ms = 24 * hour_ms;

export const session_idle_ms = day_ms;
/** `last_used_at` moves at most this often, so that reads do not write all the time. */
export const session_touch_ms = minute_ms;
export const token_life_ms = { session: 30 * day_ms, verify: 2 * day_ms, reset: hour_ms } as const;
export type TokenKind = keyof typeof token_life_ms;
/** A network address where a person was not seen for so long is like any other. */
export const address_life_ms = 180 * day_ms;
/** Mails that anybody can cause to one address within an hour; more are silently left out. */
export const reset_mails_per_hour = 5;

export const password_min = 10;
export const password_max = 1_000;
export const email_max = 254;
export const human_name_max = 80;

const local_pattern = /^[^\s@"(),:;<>[\]\\\p{C}]{1,64}$/u;
const domain_pattern = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/;

export interface Address {
  /** As the person wrote it, trimmed: what mails are sent to. */
  readonly email: string;
  /** The unique form: lower case, the domain in its ASCII form. */
  readonly email_key: string;
}

/** Reads an e-mail address; null when no mail could ever reach it. */
export const readAddress = (text: string): Address | null => {
  const email = text.trim().normalize('NFC');
  const at = email.lastIndexOf('@');
  if (at < 1 || email.length > email_max) return null;
  const local = email.slice(0, at);
  const domain = domainToASCII(email.slice(at + 1));
  if (!local_pattern.test(local) || local.startsWith('.') || local.endsWith('.')) return null;
  if (local.includes('..') || domain.length > 253 || !domain_pattern.test(domain)) return null;
  const email_key = `${local.toLowerCase()}@${domain}`;
  return email_key.length > email_max ? null : { email, email_key };
};

/** A person's name for mails: null without one, undefined when it cannot be one. */
export const readHumanName = (text = ''): string | null | undefined => {
  const name = text.normalize('NFC').trim();
  if (name === '') return null;
  const is_fit = !/[\p{C}\p{Zl}\p{Zp}]/u.test(name) && [...name].length <= human_name_max;
  return is_fit ? name : undefined;
};

/** The same password typed on another keyboard is the same password (NIST SP 800-63B §5.1.1.2). */
export const canonicalPassword = (password: string): string => password.normalize('NFKC');

const token_prefix = { session: 'hs_', verify: 'hv_', reset: 'hr_' } as const;

export const tokenText = (kind: TokenKind, random: Buffer): string =>
  token_prefix[kind] + random.toString('base64url');

/** True for what begins like a session token, as an agent key never does. */
export const looksLikeSession = (text: string): boolean => text.startsWith(token_prefix.session);

/** True for what could be a token of this kind: the prefix and 32 random bytes. */
export const isTokenOf = (kind: TokenKind, text: string): boolean =>
  text.length === 46 &&
  text.startsWith(token_prefix[kind]) &&
  /^[A-Za-z0-9_-]{43}$/.test(text.slice(3));

/** The token of an `Authorization: Bearer …` header; '' when the header is anything else. */
export const bearerToken = (header: string): string =>
  /^bearer +(\S{1,512})$/i.exec(header.trim())?.[1] ?? '';

/** Addresses of ADMIN_EMAILS in the form they are compared in; what is no address is left out. */
export const adminKeys = (emails: readonly string[]): ReadonlySet<string> =>
  new Set(emails.map((email) => readAddress(email)?.email_key ?? '').filter((key) => key !== ''));
