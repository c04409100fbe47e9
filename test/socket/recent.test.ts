import fc from 'fast-check';
import type { Publication } from '../../src/socket/frames.js';
import { makeRecent } from '../../src/socket/recent.js';
import { holds } from '../help/property.js';
import { t } from '../help/tap.js';

const publication = (offset: number, body = `{"n":${offset}}`): Publication => ({
  offset,
  id: `id ${offset}`,
  body,
  topics: [{ topic: 'all', label: 'all' }],
});

const offsetsOf = (list: Iterable<Publication>): number[] => [...list].map((one) => one.offset);

t.test('what is kept equals the end of a list, wherever one looks', async (t) => {
  await holds(
    t,
    fc.property(
      fc.integer({ min: 1, max: 700 }),
      fc.integer({ min: 1, max: 900 }),
      fc.integer({ min: 0, max: 50 }),
      fc.array(fc.nat(1_000), { maxLength: 8 }),
      (most, count, begin, places) => {
        const recent = makeRecent<Publication>({ most, max_chars: 1_000_000 });
        recent.reset(begin);
        const all = Array.from({ length: count }, (_, n) => publication(begin + n + 1));
        for (const one of all) recent.push(one);
        const kept = all.filter(({ offset }) => offset > recent.from());
        if (kept.length > most || kept.length < Math.min(count, most)) return false;
        return [recent.from(), begin + count, ...places].every((place) => {
          const after = Math.max(recent.from(), place);
          const before = [...recent.before(place)];
          return (
            JSON.stringify(recent.after(after)) ===
              JSON.stringify(kept.filter(({ offset }) => offset > after)) &&
            JSON.stringify(before) ===
              JSON.stringify(kept.filter(({ offset }) => offset <= place).reverse())
          );
        });
      },
    ),
  );
});

t.test('what is large leaves earlier, and nothing is left after a reset', async (t) => {
  const recent = makeRecent<Publication>({ most: 1_000, max_chars: 20_000 });
  for (let n = 1; n <= 500; n += 1) recent.push(publication(n, 'x'.repeat(100)));
  t.ok(recent.from() > 200, `from ${recent.from()}`);
  t.same(offsetsOf(recent.after(498)), [499, 500]);
  recent.reset(600);
  t.equal(recent.from(), 600);
  t.same([...recent.before(700)], []);
  t.same(recent.after(600), []);
});

t.test('what several followers add is kept once', async (t) => {
  const recent = makeRecent<Publication>({ most: 1_000, max_chars: 20_000 });
  recent.reset(10);
  for (const offset of [10, 11, 11, 12, 11, 13]) recent.push(publication(offset));
  t.same(offsetsOf(recent.after(10)), [11, 12, 13]);
  recent.reset(20);
  for (const offset of [15, 21, 21]) recent.push(publication(offset));
  t.same(offsetsOf(recent.after(20)), [21]);
});
