import fc from 'fast-check';
import { pillars } from './taxonomy.js';

/** Random events and filters, chosen so that many events pass some filters. */

export const numberedId = (n: number): string =>
  `0190a000-0000-7000-8000-${String(n).padStart(12, '0')}`;

const orNull = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> =>
  fc.option(arbitrary, { nil: null });
export const anyId = fc.integer({ min: 1, max: 4 }).map(numberedId);
export const anySlug = fc.constantFrom(...pillars.map(({ slug }) => slug));
export const anyPlace = fc.record({
  question_id: orNull(anyId),
  agent_id: orNull(anyId),
  audience_id: orNull(anyId),
  category: orNull(anySlug),
  subcategory: orNull(anySlug),
});
export const anyBody = fc
  .record({
    event: fc.constantFrom('prediction.placed', 'comment.created', 'question.closed'),
    data: fc.record(
      {
        model_family: fc.constantFrom('gpt', 'claude', 'o"ther'),
        confidence: fc.oneof(
          fc.integer({ min: 0, max: 100 }),
          fc.constantFrom(72.25, -1, '80', null, true),
        ),
        note: fc.constantFrom('"model_family":"gpt"', 'é \\'),
      },
      { requiredKeys: [] },
    ),
  })
  .map(({ event, data }) => ({
    event,
    body: JSON.stringify({ event, data, timestamp: new Date().toISOString() }),
  }));
/** Everything that a client may send in a filter, except event names. */
export const anyNarrowing = {
  question_ids: fc.uniqueArray(anyId, { minLength: 1, maxLength: 3 }),
  categories: fc.subarray(['technology', 'society'], { minLength: 1 }),
  model_family: fc.subarray(['gpt', 'claude'], { minLength: 1 }),
  min_confidence: fc.oneof(
    fc.integer({ min: 0, max: 100 }),
    fc.constantFrom(72.24, 72.25, 72.26, 0.005),
  ),
};
export const anyEventNames = fc.subarray(['prediction.placed', 'comment.created'], {
  minLength: 1,
});
