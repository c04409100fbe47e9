import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import calculateSlot from 'cluster-key-slot';
import { Redis } from 'ioredis';
import { pickPort, signalProcess, startServer } from '../../src/process/embedded/processes.js';
import { lookUp } from '../../src/process/embedded/redis.js';
import { makeTestFolder, removeTestFolder } from './own-stores.js';
import { until } from './until.js';

/**
 * Redis servers on ports of this machine: a cluster of masters and replicas, or a master, a replica
 * and Sentinels.
 */

const host = '127.0.0.1';
const stop_steps = [['SIGKILL', 2_000]] as const;
/** A node that does not respond for this long is considered dead. */
const node_timeout_ms = 1_000;

type Settings = Readonly<Record<string, string>>;

const answers = async (client: Redis): Promise<boolean> =>
  client.ping().then(
    () => true,
    () => false,
  );

/** A server that can be killed and started again with its data. */
const startNode = async (folder: string, settings: Settings, sentinel?: string) => {
  const port = await pickPort();
  // Redis itself would choose a port that the system may use for outgoing connections.
  const bus_port = await pickPort();
  const home = path.join(folder, String(port));
  mkdirSync(home, { recursive: true });
  const config = path.join(home, 'redis.conf');
  const all: Record<string, string> = {
    dir: home,
    port: String(port),
    bind: host,
    save: '""',
    ...settings,
  };
  if (settings['cluster-enabled'] === 'yes') all['cluster-port'] = String(bus_port);
  const lines = Object.entries(all).map(([name, value]) => `${name} ${value}`);
  writeFileSync(config, [...lines, sentinel ?? ''].join('\n'));
  const client = new Redis({ host, port, retryStrategy: () => 50, maxRetriesPerRequest: 0 });
  client.on('error', () => undefined);
  const start = async () => {
    const { command, argv0 } = lookUp() ?? { command: '', argv0: '' };
    const started = await startServer({
      command,
      options: { argv0, cwd: home },
      stop_steps,
      ready_ms: 20_000,
      args: [config, ...(sentinel === undefined ? [] : ['--sentinel'])],
      log_file: path.join(home, 'redis.log'),
      isReady: () => answers(client),
    });
    if (typeof started === 'string') throw new Error(`Redis does not start:\n${started}`);
    return started;
  };
  let server = await start().catch((error: unknown) => {
    client.disconnect();
    throw error;
  });
  return {
    port,
    bus_port,
    client,
    name: `${host}:${port}`,
    pid: () => server.pid,
    id: async (): Promise<string> => String(await client.cluster('MYID')),
    /** True if the node responds and is a master. */
    isMaster: (): Promise<boolean> =>
      client.role().then(
        ([role]) => role === 'master',
        () => false,
      ),
    signal: (signal: NodeJS.Signals) => signalProcess(server.pid, signal),
    async kill(): Promise<void> {
      signalProcess(server.pid, 'SIGKILL');
      await server.exited;
    },
    /** A node keeps its data unless `empty`. Even then, a cluster node still knows the others. */
    async restart({ empty = false } = {}): Promise<void> {
      await server.stop();
      if (empty) rmSync(path.join(home, 'appendonlydir'), { recursive: true, force: true });
      server = await start();
    },
    async stop(): Promise<void> {
      client.disconnect();
      signalProcess(server.pid, 'SIGCONT');
      await server.stop();
    },
  };
};

export type RedisNode = Awaited<ReturnType<typeof startNode>>;

/** Moves all keys of some slots to another master, as `redis-cli --cluster reshard` does. */
const moveSlot = async (
  slot: number,
  from: RedisNode,
  to: RedisNode,
  others: readonly RedisNode[],
) => {
  const [from_id, to_id] = [await from.id(), await to.id()];
  await to.client.cluster('SETSLOT', slot, 'IMPORTING', from_id);
  await from.client.cluster('SETSLOT', slot, 'MIGRATING', to_id);
  for (;;) {
    const keys = (await from.client.cluster('GETKEYSINSLOT', slot, 10)) as string[];
    if (keys.length === 0) break;
    await from.client.call('MIGRATE', host, to.port, '', 0, 5_000, 'KEYS', ...keys);
  }
  for (const node of [to, from, ...others]) {
    await node.client.cluster('SETSLOT', slot, 'NODE', to_id).catch(() => undefined);
  }
};

export type RedisCluster = Awaited<ReturnType<typeof startRedisCluster>>;

