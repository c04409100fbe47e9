import type { Logger } from 'pino';
import { openSql, type Sql } from '../../db/client.js';
import type { Deps } from '../../http/deps.js';
import { makeId } from '../../kit/ids.js';
import { describeError } from '../../kit/log.js';
import { makeLoop } from '../../kit/loop.js';
import type { Service } from '../../kit/service.js';
import * as store from './sequencer-store.js';
import { holdLease, type Lease, takeLease } from './store.js';

/**
 * A prototype: one gapless log over the events of several shards, each a database of its own. Two
 * steps, each one transaction in one database, and no transaction spans two:
 *
 *   sealer, one a shard    outbox ──▶ a sealed batch: numbered, counted, never changed again
 *   sequencer, one         (shard, batch, count) ──▶ the next `count` offsets
 *
 * The second names what the first made durable, so that a crash between them leaves a batch that has
 * its offsets later, and never offsets without events. A lease with a fence is checked inside each
 * transaction: what slept through its lease writes nothing. See docs/shards.md.
 */

interface Parts {
  readonly log: Logger;
  readonly every_ms?: number;
}

const lease_seconds = 2;
const most_in_batch = 2_000;
const batches_a_turn = 100;

/** Work that one process does at a time; what returns something is done again at once. */
const makeLeased = (
  sql: Sql,
  name: string,
  { log, every_ms = 50, work }: Parts & { readonly work: (lease: Lease) => Promise<number> },
): Service => {
  const holder = makeId();
  const turn = async () => {
    const lease = await takeLease(sql, name, holder, lease_seconds);
    return lease !== undefined && (await work(lease)) > 0 ? 'again' : 'rest';
  };
  return makeLoop({ name, log, every_ms, turn });
};

/** In a transaction of which nothing stays when the lease is no longer held. */
const fenced = <T>(sql: Sql, lease: Lease, work: (tx: Parameters<typeof holdLease>[0]) => T) =>
  sql.begin(async (tx) => {
    if (!(await holdLease(tx, lease, lease_seconds))) throw new Error(`${lease.name}: lease lost`);
    return work(tx);
  });

export const createSealer = (shard: Sql, parts: Parts): Service => {
  const work = (lease: Lease) =>
    fenced(shard, lease, (tx) => store.sealBatch(tx, most_in_batch)).then(Number);
  return makeLeased(shard, 'sealer', { ...parts, work });
};

/** Batches that have no offsets yet; a shard that does not answer has none for now. */
const findSealed = async (sql: Sql, shards: readonly Sql[], log: Logger) => {
  const cursors = await store.readCursors(sql, shards.length);
  const found = await Promise.all(
    shards
      .map(async (shard, n): Promise<readonly store.Descriptor[]> => {
        const rows = await store.listBatches(shard, cursors[n] ?? 0, batches_a_turn);
        return rows.map((row) => ({ ...row, shard: n }));
      })
      .map((reading, n) =>
        reading.catch((error: unknown) => {
          log.warn({ shard: n, ...describeError(error) }, 'sequencer: a shard does not answer');
          return [];
        }),
      ),
  );
  return found.flat();
};

/** `sql` holds the order, `shards` the events; the number of a shard is its place in the list. */
export const createSequencer = (sql: Sql, shards: readonly Sql[], parts: Parts): Service => {
  const work = async (lease: Lease): Promise<number> => {
    const sealed = await findSealed(sql, shards, parts.log);
    if (sealed.length === 0) return 0;
    await fenced(sql, lease, async (tx) => {
      let head = await store.lockHead(tx);
      const next = (await store.readCursors(tx, shards.length)).map((batch) => batch + 1);
      const sequenced: store.Sequenced[] = [];
      for (const one of sealed) {
        // Another sequencer was faster, or a batch before it is missing: a later turn has it.
        if (one.batch !== next[one.shard]) continue;
        next[one.shard] = one.batch + 1;
        sequenced.push({ ...one, first_offset: head + 1 });
        head += one.count;
      }
      await store.addToSequence(tx, sequenced, head);
    });
    return sealed.length;
  };
  return makeLeased(sql, 'sequencer', { ...parts, work });
};

/** Sealers and a sequencer for the shards of the settings; nothing where there are none. */
export const createShardLog = ({ sql, log, config }: Deps): Service => {
  const shards = config.SHARD_URLS.map((url) =>
    openSql({ url, pool: 2, prepare: config.DATABASE_PREPARE, name: 'shard' }),
  );
  const parts =
    shards.length === 0
      ? []
      : [
          ...shards.map((shard) => createSealer(shard, { log })),
          createSequencer(sql, shards, { log }),
        ];
  return {
    name: 'shard log',
    async start() {
      for (const part of parts) await part.start();
    },
    async stop() {
      await Promise.all(parts.map((part) => part.stop()));
      await Promise.all(shards.map((shard) => shard.end({ timeout: 1 })));
    },
  };
};

/**
 * Events after an offset in the order of the log, `most` batches at a time. It ends at the newest,
 * and throws where the shard of the next batch does not answer or has lost it: nothing is left out.
 */
export async function* readSequenced(sql: Sql, shards: readonly Sql[], after: number, most = 100) {
  let at = after;
  for (;;) {
    const descriptors = await store.readSequence(sql, at, most);
    if (descriptors.length === 0) return;
    for (const { first_offset, shard, batch, count } of descriptors) {
      const database = shards[shard];
      const events = database === undefined ? [] : await store.readBatch(database, batch);
      if (events.length !== count) throw new Error(`shard ${shard} has no batch ${batch}`);
      for (const [n, event] of events.entries()) {
        const offset = first_offset + n;
        if (offset > at) yield { ...event, offset, shard };
      }
      at = Math.max(at, first_offset + count - 1);
    }
  }
}
