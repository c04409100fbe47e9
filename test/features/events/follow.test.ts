import fc from 'fast-check';
import { pino } from 'pino';
import type { Test } from 'tap';
import type { Sql } from '../../../src/db/client.js';
import { Follower } from '../../../src/features/events/follow.js';
import { type LogEntry, streamKey } from '../../../src/features/events/log-entry.js';
import { range } from '../../help/hub.js';
import { makeLogWriter, saidOf } from '../../help/log.js';
import { openParts, type Parts } from '../../help/parts.js';
import { pluck } from '../../help/pluck.js';
import { startStopwatch } from '../../help/stopwatch.js';
import { startPrivateStores } from '../../help/stores.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** How long a follower waits for the stream before it reads Postgres. */
const block_ms = 100;

interface FollowOptions {
  readonly parts?: Parts;
  readonly before?: number;
  readonly block_ms?: number;
  /** Entries in the stream that belong to another history. */
  readonly alien?: readonly (readonly [id: string, fields: readonly string[]])[];
  readonly onEvents?: (batch: readonly LogEntry[]) => void;
}

/** Counts the queries and passes them on. */
const counting = (sql: Sql): { readonly sql: Sql; count: number } => {
  const counter = { sql, count: 0 };
  counter.sql = new Proxy(sql, {
    apply(target, self, args) {
      counter.count += 1;
      return Reflect.apply(target as never, self, args);
    },
  });
  return counter;
};

const shared = await openParts(t);

/** A follower of a fresh log. */
const follow = async (t: Test, options: FollowOptions = {}) => {
  const { parts = shared } = options;
  const { sql, redis, config } = parts.deps;
  const key = streamKey(config.REDIS_PREFIX);
  await sql`truncate events`;
  await sql`update log_head set "offset" = 0`;
  await redis.del(key);
  const log = makeLogWriter(sql, redis, config.REDIS_PREFIX);
  await log.write(options.before ?? 0);
  for (const [id, fields] of options.alien ?? []) await redis.xadd(key, id, ...fields);
  const got: LogEntry[] = [];
  const logged: string[] = [];
  const counted = counting(sql);
  const follower = new Follower({
    sql: counted.sql,
    redis_url: parts.stores.redis_url,
    prefix: config.REDIS_PREFIX,
    log: pino({ level: 'error' }, { write: (line: string) => void logged.push(line) }),
    block_ms: options.block_ms ?? block_ms,
    grace_ms: options.block_ms ?? block_ms,
    onEvents(batch) {
      got.push(...batch);
      options.onEvents?.(batch);
    },
  });
  await follower.start();
  t.teardown(() => follower.stop());
  return {
    parts,
    log,
    key,
    follower,
    got,
    logged,
    /** Number of queries that the follower sent to Postgres. */
    queries: () => counted.count,
    /** Waits until all recorded events are delivered, and checks that they are unchanged. */
    async settle(within_ms = 15_000) {
      const head = log.entries.length;
      await until('all is delivered', () => follower.head >= head, within_ms);
      t.strictSame(pluck(got, 'offset'), range((options.before ?? 0) + 1, head));
      t.strictSame(got.map(saidOf), log.entries.slice(options.before ?? 0), 'as recorded');
    },
  };
};

t.test('events after the start come from the stream, in order and complete', async (t) => {
  const f = await follow(t, { before: 7, block_ms: 300 });
  t.equal(f.follower.head, 7);
  await f.log.write(1, { question_id: '0190a000-0000-7000-8000-000000000001', category: 'c' });
  await f.log.write(1_500);
  await f.log.write(2, { audience_id: '0190a000-0000-7000-8000-000000000002' });
  await f.settle();
  const { stream, record, lost } = f.follower.counts;
  t.same([f.follower.head, lost, stream + record], [1_510, 0, 1_503]);
  t.ok(stream > 0);
  t.ok(f.follower.lagP99() >= 0 && f.follower.lagP99() < 10_000);
});

t.test('what is missing in the stream is filled in from Postgres', async (t) => {
  const f = await follow(t, { before: 3 });
  await f.log.record(20);
  await f.log.append(6, 9);
  await f.log.append(12, 12);
  await f.log.append(20, 23);
  await f.settle();
  t.equal(f.follower.counts.lost, 0);
  await f.log.record(1_200);
  await f.log.append(1_223, 1_223);
  await f.settle();
});

