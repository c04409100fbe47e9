/**
 * What a Jaccard similarity of at least 3/5 asks of two sets, by their sizes; see `SimilarSets`.
 */

const at_least = { of: 3, in: 5 } as const;
const leastSize = (size: number): number => Math.ceil((at_least.of * size) / at_least.in);
const mostSize = (size: number): number => Math.floor((at_least.in * size) / at_least.of);
/** The least members that sets of these sizes have in common when they are similar. */
export const leastOverlap = (one: number, other: number): number =>
  Math.ceil((at_least.of * (one + other)) / (at_least.of + at_least.in));
/** How many members, the first in the order, similar sets must share one of. */
export const prefixOf = (size: number): number => size - leastSize(size) + 1;

/** By size of the other set: how many members of the prefixes must be common. */
const makeNeeds = (size: number): Uint16Array => {
  const needs = new Uint16Array(mostSize(size) + 1).fill(65_535);
  const rest = size - prefixOf(size);
  for (let other = leastSize(size); other < needs.length; other += 1) {
    const most_left = Math.max(rest, other - prefixOf(other));
    needs[other] = leastOverlap(size, other) - most_left;
  }
  return needs;
};

const most_needs_kept = 600;

/** By size of the set. */
const needs = new Map<number, Uint16Array>();

/** What `makeNeeds` says, kept for the sizes in use. */
export const needsOf = (size: number): Uint16Array => {
  let known = needs.get(size);
  if (known === undefined) {
    known = makeNeeds(size);
    if (needs.size >= most_needs_kept) needs.clear();
    needs.set(size, known);
  }
  return known;
};
