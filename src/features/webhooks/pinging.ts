import { makeId } from '../../kit/ids.js';
import { call_errors } from '../../kit/outbound/connection.js';
import { isSuccess } from './rules.js';
import type { AttemptOutcome, Webhooks } from './signing.js';
import type { Target } from './store.js';

/** Shorter than the time limit of an attempt, so that the caller gets this answer in time. */
const test_wall_ms = 8_000;

const error_sentences = {
  ...call_errors,
  secret_unreadable: 'The secret of this webhook cannot be read. Create a new webhook.',
};

/** Describes an outcome in sentences that contain nothing from the receiver's answer. */
export const describeOutcome = ({
  status,
  error,
}: Pick<AttemptOutcome, 'status' | 'error'>): string =>
  [
    ...(status === null ? [] : [`The receiver answered ${status}.`]),
    ...(error === null ? [] : [error_sentences[error]]),
  ].join(' ');

/** Sends a signed `ping` and returns its outcome. */
export const sendPing = async (webhooks: Webhooks, target: Target, now: Date) => {
  const data = { webhook_id: target.webhook_id };
  const body = JSON.stringify({ event: 'ping', data, timestamp: now.toISOString() });
  const ids = { event_id: makeId(), delivery_id: makeId() };
  const ping = { ...target, ...ids, event: 'ping', attempt: 1, offset: null, body };
  const { status, error, latency_ms } = await webhooks.send(ping, now.getTime(), test_wall_ms);
  return {
    delivered: isSuccess(status),
    status,
    latency_ms,
    ...(error !== null && { error }),
    message: describeOutcome({ status, error }),
  };
};
