import fc from 'fast-check';
import {
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
  readonly ids: readonly number[];
  end(error?: Error): void;
}

/** Batches that have started and wait for the test to end them. */
const makeHeld = (options: Partial<GroupCommitOptions<Draft, string>> = {}) => {
  const held: Held[] = [];
  const commit = (drafts: readonly Draft[]): Promise<string[]> =>
    new Promise((resolve, reject) => {
      const ids = drafts.map(({ id }) => id);
      held.push({
        ids,
        end: (error) =>
          error === undefined ? resolve(ids.map((id) => `stored ${id}`)) : reject(error),
      });
    });
  const group = createGroupCommit<Draft, string>({ commit, ...options });
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

t.test('a batch takes what there is room for, in the order of arrival', async (t) => {
  const { held, group, untilBatch } = makeHeld({ most: 3 });
  const all = [1, 2, 3, 4, 5].map((id) => group.add(draft(id)));
  await untilBatch(1);
  t.same(held[0]?.ids, [1, 2, 3]);
  held[0]?.end();
  await untilBatch(2);
  t.same(held[1]?.ids, [4, 5]);
  held[1]?.end();
  t.same((await Promise.all(all)).length, 5);
});

t.test('where a batch takes one draft of a key, the next one waits', async (t) => {
  const { held, group, untilBatch } = makeHeld({ one_of: ({ key }) => key });
  const all = [draft(1, 'a'), draft(2, 'a'), draft(3, 'b')].map((one) => group.add(one));
  await untilBatch(1);
  t.same(held[0]?.ids, [1, 3]);
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
        ...(one_a_key ? { one_of: ({ key }: Draft) => key } : {}),
        async commit(batch) {
          await new Promise((resolve) => setImmediate(resolve));
          if (batch.length > 5) throw new Error('too many');
          stored.push(...batch);
          return batch.map(({ id }) => id);
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
