import {
  countDue,
  createMaintenance,
  createWebhooks,
  type MaintenanceOptions,
  Sending,
  type SendingOptions,
} from '../features/webhooks/index.js';
import type { Deps } from '../http/deps.js';
import type { Measure } from '../kit/metrics.js';
import { type Running, type Service, startAll } from '../kit/service.js';
import { type Base, measure, type RoleOptions } from './base.js';

export interface SignerOptions extends Partial<SendingOptions> {
  readonly maintenance?: MaintenanceOptions;
}

/** Sends webhooks. The log's stream and Postgres divide the work among all signers. */
export const createSigner = (
  deps: Deps,
  options: SignerOptions = {},
): Service & { readonly measures: readonly Measure[] } => {
  const { webhooks = createWebhooks(deps.config), maintenance: timing, ...rest } = options;
  const maintenance = createMaintenance(deps, timing);
  const sending = new Sending(deps, { ...rest, webhooks });
  const { stats } = sending;
  return {
    name: 'signer',
    measures: [
      measure(
        'webhook_attempts_total',
        'Attempts that ended.',
        () => stats.delivered + stats.failed,
      ),
      measure('webhook_attempts_failed_total', 'Attempts that failed.', () => stats.failed),
      measure('webhook_deliveries_due', 'Deliveries due, up to 10,000.', () => countDue(deps.sql)),
      measure(
        'webhook_breakers_opened_total',
        'How many times a webhook was paused because its attempts failed.',
        () => stats.breakers_opened,
      ),
      measure(
        'webhook_deliveries_dead_total',
        'Deliveries that were claimed five times without a result. Set an alarm on this.',
        () => stats.dead,
      ),
    ],
    async start() {
      await sending.start();
      await maintenance.start();
    },
    async stop() {
      await Promise.all([maintenance.stop(), sending.stop()]);
      if (options.webhooks === undefined) webhooks.close();
    },
  };
};

export const startSigner = (base: Base, { slot }: RoleOptions): Promise<Running> => {
  const signer = createSigner(base.deps, { slot });
  return startAll([base, signer, ...base.monitor(signer.measures)]);
};
