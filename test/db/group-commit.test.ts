import fc from 'fast-check';
import {
  type Batch,
  createGroupCommit,
  type GroupCommitOptions,
  QueueFullError,
} from '../../src/db/group-commit.js';
import { holds } from '../help/property.js';
import { t } from '../help/tap.js';
import { until } from '../help/until.js';

interface Draft {
  readonly id: number;
  readonly key: string;
}

interface Held {
  readonly batch: Batch<Draft>;
  readonly ids: readonly number[];
  end(error?: Error): void;
}

const idsOf = ({ drafts }: Batch<Draft>): number[] => drafts.map(({ id }) => id);

/** Batches that have begun and wait for the test to say how they end. */
const makeHeld = (options: Partial<GroupCommitOptions<Draft, string>> = {}) => {
  const held: Held[] = [];
  const commit = (batch: Batch<Draft>): Promise<string[]> =>
    new Promise((resolve, reject) => {
      held.push({
        batch,
        ids: idsOf(batch),
        end: (error) =>
          error === undefined ? resolve(idsOf(batch).map((id) => `stored ${id}`)) : reject(error),
      });
    });
  const group = createGroupCommit<Draft, string>({ commit, key: ({ key }) => key, ...options });
  const untilBatch = (n: number): Promise<unknown> => until(`batch ${n}`, () => held.length === n);
  return { held, group, untilBatch };
};

const draft = (id: number, key = `k${id}`): Draft => ({ id, key });
const outage = (): Error => Object.assign(new Error('away'), { code: 'ECONNREFUSED' });

t.test('drafts of one turn go together, each with its own verdict; the next gather', async (t) => {
  const { held, group, untilBatch } = makeHeld();
  const first = [1, 2, 3].map((id) => group.add(draft(id)));
  await untilBatch(1);
  t.same(held[0]?.ids, [1, 2, 3]);
  const second = [4, 5].map((id) => group.add(draft(id)));
  t.equal(group.stats.waiting, 2);
  held[0]?.end();
  t.same(await Promise.all(first), ['stored 1', 'stored 2', 'stored 3']);
  t.same(held[1]?.ids, [4, 5], 'begun before the answers to the first were made');
  held[1]?.end();
  t.same(await Promise.all(second), ['stored 4', 'stored 5']);
  await group.drain();
  t.match(group.stats, { batches: 2, drafts: 5, waiting: 0 });
});

t.test('a batch takes in what fits, as far as there is room, and no key overtakes', async (t) => {
  const { held, group, untilBatch } = makeHeld({ most: 4 });
  const all = [group.add(draft(1))];
  await untilBatch(1);
  for (const one of [
    draft(2),
    draft(3, 'same'),
    draft(4, 'same'),
    draft(6),
    draft(8),
    draft(10),
    draft(12),
  ]) {
    all.push(group.add(one));
  }
  held[0]?.batch.join(({ id }) => id % 2 === 0);
  t.same(idsOf(held[0]!.batch), [1, 2, 6, 8], '4 stays behind 3');
  held[0]?.end();
  await untilBatch(2);
  t.same(held[1]?.ids, [3, 4, 10, 12]);
  held[1]?.end();
  t.same((await Promise.all(all)).length, 8);
});

t.test('where a batch takes one draft of a key, the next one waits', async (t) => {
  const { held, group, untilBatch } = makeHeld({ one_a_key: true });
  const all = [draft(1, 'a'), draft(2, 'a'), draft(3, 'b')].map((one) => group.add(one));
  await untilBatch(1);
  t.same(held[0]?.ids, [1, 3]);
  held[0]?.batch.join(() => true);
  t.same(idsOf(held[0]!.batch), [1, 3]);
  held[0]?.end();
  await untilBatch(2);
  t.same(held[1]?.ids, [2]);
  held[1]?.end();
  await Promise.all(all);
});

t.test('an outage refuses the whole batch, and the next one is tried', async (t) => {
  const { held, group, untilBatch } = makeHeld();
  const lost = [1, 2].map((id) => group.add(draft(id)));
  await untilBatch(1);
  held[0]?.end(outage());
  for (const { status, ...rest } of await Promise.allSettled(lost)) {
    t.equal(status, 'rejected');
    t.match(rest, { reason: { code: 'ECONNREFUSED' } });
  }
  const next = group.add(draft(3));
  await untilBatch(2);
  held[1]?.end();
  t.equal(await next, 'stored 3');
});

t.test('after another error each draft is committed once more alone', async (t) => {
  const { held, group, untilBatch } = makeHeld();
  const all = Promise.allSettled([1, 2].map((id) => group.add(draft(id))));
  await untilBatch(1);
  held[0]?.end(new Error('a bad draft'));
  await untilBatch(2);
  t.same(held[1]?.ids, [1]);
  held[1]?.end(new Error('this one'));
  await untilBatch(3);
  t.same(held[2]?.ids, [2]);
  held[2]?.end();
  const [bad, good] = await all;
  t.match(bad, { status: 'rejected', reason: { message: 'this one' } });
  t.match(good, { status: 'fulfilled', value: 'stored 2' });
});

t.test('a queue that is full refuses at once', async (t) => {
  const { held, group, untilBatch } = makeHeld({ queue: 2 });
  const first = group.add(draft(1));
  await untilBatch(1);
  const waiting = [2, 3].map((id) => group.add(draft(id)));
  await t.rejects(group.add(draft(4)), QueueFullError);
  held[0]?.end();
  await untilBatch(2);
  held[1]?.end();
  await Promise.all([first, ...waiting]);
});

t.test('whatever comes, every draft is stored once, those of a key in their order', async (t) => {
  const property = fc.asyncProperty(
    fc.array(fc.record({ key: fc.nat(3), is_late: fc.boolean() }), { maxLength: 60 }),
    fc.boolean(),
    async (drafts, one_a_key) => {
      const stored: Draft[] = [];
      const group = createGroupCommit<Draft, number>({
        most: 5,
        one_a_key,
        key: ({ key }) => key,
        async commit(batch) {
          await new Promise((resolve) => setImmediate(resolve));
          batch.join(({ id }) => id % 3 > 0);
          if (batch.drafts.length > 5) throw new Error('too many');
          stored.push(...batch.drafts);
          return batch.drafts.map(({ id }) => id);
        },
      });
      const verdicts = drafts.map(async ({ key, is_late }, id) => {
        if (is_late) await new Promise((resolve) => setImmediate(resolve));
        return (await group.add(draft(id, `k${key}`))) === id;
      });
      const right = (await Promise.all(verdicts)).every(Boolean);
      const in_order = [0, 1, 2, 3].every((key) => {
        const of_key = (is_late: boolean) =>
          stored.filter((one) => one.key === `k${key}` && drafts[one.id]?.is_late === is_late);
        return [true, false].every((is_late) => {
          const ids = of_key(is_late).map(({ id }) => id);
          return String(ids) === String(ids.toSorted((a, b) => a - b));
        });
      });
      return right && in_order && stored.length === drafts.length;
    },
  );
  await holds(t, property, { numRuns: 200 });
});
