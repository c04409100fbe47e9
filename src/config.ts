import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { publicUrlProblem } from './boot/machine.mjs';

/**
 * Reads the settings: environment variables → one frozen Config. No other file reads them from
 * `process.env`. Every setting is one entry of `settings` below. The table of settings is generated
 * from these entries, and `doctor` lists them. `NAME_FILE` reads any setting from a file. `PF_NAME`
 * is a synonym for `NAME`. An unknown `PF_` name is rejected, so that typos are noticed.
 */

const integer = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.coerce.number({ error }).int({ error }).min(min, { error }).max(max, { error });
};
const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);
const flag = z
  .enum(['true', 'false', '1', '0'])
  .transform((text) => text === 'true' || text === '1');
const address = z.string().min(1).optional();
const key = z.string().min(32).optional();
const log_levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

interface Setting<S extends z.ZodType = z.ZodType> {
  readonly schema: S;
  readonly fallback?: string;
  readonly about: string;
  readonly secret?: boolean;
}
const setting = <S extends z.ZodType>(
  schema: S,
  fallback: string | undefined,
  about: string,
  secret = false,
): Setting<S> => ({ schema, about, secret, ...(fallback === undefined ? {} : { fallback }) });

const secret = <S extends z.ZodType>(schema: S, about: string) =>
  setting(schema, undefined, about, true);

const toggle = (about: string) => setting(flag, 'false', about);

const count = (min: number, max: number, fallback: number, about: string) =>
  setting(integer(min, max), String(fallback), about);

const keepDays = (about: string) => {
  const error = 'must be a whole number from 8 to 36500, or 0';
  const days = integer(0, 36_500).refine((n) => n === 0 || n >= 8, { error });
  return setting(days, '0', `${about}: 8 or more; 0 keeps them for ever.`);
};

const limit = (fallback: number, about: string) => count(1, 100_000_000, fallback, about);

export const role_names = ['api', 'relay', 'signer', 'timer'] as const;
export type RoleName = (typeof role_names)[number];

