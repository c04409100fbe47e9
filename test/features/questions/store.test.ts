import { questionId, seed } from '../../../bench/env/seed.js';
import {
  addCounts,
  createQuestionCache,
  lockQuestion,
} from '../../../src/features/questions/store.js';
import { openParts } from '../../help/parts.js';
import { t } from '../../help/tap.js';
import { until } from '../../help/until.js';

/** Behaviour that the routes do not show. Tests of `kit/cache` cover overlapping reads. */

const { deps } = await openParts(t);
await seed(deps.sql, { keys: [], questions: 4 });
const ids = [0, 1, 2].map(questionId);
const [id = ''] = ids;

/** A cache that counts how many times it reads rows. */
const makeCache = () => {
  const readings = { made: 0 };
  const forgotten: string[] = [];
  const sql = new Proxy(deps.sql, {
    apply(target, self, parts) {
      if (String(parts[0]).includes('from questions q')) readings.made += 1;
      return Reflect.apply(target as never, self, parts);
    },
  });
  const cache = createQuestionCache({ ...deps, sql }, (one) => forgotten.push(one));
  return { cache, readings, forgotten };
};

t.test('questions asked for in one turn are read by one query and then cached', async (t) => {
  const { cache, readings, forgotten } = makeCache();
  await Promise.all(ids.map((one) => cache.get(one)));
  t.equal(readings.made, 1);
  for (const one of [...ids, id.toUpperCase()]) t.notOk(cache.get(one) instanceof Promise);
  cache.forget(id.toUpperCase());
  t.ok(cache.get(id) instanceof Promise);
  await cache.get(id);
  t.same([readings.made, forgotten], [2, [id]]);
});

t.test('a question that takes no predictions, or does not exist, is never cached', async (t) => {
  const { cache } = makeCache();
  await deps.sql`update questions set opens_at = now() + interval '1 hour' where id = ${id}`;
  const early = await cache.get(id);
  t.ok(early !== undefined && early.opens_at > deps.clock());
  await deps.sql`update questions set opens_at = now() - interval '1 hour' where id = ${id}`;
  t.ok(((await cache.get(id))?.opens_at ?? new Date()) < deps.clock());
  t.equal(await cache.get(questionId(9)), undefined);
});

t.test('a question that closes later than it was to is read again at that time', async (t) => {
  const { cache } = makeCache();
  await deps.sql`
    update questions set closes_at = now() + interval '500 ms' where id = ${id}`;
  const soon = (await cache.get(id))?.closes_at;
  await deps.sql`update questions set closes_at = now() + interval '1 hour' where id = ${id}`;
  t.notOk(cache.get(id) instanceof Promise, 'cached so far');
  const read = async () => (await cache.get(id))?.closes_at;
  await until('it is read again', async () => ((await read()) ?? 0) > (soon ?? 0));
});

t.test(
  'every forecast is counted for its own option or side until another one takes its place',
  async (t) => {
    const [, two = '', three = ''] = ids;
    const first = { predictions: 1, forecasts: 1, option_count: 0 } as const;
    const on = (question_id: string, offset: number, forecast: object) => ({
      ...first,
      question_id,
      offset,
      ...forecast,
    });
    const chosen = (offset: number, option_index: number) =>
      on(two, offset, { option_index, option_count: 3 });
    await deps.sql.begin((tx) =>
      addCounts(tx, [chosen(1, 0), chosen(2, 2), chosen(3, 2), { question_id: two, comments: 1 }]),
    );
    await deps.sql.begin((tx) =>
      addCounts(tx, [
        chosen(7, 1),
        on(three, 5, { prediction: true }),
        on(three, 6, { prediction: false }),
        on(three, 4, { prediction: true }),
        // A revision from NO to YES.
        { question_id: three, offset: 8, forecasts: 1, prediction: true },
        { question_id: three, offset: 8, forecasts: -1, prediction: false },
      ]),
    );
    const read = async (one: string) =>
      (await deps.sql`select * from question_counts where question_id = ${one}`)[0];
    t.match(await read(two), {
      prediction_count: 4,
      comment_count: 1,
      yes_count: 0,
      no_count: 0,
      option_counts: [1, 1, 2],
      prediction_offset: 7,
    });
    t.match(await read(three), {
      prediction_count: 3,
      comment_count: 0,
      yes_count: 3,
      no_count: 0,
      option_counts: [],
      prediction_offset: 8,
    });
  },
);

t.test(
  'a lock of a question is waited for longer than others: batches hold it in turn',
  async (t) => {
    await deps.sql.begin(async (tx) => {
      t.equal((await lockQuestion(tx, id))?.id, id);
      t.match(await tx`show lock_timeout`, [{ lock_timeout: '3s' }]);
    });
  },
);
