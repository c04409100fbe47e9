import { createHmac, randomBytes } from 'node:crypto';
import { createSealer as createAnySealer, type Sealer } from '../../kit/sealing.js';

/**
 * Secrets, and signatures of a delivery. Both schemes are keyed with the 64 ASCII characters of the
 * hex secret: `webhook-signature` is that of Standard Webhooks 1.0, HMAC-SHA256 over
 * `id.timestamp.body` in base64; the older `<prefix>-Signature` is over the raw body alone, in hex.
 */

/** 64 hexadecimal characters. */
export const makeSecret = (): string => randomBytes(32).toString('hex');

/** The same key in the form that Standard Webhooks libraries take. */
export const standardSecret = (secret: string): string =>
  `whsec_${Buffer.from(secret, 'ascii').toString('base64')}`;

/** Secrets at rest, each bound to the id of its webhook. */
export const createSealer = (secret_key: string): Sealer =>
  createAnySealer(secret_key, 'prediction-forum webhook secrets 1');

export interface Signed {
  /** The hex secret as bytes. */
  readonly key: Uint8Array;
  readonly event_id: string;
  /** Unix seconds of this attempt. */
  readonly timestamp_s: number;
  readonly body: Uint8Array;
}

export const signBody = (key: Uint8Array, body: Uint8Array): string =>
  `sha256=${createHmac('sha256', key).update(body).digest('hex')}`;

export const signStandard = ({ key, event_id, timestamp_s, body }: Signed): string =>
  `v1,${createHmac('sha256', key).update(`${event_id}.${timestamp_s}.`).update(body).digest('base64')}`;

export interface Envelope extends Signed {
  /** The secret before a rotation, while both sign; null otherwise. */
  readonly old_key: Uint8Array | null;
  /** First part of the names of our own headers, such as `X-Svc`. */
  readonly prefix: string;
  readonly event: string;
  readonly delivery_id: string;
  /** 1 for the first. */
  readonly attempt: number;
  /** Place in the log; null for a ping, which is in no log. */
  readonly offset: number | null;
}

/**
 * While a secret is being rotated, the header of our own stays on the old one and a second carries
 * the new; Standard Webhooks receivers are shown both in one header, new then old.
 */
export const makeHeaders = (envelope: Envelope): Record<string, string> => {
  const { prefix, key, old_key, body, offset } = envelope;
  const keys = old_key === null ? [key] : [key, old_key];
  return {
    'Content-Type': 'application/json',
    'User-Agent': 'prediction-forum-webhooks/1',
    'webhook-id': envelope.event_id,
    'webhook-timestamp': String(envelope.timestamp_s),
    'webhook-signature': keys.map((one) => signStandard({ ...envelope, key: one })).join(' '),
    [`${prefix}-Event`]: envelope.event,
    [`${prefix}-Signature`]: signBody(old_key ?? key, body),
    ...(old_key !== null && { [`${prefix}-Signature-Next`]: signBody(key, body) }),
    [`${prefix}-Delivery`]: envelope.delivery_id,
    [`${prefix}-Attempt`]: String(envelope.attempt),
    ...(offset !== null && { [`${prefix}-Offset`]: String(offset) }),
  };
};
