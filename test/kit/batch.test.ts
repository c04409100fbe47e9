import fc from 'fast-check';
import { t } from 'tap';
import { type BatcherOptions, createBatcher, QueueFullError } from '../../src/kit/pg/batch.js';
import { openSql } from '../../src/kit/pg/client.js';
import { holds } from '../help/property.js';
import { startStopwatch } from '../help/stopwatch.js';
import { openStores } from '../help/stores.js';
import { until } from '../help/until.js';

interface Draft {
  readonly id: number;
  readonly key: string;
}

/** Batches that have begun and wait for the test to say how they end. */
const makeHeldRuns = () => {
  const held: { drafts: readonly Draft[]; end(error?: Error): void }[] = [];
  const run = (drafts: readonly Draft[]): Promise<string[]> =>
    new Promise((resolve, reject) => {
      held.push({
        drafts,
        end: (error) =>
          error === undefined ? resolve(drafts.map(({ id }) => `stored ${id}`)) : reject(error),
      });
    });
  return { held, run };
};

const batcherOf = (options: Partial<BatcherOptions<Draft, string>>) =>
  createBatcher<Draft, string>({
    run: async (drafts) => drafts.map(({ id }) => `stored ${id}`),
    key: ({ key }) => key,
    most: 100,
    lanes: 1,
    patience_ms: 5_000,
    queue: 10_000,
    ...options,
  });

const draft = (id: number, key = `k${id}`): Draft => ({ id, key });
const idsOf = (batch: { readonly drafts: readonly Draft[] } | undefined) =>
  batch?.drafts.map(({ id }) => id);
const outage = (): Error => Object.assign(new Error('away'), { code: 'ECONNREFUSED' });
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

t.test('drafts of one turn go together, and each gets its own verdict', async (t) => {
  const { held, run } = makeHeldRuns();
  const batcher = batcherOf({ run });
  const verdicts = [1, 2, 3].map((id) => batcher.add(draft(id)));
  await until('the batch', () => held.length === 1);
  t.same(idsOf(held[0]), [1, 2, 3]);
  held[0]?.end();
  t.same(await Promise.all(verdicts), ['stored 1', 'stored 2', 'stored 3']);
  t.match(batcher.stats, { batches: 1, drafts: 3 });
});

t.test('the next batch begins before the verdicts of the last one are given', async (t) => {
  const { held, run } = makeHeldRuns();
  const batcher = batcherOf({ run });
  const first = batcher.add(draft(1)).then(() => held.length);
  await until('the batch', () => held.length === 1);
  const second = batcher.add(draft(2));
  await turn();
  held[0]?.end();
  t.equal(await first, 2);
  held[1]?.end();
  t.equal(await second, 'stored 2');
  await batcher.drain();
});

t.test('drafts of one key go together where that is wanted, in their order', async (t) => {
  const { held, run } = makeHeldRuns();
  const batcher = batcherOf({ run, keys_together: true, lanes: 2 });
  const first = [draft(1, 'a'), draft(2, 'b'), draft(3, 'a')].map((one) => batcher.add(one));
  await until('the batch', () => held.length > 0);
  await Promise.resolve();
  const second = [draft(4, 'a'), draft(5, 'c'), draft(6, 'a')].map((one) => batcher.add(one));
  await until('a batch beside', () => held.length > 1);
  const both = held.map(idsOf);
  t.same(
    both.flat().filter((id) => id === 4 || id === 6),
    [],
    'not beside others of their key',
  );
  for (const { end } of held) end();
  await until('the last batch', () => held.some(({ drafts }) => drafts.some(({ id }) => id === 6)));
  t.same(idsOf(held.find(({ drafts }) => drafts.some(({ id }) => id === 6))), [4, 6]);
  for (const { end } of held) end();
  t.same(
    await Promise.all([...first, ...second]),
    [1, 2, 3, 4, 5, 6].map((id) => `stored ${id}`),
  );
});

t.test('a lonely draft waits for nobody', async (t) => {
  const { held, run } = makeHeldRuns();
  const verdict = batcherOf({ run }).add(draft(1));
  await turn();
  await turn();
  t.same(idsOf(held[0]), [1]);
  held[0]?.end();
  t.equal(await verdict, 'stored 1');
});

