import { type ChildProcess, fork } from 'node:child_process';
import { pino } from 'pino';
import type { Test } from 'tap';
import { openSql, type Sql } from '../../../src/db/client.js';
import {
  createSealer,
  createSequencer,
  readSequenced,
} from '../../../src/features/events/sequencer.js';
import { makeId } from '../../../src/kit/ids.js';
import { openStores } from '../../help/stores.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** One gapless log over three shards, whoever is killed meanwhile, and whenever. */

const parts = { log: pino({ level: 'silent' }), every_ms: 2 };

const open = async (t: Test, count: number) => {
  const urls: string[] = [];
  for (let n = 0; n <= count; n += 1) urls.push((await openStores(t)).database_url);
  const all = urls.map((url) => openSql({ url, pool: 4, prepare: true, name: 'test' }));
  t.teardown(() => Promise.all(all.map((sql) => sql.end({ timeout: 1 }))));
  const [sql, ...shards] = all as [Sql, ...Sql[]];
  const committed = new Map<string, number>();
  /** Commits events in a shard, as its writers do. */
  const write = async (shard: number, events: number): Promise<void> => {
    const ids = Array.from({ length: events }, makeId);
    const database = shards[shard] as Sql;
    await database`
      insert into outbox (id, event, body)
      select id, 'question.closed', '{"n": 1}' from unnest(${ids}::uuid[]) as given (id)`;
    for (const id of ids) committed.set(id, shard);
  };
  const children: ChildProcess[] = [];
  t.teardown(() => children.map((child) => child.kill('SIGKILL')));
  const start = async (role: 'sequencer' | number): Promise<ChildProcess> => {
    const own = role === 'sequencer' ? urls : [urls[role + 1]];
    const name = role === 'sequencer' ? role : 'sealer';
    const argument = JSON.stringify({ role: name, urls: own });
    const child = fork(new URL('sequencer-child.js', import.meta.url), [argument]);
    children.push(child);
    await new Promise((resolve) => child.once('message', resolve));
    return child;
  };
  const read = async (after = 0, most?: number) => {
    const events: { offset: number; id: string; shard: number }[] = [];
    for await (const { offset, id, shard } of readSequenced(sql, shards, after, most)) {
      events.push({ offset, id, shard });
    }
    return events;
  };
  /** All that was committed is there: once, without a hole, by shard in order, and for everybody. */
  const check = async (what: string): Promise<void> => {
    const isWhole = async () => (await read()).length >= committed.size;
    await until(`${what}: all events`, isWhole, 15_000, 50);
    const log = await read();
    t.same(
      log.map(({ offset }) => offset),
      log.map((_, n) => n + 1),
      `${what}: no hole`,
    );
    t.same(new Map(log.map(({ id, shard }) => [id, shard])), committed, `${what}: none missing`);
    t.equal(log.length, committed.size, `${what}: none twice`);
    t.same(await read(0, 1), log, `${what}: a slow reader sees the same order`);
    const middle = Math.floor(log.length / 2);
    t.same(await read(middle), log.slice(middle), `${what}: and one that comes later`);
  };
  return { sql, shards, urls, write, start, read, check };
};

const kill = async (child: ChildProcess): Promise<void> => {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
};

/** Holds a lock until it is called. */
const holdLock = async (sql: Sql, statement: string) => {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let done: Promise<unknown> = Promise.resolve();
  await new Promise<void>((resolve) => {
    done = sql.begin(async (tx) => {
      await tx.unsafe(statement);
      resolve();
      await released;
    });
  });
  return async (): Promise<void> => {
    release();
    await done;
  };
};

/** Some statement of a process of this name waits for a lock. */
const isBlocked = (sql: Sql, name: string) => async () => {
  const rows = await sql`
    select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'
      and application_name = ${`prediction-forum ${name}`}`;
  return rows.length > 0;
};

