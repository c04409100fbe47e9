import { statSync } from 'node:fs';
import path from 'node:path';
import type { Test } from 'tap';
import { isOutage, isWriteRefused } from '../../src/kit/outage.js';
import { openOwner, type TestService, whileReadOnly } from '../help/service.js';
import { type SmallDisk, withoutSmallDisks } from '../help/small-disk.js';
import { t } from '../help/tap.js';
import { allow, until } from '../help/until.js';
import {
  type Fault,
  type FaultWorld,
  fault_limits,
  is_long,
  startWorld,
  surviveAll,
  whileReading,
} from './world.js';

/**
 * Full disks, and a Postgres that accepts no writes, under load. Reads continue, calls that cannot
 * be stored are refused with a retry time, and soon after the repair everything works.
 */

t.setTimeout(fault_limits.timeout);

/** Time from the repair until calls are stored again and the log is complete. */
const recovery_ms = 5_000;
const min_ms = is_long ? 30_000 : 1_000;

const diskOf = ({ disks }: TestService, name: string): SmallDisk => {
  const disk = disks[name];
  if (disk === undefined) throw new Error('the service has no small disk');
  return disk;
};

const askHealth = async ({ url }: TestService): Promise<unknown> =>
  (await fetch(`${url}/health`, { signal: AbortSignal.timeout(5_000) })).json();

/** Runs the fault for its duration while reads continue. */
const readOn = (t: Test, service: TestService, work: () => Promise<void>): Promise<void> =>
  whileReading(t, service, async () => {
    const from_ms = performance.now();
    await work();
    await until('its time', () => performance.now() - from_ms >= min_ms, min_ms + 10_000);
  });

/** Waits until writing calls are refused, and checks the answer. */
const untilRefused = async (t: Test, { url }: TestService): Promise<void> => {
  let tries = 0;
  const refused = await until('a write is refused', async () => {
    tries += 1;
    // Registers another agent, a call that no client repeats.
    const response = await fetch(`${url}/api/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: `${t.name} ${tries}`, model: 'gpt-4o' }),
      signal: AbortSignal.timeout(5_000),
    });
    return response.status !== 201 && response;
  });
  t.equal(refused.status, 503, await refused.text());
  t.equal(refused.headers.get('retry-after'), '1');
};

/** Waits until calls are stored again. */
const untilCured = async (t: Test, { load }: FaultWorld): Promise<void> => {
  const cured_ms = performance.now();
  await load.more(20, 60_000);
  const passed_ms = Math.round(performance.now() - cured_ms);
  t.ok(passed_ms < allow(recovery_ms), `stored again ${passed_ms} ms after the cure`);
};

const sameRoles = ({ pidsOf }: TestService): string =>
  JSON.stringify((['api', 'relay', 'signer', 'timer'] as const).map((role) => pidsOf(role)));

/** Only the disk of the log is full. */
const fullLog: Fault['strike'] = async ({ service, load }, t) => {
  const disk = diskOf(service, 'log');
  const log_file = path.join(service.folder, 'log', 'forum.log');
  const roles = sameRoles(service);
  await readOn(t, service, async () => {
    disk.fill();
    const full_bytes = statSync(log_file).size;
    await load.more(100);
    t.ok(statSync(log_file).size - full_bytes < 8_192, 'the log stood still');
  });
  const full_bytes = statSync(log_file).size;
  disk.free();
  await until('the log goes on', () => statSync(log_file).size > full_bytes + 8_192, recovery_ms);
  t.equal(sameRoles(service), roles, 'no process ended');
  const dropped = service.troubles().filter(({ msg }) => msg?.startsWith('log: lines'));
  t.comment(`dropped lines in the log: ${JSON.stringify(dropped)}`);
};

/** Fills the disk, and then writes to the journal until Postgres ends. */
const fillJournal = async (service: TestService): Promise<void> => {
  const owner = openOwner(service);
  // On a full disk, new connections may be impossible, so this one is opened first.
  await owner`select`;
  diskOf(service, '').fill();
  await until('Postgres ends', async () => {
    try {
      await owner`select pg_logical_emit_message(false, 'test', repeat('x', 4000000))`;
      return false;
    } catch (error) {
      return isOutage(error) && !isWriteRefused(error);
    }
  });
  await owner.end({ timeout: 1 });
};

/**
 * The disk shared by Postgres, Redis and the log is full. Postgres first refuses writes. Then it
 * ends because its journal has no space, and cannot start until there is space again.
 */
const fullDisk: Fault['strike'] = async (world, t) => {
  const { service } = world;
  const disks = [diskOf(service, ''), diskOf(service, 'log')];
  await readOn(t, service, async () => {
    for (const disk of disks) disk.fill();
    await untilRefused(t, service);
    t.match(await askHealth(service), { db: true, db_writes: false });
  });
  for (const disk of disks) disk.free();
  await untilCured(t, world);
  await fillJournal(service);
  diskOf(service, '').free();
  await untilCured(t, world);
};

/** Postgres is made read-only, as in a failover. */
const readOnly: Fault['strike'] = async (world, t) => {
  const { service } = world;
  const ask = async (): Promise<void> => {
    await untilRefused(t, service);
    await until('health says so', async () => {
      const { db, db_writes } = (await askHealth(service)) as Record<string, unknown>;
      return db === true && db_writes === false;
    });
  };
  await whileReadOnly(service, () => readOn(t, service, ask));
  await untilCured(t, world);
};

const skip = withoutSmallDisks();

t.test('what refuses writes, under load', fault_limits, async (t) => {
  const world = await startWorld(t, {
    env: { LOG_LEVEL: 'info' },
    ...(skip === false ? { small_disks: { '': 400, log: 8 } } : {}),
  });
  if (skip !== false) await t.test('full disks', { skip }, async () => undefined);
  await surviveAll(t, world, {
    'Postgres is read-only': { recovery_ms, strike: readOnly },
    ...(skip === false
      ? {
          'the disk of the log is full': { recovery_ms, strike: fullLog },
          'the disk of the data is full': { recovery_ms, strike: fullDisk },
        }
      : {}),
  });
});
