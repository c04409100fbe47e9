import path from 'node:path';
import type { Sql } from '../../src/db/client.js';
import type { Bed } from './bed.js';
import type { Target } from './http-round.js';
import { startPeer } from './peer.js';
import { treeOf } from './processes.js';
import { startService } from './service.js';
import { openPool } from './stores.js';

/** A server under load, and a pool on its database for counting what it stored. */
export interface StoredTarget extends Target {
  readonly sql: Sql;
}

export const openBenchPool = ({ stores, onClose }: Bed, database: string): Sql => {
  const sql = openPool(stores.urlOf(database), 'bench');
  onClose(() => sql.end({ timeout: 5 }));
  return sql;
};

export interface ServiceTarget extends StoredTarget {
  /** All processes of the service, its api processes, and the others. */
  readonly groups: Readonly<Record<'cpu' | 'api' | 'other', () => readonly number[]>>;
}

/** The service on a database of its name; its api processes are watched. */
export const startServiceTarget = async (
  bed: Bed,
  env: Readonly<Record<string, string>> = {},
  name = 'service',
): Promise<ServiceTarget> => {
  const { context, stores } = bed;
  const service = await startService({
    folder: path.join(context.folder, name),
    database_url: stores.urlOf(name),
    redis_url: stores.redis_url,
    cpu_prof: context.cpu_prof ? path.resolve('.data/prof') : undefined,
    env,
  });
  bed.onClose(service.stop);
  const { port, pids, apiPids, lastErrors } = service;
  if (apiPids().length === 0) throw new Error('The api process was not found among the children.');
  const other = () => pids().filter((pid) => !apiPids().includes(pid));
  return {
    ...{ name, port, sql: openBenchPool(bed, name), lastErrors },
    groups: { cpu: pids, api: apiPids, other },
    watched: apiPids,
  };
};

export interface PeerOptions {
  /** Its name, and that of its database. */
  readonly name: string;
  readonly module: URL;
  readonly env: Readonly<Record<string, string>>;
}

/** A peer in a process of its own, on a database of its own. */
export const startPeerTarget = async (
  bed: Bed,
  { name, module, env }: PeerOptions,
): Promise<StoredTarget> => {
  const { context, stores } = bed;
  const peer = await startPeer(module, {
    DATABASE_URL: stores.urlOf(name),
    LOG_FILE: path.join(context.folder, `${name}.log`),
    ...env,
  });
  bed.onClose(peer.stop);
  return {
    ...{ name, port: peer.port, sql: openBenchPool(bed, name) },
    groups: { cpu: () => treeOf(peer.pid) },
    watched: () => [peer.pid],
  };
};