t.test('a batch begins some time after one of several, unless many wait', async (t) => {
  const { held, run } = makeHeldRuns();
  const batcher = batcherOf({ run, lanes: 2, least_beside: 3, apart_ms: 200 });
  const verdicts = [batcher.add(draft(1))];
  await until('the first batch', () => held.length === 1);
  const alone_ms = performance.now();
  held[0]?.end();
  await verdicts[0];
  const since_ms = performance.now();
  verdicts.push(batcher.add(draft(2)), batcher.add(draft(3)));
  await until('the second batch', () => held.length === 2);
  t.ok(performance.now() - alone_ms < 150, 'behind one that came alone nobody waits');
  held[1]?.end();
  await verdicts[1];
  verdicts.push(batcher.add(draft(4)));
  t.equal(held.length, 2);
  await until('the third batch', () => held.length === 3);
  t.ok(performance.now() - since_ms >= 190, 'so long after the second one');
  t.same(idsOf(held[2]), [4]);
  held[2]?.end();
  await verdicts[3];
  verdicts.push(batcher.add(draft(5)), batcher.add(draft(6)));
  await until('the fourth batch', () => held.length === 4);
  verdicts.push(...[7, 8, 9].map((id) => batcher.add(draft(id))));
  t.same(idsOf(held[4]), [7, 8, 9], 'three do not wait');
  for (const batch of held.slice(3)) batch.end();
  t.same(
    await Promise.all(verdicts),
    [1, 2, 3, 4, 5, 6, 7, 8, 9].map((id) => `stored ${id}`),
  );
});

t.test('while a batch is under way the next one gathers', async (t) => {
  const { held, run } = makeHeldRuns();
  const batcher = batcherOf({ run });
  void batcher.add(draft(1));
  await until('the first batch', () => held.length === 1);
  const later = [2, 3, 4].map((id) => batcher.add(draft(id)));
  await turn();
  t.equal(held.length, 1);
  held[0]?.end();
  await until('the second batch', () => held.length === 2);
  t.same(idsOf(held[1]), [2, 3, 4]);
  held[1]?.end();
  await Promise.all(later);
});

t.test('a batch holds no more than told, and no more lanes are used than told', async (t) => {
  const { held, run } = makeHeldRuns();
  const batcher = batcherOf({ run, most: 2, lanes: 2 });
  const all = [1, 2, 3, 4, 5].map((id) => batcher.add(draft(id)));
  await until('two batches', () => held.length === 2);
  await turn();
  t.same(held.map(idsOf), [
    [1, 2],
    [3, 4],
  ]);
  t.equal(batcher.stats.waiting, 1);
  held[1]?.end();
  await until('the third batch', () => held.length === 3);
  t.same(idsOf(held[2]), [5]);
  for (const batch of held) batch.end();
  await Promise.all(all);
});

const many = (from: number, count: number): Draft[] =>
  Array.from({ length: count }, (_, n) => draft(from + n));

t.test('so many as are worth a batch go out beside another one, and at once', async (t) => {
  const { held, run } = makeHeldRuns();
  const batcher = batcherOf({ run, lanes: 3, least_beside: 3 });
  const all = [batcher.add(draft(1))];
  await until('the first batch', () => held.length === 1);
  all.push(...many(2, 2).map(batcher.add));
  await turn();
  t.equal(held.length, 1, 'two are not worth it');
  all.push(batcher.add(draft(4)));
  t.same(held.map(idsOf), [[1], [2, 3, 4]], 'in the same turn');
  all.push(batcher.add(draft(5)));
  held[0]?.end();
  await until('what is left, behind the last batch', () => held.length === 3);
  t.same(idsOf(held[2]), [5]);
  for (const batch of held) batch.end();
  t.same(await Promise.all(all), ['stored 1', 'stored 2', 'stored 3', 'stored 4', 'stored 5']);
});

t.test('what waits is shared by the lanes that are left', async (t) => {
  const { held, run } = makeHeldRuns();
  const batcher = batcherOf({ run, lanes: 3, least_beside: 2, most: 5 });
  const all = many(1, 6).map(batcher.add);
  t.same(held.map(idsOf), [
    [1, 2],
    [3, 4],
    [5, 6],
  ]);
  all.push(...many(7, 12).map(batcher.add));
  for (const batch of held.slice(0, 2)) batch.end();
  await until('one batch for each lane', () => held.length === 5);
  t.same(held.slice(3).map(idsOf), [
    [7, 8, 9, 10, 11],
    [12, 13, 14, 15, 16],
  ]);
  for (const batch of held) batch.end();
  await until('the rest', () => held.length === 6);
  held[5]?.end();
  await Promise.all(all);
});

