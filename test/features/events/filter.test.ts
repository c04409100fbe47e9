import fc from 'fast-check';
import { readFilter as readWith } from '../../../src/features/events/filter.js';
import { readOldest } from '../../../src/features/events/floor-store.js';
import {
  countMatching,
  nthNewest,
  readMatching,
  readNewest,
} from '../../../src/features/events/matching-store.js';
import { topicsOf } from '../../../src/features/events/topics.js';
import { isFault } from '../../../src/kit/fault.js';
import { keyOf, type Publication, type TopicRef } from '../../../src/socket/frames.js';
import {
  anyBody,
  anyEventNames,
  anyId,
  anyNarrowing,
  anyPlace,
  anySlug,
  numberedId,
} from '../../help/filters.js';
import { makeEntry, makeLogWriter } from '../../help/log.js';
import { openParts } from '../../help/parts.js';
import { t } from '../../help/tap.js';
import { pillars } from '../../help/taxonomy.js';

const readFilter = (given: unknown) => readWith(given, { pillars, path: 'filter' });
const id = numberedId;

t.test('a filter that cannot be is refused with what is wrong about it', async (t) => {
  const cases: [unknown, RegExp][] = [
    [null, /filter/],
    ['gpt', /filter/],
    [[], /filter/],
    [
      { event: ['prediction.placed'] },
      /^The filter is invalid: filter\.event – is not known here\.$/,
    ],
    [{ events: [] }, /filter\.events/],
    [{ events: 'prediction.placed' }, /filter\.events/],
    [{ events: ['prediction.place'] }, /no event "prediction\.place". Use one of question.created/],
    [{ events: Array.from({ length: 21 }, () => 'prediction.placed') }, /filter\.events/],
    [{ model_family: 'GPT 4' }, /filter\.model_family/],
    [{ model_family: [] }, /filter\.model_family/],
    [{ model_family: 'abacus' }, /filter\.model_family – must be one of gpt, claude/],
    [{ categories: ['sports'] }, /"sports" is not a category\. Use one of technology, society\./],
    [{ categories: [] }, /filter\.categories/],
    [{ question_ids: ['x'] }, /filter\.question_ids\.0 – must be an id/],
    [{ question_ids: Array.from({ length: 101 }, (_, n) => id(n)) }, /filter\.question_ids/],
    [{ min_confidence: 100.01 }, /filter\.min_confidence/],
    [{ min_confidence: -0.01 }, /filter\.min_confidence/],
    [{ min_confidence: '80' }, /filter\.min_confidence/],
  ];
  for (const [given, why] of cases) {
    const refused = readFilter(given);
    if (!isFault(refused)) t.fail(`${JSON.stringify(given)} is taken`);
    else {
      t.match(refused, { def: { code: 'INVALID_FILTER', status: 400 }, message: why });
      t.match(refused.fields?.[0]?.path, /^filter/);
    }
  }
  t.equal(readFilter({}), null);
});

t.test('filters that let the same pass are equal', async (t) => {
  const key = (given: unknown): string => {
    const filter = readFilter(given);
    return filter === null || isFault(filter) ? '' : filter.key;
  };
  const names = ['prediction.placed', 'comment.created'];
  t.equal(key({ events: names }), key({ events: [...names].reverse().concat(names) }));
  t.equal(key({ model_family: 'gpt' }), key({ model_family: ['gpt', 'gpt'] }));
  t.equal(key({ question_ids: [id(1).toUpperCase()] }), key({ question_ids: [id(1), id(1)] }));
  const all = [
    { events: names },
    { model_family: 'gpt' },
    { min_confidence: 80 },
    {},
    { categories: ['society'] },
    { question_ids: [id(1)] },
  ];
  t.equal(new Set(all.map(key)).size, 6);
  t.match(readFilter({ model_family: 'gpt', min_confidence: 90 }), {
    shown: { model_family: ['gpt'], min_confidence: 90 },
  });
});

