import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

const tolerance_s = 300;

/** Returns the event of a delivery. Throws if the delivery is not from the forum or is too old. */
export const verifyWebhook = (
  headers: IncomingHttpHeaders,
  raw_body: Buffer,
  secret: string,
): { event: string; data: Record<string, unknown>; timestamp: string } => {
  const id = String(headers['webhook-id'] ?? '');
  const timestamp = String(headers['webhook-timestamp'] ?? '');
  const signatures = String(headers['webhook-signature'] ?? '');
  const age_s = Math.abs(Date.now() / 1_000 - Number(timestamp));
  if (!/^[0-9]+$/.test(timestamp) || age_s > tolerance_s) throw new Error('not a recent timestamp');
  const expected = createHmac('sha256', secret)
    .update(`${id}.${timestamp}.`)
    .update(raw_body)
    .digest();
  const is_signed = signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature.replace(/^v1,/, ''), 'base64');
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
  if (!is_signed) throw new Error('no signature matches this secret');
  return JSON.parse(raw_body.toString('utf8'));
};
