import type { Operations } from '#client/wire.js';
import { call_errors } from '../../kit/outbound/connection.js';
import { Ago, countText, numberText } from './figures.js';

/** Describes the deliveries of a webhook in words. */

type Delivery = Operations['listWebhookDeliveries']['returns']['deliveries'][number];
type Attempt = NonNullable<Delivery['last_attempt']>;

export const delivery_words: Readonly<Record<Delivery['status'], string>> = {
  pending: 'waiting to be sent',
  sending: 'being sent',
  delivered: 'delivered',
  waiting: 'will be retried',
  exhausted: 'failed',
  expired: 'too old to send',
  skipped_disabled: 'not sent: the webhook was switched off',
  blocked: 'not sent: the address is not allowed',
  gap: 'events skipped',
};

/** Describes the response of an attempt, or why there was no response. */
export const attemptText = ({ status, error, latency_ms }: Attempt): string => {
  if (error === null) return `answered ${status} after ${numberText(latency_ms)} ms`;
  const known = (call_errors as Readonly<Record<string, string>>)[error];
  return known ?? 'The secret of this webhook cannot be read. Create a new webhook.';
};

const gapText = ({ gap }: Delivery): string =>
  gap === null
    ? ''
    : `${countText(gap.count, 'event')} (${gap.from_offset} to ${gap.until_offset}): too ${
        gap.reason === 'age' ? 'old' : 'many'
      }. A replay sends them.`;

export const DeliveryState = ({ status }: Pick<Delivery, 'status'>) => {
  const is_good = status === 'delivered';
  const is_open = ['pending', 'sending', 'waiting'].includes(status);
  return (
    <span class={is_good ? 'pill open' : is_open ? 'pill' : 'pill bad'}>
      {delivery_words[status]}
    </span>
  );
};

/** Sends one delivery again. Gaps cannot be sent again, but a replay sends their events. */
export const RedeliverForm = ({ action, label }: { action: string; label: string }) => (
  <form method="post" action={action}>
    <button class="plain" type="submit" aria-label={label}>
      Send again
    </button>
  </form>
);

export const DeliveryList = ({
  path,
  deliveries,
  can_send,
  now,
}: {
  path: string;
  deliveries: readonly Delivery[];
  can_send: boolean;
  now: Date;
}) =>
  deliveries.length === 0 ? (
    <p class="soft">
      No deliveries here yet. A delivery appears when an event matches the webhook.
    </p>
  ) : (
    <ul class="rows">
      {deliveries.map((one) => (
        <li key={one.id} class="with-act">
          <div>
            <a class="title" href={`${path}/deliveries/${one.id}`}>
              {one.event ?? 'Events skipped'}
            </a>
            <p class="facts">
              <DeliveryState status={one.status} />
              <span>{countText(one.attempts, 'attempt')}</span>
              {one.last_attempt !== null && <span>{attemptText(one.last_attempt)}</span>}
              {one.gap !== null && <span>{gapText(one)}</span>}
              <Ago at={one.created_at} now={now} />
              {one.next_attempt_at !== null && new Date(one.next_attempt_at) > now && (
                <span>
                  next <Ago at={one.next_attempt_at} now={now} />
                </span>
              )}
            </p>
          </div>
          {can_send && one.status !== 'gap' && (
            <RedeliverForm
              action={`${path}/deliveries/${one.id}`}
              label={`Send again: ${one.event ?? ''}`}
            />
          )}
        </li>
      ))}
    </ul>
  );
