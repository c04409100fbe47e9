import { setImmediate as nextTurn } from 'node:timers/promises';
import { pino } from 'pino';
import { createLimiter } from '../../../src/http/limits.js';
import { closeRedis, connectRedis, openRedis } from '../../../src/redis/client.js';

/** A process with several clients that hammer one rate-limit window and report the answers. */

export interface HammerAsk {
  readonly redis_url: string;
  readonly prefix: string;
  readonly key: string;
  readonly limit: number;
  readonly window_ms: number;
  readonly clients: number;
  readonly for_ms: number;
}

export interface Shot {
  /** Times of the request and of the answer, in ms on the machine's clock. */
  readonly sent: number;
  readonly got: number;
  readonly allowed: boolean;
  readonly left: number;
  readonly retry_ms: number;
}

const clock = (): number => performance.timeOrigin + performance.now();

const hammer = async (ask: HammerAsk): Promise<readonly Shot[]> => {
  const { redis_url, prefix, key, limit, window_ms } = ask;
  const log = pino({ level: 'silent' });
  const redis = openRedis({ url: redis_url, name: 'hammer', log, command_timeout_ms: 20_000 });
  await connectRedis(redis);
  const limiter = createLimiter({ redis, prefix, processes: 2, log, patience_ms: 20_000 });
  const window = { name: 'key', key, limit, window_ms };
  const end = clock() + ask.for_ms;
  const shots: Shot[] = [];
  const shoot = async (): Promise<void> => {
    while (clock() < end) {
      const sent = clock();
      const { allowed, left, retry_ms } = await limiter.take([window]);
      shots.push({ sent, got: clock(), allowed, left: left[0] ?? -1, retry_ms });
      await nextTurn();
    }
  };
  await Promise.all(Array.from({ length: ask.clients }, shoot));
  limiter.stop();
  closeRedis(redis);
  return shots;
};

process.on('message', (ask: HammerAsk) => {
  hammer(ask).then(
    (shots) => process.send?.(shots),
    (error: unknown) => {
      throw error;
    },
  );
});
process.send?.('ready');
