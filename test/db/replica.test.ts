import type { Test } from 'tap';
import { openSql, type Sql } from '../../src/db/client.js';
import { openReader, takesReads } from '../../src/db/replica.js';
import { no_limits, startApp } from '../help/app.js';
import { startFaultyProxy } from '../help/faulty-proxy.js';
import { type Pair, startPair } from '../help/standby.js';
import { openStores } from '../help/stores.js';
import { makeAgent, makeHuman, makeOpenQuestion } from '../help/story.js';
import { t } from '../help/tap.js';
import { allow, until } from '../help/until.js';

/**
 * Reads from a real standby that lags, stalls, goes silent or disappears. Every read must include
 * every earlier write.
 */

const usual = { pool: 4, prepare: true, name: 'reader' };

const untilUsed = (reads: Sql): Promise<true> =>
  until('the replica is read', () => takesReads(reads), 15_000);

interface Read {
  readonly has_it: boolean;
  readonly is_replica: boolean;
  readonly took_ms: number;
}

const reads_after = 100;

/** Four clients write to the primary and immediately read back, during and after `act`. */
const readOwnWrites = async (
  { sql, reads }: { readonly sql: Sql; readonly reads: Sql },
  act: () => Promise<unknown>,
): Promise<readonly Read[]> => {
  const done: Read[] = [];
  let most = Number.POSITIVE_INFINITY;
  const client = async (): Promise<void> => {
    while (done.length < most) {
      const [written] = await sql<{ n: number }[]>`insert into noted default values returning n`;
      const from_ms = performance.now();
      const [row] = await reads<Omit<Read, 'took_ms'>[]>`
        select
          pg_is_in_recovery() as is_replica,
          exists(select from noted where n = ${written?.n ?? 0}) as has_it`;
      done.push({ ...(row as Read), took_ms: performance.now() - from_ms });
    }
  };
  const clients = Promise.all(Array.from({ length: 4 }, client));
  await Promise.race([act(), clients]);
  most = done.length + reads_after;
  await clients;
  return done;
};

const judge = (t: Test, done: readonly Read[], max_ms: number): number => {
  t.same(
    done.filter(({ has_it }) => !has_it),
    [],
    'each read has what was written before it',
  );
  const longest_ms = Math.round(Math.max(...done.map(({ took_ms }) => took_ms)));
  const on_replica = done.filter(({ is_replica }) => is_replica).length;
  t.ok(longest_ms < allow(max_ms), `the longest of ${done.length} reads took ${longest_ms} ms`);
  t.comment(`${on_replica} of them came from the replica`);
  return on_replica / done.length;
};

