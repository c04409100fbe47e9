import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { isSignatureError, verifySignature } from 'http-message-sig';
import { isInnerList, parseDictionary, parseItem } from 'structured-headers';

/**
 * Rules for requests signed with RFC 9421 as in the Web Bot Auth drafts: which signatures name an
 * operator, and whether they are valid. `Signature-Agent` names the operator by the origin of its
 * key directory, as a string or as the dictionary member that the signature covers.
 */

export const signature_tag = 'web-bot-auth';
export const directory_path = '/.well-known/http-message-signatures-directory';
export const directory_type = 'application/http-message-signatures-directory+json';

export interface SignedRequest {
  readonly method: string;
  /** Public URL of the request, with its query. */
  readonly url: string;
  /** Keyed by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | string;
}

export interface SignatureClaim {
  /** Name of the signature in `Signature-Input` and `Signature`. */
  readonly label: string;
  readonly origin: string;
  readonly keyid: string;
  /** Headers that the signature covers. */
  readonly fields: readonly string[];
}

/** Returns the origin of an https URL whose path is empty or is the directory's, else null. */
const originOf = (text: unknown): string | null => {
  if (typeof text !== 'string' || text.length > 200 || !URL.canParse(text)) return null;
  const { protocol, pathname, origin, search, hash, username } = new URL(text);
  const is_bare = ['/', directory_path].includes(pathname) && `${search}${hash}${username}` === '';
  return protocol === 'https:' && is_bare ? origin : null;
};

const read = <T>(parse: () => T): T | null => {
  try {
    return parse();
  } catch {
    return null;
  }
};

/** Returns the origin that `Signature-Agent` names, as a string or under this dictionary key. */
const readAgent = (header: string, key: unknown): string | null =>
  originOf(
    read(() =>
      typeof key === 'string' ? parseDictionary(header).get(key)?.[0] : parseItem(header)[0],
    ),
  );

/**
 * Finds the signature that can prove who operates the agent. It must cover `@authority`, so that a
 * signature for another site is useless here. It must cover `signature-agent` and all headers that
 * may carry the agent's key, so that another agent cannot use it. Returns null if no signature
 * covers all of this, which is not an error.
 */
export const findClaim = (headers: SignedRequest['headers']): SignatureClaim | null => {
  const { 'signature-input': input = '', 'signature-agent': agent = '' } = headers;
  if (input === '' || agent === '') return null;
  const key_headers = ['x-api-key', 'authorization'].filter((name) => headers[name] !== undefined);
  for (const [label, member] of read(() => parseDictionary(input)) ?? []) {
    if (!isInnerList(member)) continue;
    const [items, parameters] = member;
    const keyid = parameters.get('keyid');
    const is_whole =
      parameters.get('tag') === signature_tag &&
      ['created', 'expires'].every((name) => typeof parameters.get(name) === 'number') &&
      ['@authority', ...key_headers].every((name) =>
        items.some(([covered, of_item]) => covered === name && of_item.size === 0),
      );
    const named = items.find(([name]) => name === 'signature-agent');
    const origin = named === undefined ? null : readAgent(agent, named[1].get('key'));
    if (!is_whole || origin === null || typeof keyid !== 'string') continue;
    const fields = items.map(([name]) => String(name)).filter((name) => !name.startsWith('@'));
    return { label, origin, keyid, fields };
  }
  return null;
};

/** Maximum age of a signature since `created`, and the tolerated clock skew. */
const longest_s = 86_400;
const skew_s = 60;

const digests = new Map([
  ['sha-256', 'sha256'],
  ['sha-512', 'sha512'],
]);

/** True if `Content-Digest` (RFC 9530) has known digests and the body matches all of them. */
const isDigestRight = (field: string, body: SignedRequest['body']): boolean => {
  const given = read(() => [...parseDictionary(field)]) ?? [];
  const known = given.filter(([name]) => digests.has(name));
  const isRight = ([name, [value]]: (typeof known)[number]): boolean =>
    value instanceof ArrayBuffer &&
    createHash(digests.get(name) ?? '')
      .update(body)
      .digest()
      .equals(new Uint8Array(value));
  return known.length > 0 && known.every(isRight);
};

/** Returns null if the signature is valid, else a sentence that states the problem. */
export const findProblem = async (
  { method, url, headers, body }: SignedRequest,
  { label, fields }: SignatureClaim,
  { key, now_s }: { readonly key: KeyObject; readonly now_s: number },
): Promise<string | null> => {
  const names = new Set([...fields, 'signature', 'signature-input']);
  const sent = [...names].flatMap((name) => {
    const value = headers[name];
    return value === undefined ? [] : [{ name, value }];
  });
  const policy = {
    algorithms: ['ed25519'],
    requiredComponents: [],
    requiredParameters: ['created'],
    maxAge: longest_s,
    clockSkew: skew_s,
    now: now_s,
  };
  const verifier = {
    algorithm: 'ed25519',
    verify: (signed: Uint8Array, signature: Uint8Array) => verify(null, signed, key, signature),
  };
  try {
    await verifySignature(
      { kind: 'request', method, targetUri: url, fields: sent },
      { label, policy, resolveVerifier: () => verifier },
    );
  } catch (error) {
    return isSignatureError(error) ? `${error.message}.` : 'The signature cannot be read.';
  }
  if (!fields.includes('content-digest')) return null;
  const is_right = isDigestRight(headers['content-digest'] ?? '', body);
  return is_right ? null : 'Content-Digest does not match the body.';
};

interface PublishedKey {
  readonly key: KeyObject;
  /** The key is valid from `nbf_s` until `exp_s`, in Unix seconds. */
  readonly nbf_s: number;
  readonly exp_s: number;
}

/** Keyed by thumbprint. */
export type Keys = ReadonlyMap<string, PublishedKey>;

/** Returns the key if it is valid at this time. The age of the directory does not matter. */
export const validKey = (keys: Keys, keyid: string, now_s: number): KeyObject | undefined => {
  const found = keys.get(keyid);
  return found !== undefined && found.nbf_s <= now_s && now_s < found.exp_s ? found.key : undefined;
};

const max_keys = 32;

/** Returns the key's thumbprint (RFC 7638, RFC 8037), which signatures use as `keyid`. */
export const thumbprintOf = (x: string): string =>
  createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url');

/** Returns the directory's unexpired Ed25519 keys, or null if the text is not a directory. */
export const readKeys = (text: string, now_s: number): Keys | null => {
  const listed = read(() => (JSON.parse(text) as { keys?: unknown } | null)?.keys);
  if (!Array.isArray(listed)) return null;
  const keys = new Map<string, PublishedKey>();
  for (const one of listed.slice(0, max_keys) as (Record<string, unknown> | null)[]) {
    const { kty, crv, x, nbf, exp } = one ?? {};
    if (kty !== 'OKP' || crv !== 'Ed25519' || typeof x !== 'string') continue;
    const nbf_s = typeof nbf === 'number' ? nbf : 0;
    const exp_s = typeof exp === 'number' ? exp : Number.POSITIVE_INFINITY;
    if (exp_s <= now_s) continue;
    const key = read(() => createPublicKey({ key: { kty, crv, x }, format: 'jwk' }));
    if (key !== null) keys.set(thumbprintOf(x), { key, nbf_s, exp_s });
  }
  return keys;
};
