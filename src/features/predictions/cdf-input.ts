import { isAboveOne, type Scale, toFraction } from '../../kit/percent.js';
import { type Curve, quantileOf } from '../points/cdf-rules.js';
import {
  exactValue,
  fitValue,
  nounOf,
  type Range,
  readValue,
  showValue,
} from '../questions/range.js';
import type { Value } from '../questions/schema.js';

/**
 * Forecasts of a number or a date. A client sends points of a cumulative distribution in order, as
 * `quantiles` or `cdf`. It is linear between points; two points with the same value are a jump. A
 * plain list of numbers means points at equal steps of the range (`cdf`, `continuous_cdf`) or of
 * the probability (`quantiles`). At a closed end the distribution is 0 or 1; at an open end it is
 * `below` or 1 − `above`. It is stored with both ends as v₀, p₀, v₁, p₁, …: values in the units of
 * the question, p from 0 to 1 in steps of 1e-8.
 */

interface Point {
  readonly value: Value;
  readonly p: number;
}

export interface CdfBody {
  readonly quantiles?: readonly (Point | Value)[];
  readonly cdf?: readonly (Point | number)[];
  readonly continuous_cdf?: readonly number[];
  readonly below?: number;
  readonly above?: number;
  readonly scale?: Scale;
}
type Given = { readonly [N in keyof CdfBody]: CdfBody[N] | null };

/** Maximum number of points in a request. Answers can have two more: the ends of the range. */
export const max_points = 1_000;

/** Steps per unit of p, so that converting to percent and back gives the same number. */
const steps = 1e8;
/** Tolerated noise of calculated points: in p, and in a value as a fraction of the range. */
const p_noise = 1e-6;
const value_noise = 1e-9;
const rounded = (p: number): number => Math.round(p * steps) / steps;
const percentOf = (p: number): number => Math.round(p * steps * 100) / steps;

/** An error in a distribution, with its path in the body. */
interface Wrong {
  readonly path: string;
  readonly message: string;
}
const wrong = (path: string, message: string): Wrong => ({ path: `body.${path}`, message });

const forms = ['quantiles', 'cdf', 'continuous_cdf'] as const;
type Form = (typeof forms)[number];

const isPoint = (one: Point | Value): one is Point => typeof one === 'object';

/** Returns the scale of the probabilities, or null if the body has no probabilities. */
export const scaleOfCdf = (body: Given): Scale | null => {
  const { quantiles, cdf, continuous_cdf, below, above } = body;
  const points = [...(quantiles ?? []).filter(isPoint), ...(cdf ?? []), ...(continuous_cdf ?? [])];
  const all = points.map((one) => (isPoint(one) ? one.p : one));
  for (const end of [below, above]) if (end != null) all.push(end);
  if (all.length === 0) return null;
  return body.scale ?? (all.some(isAboveOne) ? 'percent' : 'fraction');
};

interface ReadPoint {
  /** Null if the value is not of the type that the question asks for: a number or a date. */
  readonly value: number | null;
  readonly p: number;
}

/** Reads the given points, with p as fractions. Noise at the ends of the range is removed. */
const readPoints = (
  given: readonly (Point | Value)[],
  { form, range, share }: { form: Form; range: Range; share(p: number): number },
): readonly ReadPoint[] => {
  const { min, max, is_date } = range;
  const placeOf = (value: Value): number | null => {
    const read = readValue(value, is_date);
    return read === null ? null : fitValue(read, range);
  };
  return given.map((one, n) => {
    if (isPoint(one)) return { value: placeOf(one.value), p: share(one.p) };
    if (form === 'quantiles') {
      return { value: placeOf(one), p: rounded((n + 1) / (given.length + 1)) };
    }
    const at = min + (n * (max - min)) / (given.length - 1);
    return { value: fitValue(is_date ? Math.round(at) : at, range), p: share(Number(one)) };
  });
};

/** Finds the form that the body uses and its points, or says why there is no valid form. */
const findForm = (body: CdfBody): { form: Form; given: readonly (Point | Value)[] } | Wrong => {
  const [form, other] = forms.filter((one) => body[one] !== undefined);
  if (form === undefined || other !== undefined) {
    return wrong(
      'quantiles',
      'Send one of quantiles, cdf and continuous_cdf, with 2 to 1,000 points.',
    );
  }
  const given: readonly (Point | Value)[] = body[form]!;
  const mixed = given.findIndex((one) => isPoint(one) !== isPoint(given[0]!));
  if (mixed === -1) return { form, given };
  return wrong(`${form}.${mixed}`, 'Send points with value and p, or numbers alone, not both.');
};

