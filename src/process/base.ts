import { type Config, publicUrl, type RoleName } from '../config.js';
import { type DatabaseClock, followClock, openSql, probeSql, type Sql } from '../db/client.js';
import { openReader, takesReads } from '../db/replica.js';
import { readLag } from '../features/events/index.js';
import type { Deps } from '../http/deps.js';
import type { Route } from '../http/route.js';
import { makeLog } from '../kit/log.js';
import { createMonitor, type Measure, type Metric } from '../kit/metrics.js';
import { type Service, withDeadline } from '../kit/service.js';
import { closeRedis, connectRedis, isWhole, openRedis, type RedisClient } from '../redis/client.js';

export interface RoleOptions {
  readonly role: RoleName;
  /** Index among the processes of the service, from 0. */
  readonly index: number;
  /** True if several api processes listen on the same port. */
  readonly shared_port: boolean;
  /** Differs per supervisor and index. If another process had this slot before, it is dead. */
  readonly slot?: string;
  /** The log file of the process. If missing, the log goes to standard output. */
  readonly log_file?: string;
  /** For tests: changes each route before it is served. */
  readonly prepareRoute?: <D>(route: Route<D>) => Route<D>;
  /** For tests: milliseconds between two ticks of a socket or an event stream, ± 10 %. */
  readonly tick_ms?: number;
}

/** The base of every role process: its log and its connections. They stay open until it stops. */
export interface Base extends Service {
  readonly deps: Deps;
  /** Opens a connection for subscriptions. */
  openSubscriber(): Promise<RedisClient>;
  /** Sets the port that links contain, once the server listens. */
  setPort(port: number): void;
  /** Probes and metrics, if METRICS_PORT is set. Aborting `leaving` makes it not ready. */
  monitor(measures?: readonly Metric[], leaving?: AbortSignal): readonly Service[];
}

export const measure = (name: string, help: string, read: Measure['read']): Measure => ({
  name,
  help,
  read,
});

const answersInTime = (sql: Sql): Promise<boolean> =>
  withDeadline(probeSql(sql), 1_000, 'the probe').then(
    () => true,
    () => false,
  );

/** Reads the clock for the first time. If Postgres is down, the start does not wait for it. */
const readOnce = (clock: DatabaseClock): Promise<void> =>
  withDeadline(clock.read(), 1_000, 'the clock').catch(() => undefined);

const log_dropped_help =
  'Log lines that could not be written, because the disk is full or the pipe is not read.';

export const openBase = async (
  config: Config,
  { role, index, log_file }: RoleOptions,
): Promise<Base> => {
  const { DATABASE_URL, REDIS_URL, HOST: host, METRICS_PORT } = config;
  if (DATABASE_URL === undefined || REDIS_URL === undefined) {
    throw new Error('a role process needs DATABASE_URL and REDIS_URL, which the supervisor sets');
  }
  const name = `${role}-${index}`;
  const { log, dropped } = makeLog(config.LOG_LEVEL, { role: name, pid: process.pid }, log_file);
  const usual = { pool: config.DATABASE_POOL, prepare: config.DATABASE_PREPARE, name };
  const sql = openSql({
    ...usual,
    url: DATABASE_URL,
    // The timer's statements are long: they settle, rank and draw whole questions at once.
    ...(role === 'timer' ? { statement_timeout_ms: 10_000 } : {}),
  });
  const url = role === 'api' ? config.DATABASE_REPLICA_URL : undefined;
  // If the replica hangs, reads go to the primary soon after this time.
  const reads = openReader(sql, { ...usual, url, statement_timeout_ms: 2_000 });
  const redis = openRedis({ url: REDIS_URL, name, log, command_timeout_ms: 1_000 });
  const clock = followClock(sql);
  await Promise.all([connectRedis(redis), readOnce(clock)]);
  const connections = [redis];
  let port = config.PORT;
  const deps = {
    config,
    log,
    sql,
    reads,
    redis,
    clock: clock.now,
    get public_url() {
      return publicUrl(config, port);
    },
  };
  return {
    name: 'base',
    deps,
    start: async () => undefined,
    async stop() {
      clock.stop();
      for (const connection of connections) closeRedis(connection);
      await reads.end({ timeout: 5 });
    },
    async openSubscriber() {
      const options = { command_timeout_ms: 0, subscribes: true };
      const connection = openRedis({ url: REDIS_URL, name: `${name} wake-ups`, log, ...options });
      connections.push(connection);
      await connectRedis(connection);
      return connection;
    },
    setPort(real_port) {
      port = real_port;
    },
    monitor(measures = [], leaving) {
      if (METRICS_PORT === undefined) return [];
      const isReady = async (): Promise<boolean> => !leaving?.aborted && (await answersInTime(sql));
      const labels = { role, index: String(index) };
      const lag = async () => (await readLag(sql, clock.now())) / 1_000;
      const waited = () => sql.longestWait() / 1_000;
      const readReplica = async () => (reads === sql ? undefined : Number(await takesReads(reads)));
      const all = [
        ...measures,
        measure('log_lines_dropped_total', log_dropped_help, dropped),
        measure('db_longest_wait_seconds', 'Longest current wait for Postgres.', waited),
        measure('redis_ready', '1 while Redis answers.', () => Number(isWhole(redis))),
        measure('replica_ready', '1 while reads go to the Postgres replica.', readReplica),
        measure('outbox_lag_seconds', 'Age of the oldest event that is not in the log yet.', lag),
      ];
      return [createMonitor({ port: METRICS_PORT + index, host, labels, measures: all, isReady })];
    },
  };
};
