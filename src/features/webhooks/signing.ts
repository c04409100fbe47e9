import { createHmac, randomBytes } from 'node:crypto';
import type { Config } from '../../config.js';
import {
  type ClientOptions,
  createGuardedClient,
  isRefusal,
  type Outcome,
  outboundOptions,
} from '../../kit/outbound/client.js';
import type { CallErrorCode } from '../../kit/outbound/connection.js';
import { createSealer as createAnySealer, type Sealer } from '../../kit/sealing.js';
import { createHttpSigner } from './http-signing.js';
import type { SignatureScheme } from './schema.js';

/**
 * Secrets, signatures and signed calls, shared by the routes and the signer. Both HMAC schemes use
 * the 64 ASCII characters of the hex secret as their key. `webhook-signature` follows Standard
 * Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`, in base64. The older `<prefix>-Signature`
 * covers only the raw body, in hex. A webhook may also have a signature by RFC 9421.
 */

/** Returns 64 random hexadecimal characters. */
export const makeSecret = (): string => randomBytes(32).toString('hex');

/** Returns the same key in the form that Standard Webhooks libraries take. */
export const standardSecret = (secret: string): string =>
  `whsec_${Buffer.from(secret, 'ascii').toString('base64')}`;

/** Creates the sealer for stored secrets. Each one is bound to the id of its webhook. */
export const createSealer = (secret_key: string): Sealer =>
  createAnySealer(secret_key, 'prediction-forum webhook secrets 1');

export interface Signed {
  /** The characters of the hex secret as bytes. */
  readonly key: Uint8Array;
  readonly event_id: string;
  /** Unix time of this attempt. */
  readonly timestamp_s: number;
  readonly body: Uint8Array;
}

export const signBody = (key: Uint8Array, body: Uint8Array): string =>
  `sha256=${createHmac('sha256', key).update(body).digest('hex')}`;

export const signStandard = ({ key, event_id, timestamp_s, body }: Signed): string =>
  `v1,${createHmac('sha256', key).update(`${event_id}.${timestamp_s}.`).update(body).digest('base64')}`;

interface Envelope extends Signed {
  /** Replaced keys that still sign, oldest first. */
  readonly old_keys: readonly Uint8Array[];
  /** First part of the names of our own headers, such as `X-Svc`. */
  readonly prefix: string;
  readonly event: string;
  readonly delivery_id: string;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** Offset in the log; null for a ping, which is not in the log. */
  readonly offset: number | null;
}

/**
 * While older secrets still sign, our own header is signed with the oldest of them, and a second
 * header with the newest secret. Standard Webhooks receivers get all signatures in one header,
 * newest first.
 */
export const makeHeaders = (envelope: Envelope): Record<string, string> => {
  const { prefix, key, old_keys, body, offset } = envelope;
  const keys = [key, ...old_keys.toReversed()];
  const [oldest] = old_keys;
  return {
    'Content-Type': 'application/json',
    'User-Agent': 'prediction-forum-webhooks/1',
    'webhook-id': envelope.event_id,
    'webhook-timestamp': String(envelope.timestamp_s),
    'webhook-signature': keys.map((one) => signStandard({ ...envelope, key: one })).join(' '),
    [`${prefix}-Event`]: envelope.event,
    [`${prefix}-Signature`]: signBody(oldest ?? key, body),
    ...(oldest !== undefined && { [`${prefix}-Signature-Next`]: signBody(key, body) }),
    [`${prefix}-Delivery`]: envelope.delivery_id,
    [`${prefix}-Attempt`]: String(envelope.attempt),
    ...(offset !== null && { [`${prefix}-Offset`]: String(offset) }),
  };
};

/** One attempt at a delivery, or a ping. */
export interface Attempt
  extends Pick<Envelope, 'event' | 'event_id' | 'delivery_id' | 'attempt' | 'offset'> {
  readonly webhook_id: string;
  readonly url: string;
  readonly secret_sealed: Uint8Array;
  /** Sealed secrets that were replaced but still sign, oldest first. */
  readonly old_secrets_sealed: readonly Uint8Array[];
  readonly signature: SignatureScheme;
  readonly body: string;
}

type AttemptError = CallErrorCode | 'secret_unreadable';
export type AttemptOutcome = Omit<Outcome, 'error' | 'location' | 'cache_control'> & {
  readonly error: AttemptError | null;
};

const unsent = (error: AttemptError): AttemptOutcome => ({
  status: null,
  error,
  stood_still: false,
  latency_ms: 0,
  answer: '',
  retry_after: '',
});

/** Returns whether the target itself breaks the rules, so that a retry is useless. */
export const isTargetRefused = (error: AttemptError | null): boolean =>
  error !== null && error !== 'secret_unreadable' && isRefusal(error);

/** Throws if SECRET_KEY is not set or a setting that starts with WEBHOOK is invalid. */
export const createWebhooks = (config: Config, client_options: Partial<ClientOptions> = {}) => {
  if (config.SECRET_KEY === undefined) throw new Error('SECRET_KEY is not set');
  const sealer = createSealer(config.SECRET_KEY);
  const http_signer = createHttpSigner(config, config.SECRET_KEY);
  const client = createGuardedClient({ ...outboundOptions(config), ...client_options });
  const openKey = (webhook_id: string, sealed: Uint8Array): Buffer | null => {
    const secret = sealer.open(webhook_id, sealed);
    return secret === null ? null : Buffer.from(secret, 'ascii');
  };

  /** Vets the target, signs the body and posts it. `wall_ms` is its time limit. Never throws. */
  const send = async (
    attempt: Attempt,
    now_ms: number,
    wall_ms?: number,
  ): Promise<AttemptOutcome> => {
    const target = client.parse(attempt.url);
    if (target.kind === 'problem') return unsent(target.code);
    const key = openKey(attempt.webhook_id, attempt.secret_sealed);
    if (key === null) return unsent('secret_unreadable');
    const old_keys = attempt.old_secrets_sealed.flatMap(
      (sealed) => openKey(attempt.webhook_id, sealed) ?? [],
    );
    const body = Buffer.from(attempt.body);
    const timestamp_s = Math.floor(now_ms / 1_000);
    const prefix = config.WEBHOOK_HEADER_PREFIX;
    const usual = makeHeaders({ ...attempt, prefix, key, old_keys, timestamp_s, body });
    const post = { url: target.href, headers: usual, body, created: timestamp_s };
    const headers =
      attempt.signature === 'rfc9421' ? { ...usual, ...http_signer.sign(post) } : usual;
    return client.post({ target, headers, body, ...(wall_ms === undefined ? {} : { wall_ms }) });
  };

  const { directory } = http_signer;
  return { client, sealer, directory, send, close: () => client.close() };
};

export type Webhooks = ReturnType<typeof createWebhooks>;

export interface WebhookParts {
  readonly webhooks: Webhooks;
}