export const settings = {
  PORT: count(0, 65_535, 8_080, 'Port of the HTTP and websocket server; 0 picks a free one.'),
  HOST: setting(z.string().min(1), '127.0.0.1', 'Address that the server listens on.'),
  PUBLIC_URL: setting(
    z
      .url({ protocol: /^https?$/ })
      .superRefine((url, { addIssue }) => {
        const message = publicUrlProblem(url);
        if (message !== null) addIssue({ code: 'custom', message });
      })
      // Spelled as browsers spell an origin, because browsers compare origins letter by letter.
      .transform((url) => new URL(url).origin)
      .optional(),
    undefined,
    'Public address of the service. Links in e-mails and feeds use it.',
  ),
  NODE_ENV: setting(
    z.enum(['development', 'production', 'test']),
    'development',
    'Production hides the development pages and refuses the webhook settings for labs.',
  ),
  DATA_DIR: setting(
    z
      .string()
      .min(1)
      .transform((dir) => path.resolve(dir)),
    '.data',
    'Folder for the data that the service stores itself: embedded stores, keys, logs.',
  ),
  DATABASE_URL: secret(address, 'Postgres 14 or newer. If not set, an embedded one is started.'),
  DATABASE_REPLICA_URL: secret(
    address,
    'Postgres replica for lists, leaderboards and exports. It is used only while it is up to date.',
  ),
  DATABASE_POOL: count(2, 100, 8, 'Postgres connections per process.'),
  DATABASE_PREPARE: setting(
    flag,
    'true',
    'Use prepared statements; set it to false for a transaction pooler.',
  ),
  REDIS_URL: secret(
    address,
    'Redis 7 or newer: redis://, rediss:// or unix:PATH; a cluster as redis://A,B,C/?cluster; ' +
      'Sentinels as redis://A,B/?sentinel=NAME. If not set, an embedded one is started.',
  ),
  REDIS_PREFIX: setting(
    z.string().regex(/^[a-z0-9_-]{1,40}$/),
    'pf',
    'First part of every Redis key, so that several services can share one Redis.',
  ),
  ROLES: setting(
    list.pipe(z.array(z.enum([...role_names, 'all'])).min(1)),
    'all',
    'Roles to run: api, relay, signer, timer, or all.',
  ),
  API_PROCESSES: count(
    1,
    256,
    Math.max(1, os.availableParallelism() - 1),
    'Number of api processes that share the port; by default the number of cores minus one.',
  ),
  DRAIN_DELAY_S: count(
    0,
    60,
    0,
    'Seconds to keep serving at shutdown, with /readyz at 503, so that load balancers notice it.',
  ),
  PROCESS_HEAP_MB: count(64, 65_536, 512, 'Maximum JavaScript heap of one process, in MB.'),
  SOCKETS_KEY: count(1, 1_000_000, 20, 'Maximum sockets, and event streams, per agent or person.'),
  SOCKETS_IP: count(1, 1_000_000, 200, 'The same per address (IPv6: /64).'),
  SOCKET_LIFETIME_S: count(
    1,
    14_400,
    14_400,
    'Seconds (± 20 %) until a websocket has to reconnect. If lower, new hosts get sockets sooner.',
  ),
  ADMIN_KEY: secret(key, 'Key for X-Admin-Key; the first start makes one in DATA_DIR/admin-key.'),
  ADMIN_EMAILS: setting(list, '', 'People with these verified addresses are admins.'),
  SECURITY_CONTACT: setting(
    z.string(),
    '',
    'Contact for security reports in security.txt: a mailto: or https: address; empty: /about.',
  ),
  SECRET_KEY: secret(
    key,
    'Encrypts webhook secrets, e-mails and stored responses; the first start makes it in DATA_DIR.',
  ),
  SMTP_URL: secret(
    z.url({ protocol: /^smtps?$/ }).optional(),
    'Mail server; without it e-mails go to the log and to the development outbox page.',
  ),
  MAIL_FROM: setting(
    z.string().min(3),
    'Prediction Forum <forum@localhost>',
    'Sender of the e-mails.',
  ),
  MAIL_BOUNCE_SECRET: secret(
    key,
    'Secret with which a mail provider reports bounces to /api/mail/bounces; off if not set.',
  ),
  DATA_LICENSE: setting(
    z.string().min(1).max(200),
    'CC-BY-4.0',
    'Licence of the exported data, as manifests name it: an SPDX identifier or an address.',
  ),
  WEBHOOK_HEADER_PREFIX: setting(
    z.string().regex(/^X-[A-Za-z0-9-]{1,20}$/),
    'X-Svc',
    'First part of the names of the webhook headers.',
  ),
  WEBHOOK_ALLOW_CIDRS: setting(
    list,
    '',
    'Private address ranges that calls to webhooks and sources may reach; for labs and tests.',
  ),
  WEBHOOK_CA_FILE: setting(
    z.string().optional(),
    undefined,
    'PEM file of another certificate authority that webhook targets may use; for labs and tests.',
  ),
  WEBHOOK_ALLOW_IN_PRODUCTION: toggle('Allow the two settings above in production.'),
  WEBHOOK_DNS_SERVERS: setting(
    list,
    '',
    "Name servers for webhook targets, as address or address:port; empty: the system's own.",
  ),
  WEBHOOK_KEEP_DAYS: count(8, 3_650, 30, 'Days for which finished deliveries are stored.'),
  EVENTS_KEEP_DAYS: keepDays('Days for which events of the log are stored'),
  SNAPSHOTS_KEEP_DAYS: keepDays('Days for which hourly snapshots of the consensus are stored'),
  ARCHIVE_DIR: setting(
    z
      .string()
      .min(1)
      .transform((dir) => path.resolve(dir))
      .optional(),
    undefined,
    'Folder to which old events, attempts and snapshots are written as Parquet before deletion.',
  ),
  TRUSTED_PROXIES: setting(list, '', 'Address ranges of proxies whose X-Forwarded-For is trusted.'),
  LOG_LEVEL: setting(z.enum(log_levels), 'info', 'Lowest level that is logged; requests are info.'),
  METRICS_PORT: setting(
    integer(0, 65_535).optional(),
    undefined,
    'Port of /livez, /readyz and /metrics; each further process uses the next one. Off if not set.',
  ),
  MODEL_FAMILY_CAP: count(
    0,
    1_000_000,
    0,
    'Maximum predictions of one model family per question; 0 for no cap.',
  ),
  REQUIRE_RESOLUTION_PROTOCOL: toggle('Refuse predictions without a resolution_protocol.'),
  CITATIONS_REACHABLE: toggle('Refuse predictions with fewer than two sources that can be read.'),
  HIDE_REASONING: toggle(
    'Show the reasoning on an open question only to agents that predicted on it.',
  ),
  ORIGINALITY_MB: count(8, 65_536, 48, 'MB that an api process uses to compare predictions.'),
  LIMIT_IP: limit(1_000, 'Requests per minute from one address (IPv6: one /64).'),
  LIMIT_KEY: limit(6_000, 'Requests per minute with one key.'),
  LIMIT_REGISTER: limit(5, 'Registrations per minute from one address.'),
  LIMIT_PREDICTIONS: limit(120, 'Predictions and revisions per minute by one agent.'),
  LIMIT_COMMENTS: limit(40, 'Comments and replies per minute with one key.'),
  LIMIT_VOTES: limit(120, 'Votes per minute with one key.'),
  LIMIT_REPORTS: limit(20, 'Reports per day by one person, alone and through agents.'),
  LIMIT_WEBHOOKS: limit(20, 'Webhook changes, tests and replays per minute with one key.'),
  LIMIT_EXPORTS: limit(10, 'Exports per minute from one address.'),
  LIMIT_PICTURES: limit(60, 'PNG pictures per minute from one address.'),
  LIMIT_LOGIN: limit(10, 'Sign-ups and log-ins per minute from one address.'),
  LIMIT_LOGIN_FAILURES: limit(
    10,
    'Failed log-ins per hour and account: from each known address, and from all other addresses.',
  ),
} as const;