/** A copied answer is in percent and has both ends, so it may be two points longer. */
const isTooLong = (points: readonly ReadPoint[], range: Range, scale: Scale | undefined) => {
  if (points.length <= max_points) return false;
  return !(
    scale === 'percent' &&
    points[0]!.value === range.min &&
    points.at(-1)!.value === range.max
  );
};

/** Returns v₀, p₀, v₁, p₁, …, or the first error. */
export const readCdf = (body: CdfBody, range: Range): readonly number[] | Wrong => {
  const found = findForm(body);
  if ('path' in found) return found;
  const { form, given } = found;
  const scale = scaleOfCdf(body) ?? 'fraction';
  const share = (p: number): number => rounded(toFraction(p, scale));
  const read = readPoints(given, { form, range, share });
  if (isTooLong(read, range, body.scale)) {
    return wrong(form, `${form} must have at most ${max_points} items.`);
  }
  const [first, last] = [read[0]!, read.at(-1)!];
  // The ends of a whole distribution give the chances outside the range.
  const has_ends = form !== 'quantiles';
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
    return wrong(end, `${end} must be a probability, and 0 if the range is closed at this end.`);
  }
  const points = [{ value: range.min, p: below }];
  for (const [n, { value, p }] of read.entries()) {
    const before = points.at(-1)!;
    const path = (member: string) => `${form}.${n}${isPoint(given[n]!) ? `.${member}` : ''}`;
    if (value === null) return wrong(path('value'), `value must be ${nounOf(range)}.`);
    const at = fitBetween(value, [before.value, range.max], (range.max - range.min) * value_noise);
    if (at < before.value || at > range.max) {
      const message = 'value must be in the range, and not less than the value before it.';
      return wrong(path('value'), message);
    }
    const up_to = fitBetween(p, [before.p, most], p_noise);
    if (!(up_to >= before.p && up_to <= most)) {
      const message = 'p must be from "below" to 1 − "above", and not less than the p before it.';
      return wrong(path('p'), message);
    }
    points.push({ value: at, p: up_to });
  }
  points.push({ value: range.max, p: most });
  const distinct = points.filter(
    ({ value, p }, n) => n === 0 || value !== points[n - 1]!.value || p !== points[n - 1]!.p,
  );
  return distinct.flatMap(({ value, p }) => [value, p]);
};

/** Moves a number to the limit that it misses only by floating-point noise. */
const fitBetween = (n: number, [least, most]: readonly [number, number], noise: number): number => {
  if (n < least && least - n <= noise) return least;
  return n > most && n - most <= noise ? most : n;
};

const pointsOf = (cdf: readonly number[]) =>
  cdf.flatMap((value, n) => (n % 2 === 0 ? { value, p: cdf[n + 1]! } : []));

/** Converts a distribution to a curve over the range, scaled to 0 to 1. */
export const curveOf = (cdf: readonly number[]): Curve => {
  const [min, max] = [cdf[0]!, cdf.at(-2)!];
  return pointsOf(cdf).map(({ value, p }) => ({ x: (value - min) / (max - min), f: p }));
};

/** Returns the value at which the distribution reaches `p`. */
export const valueAt = (cdf: readonly number[], p: number): number => {
  const [min, max] = [cdf[0]!, cdf.at(-2)!];
  return min + quantileOf(curveOf(cdf), p) * (max - min);
};

/** Formats a distribution for answers and events, with p in percent. */
export const showCdf = (
  cdf: readonly number[] | null,
  { question_type }: { readonly question_type: string },
) => {
  if (cdf === null) return null;
  const range = { is_date: question_type === 'date', min: cdf[0]!, max: cdf.at(-2)! };
  return {
    cdf: pointsOf(cdf).map(({ value, p }) => {
      return { value: exactValue(value, range), p: percentOf(p) };
    }),
    quartiles: [0.25, 0.5, 0.75].map((p) => showValue(valueAt(cdf, p), range)),
  };
};

/** Reads a distribution back from the points of an event. */
export const readShownCdf = (points: readonly Point[]): readonly number[] =>
  points.flatMap(({ value, p }) => [
    typeof value === 'string' ? Date.parse(value) : value,
    rounded(p / 100),
  ]);
