import { t } from 'tap';
import { questionId, seed } from '../../../bench/env/seed.js';
import {
  createQuestionCache,
  type QuestionCacheOptions,
} from '../../../src/features/questions/cache.js';
import { openParts } from '../../help/parts.js';
import type { Teardown } from '../../help/stores.js';
import { until } from '../../help/until.js';

const { deps } = await openParts(t);
await seed(deps.sql, { keys: [], questions: 4 });
const ids = [0, 1, 2].map(questionId);
const [id = ''] = ids;

/** A cache that counts its readings of rows; what a reading answers can be held up. */
const makeCache = (options: QuestionCacheOptions = {}) => {
  const readings = { made: 0, answered: 0, held: null as Promise<void> | null };
  const sql = new Proxy(deps.sql, {
    apply(target, self, parts) {
      const asked = Reflect.apply(target as never, self, parts) as Promise<unknown>;
      if (!String(parts[0]).includes('last_seq')) return asked;
      readings.made += 1;
      const { held } = readings;
      return asked.then(async (rows) => {
        await held;
        readings.answered += 1;
        return rows;
      });
    },
  });
  return { cache: createQuestionCache({ ...deps, sql }, options), readings };
};

type Made = ReturnType<typeof makeCache>;

const isKnown = ({ cache }: Made, question_id: string): boolean => {
  const row = cache.get(question_id);
  if (row instanceof Promise) row.catch(() => undefined);
  return !(row instanceof Promise);
};

/** Makes the readings from now on wait until they are let go. */
const holdUp = ({ readings }: Made): (() => void) => {
  let release = (): void => undefined;
  readings.held = new Promise((resolve) => {
    release = resolve;
  });
  return () => {
    readings.held = null;
    release();
  };
};

/** Follows what changes, and has read the newest questions. */
const startCache = async (t: Teardown, options: QuestionCacheOptions = {}): Promise<Made> => {
  const made = makeCache({ changes_every_ms: 20, ...options });
  t.teardown(() => made.cache.stop());
  await made.cache.start();
  await until('the newest are read', () => made.readings.answered > 0);
  if (!ids.every((one) => isKnown(made, one))) throw new Error('read, and not known');
  return made;
};

const textOf = async ({ cache }: Made, question_id: string) =>
  (await cache.get(question_id))?.question;

t.test('those asked for together are read together, and believed for a moment', async (t) => {
  const made = makeCache();
  await Promise.all(ids.map((one) => made.cache.get(one)));
  t.equal(made.readings.made, 1);
  t.ok(ids.every((one) => isKnown(made, one)));
  t.ok(isKnown(made, id.toUpperCase()));
  t.equal(made.readings.made, 1);
});

t.test('one that takes no predictions yet is read again by the next call', async (t) => {
  const { cache } = await startCache(t, { changes_every_ms: 600_000 });
  await deps.sql`update questions set opens_at = now() + interval '1 hour' where id = ${id}`;
  cache.forget(id);
  const early = await cache.get(id);
  t.ok(early !== undefined && early.opens_at > deps.clock());
  await deps.sql`update questions set opens_at = now() - interval '1 hour' where id = ${id}`;
  const opensAt = async () => (await cache.get(id))?.opens_at ?? new Date();
  await until('it has opened', async () => (await opensAt()) < deps.clock(), 3_000);
  t.equal(await cache.get(questionId(9)), undefined);
});

t.test('the open ones are known before anybody asks', async (t) => {
  const last = questionId(3);
  await deps.sql`update questions set status = 'draft', published_at = null where id = ${last}`;
  const made = await startCache(t);
  const before = made.readings.made;
  t.ok(ids.every((one) => isKnown(made, one)));
  t.equal(made.readings.made, before);
  await deps.sql`update questions set status = 'open', published_at = now() where id = ${last}`;
  await until('it was read', () => made.readings.made > before);
  await until('it is known', () => isKnown(made, last));
  t.match(await made.cache.get(last), { id: last, status: 'open', last_seq: 0 });
});

t.test('what was changed elsewhere is read again, and nothing else', async (t) => {
  const made = await startCache(t);
  const before = made.readings.made;
  const [, other = ''] = ids;
  const kept = made.cache.get(other);
  await deps.sql`update questions set question = 'Another text?' where id = ${id}`;
  await until('it is told', async () => (await textOf(made, id)) === 'Another text?');
  t.equal(made.cache.get(other), kept, 'the very same row');
  t.equal(made.readings.made, before + 1);
});

t.test('a change that is committed long after it was made is told', async (t) => {
  const made = await startCache(t);
  const before = made.readings.made;
  await deps.sql.begin(async (tx) => {
    await tx`update questions set question = 'A late text?' where id = ${id}`;
    await deps.sql`update questions set question = 'Is this between?' where id = ${ids[1] as string}`;
    await until(
      'the later one',
      async () => (await textOf(made, ids[1] as string)) === 'Is this between?',
    );
    t.not(await textOf(made, id), 'A late text?');
  });
  await until('the earlier one', async () => (await textOf(made, id)) === 'A late text?');
  t.equal(made.readings.made, before + 2);
});

t.test('what was read while something changed is not kept', async (t) => {
  const made = await startCache(t, { changes_every_ms: 600_000 });
  const release = holdUp(made);
  made.cache.forget(id);
  const before = made.readings.made;
  const early = made.cache.get(id);
  await until('its row is read', () => made.readings.made > before);
  await deps.sql`update questions set question = 'After the reading?' where id = ${id}`;
  made.cache.forget(id);
  release();
  await early;
  t.equal(await textOf(made, id), 'After the reading?');
});

t.test('nobody waits while what changed is read again', async (t) => {
  const made = await startCache(t);
  const before = made.readings.made;
  const release = holdUp(made);
  const old = made.cache.get(id);
  await deps.sql`update questions set question = 'Is it so once more?' where id = ${id}`;
  await until('it is read again', () => made.readings.made > before);
  t.equal(made.cache.get(id), old, 'the old row stands');
  // It changes again while it is read.
  await deps.sql`update questions set question = 'And is it once more?' where id = ${id}`;
  made.cache.forget(id);
  t.notOk(isKnown(made, id), 'but not what this process changed itself');
  release();
  await until('the new one', async () => (await textOf(made, id)) === 'And is it once more?');
  t.ok(isKnown(made, id));
});

t.test('what changed and could not be read is not believed', async (t) => {
  const made = await startCache(t);
  const before = made.readings.made;
  made.readings.held = Promise.reject(new Error('No answer.'));
  made.readings.held.catch(() => undefined);
  await deps.sql`update questions set question = 'Is this unread?' where id = ${id}`;
  await until('it was tried', () => made.readings.made > before);
  await until('it is gone', () => !isKnown(made, id));
  made.readings.held = null;
  await until(
    'it is read',
    async () => (await textOf(made, id).catch(() => '')) === 'Is this unread?',
  );
});

t.test('without the changes a row is believed for moments only', async (t) => {
  const made = makeCache();
  await made.cache.get(id);
  await deps.sql`update questions set question = 'Unannounced?' where id = ${id}`;
  t.ok(isKnown(made, id));
  await until('it is read again', async () => (await textOf(made, id)) === 'Unannounced?');
});