t.test('kill -9 of a sealer and of the sequencer at each of their steps', async (t) => {
  const world = await open(t, 3);
  const { sql, shards, write, start, check } = world;
  const first = shards[0] as Sql;
  const others = [await start(1), await start(2)];
  t.equal(others.length, 2);

  interface Step {
    readonly what: string;
    readonly role: 'sequencer' | 0;
    readonly in: Sql;
    /** The victim stops at this lock. */
    readonly lock: string;
  }
  const steps: readonly Step[] = [
    {
      what: 'before it numbers a batch',
      role: 0,
      in: first,
      lock: 'select from shard_head for update',
    },
    {
      what: 'before its fence is checked',
      role: 0,
      in: first,
      lock: 'select from leases for update',
    },
    { what: 'before its events are written', role: 0, in: first, lock: 'lock table shard_events' },
    { what: 'before it reads the shards', role: 'sequencer', in: sql, lock: 'lock table sequence' },
    {
      what: 'between shards and order',
      role: 'sequencer',
      in: sql,
      lock: 'select from sequence_head for update',
    },
    {
      what: 'before its fence is checked',
      role: 'sequencer',
      in: sql,
      lock: 'select from leases for update',
    },
    {
      what: 'while a shard is read',
      role: 'sequencer',
      in: first,
      lock: 'lock table shard_batches',
    },
  ];
  const running = { 0: await start(0), sequencer: await start('sequencer') };
  for (const { what, role, in: database, lock } of steps) {
    const name = role === 0 ? 'sealer' : 'sequencer';
    const release = await holdLock(database, lock);
    for (const shard of [0, 1, 2]) await write(shard, 7);
    await until(`${name} stops ${what}`, isBlocked(database, name), 15_000);
    await kill(running[role]);
    await release();
    for (const shard of [0, 1, 2]) await write(shard, 5);
    running[role] = await start(role);
    // As if the lease of the victim had run out.
    await (role === 0 ? first : sql)`update leases set expires_at = now() - interval '1 second'`;
    await check(`${name} killed ${what}`);
  }
});

t.test('killed again and again under load, with two of each', async (t) => {
  const { write, start, check } = await open(t, 3);
  const roles = ['sequencer', 0, 1, 2, 'sequencer', 0] as const;
  const running = await Promise.all(roles.map(start));
  let is_over = false;
  const writing = [0, 1, 2].map(async (shard) => {
    while (!is_over) await write(shard, 1 + (shard + 1) * 3);
  });
  for (const [n, role] of roles.entries()) {
    await kill(running[n] as ChildProcess);
    running[n] = await start(role);
  }
  is_over = true;
  await Promise.all(writing);
  await check('after the kills');
});

t.test(
  'a shard that is away delays its events alone; what it lost is not passed over',
  async (t) => {
    const { sql, shards, urls, write, read } = await open(t, 2);
    const away = openSql({ url: `${urls[2]}_away`, pool: 1, prepare: true, name: 'test' });
    t.teardown(() => away.end({ timeout: 1 }));
    const sealers = shards.map((shard) => createSealer(shard, parts));
    for (const sealer of sealers) await sealer.start();
    const broken = createSequencer(sql, [shards[0] as Sql, away], parts);
    await broken.start();
    await write(0, 3);
    await write(1, 4);
    await until('the first shard', async () => (await read()).length === 3);
    await broken.stop();
    const whole = createSequencer(sql, shards, parts);
    await whole.start();
    await until('the other', async () => (await read()).length === 7);
    for (const service of [...sealers, whole]) await service.stop();
    const second = shards[1] as Sql;
    await second`delete from shard_events where n = 0`;
    await t.rejects(read(), /shard 1 has no batch 1/);
    t.equal((await read(7)).length, 0);
  },
);

t.test('a sequencer that slept through its lease writes nothing', async (t) => {
  const { sql, shards, write, start, check } = await open(t, 1);
  const sleeper = await start('sequencer');
  const sealer = await start(0);
  await write(0, 5);
  await check('before');
  sleeper.kill('SIGSTOP');
  await start('sequencer');
  await write(0, 5);
  await check('by the other');
  sleeper.kill('SIGCONT');
  for (let n = 0; n < 5; n += 1) await write(0, 5);
  await check('with both');
  const [row] = await sql`select count(*)::integer as count from sequence`;
  const [batches] = await (shards[0] as Sql)`select max(batch) as last from shard_batches`;
  t.equal(row?.['count'], batches?.['last']);
  await kill(sealer);
});
