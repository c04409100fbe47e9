import type { Redis } from 'ioredis';
import type { Config } from '../config.js';
import {
  createKeeper,
  createWebhooks,
  type KeeperOptions,
  readNudge,
  Sending,
  type SendingOptions,
  signerChannel,
} from '../features/webhooks/index.js';
import type { Deps } from '../kit/deps.js';
import type { Measure } from '../kit/metrics.js';
import { connectRedis } from '../kit/redis/client.js';
import { type Running, type Service, startAll } from '../kit/service.js';
import { openBase, type RoleOptions } from './base.js';

export interface SignerOptions extends Partial<Omit<SendingOptions, 'onSick'>> {
  /**
   * Connection that only subscribes; nudges arrive on it. Without one, or while it is away, new
   * deliveries are found at the sweeper's pace.
   */
  readonly subscriber?: Redis;
  readonly keeper?: KeeperOptions;
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

/** What sends webhooks. Any number may run: Postgres shares the work among them. */
export const createSigner = (deps: Deps, options: SignerOptions = {}): Signer => {
  const { subscriber, webhooks = createWebhooks(deps.config), keeper: keeping, ...rest } = options;
  const keeper = createKeeper(deps, keeping);
  const sending = new Sending(deps, { ...rest, webhooks, onSick: () => keeper.nudge() });
  const channel = signerChannel(deps.config.REDIS_PREFIX);
  const listen = (): void => {
    // Something may have been published while nobody listened.
    subscriber
      ?.subscribe(channel)
      .then(() => sending.nudge())
      .catch(() => undefined);
  };
  const hear = (from: string, message: string): void => {
    if (from === channel) sending.nudge(readNudge(message));
  };
  return {
    name: 'signer',
    measures: measuresOf(sending),
    async start() {
      subscriber?.on('message', hear).on('ready', listen);
      if (subscriber?.status === 'ready') listen();
      await sending.start();
      await keeper.start();
    },
    async stop() {
      subscriber?.off('message', hear).off('ready', listen);
      await Promise.all([keeper.stop(), sending.stop()]);
      if (options.webhooks === undefined) webhooks.close();
    },
  };
};

/** The signer process. */
export const startSigner = async (config: Config, options: RoleOptions): Promise<Running> => {
  const base = await openBase(config, options);
  const subscriber = base.openExtraRedis('nudges');
  await connectRedis(subscriber);
  const signer = createSigner(base.deps, { subscriber });
  const services = await startAll([signer, ...base.monitor(signer.measures)]);
  return {
    async stop() {
      await services.stop();
      await base.close();
    },
  };
};
