import type { Config } from '../../config.js';
import { type CallErrorCode, isRefusal } from '../../kit/guarded-client/call-errors.js';
import {
  type ClientOptions,
  createGuardedClient,
  type GuardedClient,
  type Outcome,
} from '../../kit/guarded-client/client.js';
import { outboundOptions } from '../../kit/guarded-client/options.js';
import { createSealer, type Sealer } from './sealing.js';
import { makeHeaders } from './signing.js';

/** What the routes and the signer share: the client, the sealed secrets, and a signed call. */

export interface Letter {
  readonly webhook_id: string;
  readonly url: string;
  readonly secret_sealed: Uint8Array;
  /** The secret before a rotation, while both sign. */
  readonly old_secret_sealed: Uint8Array | null;
  readonly event: string;
  readonly event_id: string;
  readonly delivery_id: string;
  readonly attempt: number;
  readonly offset: number | null;
  readonly body: Uint8Array;
  /** A shorter wall clock for this call. */
  readonly wall_ms?: number;
}

export type LetterError = CallErrorCode | 'secret_unreadable';
export type LetterOutcome = Omit<Outcome, 'error' | 'location'> & {
  readonly error: LetterError | null;
};

export interface Webhooks {
  readonly client: GuardedClient;
  readonly sealer: Sealer;
  /** Vets the target, signs and posts. Never throws. */
  send(letter: Letter, now_ms: number): Promise<LetterOutcome>;
  close(): void;
}

/** The part of a process's deps that this feature adds. */
export interface WebhookParts {
  readonly webhooks: Webhooks;
}

/** Opened secrets are kept, few enough that forgetting all of them at once does not matter. */
const most_opened = 10_000;

interface Opened {
  readonly sealed: Buffer;
  readonly key: Buffer;
}

const makeOpener = (sealer: Sealer) => {
  const opened = new Map<string, readonly Opened[]>();
  return (webhook_id: string, sealed: Uint8Array): Buffer | null => {
    const of_webhook = opened.get(webhook_id) ?? [];
    const known = of_webhook.find((one) => one.sealed.equals(sealed));
    if (known !== undefined) return known.key;
    const secret = sealer.open(webhook_id, sealed);
    if (secret === null) return null;
    const key = Buffer.from(secret, 'ascii');
    if (opened.size >= most_opened) opened.clear();
    // The one before is used as well while a secret is being rotated.
    opened.set(webhook_id, [...of_webhook.slice(-1), { sealed: Buffer.from(sealed), key }]);
    return key;
  };
};

const unsent = (error: LetterError): LetterOutcome => ({
  status: null,
  error,
  latency_ms: 0,
  answer: '',
  retry_after: '',
});

/** The target itself is against the rules, so that trying again would be no use. */
export const isTargetRefused = (error: LetterError | null): boolean =>
  error !== null && error !== 'secret_unreadable' && isRefusal(error);

/** Throws when SECRET_KEY is not set or a setting that begins with WEBHOOK is not right. */
export const createWebhooks = (
  config: Config,
  client_options: Partial<ClientOptions> = {},
): Webhooks => {
  if (config.SECRET_KEY === undefined) throw new Error('SECRET_KEY is not set');
  const sealer = createSealer(config.SECRET_KEY);
  const openSecret = makeOpener(sealer);
  const client = createGuardedClient({ ...outboundOptions(config), ...client_options });

  const send = async (letter: Letter, now_ms: number): Promise<LetterOutcome> => {
    const target = client.parse(letter.url);
    if (target.kind === 'problem') return unsent(target.code);
    const { webhook_id, secret_sealed, old_secret_sealed, body, wall_ms } = letter;
    const key = openSecret(webhook_id, secret_sealed);
    if (key === null) return unsent('secret_unreadable');
    const old_key = old_secret_sealed === null ? null : openSecret(webhook_id, old_secret_sealed);
    const headers = makeHeaders({
      prefix: config.WEBHOOK_HEADER_PREFIX,
      key,
      old_key,
      timestamp_s: Math.floor(now_ms / 1_000),
      event: letter.event,
      event_id: letter.event_id,
      delivery_id: letter.delivery_id,
      attempt: letter.attempt,
      offset: letter.offset,
      body,
    });
    return client.post({ target, headers, body, ...(wall_ms === undefined ? {} : { wall_ms }) });
  };

  return { client, sealer, send, close: () => client.close() };
};
