import {
  createMaintenance,
  createWebhooks,
  type MaintenanceOptions,
  Sending,
  type SendingOptions,
} from '../features/webhooks/index.js';
import type { Deps } from '../http/deps.js';
import type { Measure } from '../kit/metrics.js';
import type { Service } from '../kit/service.js';
import { measure } from './base.js';

export interface SignerOptions extends Partial<SendingOptions> {
  readonly maintenance?: MaintenanceOptions;
}

export interface Signer extends Service {
  readonly measures: readonly Measure[];
}

/** What sends webhooks. */
export const createSigner = (deps: Deps, options: SignerOptions = {}): Signer => {
  const { webhooks = createWebhooks(deps.config), maintenance: kept, ...rest } = options;
  const maintenance = createMaintenance(deps, kept);
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
      measure(
        'webhook_breakers_opened_total',
        'How often webhooks were left alone because they failed.',
        () => stats.breakers_opened,
      ),
      measure(
        'webhook_deliveries_dead_total',
        'Deliveries that were claimed five times without a result; each is worth an alarm.',
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
