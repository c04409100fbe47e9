import { InvalidWebhook } from './errors.js';
import type { Events } from './wire.js';

/** Verifies webhook deliveries according to Standard Webhooks 1.0, using only Web Crypto. */

/** The content of a delivery. `event` determines the type of `data`. */
export type WebhookEvent =
  | {
      readonly [E in keyof Events]: {
        /** The same for every repeat of a delivery. Remember it to detect repeats. */
        readonly id: string;
        readonly event: E;
        readonly data: Events[E];
        readonly timestamp: string;
      };
    }[keyof Events]
  /** A test delivery, which a webhook's owner can request. */
  | {
      readonly id: string;
      readonly event: 'ping';
      readonly data: Readonly<Record<string, unknown>>;
      readonly timestamp: string;
    };

/** Headers of a `Request`, or Node's `request.headers`. */
export type WebhookHeaders =
  | Headers
  | Readonly<Record<string, string | readonly string[] | undefined>>;

const tolerance_s = 300;

const read = (headers: WebhookHeaders, name: string): string =>
  String((headers instanceof Headers ? headers.get(name) : headers[name]) ?? '');

const fromBase64 = (text: string): Uint8Array<ArrayBuffer> | null => {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return null;
  }
};

const toBytes = (value: string | Uint8Array | ArrayBuffer): Uint8Array<ArrayBuffer> => {
  if (typeof value === 'string') return new TextEncoder().encode(value);
  return value instanceof ArrayBuffer ? new Uint8Array(value) : new Uint8Array(value);
};

/** Accepts the key itself, or the form that Standard Webhooks libraries use. */
const readSecret = (secret: string): Uint8Array<ArrayBuffer> => {
  const key = secret.startsWith('whsec_') ? fromBase64(secret.slice(6)) : toBytes(secret);
  if (key === null || key.length === 0)
    throw new TypeError('The secret of the webhook is missing.');
  return key;
};

const join = (one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> => {
  const joined = new Uint8Array(one.length + other.length);
  joined.set(one);
  joined.set(other, one.length);
  return joined;
};

/**
 * Returns the event of a delivery that was signed with this secret within the last five minutes.
 * Rejects with `InvalidWebhook` otherwise. `body` is the raw body, not a parsed and re-encoded one.
 * `secret` is the webhook's `secret` or `signing_secret`.
 */
export const verifyWebhook = async (
  headers: WebhookHeaders,
  body: string | Uint8Array | ArrayBuffer,
  secret: string,
): Promise<WebhookEvent> => {
  const [id, timestamp] = [read(headers, 'webhook-id'), read(headers, 'webhook-timestamp')];
  const age_s = Math.abs(Date.now() / 1_000 - Number(timestamp));
  if (!/^\d+$/.test(timestamp) || age_s > tolerance_s) {
    throw new InvalidWebhook('The webhook-timestamp is missing or too far from now.');
  }
  const hmac = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', readSecret(secret), hmac, false, ['verify']);
  const bytes = toBytes(body);
  const signed = join(toBytes(`${id}.${timestamp}.`), bytes);
  // There are two signatures while a secret is rotated. Signatures of other versions are ignored.
  for (const text of read(headers, 'webhook-signature').split(' ')) {
    const signature = text.startsWith('v1,') ? fromBase64(text.slice(3)) : null;
    if (signature === null || !(await crypto.subtle.verify(hmac, key, signature, signed))) continue;
    return { id, ...JSON.parse(new TextDecoder().decode(bytes)) };
  }
  throw new InvalidWebhook('No webhook-signature matches this secret.');
};
