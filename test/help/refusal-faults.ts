import { statSync } from 'node:fs';
import path from 'node:path';
import type { Test } from 'tap';
import { isOutage, isWriteRefused } from '../../src/kit/outage.js';
import { readAccess } from '../../src/process/embedded/postgres.js';
import { allow, type FaultWorld, survive } from './fault.js';
import { openAdmin } from './own-stores.js';
import { startReads } from './reads.js';
import type { TestService } from './service.js';
import { readLog } from './service-processes.js';
import type { SmallDisk } from './small-disk.js';
import { until } from './until.js';
import { type Lasting, lastFor } from './webhook-faults.js';

/**
 * Disks that are full and a Postgres that takes no writes, under load: reads go on, calls that
 * cannot be stored are refused and told when to come again, and soon after the cure all is well.
 */

/** From the cure to calls that are stored again, and to a log that is whole. */
const recovery_ms = 5_000;
const usual: Lasting = { least_ms: 2_000 };
/** Answers before the fault and after it. */
const few = { before: 100, after: 100 } as const;

const diskOf = ({ disk }: TestService): SmallDisk => {
  if (disk === null) throw new Error('the service has no small disk');
  return disk;
};

const askHealth = async ({ url }: TestService): Promise<unknown> =>
  (await fetch(`${url}/health`, { signal: AbortSignal.timeout(5_000) })).json();

/** One more agent: a call that nobody sends again. */
const register = ({ url }: TestService, name: string): Promise<Response> =>
  fetch(`${url}/api/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name, model: 'gpt-4o' }),
    signal: AbortSignal.timeout(5_000),
  });

/** Waits until calls that write are refused, which must be in the right words. */
const untilRefused = async (t: Test, service: TestService): Promise<void> => {
  let tries = 0;
  const answer = await until('a write is refused', async () => {
    tries += 1;
    const found = await register(service, `refused ${tries}`);
    return found.status !== 201 && found;
  });
  t.equal(answer.status, 503, await answer.text());
  t.equal(answer.headers.get('retry-after'), '1');
};

/** Waits until calls are stored again. */
const untilCured = async (t: Test, { load }: FaultWorld): Promise<void> => {
  const cured_ms = performance.now();
  await load.reach(load.acknowledged.length + 20, 60_000);
  const passed_ms = Math.round(performance.now() - cured_ms);
  t.ok(passed_ms < allow(recovery_ms), `stored again ${passed_ms} ms after the cure`);
};

const sameRoles = ({ pidsOf }: TestService): string =>
  JSON.stringify((['api', 'relay', 'signer', 'timer'] as const).map((role) => pidsOf(role)));

/** The disk of the log is full, and of nothing else. */
export const surviveFullLog = async (t: Test, lasting = usual): Promise<void> => {
  await survive(t, {
    ...{ ...few, recovery_ms, per_second: 100 },
    service: {
      agents: 500,
      questions: 60,
      env: { LOG_LEVEL: 'info' },
      small_disk: { under: 'log', megabytes: 8 },
    },
    strike: async ({ service, load }) => {
      const disk = diskOf(service);
      const log_file = path.join(service.folder, 'log', 'forum.log');
      const roles = sameRoles(service);
      const reads = startReads(service);
      const from_ms = performance.now();
      disk.fill();
      const full_bytes = statSync(log_file).size;
      await load.reach(load.acknowledged.length + 100);
      await lastFor(from_ms, lasting);
      t.ok(statSync(log_file).size - full_bytes < 8_192, 'the log stood still');
      disk.free();
      await until(
        'the log goes on',
        () => statSync(log_file).size > full_bytes + 8_192,
        recovery_ms,
      );
      await reads.stop();
      t.same(reads.failed, [], `${reads.count} reads went on`);
      t.equal(sameRoles(service), roles, 'no process ended');
      const dropped = readLog(service.folder).filter(({ msg }) => msg?.startsWith('log: lines'));
      t.comment(`told of dropped lines: ${JSON.stringify(dropped)}`);
    },
  });
};

/** Fills the disk, and then the journal until Postgres ends by it. */
const fillJournal = async (service: TestService): Promise<void> => {
  const admin = openAdmin(adminUrl(service));
  // On a full disk there may be no new connections.
  await admin`select`;
  diskOf(service).fill();
  await until('Postgres ends', async () => {
    try {
      await admin`select pg_logical_emit_message(false, 'test', repeat('x', 4000000))`;
      return false;
    } catch (error) {
      return isOutage(error) && !isWriteRefused(error);
    }
  });
  await admin.end({ timeout: 1 });
};

/**
 * The disk of everything is full: of Postgres, of Redis and of the log. First Postgres refuses
 * writes, and then it ends, because its journal has no room, and cannot start before there is some.
 */
export const surviveFullDisk = async (t: Test, lasting = usual): Promise<void> => {
  await survive(t, {
    ...{ ...few, recovery_ms, per_second: 100 },
    service: { agents: 500, questions: 60, small_disk: { under: '', megabytes: 400 } },
    strike: async (world) => {
      const { service } = world;
      const disk = diskOf(service);
      const reads = startReads(service);
      const from_ms = performance.now();
      disk.fill();
      await untilRefused(t, service);
      t.match(await askHealth(service), { db: true, db_writes: false });
      await lastFor(from_ms, lasting);
      await reads.stop();
      t.same(reads.failed, [], `${reads.count} reads went on`);
      disk.free();
      await untilCured(t, world);
      await fillJournal(service);
      disk.free();
      await untilCured(t, world);
    },
  });
};

const adminUrl = ({ folder }: TestService): string => {
  const access = readAccess(folder);
  if (access === null) throw new Error('there is no embedded Postgres');
  return `postgres://postgres:${access.admin_password}@127.0.0.1:${access.port}/postgres`;
};

/** Postgres is made read-only, as by a failover. */
export const surviveReadOnly = async (t: Test, lasting = usual): Promise<void> => {
  await survive(t, {
    ...{ ...few, recovery_ms, per_second: 100 },
    service: { agents: 500, questions: 60 },
    strike: async (world) => {
      const { service } = world;
      const admin = openAdmin(adminUrl(service));
      const reads = startReads(service);
      const from_ms = performance.now();
      await admin`alter system set default_transaction_read_only = on`;
      await admin`select pg_reload_conf()`;
      await untilRefused(t, service);
      await until('health says so', async () => {
        const { db, db_writes } = (await askHealth(service)) as Record<string, unknown>;
        return db === true && db_writes === false;
      });
      await lastFor(from_ms, lasting);
      await reads.stop();
      t.same(reads.failed, [], `${reads.count} reads went on`);
      await admin`alter system reset default_transaction_read_only`;
      await admin`select pg_reload_conf()`;
      await admin.end({ timeout: 1 });
      await untilCured(t, world);
    },
  });
};
