import { PassThrough, pipeline, type Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { makeLoader } from '../kit/cache.js';
import { ConnectionError, isOutage } from '../kit/outage.js';
import { withDeadline } from '../kit/service.js';
import { makeDb, openSql, probeSql, type Sql, type SqlOptions } from './client.js';
import type { Run } from './pool.js';

/**
 * Reads from a replica if it has replayed everything that the primary had on disk when the read
 * began. Otherwise reads from the primary. So every read includes the acknowledged writes of all
 * processes, and no process has to remember who wrote.
 */

/** Returns true if reads go to the replica now. */
export const takesReads = async (reads: Sql): Promise<boolean> => {
  const [row] = await reads`select pg_is_in_recovery() as is_replica`.catch(() => []);
  return row?.['is_replica'] === true;
};

/** How long a read waits for a replica that is behind or silent, and how often the read checks. */
const max_ms = 200;
const look_every_ms = 5;
const probe_every_ms = 1_000;

type ReplicaOptions = Omit<SqlOptions, 'url' | 'admit'> & { readonly url: string | undefined };

/** Only for statements that read: they may run twice. `end` also closes `primary`. */
export const openReader = (primary: Sql, { url, ...options }: ReplicaOptions): Sql => {
  if (url === undefined) return primary;
  const readFlushed = makeLoader(async (keys: readonly 'flushed'[]) => {
    const [row] = await primary<{ at: string }[]>`select pg_current_wal_flush_lsn()::text as at`;
    return keys.map(() => row?.at ?? null);
  });
  const catchUp = async (run: Run): Promise<void> => {
    const until_ms = performance.now() + max_ms;
    const at = await readFlushed('flushed');
    while (performance.now() < until_ms) {
      // Log positions of a promoted replica, or of an old primary, cannot be compared with these.
      const [row] = await run(
        (client) => client`
          select pg_is_in_recovery() and pg_last_wal_replay_lsn() >= ${at}::pg_lsn as has_all`,
      );
      if (row?.['has_all'] === true) return;
      await wait(look_every_ms);
    }
    throw new Error('it is behind');
  };
  const admit = (run: Run): Promise<void> =>
    withDeadline(catchUp(run), max_ms, 'the replica').catch((error: Error) => {
      throw new ConnectionError('NO_HOST', `the replica cannot be read: ${error.message}`);
    });
  const replica = openSql({ ...options, url, admit });
  /** True if the last probe of the replica succeeded and no read has failed since. */
  let is_near = false;
  const probe = async (): Promise<void> => {
    is_near = await probeSql(replica).then(
      () => true,
      () => false,
    );
  };
  void probe();
  const timer = setInterval(probe, probe_every_ms).unref();
  const noteFailure = (error: unknown): void => {
    if (!isOutage(error)) throw error;
    is_near = false;
  };
  const read = async <T>(from: (sql: Sql) => Promise<T>): Promise<T> => {
    try {
      if (is_near) return await from(replica);
    } catch (error) {
      noteFailure(error);
    }
    return from(primary);
  };
  const copyOut = (...given: Parameters<Sql['copyOut']>): Readable => {
    let source: Readable | undefined;
    async function* copy() {
      let has_begun = false;
      try {
        if (is_near) {
          source = replica.copyOut(...given);
          for await (const chunk of source) {
            has_begun = true;
            yield chunk;
          }
          return;
        }
      } catch (error) {
        if (has_begun) throw error;
        noteFailure(error);
      }
      source = primary.copyOut(...given);
      yield* source;
    }
    const copied = new PassThrough();
    pipeline(copy, copied, () => undefined);
    // If the reader leaves, the source must end without waiting for the next chunk.
    return copied.once('close', () => source?.destroy());
  };
  const run: Run = (make) => read((sql) => sql.run(make));
  return Object.assign(makeDb(run), {
    run,
    begin: (...given: Parameters<Sql['begin']>) => read((sql) => sql.begin(...given)),
    copyOut,
    longestWait: () => primary.longestWait(),
    end: async (how: { readonly timeout?: number } = {}) => {
      clearInterval(timer);
      await Promise.all([replica.end(how), primary.end(how)]);
    },
  }) as Sql;
};