t.test('an entry of the stream that cannot be read is read from Postgres', async (t) => {
  const f = await follow(t);
  await f.log.write(3);
  await f.log.record(2);
  await f.parts.deps.redis.xadd(f.key, '4-0', 'of', 'another', 'program', 'it is');
  await f.log.append(5, 5);
  await f.log.write(3);
  await f.settle();
  t.equal(f.follower.counts.lost, 0);
});

t.test('a stream that stands still delays events by one block only', async (t) => {
  const f = await follow(t);
  await f.log.write(5);
  await f.settle();
  await f.log.record(600);
  await f.settle(2_000);
  t.ok(f.follower.counts.record >= 600);
  await f.log.append(6, 605);
  await f.log.write(3);
  await f.settle();
});

t.test('a stream that was emptied and starts again is taken up where it counts', async (t) => {
  const f = await follow(t, { before: 2 });
  await f.log.write(50);
  await f.settle();
  await f.parts.deps.redis.del(f.key);
  await f.log.record(5);
  await f.log.append(30, 57);
  await f.log.write(2);
  await f.settle();
  await f.parts.deps.redis.del(f.key);
  await f.log.write(3);
  await f.settle();
  await f.parts.deps.redis.xtrim(f.key, 'MAXLEN', 0);
  await f.log.record(4);
  await f.log.append(65, 66);
  await f.settle();
});

t.test('a key of another kind and ids of another kind do no harm', async (t) => {
  const f = await follow(t, { block_ms: 300 });
  const { redis } = f.parts.deps;
  await redis.set(f.key, 'not a stream');
  await f.log.record(3);
  await f.settle();
  await redis.del(f.key);
  await redis.xadd(f.key, '3-7', 'x', 'y');
  await f.log.record(2);
  await f.settle();
  const before = f.queries();
  const started_ms = performance.now();
  for (let i = 0; i < 2; i += 1) {
    await f.log.record(1);
    await f.settle();
  }
  const polls = (performance.now() - started_ms) / 250;
  t.ok(f.queries() - before <= polls * 2 + 8, 'and are not read in a tight loop');
});

t.test('a receiver that throws is noted in the log, and the next batch comes', async (t) => {
  const f = await follow(t, {
    onEvents: () => {
      throw new Error('receiver');
    },
  });
  await f.log.write(1);
  await f.settle();
  await f.log.write(1);
  await f.settle();
  t.match(f.logged.join(), /threw/);
});

t.test('offsets that are nowhere are counted as lost, and the rest comes', async (t) => {
  const f = await follow(t, { before: 2 });
  await f.parts.deps.sql.begin(async (tx) => {
    await tx`update log_head set "offset" = 5`;
  });
  for (let i = 0; i < 3; i += 1) (f.log.entries as LogEntry[]).push({} as LogEntry);
  await f.log.write(2);
  await until('the rest', () => f.follower.head === 7);
  t.strictSame(pluck(f.got, 'offset'), [6, 7]);
  t.equal(f.follower.counts.lost, 3);
  t.match(f.logged.join(), /hole/);
});

t.test('a stream that is ahead of the record is not believed', async (t) => {
  const f = await follow(t);
  await f.parts.deps.redis.xadd(f.key, '900-0', 'i', 'x', 'e', 'x', 'b', '{}');
  await f.log.record(2);
  await f.settle();
  await f.log.record(1);
  await f.settle();
  t.match(f.logged, { length: 1 });
  t.match(f.logged[0], /ahead/);
});

t.test('a stream of another history is not believed, whatever its offsets are', async (t) => {
  const other = await follow(t);
  await other.log.write(5);
  await other.follower.stop();
  const f = await follow(t, { alien: await other.parts.deps.redis.xrange(other.key, '-', '+') });
  await f.log.record(2);
  await f.settle();
  await f.parts.deps.redis.del(f.key);
  await f.log.write(4);
  await f.settle();
  t.match(f.logged, { length: 1 });
  t.match(f.logged[0], /ahead/);
});

t.test('a record that lost its end is followed from where it ends now', async (t) => {
  const f = await follow(t);
  await f.log.write(6);
  await f.settle();
  await f.parts.deps.sql`delete from events where "offset" > 4`;
  await f.parts.deps.sql`update log_head set "offset" = 4`;
  await until('the cursor goes back', () => f.follower.head === 4);
  t.match(f.logged, { length: 1 });
});

