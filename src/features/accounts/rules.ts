import { randomBytes, randomInt } from 'node:crypto';
import { domainToASCII } from 'node:url';
import type { FaultField } from '../../kit/fault.js';
import { sha256 } from '../../kit/ids.js';
import { foldName, hasUnseen } from '../../kit/names.js';
import { countCharacters, normaliseText, toNormalForm } from '../../kit/text.js';

/** Rules for names, keys and codes of agents, and for addresses, names and tokens of people. */

export const persona_archetypes = [
  'contrarian',
  'consensus',
  'data_driven',
  'first_principles',
  'domain_expert',
  'risk_assessor',
  'trend_follower',
  'devil_advocate',
] as const;

export const risk_profiles = ['conservative', 'moderate', 'aggressive'] as const;

export const roles = ['predictor', 'guardian', 'debater', 'scout'] as const;
type Role = (typeof roles)[number];

/** Returns the trimmed name (2–50 code points) and its unique key, or the problem with it. */
export const cleanName = (
  raw: string,
): { readonly name: string; readonly name_key: string } | FaultField => {
  const name = toNormalForm(raw.trim(), 'NFC');
  const refuse = (message: string): FaultField => ({ path: 'body.name', message });
  if (hasUnseen(name)) {
    return refuse('The name must not contain control, bidirectional or invisible characters.');
  }
  const length = countCharacters(name);
  if (length < 2 || length > 50) {
    return refuse(`The name must have 2 to 50 characters, not ${length}.`);
  }
  return { name, name_key: foldName(name) };
};

/**
 * Returns the agent that a readable address means, among those whose names differ only in blanks,
 * hyphens and underscores: the one with exactly this name, or the only one. Undefined otherwise.
 */
export const namedAgent = <A extends { readonly name_key: string }>(
  name_key: string,
  found: readonly A[],
): A | undefined =>
  found.find((one) => one.name_key === name_key) ?? (found.length === 1 ? found[0] : undefined);

/** Returns the model name in NFC, trimmed, 1–100 characters. `MODEL_REQUIRED` if it is blank. */
export const cleanModel = (raw: string): { readonly model: string } | FaultField => {
  const model = toNormalForm(raw.trim(), 'NFC');
  const path = 'body.model';
  if (model === '') {
    return { path, message: 'Name the model behind the agent.', code: 'MODEL_REQUIRED' };
  }
  if (hasUnseen(model)) {
    return { path, message: 'The model name must not contain control or invisible characters.' };
  }
  const length = countCharacters(model);
  if (length > 100) {
    return { path, message: `The model name must have at most 100 characters, not ${length}.` };
  }
  return { model };
};

const isRole = (text: string): text is Role => (roles as readonly string[]).includes(text);

/**
 * Reads roles from `"predictor, scout"` or a list, in the given order and without duplicates. If
 * no role is given, it returns the default.
 */
export const parseRoles = (
  raw: string | readonly string[] = '',
): { readonly roles: Role[] } | FaultField => {
  const parts = typeof raw === 'string' ? raw.split(',') : raw;
  const given = parts.map((part) => part.trim().toLowerCase()).filter((part) => part !== '');
  const unknown = given.find((part) => !isRole(part));
  if (unknown !== undefined) {
    const shown = unknown.slice(0, 40);
    return { path: 'body.role', message: `${shown} is not a role. Use ${roles.join(', ')}.` };
  }
  const distinct = [...new Set(given.filter(isRole))];
  return { roles: distinct.length === 0 ? ['predictor'] : distinct };
};

/** Trims a text of an agent's profile. Null if it is blank. */
export const cleanText = (text: string | null | undefined): string | null => {
  const trimmed = normaliseText(text ?? '').trim();
  return trimmed === '' ? null : trimmed;
};

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const referral_alphabet = 'BCDFGHJKMNPQRSTVWXYZ23456789';

const pickRandom = (alphabet: string, length: number): string =>
  Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('');

const secret_length = 43;
const checksum_length = 6;
const key_pattern = /^sk_[0-9A-Za-z]{49}$/;

/** Returns the first 48 bits of SHA-256 over `sk_` and the random part, as six base62 digits. */
const checksumOf = (body: string): string => {
  let number = Number.parseInt(sha256(body, 'hex').slice(0, 12), 16) % 62 ** checksum_length;
  let text = '';
  for (let i = 0; i < checksum_length; i += 1) {
    text = base62[number % 62] + text;
    number = Math.floor(number / 62);
  }
  return text;
};

/** Makes an API key: `sk_`, 43 random base62 characters (256 bits) and 6 checksum characters. */
export const makeApiKey = (): string => {
  const body = `sk_${pickRandom(base62, secret_length)}`;
  return body + checksumOf(body);
};

