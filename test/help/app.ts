import type { Test } from 'tap';
import { type RoleName, readConfig, settings } from '../../src/config.js';
import { openSql } from '../../src/db/client.js';
import { startProcess } from '../../src/process/start.js';
import { checkAnswers } from './checked.js';
import { openStores, type Stores } from './stores.js';

/** Starts the whole service inside a test, with its own database, Redis prefix and port. */

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: an answer is read by tests that know its shape.
  readonly body: any;
}

export interface CallOptions {
  readonly key?: string;
  readonly token?: string;
  readonly admin?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. A string is sent unchanged. */
  readonly body?: unknown;
}

export interface AppOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly roles?: readonly RoleName[];
  readonly stores?: Stores;
  /** False for tests whose answers deliberately break their schema. */
  readonly check_answers?: boolean;
  /** Time between two ticks of a socket or an event stream. */
  readonly tick_ms?: number;
}

export const admin_key = 'test-admin-key-0123456789abcdefghij';
export const bounce_secret = 'test-bounce-secret-0123456789abcdefghij';
export const secret_key = 'test-secret-key-0123456789abcdefghij';

/** Limits so high that no test reaches them. */
export const no_limits: Readonly<Record<string, string>> = Object.fromEntries(
  Object.keys(settings)
    .filter((name) => name.startsWith('LIMIT_'))
    .map((name) => [name, '100000000']),
);

export const makeCaller =
  (url: string) =>
  async (method: string, path: string, options: CallOptions = {}): Promise<Answered> => {
    const headers: Record<string, string> = { ...options.headers };
    if (options.key !== undefined) headers['x-api-key'] = options.key;
    if (options.token !== undefined) headers['authorization'] = `Bearer ${options.token}`;
    if (options.admin === true) headers['x-admin-key'] = admin_key;
    let body: string | undefined;
    if (options.body !== undefined) {
      headers['content-type'] ??= 'application/json';
      body = typeof options.body === 'string' ? options.body : JSON.stringify(options.body);
    }
    const answer = await fetch(url + path, {
      method,
      headers,
      redirect: 'manual',
      ...(body === undefined ? {} : { body }),
    });
    const is_endless = answer.headers.get('content-type') === 'text/event-stream';
    if (is_endless) await answer.body?.cancel();
    const text = is_endless ? '' : await answer.text();
    const json = answer.headers.get('content-type')?.startsWith('application/json') === true;
    return {
      status: answer.status,
      headers: answer.headers,
      body: json && text !== '' ? JSON.parse(text) : text,
    };
  };

export type TestApp = Awaited<ReturnType<typeof startApp>>;

export const startApp = async (t: Test, options: AppOptions = {}) => {
  const stores = options.stores ?? (await openStores(t));
  const config = readConfig({
    PORT: '0',
    DATABASE_URL: stores.database_url,
    DATABASE_POOL: '6',
    REDIS_URL: stores.redis_url,
    REDIS_PREFIX: stores.redis_prefix,
    ADMIN_KEY: admin_key,
    SECRET_KEY: secret_key,
    MAIL_BOUNCE_SECRET: bounce_secret,
    LOG_LEVEL: process.env['TEST_LOG_LEVEL'] ?? 'error',
    API_PROCESSES: '1',
    LIMIT_IP: '1000000',
    LIMIT_REGISTER: '1000000',
    LIMIT_LOGIN: '1000000',
    ...options.env,
  });
  const roles = options.roles ?? ['api', 'relay', 'timer', 'signer'];
  const running = await Promise.all(
    roles.map((role) =>
      startProcess(config, {
        role,
        index: 0,
        shared_port: false,
        ...(options.check_answers === false ? {} : { prepareRoute: checkAnswers }),
        ...(options.tick_ms === undefined ? {} : { tick_ms: options.tick_ms }),
      }),
    ),
  );
  const port = running[roles.indexOf('api')]?.port ?? 0;
  const url = `http://127.0.0.1:${port}`;
  /** The test's own connection to the same database. */
  const sql = openSql({ url: stores.database_url, pool: 3, prepare: true, name: 'test' });
  let stopped = false;
  const stop = async (): Promise<void> => {
    if (stopped) return;
    stopped = true;
    await Promise.all(running.map((part) => part.stop()));
    await sql.end({ timeout: 1 });
  };
  t.teardown(stop);
  return { url, port, admin_key, stores, sql, call: makeCaller(url), stop };
};