/** Three masters with a replica each. `settings` apply to every node. */
export const startRedisCluster = async (settings: Settings = {}) => {
  const folder = makeTestFolder();
  const started = await Promise.allSettled(
    Array.from({ length: 6 }, () =>
      startNode(folder, {
        'cluster-enabled': 'yes',
        'cluster-config-file': 'nodes.conf',
        appendonly: 'yes',
        'cluster-node-timeout': String(node_timeout_ms),
        'cluster-allow-replica-migration': 'no',
        'cluster-replica-validity-factor': '0',
        'repl-diskless-sync-delay': '0',
        ...settings,
      }),
    ),
  );
  const nodes = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const failed = started.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') {
    await Promise.all(nodes.map((node) => node.stop()));
    removeTestFolder(folder);
    throw failed.reason;
  }
  const [first] = nodes as [RedisNode, ...RedisNode[]];
  const masters = nodes.slice(0, 3);
  const share = Math.ceil(16_384 / masters.length);
  for (const [n, { client }] of masters.entries()) {
    const last = Math.min((n + 1) * share, 16_384) - 1;
    await client.cluster('ADDSLOTSRANGE', n * share, last);
    await client.cluster('SET-CONFIG-EPOCH', n + 1);
  }
  for (const node of nodes.slice(1))
    await node.client.cluster('MEET', host, first.port, first.bus_port);
  const knowsAll = async ({ client }: RedisNode): Promise<boolean> =>
    String(await client.cluster('NODES'))
      .trim()
      .split('\n').length === nodes.length;
  await until('the nodes know each other', async () => {
    return (await Promise.all(nodes.map(knowsAll))).every((knows) => knows);
  });
  for (const [n, replica] of nodes.slice(3).entries()) {
    const master = await (masters[n] as RedisNode).id();
    await until('a replica follows', () =>
      replica.client.cluster('REPLICATE', master).then(
        () => true,
        () => false,
      ),
    );
  }
  const isWhole = async ({ client }: RedisNode): Promise<boolean> => {
    const state = String(await client.cluster('INFO').catch(() => ''));
    const role = await client.role().catch(() => []);
    return state.includes('cluster_state:ok') && (role[0] === 'master' || role[3] === 'connected');
  };
  const untilWhole = async (): Promise<void> => {
    await until(
      'the cluster is whole',
      async () => (await Promise.all(nodes.map(isWhole))).every((whole) => whole),
      30_000,
    );
  };
  await untilWhole();
  const findMaster = async (slot: number): Promise<RedisNode> => {
    for (const node of nodes) {
      const slots = (await node.client.cluster('SLOTS').catch(() => [])) as [
        number,
        number,
        [string, number],
      ][];
      const owner = slots.find(([from, to]) => from <= slot && slot <= to)?.[2][1];
      const found = nodes.find(({ port }) => port === owner);
      if (found !== undefined) return found;
    }
    throw new Error(`no node has the slot ${slot}`);
  };
  return {
    url: `redis://${masters.map(({ name }) => name).join(',')}/?cluster`,
    nodes,
    untilWhole,
    findMaster,
    /** Moves every slot that has keys to another master. Returns the number of slots. */
    async moveSlotsOf(from: RedisNode): Promise<number> {
      const roles = await Promise.all(nodes.map((node) => node.isMaster()));
      const others = nodes.filter((node, n) => roles[n] && node !== from);
      const moved = new Set<number>();
      for await (const keys of from.client.scanStream()) {
        for (const slot of (keys as string[]).map(calculateSlot)) {
          if (moved.has(slot)) continue;
          moved.add(slot);
          await moveSlot(slot, from, others[0] as RedisNode, others.slice(1));
        }
      }
      return moved.size;
    },
    /** Resolves when a replica has taken the place of the killed master. */
    async untilReplaced({ name }: RedisNode): Promise<void> {
      const others = nodes.filter((node) => node.name !== name);
      await until(
        'a replica takes over',
        async () => {
          const infos = await Promise.all(
            others.map(({ client }) => client.cluster('INFO').catch(() => '')),
          );
          const roles = await Promise.all(others.map((node) => node.isMaster()));
          return (
            infos.every((info) => String(info).includes('cluster_state:ok')) &&
            roles.filter((is) => is).length === 3
          );
        },
        30_000,
      );
    },
    pids: (): readonly number[] => nodes.map((node) => node.pid()),
    /** Pauses every node: it stays alive but does not answer until `resume`. */
    pause(): void {
      for (const node of nodes) node.signal('SIGSTOP');
    },
    resume(): void {
      for (const node of nodes) node.signal('SIGCONT');
    },
    /** Kills every node with SIGKILL. */
    async kill(): Promise<void> {
      await Promise.all(nodes.map((node) => node.kill()));
    },
    async restart(how: { readonly empty?: boolean } = {}): Promise<void> {
      await Promise.all(nodes.map((node) => node.restart(how)));
      await untilWhole();
    },
    async stop(): Promise<void> {
      await Promise.all(nodes.map((node) => node.stop()));
      removeTestFolder(folder);
    },
  };
};

/** A master with a replica, and three Sentinels that know it as `forum`. */
export const startSentinels = async () => {
  const folder = makeTestFolder();
  const settings = { appendonly: 'yes', 'repl-diskless-sync-delay': '0' };
  const master = await startNode(folder, settings);
  const replica = await startNode(folder, { ...settings, replicaof: `${host} ${master.port}` });
  const watched = [
    `sentinel monitor forum ${host} ${master.port} 2`,
    `sentinel down-after-milliseconds forum ${node_timeout_ms}`,
    'sentinel failover-timeout forum 5000',
  ].join('\n');
  const sentinels = await Promise.all(
    Array.from({ length: 3 }, () => startNode(folder, {}, watched)),
  );
  const knows = async ({ client }: RedisNode): Promise<boolean> => {
    const [state] = (await client.call('SENTINEL', 'MASTERS')) as string[][];
    const of = (name: string): string | undefined => state?.[state.indexOf(name) + 1];
    return of('num-slaves') === '1' && of('num-other-sentinels') === '2';
  };
  await until(
    'the Sentinels know each other',
    async () => (await Promise.all(sentinels.map(knows))).every((all) => all),
    30_000,
  );
  return {
    url: `redis://${sentinels.map(({ name }) => name).join(',')}/?sentinel=forum`,
    master,
    replica,
    sentinels,
    async stop(): Promise<void> {
      await Promise.all([...sentinels, replica, master].map((node) => node.stop()));
      removeTestFolder(folder);
    },
  };
};

/** Starts a cluster for this test alone if `TEST_REDIS=cluster`. Otherwise returns null. */
export const startWantedCluster = async (): Promise<RedisCluster | null> =>
  process.env['TEST_REDIS'] === 'cluster' ? startRedisCluster() : null;