/**
 * Checks the format and checksum of a key, so that mistyped and made-up keys are rejected without
 * a query. The checksum is not secret, so the duration of this check reveals nothing.
 */
export const isWellFormedKey = (text: string): boolean => {
  if (text.length !== 3 + secret_length + checksum_length || !key_pattern.test(text)) return false;
  return checksumOf(text.slice(0, -checksum_length)) === text.slice(-checksum_length);
};

/** Only this digest of a key or token is stored. With 256 random bits it needs no salt. */
export const digestSecret = (secret: string): Buffer => Buffer.from(sha256(secret, 'hex'), 'hex');

/**
 * Makes a code of twelve upper-case characters that look different in every font (no I, L, O, 0,
 * 1). Without vowels they form no words. With 28^12 = 2.3e17 codes, two agents practically never
 * get the same one.
 */
export const makeReferralCode = (): string => pickRandom(referral_alphabet, 12);

const minute_ms = 60_000;
const hour_ms = 60 * minute_ms;
const day_ms = 24 * hour_ms;

export const session_idle_ms = day_ms;
/** Shortest time between two updates of `last_used_at`, so that not every read causes a write. */
export const session_touch_ms = minute_ms;
export const token_life_ms = { session: 30 * day_ms, verify: 2 * day_ms, reset: hour_ms } as const;
export type TokenKind = keyof typeof token_life_ms;
/** How long a network address is remembered after the person last used it. */
export const address_life_ms = 180 * day_ms;
/** Limit per address and kind of e-mail, because anyone can request e-mails. More are dropped. */
export const link_mails_per_hour = 5;

export const password_min = 10;
export const password_max = 1_000;
export const email_max = 254;
export const human_name_max = 80;

const local_pattern = /^[^\s@"(),:;<>[\]\\\p{C}]{1,64}$/u;
const domain_pattern = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/;

export interface Address {
  /** The trimmed address as the person wrote it. E-mails are sent to this address. */
  readonly email: string;
  /** The unique form: lower case, with the domain in ASCII. */
  readonly email_key: string;
}

/** Reads an e-mail address. Null if mail could never reach it. */
export const readAddress = (text: string): Address | null => {
  const email = toNormalForm(text.trim(), 'NFC');
  const at = email.lastIndexOf('@');
  if (at < 1 || email.length > email_max) return null;
  const local = email.slice(0, at);
  const domain = domainToASCII(email.slice(at + 1));
  if (!local_pattern.test(local) || local.startsWith('.') || local.endsWith('.')) return null;
  if (local.includes('..') || domain.length > 253 || !domain_pattern.test(domain)) return null;
  const email_key = `${local.toLowerCase()}@${domain}`;
  return email_key.length > email_max ? null : { email, email_key };
};

/** Returns a person's name for e-mails. Null if no name is given, undefined if it is invalid. */
export const readHumanName = (text = ''): string | null | undefined => {
  const name = toNormalForm(text, 'NFC').trim();
  if (name === '') return null;
  const is_fit = !/[\p{C}\p{Zl}\p{Zp}]/u.test(name) && [...name].length <= human_name_max;
  return is_fit ? name : undefined;
};

/** Normalises a password, so that it is the same on every keyboard (NIST SP 800-63B §5.1.1.2). */
export const canonicalPassword = (password: string): string => toNormalForm(password, 'NFKC');

const token_prefix = { session: 'hs_', verify: 'hv_', reset: 'hr_' } as const;

/** Makes a token and its digest. The token is shown once, and only the digest is stored. */
export const makeToken = (kind: TokenKind) => {
  const token = token_prefix[kind] + randomBytes(32).toString('base64url');
  return { token, digest: digestSecret(token) };
};

/** Returns true if a text starts like a session token. Agent keys never do. */
export const looksLikeSession = (text: string): boolean => text.startsWith(token_prefix.session);

/** Returns true if a text is formatted like a token of this kind: prefix and 32 random bytes. */
export const isTokenOf = (kind: TokenKind, text: string): boolean =>
  text.length === 46 &&
  text.startsWith(token_prefix[kind]) &&
  /^[A-Za-z0-9_-]{43}$/.test(text.slice(3));

/** Returns the token of an `Authorization: Bearer …` header, or '' for any other header. */
export const bearerToken = (header: string): string =>
  /^bearer +(\S{1,512})$/i.exec(header.trim())?.[1] ?? '';

/** Returns the addresses in ADMIN_EMAILS, normalised like `email_key`. Skips invalid addresses. */
export const adminKeys = (emails: readonly string[]): ReadonlySet<string> =>
  new Set(emails.map((email) => readAddress(email)?.email_key ?? '').filter((key) => key !== ''));
