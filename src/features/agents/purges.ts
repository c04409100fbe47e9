import type { Redis } from 'ioredis';
import type { Deps } from '../../kit/deps.js';
import { describeError } from '../../kit/log.js';
import { closeRedis, connectRedis } from '../../kit/redis/client.js';

/** How processes tell each other which agents have changed: a channel of Redis. */

const ping_every_ms = 250;
const most_unsent = 10_000;

const channelOf = ({ config }: Deps): string => `${config.REDIS_PREFIX}:purge`;

export interface Ear {
  /** Every purge published before this time (`performance.now()`) has arrived. */
  heardUntil(): number;
  start(): Promise<void>;
  stop(): void;
}

/** The subscription with its pings. */
export const makeEar = (deps: Deps, on: { purge(id: string): void; gap(): void }): Ear => {
  const channel = channelOf(deps);
  let redis: Redis | undefined;
  let heard_until_ms = Number.NEGATIVE_INFINITY;
  let subscribed = false;
  let timer: NodeJS.Timeout | undefined;

  const lose = (): void => {
    subscribed = false;
    heard_until_ms = Number.NEGATIVE_INFINITY;
  };
  const subscribe = async (connection: Redis): Promise<void> => {
    try {
      await connection.subscribe(channel);
      on.gap();
      subscribed = true;
      ping();
    } catch (error) {
      deps.log.warn(describeError(error), 'principals: could not subscribe');
      // The connection is made anew, and its next `ready` tries again.
      connection.disconnect(true);
    }
  };
  const ping = (): void => {
    if (redis === undefined || !subscribed) return;
    const sent_ms = performance.now();
    redis.ping().then(
      () => {
        if (subscribed) heard_until_ms = Math.max(heard_until_ms, sent_ms);
      },
      // No pong: the trust runs out by itself.
      () => undefined,
    );
  };
  return {
    heardUntil: () => heard_until_ms,
    async start() {
      const connection = deps.redis.duplicate({
        connectionName: channel,
        enableAutoPipelining: false,
        autoResubscribe: false,
        commandTimeout: 1_000,
        lazyConnect: true,
      });
      redis = connection;
      connection.on('error', () => undefined);
      connection.on('close', lose);
      connection.on('ready', () => {
        lose();
        void subscribe(connection);
      });
      connection.on('message', (_channel: string, id: string) => on.purge(id));
      timer = setInterval(ping, ping_every_ms);
      timer.unref();
      await connectRedis(connection);
    },
    stop() {
      clearInterval(timer);
      if (redis !== undefined) closeRedis(redis);
      redis = undefined;
      lose();
    },
  };
};

export interface Voice {
  /** Tells every process; what cannot be told now is told again until it is. Never throws. */
  publish(agent_id: string): Promise<void>;
  start(): void;
  stop(): void;
}

/** The publisher of purges. */
export const makeVoice = (deps: Deps): Voice => {
  const channel = channelOf(deps);
  const unsent = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const publish = async (agent_id: string): Promise<void> => {
    try {
      await deps.redis.publish(channel, agent_id);
      unsent.delete(agent_id);
    } catch (error) {
      if (unsent.size < most_unsent) unsent.add(agent_id);
      deps.log.warn(describeError(error), 'principals: a purge waits for Redis');
    }
  };
  return {
    publish,
    start() {
      timer = setInterval(() => {
        for (const agent_id of unsent) void publish(agent_id);
      }, ping_every_ms);
      timer.unref();
    },
    stop: () => clearInterval(timer),
  };
};