export type SettingName = keyof typeof settings;
export type Config = {
  readonly [K in SettingName]: z.output<(typeof settings)[K]['schema']>;
};

export class ConfigError extends Error {
  constructor(
    readonly problems: readonly string[],
    /** The settings that are valid. */
    readonly values: Partial<Config> = {},
  ) {
    super(`Invalid settings:\n${problems.map((line) => `  - ${line}`).join('\n')}`);
    this.name = 'ConfigError';
  }
}

const readValue = (
  env: NodeJS.ProcessEnv,
  name: string,
  problems: string[],
): string | undefined => {
  const given = env[`PF_${name}`] ?? env[name];
  const file = env[`PF_${name}_FILE`] ?? env[`${name}_FILE`];
  if (name.endsWith('_FILE') || file === undefined || file === '') {
    return given === '' ? undefined : given;
  }
  if (given !== undefined && given !== '') {
    problems.push(`${name} and ${name}_FILE are both set. Remove one.`);
    return undefined;
  }
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch {
    problems.push(`${name}_FILE: ${file} cannot be read.`);
    return undefined;
  }
};

const checkProduction = (config: Config, problems: string[]): void => {
  if (config.NODE_ENV !== 'production' || config.WEBHOOK_ALLOW_IN_PRODUCTION) return;
  for (const name of ['WEBHOOK_ALLOW_CIDRS', 'WEBHOOK_CA_FILE'] as const) {
    const value = config[name];
    if (value !== undefined && value.length > 0) {
      problems.push(`${name} is for labs. Production also needs WEBHOOK_ALLOW_IN_PRODUCTION=true.`);
    }
  }
};

/** Reads the settings, or throws a ConfigError that lists all problems together. */
export const readConfig = (env: NodeJS.ProcessEnv = process.env): Config => {
  const problems: string[] = [];
  const known = new Set(Object.keys(settings));
  for (const name of Object.keys(env)) {
    if (!name.startsWith('PF_')) continue;
    const bare = name.slice(3);
    if (!known.has(bare) && !known.has(bare.replace(/_FILE$/, ''))) {
      problems.push(`${name} is not a setting. \`npm run doctor\` lists all settings.`);
    }
  }
  const values: Record<string, unknown> = {};
  for (const [name, { schema, fallback }] of Object.entries<Setting>(settings)) {
    const before = problems.length;
    const given = readValue(env, name, problems);
    if (problems.length > before) continue;
    const result = schema.safeParse(given ?? fallback);
    if (result.success) values[name] = result.data;
    else problems.push(`${name}: ${result.error.issues.map((i) => i.message).join('; ')}`);
  }
  const config = values as Config;
  if (problems.length === 0) checkProduction(config, problems);
  if (problems.length > 0) throw new ConfigError(problems, config);
  return Object.freeze(config);
};

/** Returns the base address for links: PUBLIC_URL, else the address of the server. */
export const publicUrl = (config: Config, port: number = config.PORT): string =>
  config.PUBLIC_URL ??
  `http://${config.HOST.includes(':') ? `[${config.HOST}]` : config.HOST}:${port}`;
