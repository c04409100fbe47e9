import { createServer } from 'node:net';
import type { Test } from 'tap';
import { type AppOptions, startApp } from '../../help/app.js';
import { makeLogWriter } from '../../help/log.js';
import { openTestRedis } from '../../help/stores.js';

export type LogServer = Awaited<ReturnType<typeof serveLog>>;

/** An api process whose log is written by the test, instead of the relay. */
export const serveLog = async (t: Test, options: AppOptions = {}) => {
  const app = await startApp(t, { roles: ['api'], ...options });
  const redis = await openTestRedis(t, app.stores.redis_url);
  return { app, redis, log: makeLogWriter(app.sql, redis, app.stores.redis_prefix) };
};

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

let next_port = 10_000 + ((process.pid * 7) % 20_000);

/** A free port below the range that the system uses for outgoing connections. */
export const findPort = async (): Promise<number> => {
  do next_port += 1;
  while (!(await isFree(next_port)));
  return next_port;
};
