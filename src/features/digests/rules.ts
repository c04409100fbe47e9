import { createHmac, timingSafeEqual } from 'node:crypto';
import { deriveKey } from '../../kit/sealing.js';
import type { DigestChoice } from './schema.js';

/** Rules for digests: when they are due, and the links that end them. */

const day_ms = 86_400_000;
/** Digests are made at this hour, in UTC. */
const digest_hour = 7;
const monday = 1;

/** Returns when the next digest is due: each day, or each Monday. Null if digests are off. */
export const nextDigestAt = (choice: DigestChoice, now: Date): Date | null => {
  if (choice === 'off') return null;
  const today = new Date(now);
  today.setUTCHours(digest_hour, 0, 0, 0);
  const candidates = Array.from({ length: 8 }, (_, n) => new Date(today.getTime() + n * day_ms));
  const isDay = (at: Date): boolean => choice === 'daily' || at.getUTCDay() === monday;
  return candidates.find((at) => at > now && isDay(at)) ?? null;
};

/** The lists of e-mails that a link can end. */
export const mail_lists = ['digest', 'alerts'] as const;
export type MailList = (typeof mail_lists)[number];

const mac_bytes = 16;

/** Makes and reads the tokens of unsubscribe links. They never run out and need no row. */
export const createUnsubscribeTokens = (secret_key: string) => {
  const key = deriveKey(secret_key, 'prediction-forum unsubscribe 1');
  const macOf = (bytes: Buffer): Buffer =>
    createHmac('sha256', key).update(bytes).digest().subarray(0, mac_bytes);
  return {
    make(human_id: string, list: MailList): string {
      const id = Buffer.from(human_id.replaceAll('-', ''), 'hex');
      const bytes = Buffer.concat([id, Buffer.of(mail_lists.indexOf(list))]);
      return Buffer.concat([bytes, macOf(bytes)]).toString('base64url');
    },
    /** Returns null if the token was not made with this key. */
    read(token: string): { readonly human_id: string; readonly list: MailList } | null {
      const whole = Buffer.from(token, 'base64url');
      const bytes = whole.subarray(0, 17);
      const mac = whole.subarray(17);
      if (mac.length !== mac_bytes || !timingSafeEqual(mac, macOf(bytes))) return null;
      const hex = bytes.subarray(0, 16).toString('hex');
      const human_id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
      const list = mail_lists[bytes[16] ?? 0];
      return list === undefined ? null : { human_id, list };
    },
  };
};
export type UnsubscribeTokens = ReturnType<typeof createUnsubscribeTokens>;
