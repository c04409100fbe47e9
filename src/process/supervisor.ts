import { fstatSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { makeTerminal, type Terminal } from '../boot/terminal.mjs';
import { type Config, ConfigError, publicUrl, type RoleName } from '../config.js';
import { migrate } from '../db/migrate.js';
import { makeId } from '../kit/ids.js';
import { makeLog, reopenLogs } from '../kit/log.js';
import { isOutage } from '../kit/outage.js';
import { readRedisAddress } from '../redis/address.js';
import { lookAtRedis } from '../redis/look.js';
import {
  claimDataDir,
  type DataDirClaim,
  keepLogsSmall,
  openLog,
  type Say,
} from './embedded/data-dir.js';
import type { DevCaFiles } from './embedded/dev-ca.js';
import { startPostgres } from './embedded/postgres.js';
import { placeOutside } from './embedded/postgres-home.js';
import { type EmbeddedStore, pickPort, probePort, signalProcess } from './embedded/processes.js';
import { startRedis } from './embedded/redis.js';
import { caSettings, isLoopback, keySettings, layOver, openDevCa } from './made-settings.js';
import { endOrphans, keepAlive, keepRole, type RoleProcess, rest } from './role-process.js';

/**
 * Runs the whole service. Order of the start: claim DATA_DIR → check the port → stores → migrations
 * → keys → role processes. Order of the stop: api (no new calls) → the other roles (they finish
 * their work) → Redis → Postgres. A second signal ends everything by force, and so does a stop that
 * takes 20 s longer than DRAIN_DELAY_S.
 */

export interface SupervisorOptions {
  readonly config: Config;
  /** The environment for the role processes. Settings that are made here are added to it. */
  readonly env: NodeJS.ProcessEnv;
  /** The program that the role processes run. */
  readonly entry: string;
  /** Called once the service is running. If set, nothing else is written to standard output. */
  readonly onRunning?: (facts: Readonly<Record<string, unknown>>) => void;
}

interface Supervisor extends SupervisorOptions {
  readonly say: Say;
  readonly step: Terminal['step'];
  readonly claim: DataDirClaim;
  readonly signals: ReturnType<typeof watchStopSignals>;
  readonly stores: SupervisedStore[];
  readonly roles: { readonly role: RoleName; readonly process: RoleProcess }[];
}

const stop_ms = 20_000;
const api_stop_ms = 13_000;
const worker_stop_ms = 5_000;

/** Runs until it is told to stop; returns the exit code. Throws problems that a person must fix. */
export const runSupervisor = async (options: SupervisorOptions): Promise<number> => {
  const { config } = options;
  const { say, step } = makeOutput(options);
  const signals = watchStopSignals(options.env);
  const claim = await claimDataDir(config.DATA_DIR);
  const self: Supervisor = { ...options, say, step, claim, signals, stores: [], roles: [] };
  const leaveLogs = keepLogsSmall(path.join(config.DATA_DIR, 'log'), say);
  process.on('SIGUSR2', () => {
    reopenLogs();
    for (const { process: one } of self.roles) one.reopenLog();
  });
  try {
    await start(self);
    await Promise.race([whenAborted(signals.stop), ...self.roles.map((one) => one.process.failed)]);
    const code = await stop(self);
    if (code === 0) say(`Stopped.${whereData(config)}`);
    return code;
  } catch (error) {
    await stop(self);
    throw error;
  } finally {
    leaveLogs();
    claim.release();
  }
};

/**
 * In production all logs are JSON lines, including this process's, and the steps of the start are not
 * logged.
 */
const makeOutput = (options: SupervisorOptions): Pick<Terminal, 'say' | 'step'> => {
  const { config, onRunning } = options;
  if (config.NODE_ENV !== 'production') {
    const output = onRunning === undefined ? process.stdout : process.stderr;
    return makeTerminal(output);
  }
  const target = logFile(options) ?? outputOf(options);
  const { log } = makeLog('info', { role: 'supervisor' }, target);
  return { say: (msg) => log.info(msg), step: async (_, work) => (await work()) !== null };
};

/** The descriptor that a production log goes to. */
const outputOf = ({ onRunning }: SupervisorOptions): number => (onRunning === undefined ? 1 : 2);

/**
 * Returns the log file, which is opened again after a rotation. In production, it is the file to
 * which the output is redirected, if there is such a file.
 */
const logFile = (options: SupervisorOptions): string | undefined => {
  const { DATA_DIR, NODE_ENV } = options.config;
  if (NODE_ENV !== 'production') return path.join(DATA_DIR, 'log', 'forum.log');
  const fd = outputOf(options);
  try {
    return fstatSync(fd).isFile() ? readlinkSync(`/proc/self/fd/${fd}`) : undefined;
  } catch {
    return undefined;
  }
};

const wantedRoles = ({ ROLES }: Config): readonly RoleName[] =>
  (['api', 'relay', 'signer', 'timer'] as const).filter(
    (role) => ROLES.includes('all') || ROLES.includes(role),
  );

/** The role of each process, in the order in which they start. */
const rolesToStart = (config: Config): readonly RoleName[] => {
  const wanted = wantedRoles(config);
  return [
    ...wanted.flatMap((role) =>
      role === 'api' ? Array.from({ length: config.API_PROCESSES }, () => role) : [role],
    ),
    // A standby: if the first relay hangs, events continue within two seconds.
    ...wanted.filter((role) => role === 'relay'),
  ];
};

const start = async (self: Supervisor): Promise<void> => {
  const { config, signals } = self;
  checkRedisAddress(config);
  await endOrphans(config.DATA_DIR);
  if (wantedRoles(config).includes('api')) await checkPort(config);
  await checkMetricsPorts(config);
  const { urls, dev_ca } = await openAll(self);
  if (signals.stop.aborted) return;
  if (config.REDIS_URL !== undefined) void tellOfRedis(self, config.REDIS_URL);
  await self.step('Bringing the database to the current schema', async () => {
    await migratePatiently(self, urls.DATABASE_URL);
    return 'The database has the current schema';
  });
  if (signals.stop.aborted) return;
  let port: number | undefined;
  await self.step('Starting the processes of the service', async () => {
    port = await startRoles(self, { ...urls, ...keySettings(config), ...caSettings(dev_ca) });
    return signals.stop.aborted ? null : `${self.roles.length} processes are ready`;
  });
  if (signals.stop.aborted) return;
  const url = port === undefined ? undefined : publicUrl(config, port);
  self.claim.note({ state: 'running', ...(url === undefined ? {} : { url }) });
  for (const line of banner(config, url, dev_ca)) self.say(line);
  self.onRunning?.({ url: url ?? null, pid: process.pid, data_dir: config.DATA_DIR });
};

/** Starts the stores and makes certificates. */
const openAll = async (self: Supervisor) => {
  const { config } = self;
  const open = () => Promise.all([openStores(self), openDevCa(config)]);
  const names = [
    ...(config.DATABASE_URL === undefined ? ['Postgres'] : []),
    ...(config.REDIS_URL === undefined ? ['Redis'] : []),
  ].join(' and ');
  let opened: Awaited<ReturnType<typeof open>> | undefined;
  if (names !== '') {
    await self.step(`Starting ${names}`, async () => {
      opened = await open();
      return `${names} started`;
    });
  }
  const [urls, dev_ca] = opened ?? (await open());
  return { urls, dev_ca };
};

const port_problems: Readonly<Record<string, string>> = {
  EACCES: 'needs more rights. Set PORT to 1024 or more',
  EADDRNOTAVAIL: 'cannot be used, because HOST is not an address of this machine',
  ENOTFOUND: 'cannot be used, because HOST is not an address of this machine',
};

/** Without this check the api could share another program's port, and get half of its traffic. */
const checkPort = async ({ PORT, HOST }: Config): Promise<void> => {
  const problem = await probePort(PORT, HOST);
  if (problem === null) return;
  if (problem === 'EADDRINUSE') {
    const other = PORT < 65_535 ? PORT + 1 : 8080;
    throw new Error(
      `Port ${PORT} on ${HOST} is in use. Stop the other program, or use another port: PORT=${other} npm start`,
    );
  }
  throw new Error(`Port ${PORT} on ${HOST} ${port_problems[problem] ?? `fails: ${problem}`}.`);
};

/** Returns why a port of METRICS_PORT cannot be used, or null. Each process has a port. */
export const metricsProblem = async (config: Config): Promise<string | null> => {
  const { PORT, HOST, METRICS_PORT } = config;
  if (METRICS_PORT === undefined) return null;
  const ports = rolesToStart(config).map((_, index) => METRICS_PORT + index);
  for (const port of ports) {
    const problem = port === PORT ? 'it is PORT too' : await probePort(port, HOST);
    if (problem === null) continue;
    return `METRICS_PORT: port ${port} on ${HOST} cannot be used (${problem}). The processes need the ports ${ports[0]} to ${ports.at(-1)}.`;
  }
  return null;
};

const checkMetricsPorts = async (config: Config): Promise<void> => {
  const problem = await metricsProblem(config);
  if (problem !== null) throw new Error(problem);
};

/** Waits for both stores even if one fails, because a store that has started must be stopped. */
const openStores = async (self: Supervisor) => {
  const { config, stores } = self;
  const open = async (name: 'Redis' | 'Postgres'): Promise<string> => {
    const store = await superviseStore(self, name);
    stores.push(store);
    return store.url;
  };
  const opening = [config.DATABASE_URL ?? open('Postgres'), config.REDIS_URL ?? open('Redis')];
  await Promise.allSettled(opening);
  const [DATABASE_URL = '', REDIS_URL = ''] = await Promise.all(opening);
  return { DATABASE_URL, REDIS_URL };
};

const migrate_ms = 30_000;

const jitAdvice = (why: string): string =>
  'Postgres (DATABASE_URL) compiles statements, and this user may not turn that off, so answers ' +
  `and events can be late. Set jit = off on the server. (${why})`;

/** A database that somebody else runs may still be starting, for example in another container. */
const migratePatiently = async ({ say, signals }: Supervisor, url: string): Promise<void> => {
  const deadline = Date.now() + migrate_ms;
  for (let said = false; ; said = true) {
    try {
      const { jit_stays } = await migrate(url);
      if (jit_stays !== null) say(jitAdvice(jit_stays));
      return;
    } catch (error) {
      if (!isOutage(error) || signals.stop.aborted) throw error;
      const why = error instanceof Error ? error.message : String(error);
      if (Date.now() > deadline) {
        throw new Error(`Postgres (DATABASE_URL) does not answer: ${why}`, { cause: error });
      }
      if (!said) say(`Waiting up to ${migrate_ms / 1_000} s for Postgres (DATABASE_URL): ${why}`);
      await rest(250, signals.stop);
    }
  }
};

const checkRedisAddress = ({ REDIS_URL }: Config): void => {
  try {
    if (REDIS_URL !== undefined) readRedisAddress(REDIS_URL);
  } catch (error) {
    throw new ConfigError([`REDIS_URL: ${(error as Error).message}`]);
  }
};

/** Warns if Redis cannot be used. The start does not wait, because Redis may come later. */
const tellOfRedis = async ({ say }: Supervisor, url: string): Promise<void> => {
  try {
    await lookAtRedis(url);
  } catch (error) {
    const why = (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
    say(`Redis (REDIS_URL): ${why}. Check again with: npm run doctor`);
  }
};

/** Starts every role. Resolves once all are ready, with the port of the api processes, if any. */
const startRoles = async (
  self: Supervisor,
  made: Readonly<Record<string, string>>,
): Promise<number | undefined> => {
  const { config, env, entry, say, roles, signals } = self;
  const { DATA_DIR, HOST, NODE_ENV, API_PROCESSES, PROCESS_HEAP_MB: heap_mb } = config;
  const log_file = logFile(self);
  const openOutput = (): number | 'inherit' => {
    if (NODE_ENV === 'production') return self.onRunning === undefined ? 'inherit' : 2;
    return openLog(path.join(DATA_DIR, 'log', 'forum.log'));
  };
  // Chosen here, so that all api processes get the same port and keep it after a restart.
  const port = config.PORT === 0 ? await pickPort(HOST) : config.PORT;
  const process_env = layOver(env, { ...made, PORT: String(port) });
  const common = { entry, data_dir: DATA_DIR, env: process_env, openOutput, say, heap_mb } as const;
  const supervisor_id = makeId();
  const startRole = (role: RoleName): void => {
    const index = roles.length;
    const shared_port = role === 'api' && API_PROCESSES > 1;
    const of_role = { role, index, shared_port, slot: `${supervisor_id}/${index}` };
    const args = { ...of_role, ...(log_file === undefined ? {} : { log_file }) };
    roles.push({ role, process: keepRole({ ...common, args }) });
  };
  for (const role of rolesToStart(config)) startRole(role);
  const ports = Promise.all(roles.map((each) => each.process.ready));
  const failures = roles.map((each) => each.process.failed);
  await Promise.race([ports, whenAborted(signals.stop), ...failures]);
  return wantedRoles(config).includes('api') ? port : undefined;
};

/** Stops everything in order, or by force after a second signal or if it takes too long. */
const stop = async (self: Supervisor): Promise<number> => {
  const { claim, roles, stores, signals, say, config } = self;
  const delay_ms = config.DRAIN_DELAY_S * 1_000;
  claim.note({ state: 'stopping' });
  const stopRoles = (wanted: (role: RoleName) => boolean, within_ms: number) =>
    Promise.all(
      roles.filter(({ role }) => wanted(role)).map(({ process }) => process.stop(within_ms)),
    );
  const inOrder = async (): Promise<number> => {
    await stopRoles((role) => role === 'api', api_stop_ms + delay_ms);
    await stopRoles((role) => role !== 'api', worker_stop_ms);
    // Redis stops before Postgres, no matter which of them was ready first.
    for (const store of [...stores].sort((a, b) => b.name.localeCompare(a.name))) {
      await store.stop();
    }
    return 0;
  };
  const forced = rest(stop_ms + delay_ms, signals.force).then(() => 1);
  const code = await Promise.race([inOrder(), forced]);
  if (code === 0) return 0;
  say('Stopping by force.');
  for (const { process } of roles) process.kill();
  await Promise.all(stores.map((store) => store.kill()));
  return 1;
};

/** For one Ctrl-C, the terminal and npm each send a signal. Signals this close count as one. */
const same_ms = 300;
const parent_every_ms = 500;

/**
 * Watches for requests to stop. `stop` is aborted by the first signal, or when the npm that started
 * this process ends. `force` is aborted by the second signal.
 */
const watchStopSignals = (env: NodeJS.ProcessEnv) => {
  let first_at = 0;
  const stop = new AbortController();
  const force = new AbortController();
  const onSignal = (): void => {
    if (first_at !== 0 && Date.now() - first_at > same_ms) force.abort();
    first_at ||= Date.now();
    stop.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal);
  // A closed terminal or a killed npm must not end this process before its children.
  process.stdout.on('error', () => undefined);
  process.stderr.on('error', () => undefined);
  if (env['npm_lifecycle_event'] !== undefined) watchParent(onSignal);
  return { stop: stop.signal, force: force.signal };
};

const whenAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve());
  });

