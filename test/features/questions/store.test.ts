import { t } from 'tap';
import { questionId, seed } from '../../../bench/env/seed.js';
import { createQuestionCache } from '../../../src/features/questions/store.js';
import { openParts } from '../../help/parts.js';
import { until } from '../../help/until.js';

const { deps } = await openParts(t);
await seed(deps.sql, { keys: [], questions: 4 });
const ids = [0, 1, 2].map(questionId);
const [id = ''] = ids;

/** A cache that counts its readings of rows; what a reading answers can be held up. */
const makeCache = () => {
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
  return { cache: createQuestionCache({ ...deps, sql }), readings };
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

const textOf = async ({ cache }: Made, question_id: string) =>
  (await cache.get(question_id))?.question;

t.test('questions asked for in one turn are read by one query and then cached', async (t) => {
  const made = makeCache();
  await Promise.all(ids.map((one) => made.cache.get(one)));
  t.equal(made.readings.made, 1);
  t.ok(ids.every((one) => isKnown(made, one)));
  t.ok(isKnown(made, id.toUpperCase()));
  t.equal(made.readings.made, 1);
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

t.test('a row read before it was forgotten is not cached', async (t) => {
  const made = makeCache();
  const release = holdUp(made);
  const early = made.cache.get(id);
  await until('its row is read', () => made.readings.made > 0);
  await deps.sql`update questions set question = 'After the reading?' where id = ${id}`;
  made.cache.forget(id.toUpperCase());
  const late = textOf(made, id);
  release();
  await early;
  t.equal(await late, 'After the reading?');
  t.equal(await textOf(made, id), 'After the reading?');
});

t.test('a change without an event is seen within a second', async (t) => {
  const made = makeCache();
  await made.cache.get(id);
  await deps.sql`update questions set question = 'Unannounced?' where id = ${id}`;
  t.ok(isKnown(made, id));
  await until('it is read again', async () => (await textOf(made, id)) === 'Unannounced?');
});

t.test('after a failed reading the next call reads again', async (t) => {
  const made = makeCache();
  made.readings.held = Promise.reject(new Error('No answer.'));
  made.readings.held.catch(() => undefined);
  await t.rejects(async () => made.cache.get(id), { message: 'No answer.' });
  made.readings.held = null;
  t.match(await made.cache.get(id), { id });
});
