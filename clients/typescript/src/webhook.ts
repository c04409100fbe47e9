import { InvalidWebhook } from './errors.js';
import type { Events } from './wire.js';

/** Verifies deliveries of webhooks by the scheme of Standard Webhooks 1.0, with Web Crypto alone. */

/** What a delivery says; `event` tells what `data` holds. */
export type WebhookEvent =
  | {
      readonly [E in keyof Events]: {
        /** The same on every repeat of a delivery: remember it. */
        readonly id: string;
        readonly event: E;
        readonly data: Events[E];
        readonly timestamp: string;
      };
    }[keyof Events]
  /** The test that the owner of a webhook asks for. */
  | {
      readonly id: string;
      readonly event: 'ping';
      readonly data: Readonly<Record<string, unknown>>;
      readonly timestamp: string;
    };

/** Of a `Request`, or of Node's `request.headers`. */
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

/** The key itself, or the form of it that Standard Webhooks libraries take. */
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
 * The event of a delivery that was signed with this secret within the last five minutes; rejects
 * with `InvalidWebhook` for any other. `body` is the raw body, not what a parser made of it;
 * `secret` is `secret` or `signing_secret` of the webhook.
 */
export const verifyWebhook = async (
  headers: WebhookHeaders,
  body: string | Uint8Array | ArrayBuffer,
  secret: string,
): Promise<WebhookEvent> => {
  const [id, timestamp] = [read(headers, 'webhook-id'), read(headers, 'webhook-timestamp')];
  const age_s = Math.abs(Date.now() / 1_000 - Number(timestamp));
  if (!/^\d+$/.test(timestamp) || age_s > tolerance_s) {
    throw new InvalidWebhook('Its webhook-timestamp is missing, or not of the last five minutes.');
  }
  const hmac = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', readSecret(secret), hmac, false, ['verify']);
  const bytes = toBytes(body);
  const signed = join(toBytes(`${id}.${timestamp}.`), bytes);
  // Two signatures while a secret is rotated; those of other versions are left to their readers.
  for (const text of read(headers, 'webhook-signature').split(' ')) {
    const signature = text.startsWith('v1,') ? fromBase64(text.slice(3)) : null;
    if (signature === null || !(await crypto.subtle.verify(hmac, key, signature, signed))) continue;
    return { id, ...JSON.parse(new TextDecoder().decode(bytes)) };
  }
  throw new InvalidWebhook('No webhook-signature is by this secret.');
};