/** If npm is killed, it passes no signal on, so no signal would stop this process. */
const watchParent = (onGone: () => void): void => {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    onGone();
  }, parent_every_ms);
  timer.unref();
};

const kill_ms = 2_000;

type SupervisedStore = Awaited<ReturnType<typeof superviseStore>>;

/** Runs an embedded store, and starts it again at the same address whenever it ends. */
const superviseStore = async (
  { config, say }: Pick<Supervisor, 'config' | 'say'>,
  name: 'Redis' | 'Postgres',
) => {
  const stopped = new AbortController();
  const start = (): Promise<EmbeddedStore> =>
    (name === 'Redis' ? startRedis : startPostgres)({ data_dir: config.DATA_DIR, say });
  let store = await start();
  const { url } = store;
  let has_ended = false;
  const live = async (): Promise<string> => {
    try {
      if (has_ended) store = await start();
      // If a start was in progress when the stop came, the store that it started must stop too.
      if (stopped.signal.aborted) await store.stop();
      else if (has_ended) say(`${name} runs again.`);
      has_ended = false;
      await store.exited;
      has_ended = true;
      return 'its process is gone';
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  };
  const done = keepAlive({ name, say, live, stopped: stopped.signal });
  return {
    name,
    url,
    async stop(): Promise<void> {
      stopped.abort();
      await store.stop();
      await done;
    },
    async kill(): Promise<void> {
      stopped.abort();
      // Ends the store at once, but in a way that leaves usable files for the next start.
      signalProcess(store.pid, name === 'Redis' ? 'SIGKILL' : 'SIGQUIT');
      await Promise.race([store.exited, wait(kill_ms)]);
      signalProcess(store.pid, 'SIGKILL');
    },
  };
};

/** A path below the current folder is shown relative to it. */
const showPath = (file: string): string => {
  const relative = path.relative('', file);
  return relative.startsWith('..') ? file : relative;
};

const dataFolders = ({ DATA_DIR, DATABASE_URL, REDIS_URL }: Config): readonly string[] =>
  DATABASE_URL === undefined || REDIS_URL === undefined
    ? [showPath(DATA_DIR), placeOutside(DATA_DIR)].filter((folder) => folder !== '')
    : [];

const whereData = (config: Config): string => {
  const folders = dataFolders(config);
  return folders.length === 0 ? '' : ` Data is in ${folders.join(' and ')}.`;
};

/** Returns the lines for the terminal once the service is running. They never contain a secret. */
export const banner = (
  config: Config,
  url: string | undefined,
  dev_ca: DevCaFiles | null,
): readonly string[] => {
  const { ADMIN_KEY, DATA_DIR, NODE_ENV } = config;
  const here = (name: string): string => showPath(path.join(DATA_DIR, name));
  const production = NODE_ENV === 'production';
  const folders = dataFolders(config);
  const facts: readonly (readonly [string, string])[] = [
    ['admin key', ADMIN_KEY === undefined ? here('admin-key') : 'as set in ADMIN_KEY'],
    [
      'data',
      folders.length > 0
        ? `${folders.join(' and ')} (npm run backup)`
        : 'in the stores that are set',
    ],
    ['logs', production ? 'this output, one JSON line each' : here('log/forum.log')],
  ];
  const lines = facts.map(([name, value]) => `  ${name.padEnd(10)} ${value}`);
  const headline =
    url === undefined
      ? 'Prediction Forum is running without an api.'
      : `Prediction Forum is running at ${url}`;
  if (production) return [headline, ...lines.map((line) => line.trim())];
  if (!isLoopback(config.HOST)) lines.push('', ...open_warning);
  return ['', headline, '', ...lines, ...(url === undefined ? [] : tryNext(url, dev_ca)), ''];
};

const open_warning = [
  '  WARNING: other machines can reach this service, and in development mode /dev/outbox shows',
  '  everybody every e-mail with its links. Set NODE_ENV=production or HOST=127.0.0.1.',
];

const tryNext = (url: string, dev_ca: DevCaFiles | null): readonly string[] => {
  const body = '{"name":"First Light","model":"claude-sonnet-4"}';
  const lines = [
    '',
    '  Try next:',
    `    open ${url} in a browser; ${url}/docs has every call`,
    '    npx prediction-forum quickstart    an agent registers and predicts once',
    '    npm run demo                       adds 60 days of forecasts by 24 agents',
    `    curl -X POST ${url}/api/register \\`,
    `      -H 'content-type: application/json' -d '${body}'`,
  ];
  if (dev_ca === null) return lines;
  return [
    ...lines,
    '',
    '  Webhooks can call https://127.0.0.1:PORT (10000 or more) if it uses the certificate',
    `    ${showPath(dev_ca.cert_file)} and its key ${showPath(dev_ca.key_file)}`,
  ];
};
