import { createServer } from 'node:net';
import { Redis } from 'ioredis';
import type { Test } from 'tap';
import { type AppOptions, startApp } from '../../help/app.js';
import { makeLogWriter } from '../../help/log.js';

export type LogServer = Awaited<ReturnType<typeof serveLog>>;

/** An api process whose log the test writes itself, in place of the relay. */
export const serveLog = async (t: Test, options: AppOptions = {}) => {
  const app = await startApp(t, { roles: ['api'], ...options });
  const redis = new Redis(app.stores.redis_url.replace(/^unix:/, ''), {
    commandTimeout: 2_000,
    maxRetriesPerRequest: 0,
  });
  redis.on('error', () => undefined);
  t.teardown(() => redis.disconnect());
  return { app, redis, log: makeLogWriter(app.sql, redis, app.stores.redis_prefix) };
};

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

let next_port = 10_000 + ((process.pid * 7) % 20_000);

/** A free port below those that the system gives to connections. */
export const findPort = async (): Promise<number> => {
  do next_port += 1;
  while (!(await isFree(next_port)));
  return next_port;
};
