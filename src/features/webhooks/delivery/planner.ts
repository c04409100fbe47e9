import type { Deps } from '../../../kit/deps.js';
import type { Projector } from '../../events/index.js';
import { planDeliveries } from './plan-store.js';

/**
 * Publishing here wakes the signers; a lost message costs at most one turn of the sweeper. It names
 * the webhooks that have something new, or is empty: any of them may.
 */
export const signerChannel = (prefix: string): string => `${prefix}:nudge:signer`;

/** More webhooks than this are not named. */
const most_named = 500;

/** The webhooks that a message names; null for all of them. */
export const readNudge = (message: string): readonly string[] | null =>
  message === '' ? null : message.split(',');

/** Tells signers that there are new deliveries. Never throws and waits for nothing. */
export const nudgeSigner = (
  { redis, config }: Pick<Deps, 'redis' | 'config'>,
  webhook_ids: readonly string[] = [],
): void => {
  if (redis.status !== 'ready') return;
  const message = webhook_ids.length > most_named ? '' : webhook_ids.join(',');
  redis.publish(signerChannel(config.REDIS_PREFIX), message).catch(() => undefined);
};

/** Plans deliveries in the relay's hand-off and wakes the signers after it. */
export const createPlanner = (deps: Pick<Deps, 'redis' | 'config'>): Projector => {
  const planned = new Set<string>();
  return {
    name: 'deliveries',
    async record(tx, entries) {
      const from_offset = entries[0]?.offset;
      const to_offset = entries[entries.length - 1]?.offset;
      if (from_offset === undefined || to_offset === undefined) return;
      for (const { webhook_id } of await planDeliveries(tx, { from_offset, to_offset })) {
        planned.add(webhook_id);
      }
    },
    committed() {
      if (planned.size > 0) nudgeSigner(deps, [...planned]);
      planned.clear();
    },
  };
};
