import fc from 'fast-check';
import { firstIdAt, isId, makeId, makeIdAfter } from '../../src/kit/ids.js';
import { holds } from '../help/property.js';
import { t } from '../help/tap.js';

const timeOf = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);

t.test('an id is a UUID of version 7 with the variant of RFC 9562', async (t) => {
  for (let n = 0; n < 1_000; n += 1) {
    const id = makeId();
    if (!/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id)) {
      t.fail(id);
    }
  }
  t.ok(isId(makeId()));
});

t.test('ids of one process sort in the order of their making and never repeat', async (t) => {
  const ids = Array.from({ length: 50_000 }, () => makeId());
  t.equal(new Set(ids).size, ids.length);
  t.ok(ids.every((id, index) => index === 0 || (ids[index - 1] as string) < id));
});

t.test('an id tells the time of its making', async (t) => {
  const before = Date.now();
  const made = timeOf(makeId());
  // About 4,096 ids fit into a millisecond. Further ids use the next milliseconds.
  t.ok(made >= before && made <= Date.now() + 200, `${made - before} ms off`);
});

t.test('the order holds when the clock stands still, jumps ahead or goes back', async (t) => {
  const start = Date.now() + 3_600_000;
  let last = makeId(start);
  const steps = fc.array(fc.integer({ min: -5_000, max: 5_000 }), { maxLength: 50 });
  let now = start;
  await holds(
    t,
    fc.property(steps, (jumps) =>
      jumps.every((jump) => {
        now = Math.max(now + jump, start);
        const id = makeId(now);
        const grows = id > last;
        last = id;
        return grows && isId(id);
      }),
    ),
  );
});

t.test('what is no id is told apart', async (t) => {
  const id = makeId();
  for (const bad of ['', id.toUpperCase(), `${id} `, `${id}\n`, id.slice(1), `{${id}}`, `${id}0`]) {
    t.notOk(isId(bad), JSON.stringify(bad));
  }
  t.notOk(isId(id.replaceAll('-', '')));
  t.ok(isId('00000000-0000-0000-0000-000000000000'), 'any version will do for looking one up');
});

t.test('an id after another sorts behind it, also one ahead of the clock', async (t) => {
  for (const id of [makeId(), firstIdAt(Date.now() + 3_600_000), firstIdAt(0)]) {
    const after = makeIdAfter(id);
    t.ok(after > id, `${after} after ${id}`);
    t.ok(isId(after));
  }
  t.equal(
    makeIdAfter('f1a2029c-5df9-715d-be24-ffffffffffff'),
    'f1a2029c-5df9-715d-be25-000000000000',
  );
});
