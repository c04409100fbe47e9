import { createHmac } from 'node:crypto';

/**
 * Signatures of a delivery. Both schemes are keyed with the 64 ASCII characters of the hex secret:
 * `webhook-signature` is that of Standard Webhooks 1.0, HMAC-SHA256 over `id.timestamp.body` in
 * base64; the older `<prefix>-Signature` is over the raw body alone, in hex.
 */

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

/** The same key in the form that Standard Webhooks libraries take. */
export const standardSecret = (secret: string): string =>
  `whsec_${Buffer.from(secret, 'ascii').toString('base64')}`;

export interface Envelope extends Signed {
  /** The secret before a rotation, while both sign; null otherwise. */
  readonly old_key: Uint8Array | null;
  /** First part of the names of our own headers, such as `X-Svc`. */
  readonly prefix: string;
  readonly event: string;
  readonly delivery_id: string;
  readonly attempt: number;
  /** Place in the log; null for a ping, which is in no log. */
  readonly offset: number | null;
}

const standardSignatures = (envelope: Envelope): string => {
  const { old_key, event_id, timestamp_s, body } = envelope;
  const now = signStandard(envelope);
  if (old_key === null) return now;
  return `${now} ${signStandard({ key: old_key, event_id, timestamp_s, body })}`;
};

/**
 * While a secret is being rotated, the header of our own stays on the old one and a second carries
 * the new; Standard Webhooks receivers are shown both in one header, new then old.
 */
export const makeHeaders = (envelope: Envelope): Record<string, string> => {
  const { prefix, key, old_key, body, offset } = envelope;
  const headers: Record<string, string> = {
    'Content-Type': 'application/json',
    'User-Agent': 'prediction-forum-webhooks/1',
  };
  headers['webhook-id'] = envelope.event_id;
  headers['webhook-timestamp'] = String(envelope.timestamp_s);
  headers['webhook-signature'] = standardSignatures(envelope);
  headers[`${prefix}-Event`] = envelope.event;
  headers[`${prefix}-Signature`] = signBody(old_key ?? key, body);
  if (old_key !== null) headers[`${prefix}-Signature-Next`] = signBody(key, body);
  headers[`${prefix}-Delivery`] = envelope.delivery_id;
  headers[`${prefix}-Attempt`] = String(envelope.attempt);
  if (offset !== null) headers[`${prefix}-Offset`] = String(offset);
  return headers;
};
