import { showFilter } from '../events/index.js';
import type { DeliveryRow, ListedRow, ReplayRow } from './deliveries-store.js';
import type { DeliveryView, ReplayView, WebhookView } from './schema.js';
import type { WebhookRow } from './store.js';

/** Rows as the wire shows them. */

const filterOf = (row: WebhookRow) =>
  showFilter({
    events: null,
    question_ids: row.filter_questions,
    categories: row.filter_categories,
    model_families: row.filter_families,
    min_confidence: row.filter_confidence,
  });

export const webhookView = (row: WebhookRow): WebhookView => ({
  id: row.id,
  url: row.url,
  events: row.events,
  filter: filterOf(row),
  active: row.active,
  disabled_reason: row.disabled_reason,
  failing_since: row.failing_since?.toISOString() ?? null,
  paused_until: row.paused_until?.toISOString() ?? null,
  old_secret_expires_at: row.old_secret_until?.toISOString() ?? null,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
});

export const replayView = (row: ReplayRow): ReplayView => ({
  id: row.id,
  webhook_id: row.webhook_id,
  status: row.done_at === null ? 'running' : 'done',
  after: row.after_offset,
  until_offset: row.until_offset,
  next_offset: row.next_offset,
  queued: row.queued,
  started_at: row.started_at.toISOString(),
  done_at: row.done_at?.toISOString() ?? null,
});

const gapOf = (row: DeliveryRow): DeliveryView['gap'] => {
  const { gap_until_offset, gap_count, gap_reason } = row;
  if (gap_until_offset === null || gap_count === null || gap_reason === null) return null;
  return {
    from_offset: row.offset,
    until_offset: gap_until_offset,
    count: gap_count,
    reason: gap_reason,
  };
};

export const deliveryView = (row: DeliveryRow): Omit<DeliveryView, 'last_attempt'> => ({
  id: row.id,
  event_id: row.event_id,
  event: row.event,
  offset: row.offset,
  status: row.status,
  attempts: row.attempts,
  replays: row.replays,
  next_attempt_at:
    row.status === 'pending' || row.status === 'waiting' ? row.next_at.toISOString() : null,
  created_at: row.created_at.toISOString(),
  delivered_at: row.delivered_at?.toISOString() ?? null,
  gap: gapOf(row),
});

export const listedView = (row: ListedRow): DeliveryView => ({
  ...deliveryView(row),
  last_attempt:
    row.attempt === null || row.at === null || row.latency_ms === null
      ? null
      : {
          attempt: row.attempt,
          at: row.at.toISOString(),
          status: row.answer_status,
          latency_ms: row.latency_ms,
          error: row.error,
        },
});
