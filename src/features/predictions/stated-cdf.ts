import { type Curve, quantileOf } from '../points/cdf-rules.js';
import { exactValue, nounOf, type Range, readValue, showValue } from '../questions/range.js';
import type { Value } from '../questions/schema.js';

/**
 * Forecasts of a number or a date. A client sends `quantiles` or `cdf`, points of a cumulative
 * distribution in their order; between them it is linear, two points of one value are a jump. At a
 * closed end it is 0, or 1; at an open one it is `below`, or 1 − `above`. It is stored with both
 * ends as v₀, p₀, v₁, p₁, …: values in the units of the question, p from 0 to 1 in steps of 1e-8.
 */

interface Point {
  readonly value: Value;
  readonly p: number;
}

export interface CdfBody {
  readonly quantiles?: readonly Point[];
  readonly cdf?: readonly Point[];
  readonly below?: number;
  readonly above?: number;
  readonly scale?: 'percent' | 'fraction';
}

/** So that p in percent and back is the same number. */
const steps = 1e8;
const rounded = (p: number): number => Math.round(p * steps) / steps;
const percentOf = (p: number): number => Math.round(p * steps * 100) / steps;

/** What is no distribution, where it is not. */
interface Wrong {
  readonly path: string;
  readonly message: string;
}

/** v₀, p₀, v₁, p₁, …, or the first thing that is wrong. */
export const readCdf = (body: CdfBody, range: Range): readonly number[] | Wrong => {
  const wrong = (path: string, message: string): Wrong => ({ path: `body.${path}`, message });
  const name = body.cdf === undefined ? 'quantiles' : 'cdf';
  const points = body.quantiles ?? body.cdf;
  if (points === undefined || (body.quantiles !== undefined && body.cdf !== undefined)) {
    return wrong('quantiles', 'Send quantiles or cdf: 2 to 200 points.');
  }
  const given = [...points.map(({ p }) => p), body.below ?? 0, body.above ?? 0];
  const is_percent = body.scale ? body.scale === 'percent' : given.some((p) => p > 1);
  const share = (p: number): number => rounded(is_percent ? p / 100 : p);
  const read = points.map(({ value, p }) => {
    return { value: readValue(value, range.is_date), p: share(p) };
  });
  const [first, last] = [read[0]!, read.at(-1)!];
  // What is read from an answer says by its own ends what lies outside of them.
  const has_ends = name === 'cdf';
  const at_min = has_ends && range.open_min && first.value === range.min ? first.p : 0;
  const at_max = has_ends && range.open_max && last.value === range.max ? 1 - last.p : 0;
  const below = body.below === undefined ? at_min : share(body.below);
  const above = rounded(body.above === undefined ? at_max : share(body.above));
  const most = rounded(1 - above);
  for (const [end, p, is_open] of [
    ['below', below, range.open_min],
    ['above', above, range.open_max],
  ] as const) {
    if (p >= 0 && p <= (is_open ? 1 : 0)) continue;
    return wrong(end, `${end} is a probability, and 0 where the range is closed.`);
  }
  let before = { value: range.min, p: below };
  for (const [n, { value, p }] of read.entries()) {
    const path = `${name}.${n}`;
    if (value === null) return wrong(`${path}.value`, `value is ${nounOf(range)}.`);
    if (value < before.value || value > range.max) {
      return wrong(
        `${path}.value`,
        'Values lie in the range, and none is less than the one before.',
      );
    }
    if (!(p >= before.p && p <= most)) {
      const message =
        'p lies between below and 1 less above, and none is less than the one before.';
      return wrong(`${path}.p`, message);
    }
    before = { value, p };
  }
  const ends = [{ value: range.min, p: below }, ...read, { value: range.max, p: most }];
  const distinct = ends.filter(
    ({ value, p }, n) => n === 0 || value !== ends[n - 1]!.value || p !== ends[n - 1]!.p,
  );
  return distinct.flatMap(({ value, p }) => [value!, p]);
};

const pointsOf = (cdf: readonly number[]) =>
  cdf.flatMap((value, n) => (n % 2 === 0 ? { value, p: cdf[n + 1]! } : []));

/** The same over the range, scaled to 0 to 1. */
export const curveOf = (cdf: readonly number[]): Curve => {
  const [min, max] = [cdf[0]!, cdf.at(-2)!];
  return pointsOf(cdf).map(({ value, p }) => ({ x: (value - min) / (max - min), f: p }));
};

/** The value at which the distribution reaches `p`. */
export const valueAt = (cdf: readonly number[], p: number): number => {
  const [min, max] = [cdf[0]!, cdf.at(-2)!];
  return min + quantileOf(curveOf(cdf), p) * (max - min);
};

/** As answers and events have it, with p in percent. */
export const showCdf = (
  cdf: readonly number[] | null,
  { question_type }: { readonly question_type: string },
) => {
  if (cdf === null) return null;
  const of = { is_date: question_type === 'date' };
  return {
    cdf: pointsOf(cdf).map(({ value, p }) => ({ value: exactValue(value, of), p: percentOf(p) })),
    quartiles: [0.25, 0.5, 0.75].map((p) => showValue(valueAt(cdf, p), of)),
  };
};

/** From the points of an event. */
export const readShownCdf = (points: readonly Point[]): readonly number[] =>
  points.flatMap(({ value, p }) => [
    typeof value === 'string' ? Date.parse(value) : value,
    rounded(p / 100),
  ]);