t.test('a draft waits while one with its key is under way, in whichever lane', async (t) => {
  const { held, run } = makeHeldRuns();
  const batcher = batcherOf({ run, lanes: 2 });
  const all = [draft(1, 'a'), draft(2, 'b')].map(batcher.add);
  await until('the first batch', () => held.length === 1);
  all.push(...[draft(3, 'a'), draft(4, 'c')].map(batcher.add));
  await until('the other lane', () => held.length === 2);
  t.same(idsOf(held[1]), [4]);
  held[0]?.end();
  await until('the one that waited', () => held.length === 3);
  t.same(idsOf(held[2]), [3]);
  for (const batch of held) batch.end();
  await Promise.all(all);
});

t.test('two drafts with one key never share a batch, and keep their order', async (t) => {
  const { held, run } = makeHeldRuns();
  const batcher = batcherOf({ run });
  const all = [draft(1, 'a'), draft(2, 'a'), draft(3, 'b'), draft(4, 'a')].map(batcher.add);
  for (let batch = 0; batch < 3; batch += 1) {
    await until('a batch', () => held.length === batch + 1);
    held[batch]?.end();
  }
  await Promise.all(all);
  t.same(held.map(idsOf), [[1, 3], [2], [4]]);
});

t.test('whatever is added when: no key under way twice, every draft once', async (t) => {
  const bursts = fc.array(fc.array(fc.nat(5), { maxLength: 12 }), { maxLength: 6 });
  const property = fc.asyncProperty(
    bursts,
    fc.integer({ min: 1, max: 4 }),
    fc.integer({ min: 1, max: 3 }),
    fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
    async (added, most, lanes, least_beside) => {
      const seen: number[] = [];
      const under_way = new Set<string>();
      const batcher = batcherOf({
        ...{ most, lanes },
        ...(least_beside === undefined ? {} : { least_beside }),
        run: async (drafts) => {
          if (drafts.length > most) throw new Error('a large batch');
          for (const { key } of drafts) {
            if (under_way.has(key)) throw new Error('a key twice');
            under_way.add(key);
          }
          await turn();
          for (const { key } of drafts) under_way.delete(key);
          seen.push(...drafts.map(({ id }) => id));
          return drafts.map(({ id }) => `stored ${id}`);
        },
      });
      const verdicts: Promise<string>[] = [];
      for (const burst of added) {
        for (const key of burst) verdicts.push(batcher.add(draft(verdicts.length, `k${key}`)));
        await turn();
      }
      const told = await Promise.all(verdicts);
      return (
        told.every((verdict, id) => verdict === `stored ${id}`) &&
        new Set(seen).size === seen.length &&
        seen.length === verdicts.length
      );
    },
  );
  await holds(t, property, { numRuns: 150 });
});

t.test('a poisonous draft fails alone', async (t) => {
  const runs: number[][] = [];
  const batcher = batcherOf({
    run: async (drafts) => {
      runs.push(drafts.map(({ id }) => id));
      if (drafts.some(({ id }) => id === 2)) throw new Error('cannot be stored');
      return drafts.map(({ id }) => `stored ${id}`);
    },
  });
  const settled = await Promise.allSettled([1, 2, 3].map((id) => batcher.add(draft(id))));
  t.match(settled, [
    { status: 'fulfilled', value: 'stored 1' },
    { status: 'rejected', reason: { message: 'cannot be stored' } },
    { status: 'fulfilled', value: 'stored 3' },
  ]);
  t.same(runs, [[1, 2, 3], [1], [2], [3]]);
  t.equal(await batcher.add(draft(4)), 'stored 4', 'the lane goes on');
});

t.test('through an outage the same batch is tried again until the store is back', async (t) => {
  const { held, run } = makeHeldRuns();
  const batcher = batcherOf({ run });
  const verdicts = [1, 2].map((id) => batcher.add(draft(id)));
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await until('an attempt', () => held.length === attempt + 1);
    held[attempt]?.end(attempt < 2 ? outage() : undefined);
  }
  t.same(await Promise.all(verdicts), ['stored 1', 'stored 2']);
  t.same(held.map(idsOf), [
    [1, 2],
    [1, 2],
    [1, 2],
  ]);
});