const readThrough = async (t: Test, pair: Pair): Promise<void> => {
  const { admin } = pair.standby;
  const way = await startFaultyProxy(t, pair.standby.url);
  const sql = openSql({ ...usual, url: pair.primary.url });
  await sql`create table noted (n serial primary key)`;
  const reads = openReader(sql, { ...usual, url: way.url, statement_timeout_ms: 1_000 });
  t.teardown(() => reads.end({ timeout: 1 }));
  await untilUsed(reads);
  const during = (act: () => Promise<unknown>) => readOwnWrites({ sql, reads }, act);

  await t.test('a replica that keeps up is what is read', async (t) => {
    // A busy machine can delay a replica, which is then not read for a while.
    await until('most reads come from the replica', async () => {
      await untilUsed(reads);
      return judge(t, await during(async () => undefined), 1_000) > 0.5;
    });
    await until('a transaction reads the replica', async () => {
      const read = reads.begin({ mode: 'read only' }, (tx) => tx`select pg_is_in_recovery() as is`);
      return (await read)[0]?.['is'] === true;
    });
    await until('a copy reads the replica', async () => {
      const copied = reads.copyOut('copy (select pg_is_in_recovery()) to stdout');
      return Buffer.concat(await copied.toArray()).toString() === 't\n';
    });
  });

  await t.test('one that is a little behind is waited for', async (t) => {
    const done = await during(async () => {
      await admin`alter system set recovery_min_apply_delay = '30ms'`;
      await admin`select pg_reload_conf()`;
    });
    judge(t, done, 1_000);
    t.ok(
      done.some(({ is_replica, took_ms }) => is_replica && took_ms > 20),
      'it is read all the same',
    );
    await admin`alter system reset recovery_min_apply_delay`;
    await admin`select pg_reload_conf()`;
    await untilUsed(reads);
  });

  await t.test('one that stands still is not waited for', async (t) => {
    const done = await during(() => admin`select pg_wal_replay_pause()`);
    judge(t, done, 1_000);
    t.notOk(done.at(-1)?.is_replica, 'the primary is read');
    const copied = reads.copyOut('copy (select pg_is_in_recovery()) to stdout');
    t.equal(Buffer.concat(await copied.toArray()).toString(), 'f\n');
    await admin`select pg_wal_replay_resume()`;
    await untilUsed(reads);
  });

  await t.test('one that falls silent', async (t) => {
    judge(t, await during(async () => way.silenceAll()), 3_000);
    way.heal();
    await untilUsed(reads);
  });

  await t.test('one that is killed, and comes back', async (t) => {
    judge(t, await during(pair.standby.kill), 1_000);
    t.notOk(await takesReads(reads));
    await pair.standby.restart();
    await untilUsed(reads);
  });

  await t.test('an error of the statement is told as it is', async (t) => {
    await t.rejects(reads`select 1 / 0`, { code: '22012' });
  });
};

/** Repeats `ask` until the newest statement on a connection to the standby matches `like`. */
const untilSeen = async (pair: Pair, like: string, ask: () => Promise<unknown>): Promise<void> => {
  await until(`the standby is asked ${like}`, async () => {
    await ask();
    const seen = await pair.standby.admin`
      select from pg_stat_activity
      where application_name like 'prediction-forum %' and query like ${like}`;
    return seen.length > 0;
  });
};

const serve = async (t: Test, pair: Pair): Promise<void> => {
  const stores = { ...(await openStores(t)), database_url: pair.primary.url };
  const env = { ...no_limits, DATABASE_REPLICA_URL: pair.standby.url };
  const app = await startApp(t, { stores, env, roles: ['api'] });
  const author = await makeAgent(app, { human: await makeHuman(app) });
  const id = await makeOpenQuestion(app);
  const list = `/api/questions/${id}/comments?limit=100`;
  let posted = 0;
  /** Posts and immediately looks for the result in a list and on a board. */
  const postAndRead = async (): Promise<void> => {
    posted += 1;
    const content = `Traffic was seen ${posted} times so far, which is more than a month ago.`;
    const { body } = await app.call('POST', list, { key: author.key, body: { content } });
    const read = await app.call('GET', list);
    t.match(read.body, { total: posted, comments: { [posted - 1]: { id: body.comment?.id } } });
    const board = await app.call('GET', `/api/leaderboard/debaters?limit=${posted}`);
    t.match(board.body, { leaderboard: [{ user_id: author.id, comments: posted }] });
  };
  await postAndRead();
  await untilSeen(pair, '%from comments%', () => app.call('GET', list));
  const exported = async (): Promise<number> => {
    const file = await app.call('GET', '/api/export/comments?names=true');
    t.equal(file.status, 200);
    return String(file.body).split('\n').length - 1;
  };
  await until('the export has all', async () => (await exported()) === posted);
  await untilSeen(pair, 'commit', exported);
  await pair.standby.admin`select pg_wal_replay_pause()`;
  await postAndRead();
  t.ok((await exported()) > 0);
  await pair.standby.kill();
  await postAndRead();
  t.ok((await exported()) > 0);
};

t.test('a primary and its replica', { timeout: 120_000 }, async (t) => {
  const pair = await startPair(t);
  await t.test('statements', (t) => readThrough(t, pair));
  await t.test('lists, boards and exports of the service', (t) => serve(t, pair));
});
