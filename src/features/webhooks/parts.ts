import type { Config } from '../../config.js';
import { type CallErrorCode, isRefusal } from '../../kit/guarded-client/call-errors.js';
import {
  type ClientOptions,
  createGuardedClient,
  type GuardedClient,
  type Outcome,
} from '../../kit/guarded-client/client.js';
import { outboundOptions } from '../../kit/guarded-client/options.js';
import type { Sealer } from '../../kit/sealing.js';
import { createSealer, type Envelope, makeHeaders } from './signing.js';

/** What the routes and the signer share: the client, the sealed secrets, and a signed call. */

type Named = 'event' | 'event_id' | 'delivery_id' | 'attempt' | 'offset';

/** One attempt at a delivery, or a ping. */
export interface Attempt extends Pick<Envelope, Named> {
  readonly webhook_id: string;
  readonly url: string;
  readonly secret_sealed: Uint8Array;
  /** The secret before a rotation, while both sign. */
  readonly old_secret_sealed: Uint8Array | null;
  readonly body: string;
}

export type AttemptError = CallErrorCode | 'secret_unreadable';
export type AttemptOutcome = Omit<Outcome, 'error' | 'location'> & {
  readonly error: AttemptError | null;
};

export interface Webhooks {
  readonly client: GuardedClient;
  readonly sealer: Sealer;
  /** Vets the target, signs and posts, within a wall clock of its own if given. Never throws. */
  send(attempt: Attempt, now_ms: number, wall_ms?: number): Promise<AttemptOutcome>;
  close(): void;
}

/** The part of a process's deps that this feature adds. */
export interface WebhookParts {
  readonly webhooks: Webhooks;
}

const unsent = (error: AttemptError): AttemptOutcome => ({
  status: null,
  error,
  latency_ms: 0,
  answer: '',
  retry_after: '',
});

/** The target itself is against the rules, so that trying again would be no use. */
export const isTargetRefused = (error: AttemptError | null): boolean =>
  error !== null && error !== 'secret_unreadable' && isRefusal(error);

/** Throws when SECRET_KEY is not set or a setting that begins with WEBHOOK is not right. */
export const createWebhooks = (
  config: Config,
  client_options: Partial<ClientOptions> = {},
): Webhooks => {
  if (config.SECRET_KEY === undefined) throw new Error('SECRET_KEY is not set');
  const sealer = createSealer(config.SECRET_KEY);
  const client = createGuardedClient({ ...outboundOptions(config), ...client_options });
  const openKey = (webhook_id: string, sealed: Uint8Array | null): Buffer | null => {
    const secret = sealed === null ? null : sealer.open(webhook_id, sealed);
    return secret === null ? null : Buffer.from(secret, 'ascii');
  };

  const send: Webhooks['send'] = async (attempt, now_ms, wall_ms) => {
    const target = client.parse(attempt.url);
    if (target.kind === 'problem') return unsent(target.code);
    const key = openKey(attempt.webhook_id, attempt.secret_sealed);
    if (key === null) return unsent('secret_unreadable');
    const old_key = openKey(attempt.webhook_id, attempt.old_secret_sealed);
    const body = Buffer.from(attempt.body);
    const timestamp_s = Math.floor(now_ms / 1_000);
    const prefix = config.WEBHOOK_HEADER_PREFIX;
    const headers = makeHeaders({ ...attempt, prefix, key, old_key, timestamp_s, body });
    return client.post({ target, headers, body, ...(wall_ms === undefined ? {} : { wall_ms }) });
  };

  return { client, sealer, send, close: () => client.close() };
};
