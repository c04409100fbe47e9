import { t } from 'tap';
import { questionId, seed } from '../../../bench/env/seed.js';
import { createQuestionCache } from '../../../src/features/questions/index.js';
import { openParts } from '../../help/parts.js';
import { until } from '../../help/until.js';

const { deps } = await openParts(t);
await seed(deps.sql, { keys: [], questions: 3 });
const ids = [0, 1, 2].map(questionId);

t.test('questions in use are read again together, and nobody waits for it', async (t) => {
  let readings = 0;
  const sql = new Proxy(deps.sql, {
    apply(target, self, parts) {
      if (String(parts[0]).includes('last_seq')) readings += 1;
      return Reflect.apply(target, self, parts);
    },
  });
  const cache = createQuestionCache({ ...deps, sql });
  await Promise.all(ids.map((id) => cache.get(id)));
  t.equal(readings, 1);
  await deps.sql`update questions set question = 'Another text?'`;
  let waited = 0;
  await until('all are renewed', () => {
    const rows = ids.map((id) => cache.get(id));
    waited += rows.filter((row) => row instanceof Promise).length;
    return rows.every((row) => !(row instanceof Promise) && row?.question === 'Another text?');
  });
  t.equal(waited, 0);
  t.equal(readings, 2);
});

t.test('one that takes no predictions yet is read again by the next call', async (t) => {
  const cache = createQuestionCache(deps);
  const [id = ''] = ids;
  await deps.sql`update questions set opens_at = now() + interval '1 hour' where id = ${id}`;
  const early = await cache.get(id);
  t.ok(early !== undefined && early.opens_at > deps.clock());
  await deps.sql`update questions set opens_at = now() - interval '1 hour' where id = ${id}`;
  const opensAt = async () => (await cache.get(id))?.opens_at ?? new Date();
  await until('it has opened', async () => (await opensAt()) < deps.clock(), 1_000);
  t.equal(await cache.get(questionId(9)), undefined);
});
