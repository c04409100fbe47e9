import type { Config } from '../config.js';
import {
  createMaintenance,
  createWebhooks,
  type MaintenanceOptions,
  Sending,
  type SendingOptions,
} from '../features/webhooks/index.js';
import type { Deps } from '../kit/deps.js';
import type { Measure } from '../kit/metrics.js';
import { type Running, type Service, startAll } from '../kit/service.js';
import { openBase, type RoleOptions } from './base.js';

export interface SignerOptions extends Partial<SendingOptions> {
  readonly maintenance?: MaintenanceOptions;
}

export interface Signer extends Service {
  readonly measures: readonly Measure[];
}

const measuresOf = (sending: Sending): readonly Measure[] => [
  {
    name: 'webhook_attempts_total',
    help: 'Attempts that ended.',
    read: () => sending.stats.delivered + sending.stats.failed,
  },
  {
    name: 'webhook_attempts_failed_total',
    help: 'Attempts that failed.',
    read: () => sending.stats.failed,
  },
  {
    name: 'webhook_breakers_opened_total',
    help: 'How often webhooks were left alone because they failed.',
    read: () => sending.stats.breakers_opened,
  },
  {
    name: 'webhook_deliveries_dead_total',
    help: 'Deliveries that were claimed five times without a result; each is worth an alarm.',
    read: () => sending.stats.dead,
  },
];

/** What sends webhooks. Any number may run: the log's stream and Postgres share out the work. */
export const createSigner = (deps: Deps, options: SignerOptions = {}): Signer => {
  const { webhooks = createWebhooks(deps.config), maintenance: kept, ...rest } = options;
  const maintenance = createMaintenance(deps, kept);
  const sending = new Sending(deps, { ...rest, webhooks });
  return {
    name: 'signer',
    measures: measuresOf(sending),
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

/** The signer process. */
export const startSigner = async (config: Config, options: RoleOptions): Promise<Running> => {
  const base = await openBase(config, options);
  const signer = createSigner(base.deps);
  const services = await startAll([signer, ...base.monitor(signer.measures)]);
  return {
    async stop() {
      await services.stop();
      await base.close();
    },
  };
};