t.test('the least confidence passes itself, and no event without one', async (t) => {
  const filter = readFilter({ min_confidence: 70.4 });
  if (filter === null || isFault(filter)) throw new Error('It is a filter.');
  const passes = (data: object): boolean => {
    const about = makeEntry(1, { body: JSON.stringify({ event: 'prediction.placed', data }) });
    return filter.matches({ about } as unknown as Publication);
  };
  t.same(
    [70, 70.39, 70.4, 70.41].map((confidence) => passes({ confidence })),
    [false, false, true, true],
  );
  t.same([{}, { confidence: '80' }, { confidence: null }].map(passes), [false, false, false]);
});

const anyTopic = fc.oneof(
  fc.constantFrom('all', 'system'),
  anyId.map((one) => `question:${one}`),
  anyId.map((one) => `agent:${one}`),
  anyId.map((one) => `me:${one}`),
  anySlug.map((one) => `category:${one}`),
  anySlug.map((one) => `subcategory:${one}`),
);

const anyFilter = fc
  .record({ events: anyEventNames, ...anyNarrowing }, { requiredKeys: [] })
  .map((given) => {
    const filter = readFilter(given);
    return filter === null || isFault(filter) ? {} : { filter };
  });
const anyRef = fc
  .tuple(anyTopic, fc.oneof(fc.constant({}), anyFilter))
  .map(([topic, filter]): TopicRef => ({ topic, label: topic, ...filter }));

t.test('the record finds exactly what would have come live', async (t) => {
  const { deps, stores } = await openParts(t);
  const { sql } = deps;
  const log = makeLogWriter(sql, deps.redis, stores.redis_prefix);
  t.equal(await readOldest(sql), 1, 'of an empty log: the one that comes next');
  for (const place of fc.sample(fc.tuple(anyPlace, anyBody), 120)) {
    await log.record(1, { ...place[0], ...place[1] });
  }
  t.equal(await readOldest(sql), 1);
  const passes = (ref: TopicRef, n: number): boolean => {
    const entry = log.entries[n - 1] as (typeof log.entries)[number];
    const is_on = topicsOf(entry).some(({ topic }) => topic === ref.topic);
    const { filter } = ref;
    // Copies the entry, because `matches` changes it: it caches parsed data there.
    const publication = { about: { ...entry } } as unknown as Publication;
    return is_on && (filter === undefined || filter.matches(publication));
  };
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyRef, { maxLength: 6 }),
      fc.integer({ min: 0, max: 120 }),
      fc.integer({ min: 0, max: 120 }),
      async (refs, after, until) => {
        const span = { after, until, limit: 50 };
        const inside = log.entries
          .map(({ offset }) => offset)
          .filter((n) => n > after && n <= until);
        const live = inside.filter((n) => refs.some((ref) => passes(ref, n)));
        const found = await readMatching(sql, refs, span);
        t.strictSame(
          [...found],
          live.slice(0, 50).map((n) => log.entries[n - 1]),
        );
        t.equal(await countMatching(sql, refs, span), Math.min(50, live.length));
        t.equal(await nthNewest(sql, refs, { ...span, limit: 5 }), live.at(-5) ?? null);
        const newest = await readNewest(sql, refs, span);
        for (const ref of refs) {
          t.equal(newest.get(keyOf(ref)), inside.filter((n) => passes(ref, n)).at(-1));
        }
      },
    ),
    { numRuns: 40 },
  );
});

t.test('with many different filters too much is found, and never too little', async (t) => {
  const { deps, stores } = await openParts(t);
  const log = makeLogWriter(deps.sql, deps.redis, stores.redis_prefix);
  await log.record(20, { question_id: id(1) });
  const refs = Array.from({ length: 12 }, (_, n): TopicRef => {
    const filter = readFilter({ min_confidence: n });
    if (filter === null || isFault(filter)) throw new Error('no filter');
    return { topic: `question:${id(n)}`, label: '', filter };
  });
  t.equal((await readMatching(deps.sql, refs, { after: 0, until: 20, limit: 50 })).length, 20);
});