t.test('an outage longer than the patience is told to everybody who waited', async (t) => {
  const batcher = batcherOf({
    patience_ms: 60,
    run: async () => {
      throw outage();
    },
  });
  const settled = await Promise.allSettled([1, 2].map((id) => batcher.add(draft(id))));
  t.match(settled, [
    { status: 'rejected', reason: { code: 'ECONNREFUSED' } },
    { status: 'rejected', reason: { code: 'ECONNREFUSED' } },
  ]);
});

t.test('a store that refuses writes is waited for as long as is said for that', async (t) => {
  const run = async () => {
    throw Object.assign(new Error('read-only'), { code: '25006' });
  };
  const readWatch = startStopwatch();
  const batcher = batcherOf({ patience_ms: 20_000, refused_ms: 60, run });
  await t.rejects(batcher.add(draft(1)), { code: '25006' });
  t.ok(readWatch() < 10_000);
});

t.test('a full queue refuses at once, and takes drafts again when there is room', async (t) => {
  const { held, run } = makeHeldRuns();
  const batcher = batcherOf({ run, most: 1, queue: 2 });
  const first = batcher.add(draft(1));
  await until('the first batch', () => held.length === 1);
  const waiting = [batcher.add(draft(2)), batcher.add(draft(3))];
  await t.rejects(batcher.add(draft(4)), QueueFullError);
  held[0]?.end();
  await first;
  await until('the second batch', () => held.length === 2);
  const again = batcher.add(draft(5));
  for (let batch = 1; batch < 4; batch += 1) {
    await until('a batch', () => held.length === batch + 1);
    held[batch]?.end();
  }
  t.same(await Promise.all([...waiting, again]), ['stored 2', 'stored 3', 'stored 5']);
});

t.test('draining waits for what was added, and for nothing when nothing was', async (t) => {
  const { held, run } = makeHeldRuns();
  const batcher = batcherOf({ run, most: 1 });
  await batcher.drain();
  const verdicts = [1, 2].map((id) => batcher.add(draft(id)));
  let drained = false;
  const draining = batcher.drain().then(() => {
    drained = true;
  });
  await until('the first batch', () => held.length === 1);
  held[0]?.end();
  await until('the second batch', () => held.length === 2);
  t.notOk(drained);
  held[1]?.end();
  await draining;
  t.same(await Promise.all(verdicts), ['stored 1', 'stored 2']);
});

t.test('in Postgres, with connections cut under it, every draft is stored once', async (t) => {
  const stores = await openStores(t);
  const open = (name: string) =>
    openSql({ url: stores.database_url, pool: 2, prepare: true, name: `batch ${name}` });
  const sql = open('lane');
  const other = open('other');
  t.teardown(() => Promise.all([sql.end({ timeout: 1 }), other.end({ timeout: 1 })]));
  await other`create table stored (id integer primary key, batch integer not null)`;
  let batches = 0;
  const batcher = batcherOf({
    most: 50,
    lanes: 2,
    run: async (drafts) => {
      batches += 1;
      const ids = drafts.map(({ id }) => id);
      await sql`
        insert into stored (id, batch)
        select unnest(${ids}::integer[]), ${batches}
        on conflict (id) do nothing`;
      return ids.map((id) => `stored ${id}`);
    },
  });
  const verdicts: Promise<string>[] = [];
  for (let id = 0; id < 1_000; id += 1) {
    verdicts.push(batcher.add(draft(id)));
    if (id % 40 === 0) await turn();
    if (id % 250 === 100) {
      await other`
        select pg_terminate_backend(pid)
        from pg_stat_activity
        where application_name = 'prediction-forum batch lane' and datname = current_database()`;
    }
  }
  t.same(
    await Promise.all(verdicts),
    verdicts.map((_, id) => `stored ${id}`),
  );
  const [counted] = await other<{ count: number }[]>`select count(*)::int as count from stored`;
  t.equal(counted?.count, 1_000);
  t.ok(batcher.stats.batches < 200, `${batcher.stats.batches} batches`);
});
