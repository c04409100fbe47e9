import { type Test, t } from 'tap';
import { questionId, seed } from '../../bench/env/seed.js';
import { followChanges } from '../../src/kit/pg/changes.js';
import { openParts } from '../help/parts.js';
import { until } from '../help/until.js';

const { deps } = await openParts(t);
await seed(deps.sql, { keys: [], questions: 3 });
const [first = '', second = '', third = ''] = [0, 1, 2].map(questionId);

/** Follows the questions, and lists what is told. */
const follow = async (t: Test) => {
  const told: string[] = [];
  const state = { is_followed: false };
  const changes = followChanges(deps, {
    ...{ table: 'questions', every_ms: 10 },
    onChanges: (ids) => told.push(...ids),
    onFollowed: () => {
      state.is_followed = true;
    },
  });
  t.teardown(changes.stop);
  await changes.start();
  await until('it is followed', () => state.is_followed);
  return told;
};

const change = (id: string, sql: typeof deps.sql | Tx = deps.sql) =>
  sql`update questions set question = 'Is this changed?' where id = ${id}`;
type Tx = Parameters<Parameters<typeof deps.sql.begin>[1]>[0];

t.test('a change is told once, however long another transaction takes', async (t) => {
  const told = await deps.sql.begin(async (tx) => {
    await change(first, tx);
    // Committed, and not below the oldest transaction under way: told to nobody who comes later.
    await change(second);
    const told = await follow(t);
    await change(third);
    await until('the third is told', () => told.length > 0);
    t.same(told, [third]);
    await change(second);
    await until('the second is told', () => told.length > 1);
    return told;
  });
  await until('the first is told', () => told.length > 2);
  t.same(told, [third, second, first]);
});

t.test('who begins to follow learns of what was under way then', async (t) => {
  const told = await deps.sql.begin(async (tx) => {
    await change(first, tx);
    return await follow(t);
  });
  await until('it is told', () => told.length > 0);
  t.same(told, [first]);
});