t.test('stopping takes no longer than a moment, whatever is under way', async (t) => {
  const f = await follow(t);
  await f.log.write(1);
  await f.settle();
  const readWatch = startStopwatch();
  await f.follower.stop();
  t.ok(readWatch() < 1_000);
  await f.log.write(1);
  t.equal(f.got.length, 1);
});

const anyStep = fc.record({
  op: fc.constantFrom('write', 'write', 'record', 'append', 'empty', 'trim', 'pause', 'settle'),
  n: fc.integer({ min: 1, max: 40 }),
});

t.test('with stores that fail', async (t) => {
  const stores = await startPrivateStores(t, { durable: false });
  const parts = await openParts(t, { stores });
  const { redis } = parts.deps;

  t.test('events go on while Redis stands still, and from Redis afterwards', async (t) => {
    const f = await follow(t, { parts, block_ms: 300 });
    await f.log.write(3);
    await f.settle();
    stores.redis.pause();
    await f.log.record(4);
    await f.settle();
    const before = f.queries();
    const started_ms = performance.now();
    await f.log.record(1);
    await f.settle();
    const polls = (performance.now() - started_ms) / 250;
    t.ok(f.queries() - before <= polls * 2 + 4, 'read at a measured pace');
    stores.redis.resume();
    await until('Redis answers', () => redis.ping().catch(() => null));
    await f.log.append(4, 8);
    await until('the stream is read again', async () => {
      await f.log.write(1);
      await f.settle();
      return f.follower.counts.stream > 3;
    });
  });

  t.test('a Redis that is killed and comes back empty costs nothing', async (t) => {
    const { follower, log, settle } = await follow(t, { parts });
    await stores.redis.kill();
    await log.record(3);
    await until('from Postgres', () => follower.head === 3);
    await stores.redis.restart({ empty: true });
    await until('Redis is back', () => redis.status === 'ready');
    await log.append(2, 3);
    await until('the stream is read again', async () => {
      await log.write(1);
      await until('it', () => follower.head === log.entries.length);
      return follower.counts.stream > 0;
    });
    await settle();
  });

  t.test('a hole waits for a Postgres that stands still', async (t) => {
    const { follower, key, log, settle } = await follow(t, { parts });
    await log.record(4);
    await until('delivered', () => follower.head === 4);
    await log.append(1, 4);
    stores.postgres.pause();
    await redis.xadd(key, '6-0', 'i', 'b', 'e', 'x', 'b', '{"event":"x"}');
    stores.postgres.resume();
    await log.record(1);
    await log.record(1);
    await settle();
  });

  t.test('a Postgres that was killed is waited for', async (t) => {
    const { log, settle } = await follow(t, { parts });
    await log.record(2);
    await stores.postgres.kill();
    await log.append(2, 2);
    await stores.postgres.restart();
    await settle(20_000);
  });

  t.test('whatever happens to the stream, every event comes once and in order', async (t) => {
    const f = await follow(t, { parts });
    /** Appends as the relay does: to the end of the stream, or at any offset to an empty stream. */
    const catchUp = async (skip: number): Promise<void> => {
      const [last] = await redis.xrevrange(f.key, '+', '-', 'COUNT', 1);
      const at = last === undefined ? skip : Number(last[0].split('-')[0]);
      await f.log.append(at + 1, f.log.entries.length);
    };
    const steps: Record<string, (n: number) => Promise<unknown>> = {
      write: async (n) => {
        await f.log.record(n);
        await catchUp(0);
      },
      record: (n) => f.log.record(n),
      append: (n) => catchUp(Math.max(0, f.log.entries.length - n)),
      empty: () => redis.del(f.key),
      trim: (n) => redis.xtrim(f.key, 'MAXLEN', n),
      pause: (n) => redis.call('CLIENT', 'PAUSE', n * 5, 'WRITE'),
      settle: () => f.settle(),
    };
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { minLength: 5, maxLength: 40 }), async (plan) => {
        for (const { op, n } of plan) await steps[op]?.(n);
        await f.settle();
      }),
      { numRuns: 12, endOnFailure: true },
    );
    t.equal(f.follower.counts.lost, 0);
    t.ok(f.follower.counts.stream > 0 && f.follower.counts.record > 0);
  });
});
