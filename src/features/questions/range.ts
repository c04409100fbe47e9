import { dayText, shortNumber } from '../../kit/format.js';
import { parseTime } from '../../kit/time.js';
import type { Value } from './schema.js';

/**
 * Questions whose outcome is a number or a date. Inside the program a date is also a number, in
 * milliseconds since 1970. On the wire it is an ISO time.
 */

/** Columns of the `questions` table. */
export interface RangeColumns {
  readonly range_min: number | null;
  readonly range_max: number | null;
  readonly unit: string | null;
  readonly open_min: boolean;
  readonly open_max: boolean;
}

export interface Range {
  readonly min: number;
  readonly max: number;
  readonly open_min: boolean;
  readonly open_max: boolean;
  readonly is_date: boolean;
}

interface Typed {
  readonly question_type: string;
}

/** Returns null if the question does not ask for a number or a date. */
export const rangeOf = (row: Typed & Omit<RangeColumns, 'unit'>): Range | null => {
  const { range_min: min, range_max: max, open_min, open_max, question_type } = row;
  if (min === null || max === null) return null;
  return { min, max, open_min, open_max, is_date: question_type === 'date' };
};

/** Reads a value that a client sent; null if it is not of the type that the question asks for. */
export const readValue = (given: Value, is_date: boolean): number | null => {
  if (!is_date) return typeof given === 'number' && Number.isFinite(given) ? given : null;
  return typeof given === 'string' ? (parseTime(given)?.getTime() ?? null) : null;
};

/** Tolerance for floating-point noise at the ends of a range, as a fraction of its width. */
const end_tolerance = 1e-9;

/** Moves a value to an end of the range if only floating-point noise separates them. */
export const fitValue = (value: number, { min, max }: Pick<Range, 'min' | 'max'>): number => {
  const noise = (max - min) * end_tolerance;
  if (Math.abs(value - min) <= noise) return min;
  return Math.abs(value - max) <= noise ? max : value;
};

/** Rounds to 1e-9 of the width or finer, to remove floating-point noise. Dates are in whole ms. */
export const showValue = (value: number, { is_date, min, max }: Omit<Range, Open>): Value => {
  const digit = Math.floor(Math.log10((max - min) * 1e-9));
  if (!is_date) return Number(value.toFixed(Math.min(100, Math.max(0, -digit))));
  const step_ms = 10 ** Math.max(0, digit);
  return new Date(Math.round(value / step_ms) * step_ms).toISOString();
};
type Open = 'open_min' | 'open_max';

/** Returns text for people: a rounded number with its unit, or the day. */
export const valueText = (
  value: Value,
  { question_type, unit, range_min, range_max }: Typed & Omit<RangeColumns, Open>,
) => {
  if (question_type === 'date') return dayText(new Date(value));
  const text = shortNumber(Number(value), (range_max ?? 0) - (range_min ?? 0));
  return unit === null ? text : `${text} ${unit}`;
};

/** Returns a value that someone entered, without rounding it. */
export const exactValue = (value: number, { is_date }: Pick<Range, 'is_date'>): Value =>
  is_date ? new Date(value).toISOString() : value;

export const nounOf = ({ is_date }: Pick<Range, 'is_date'>): string =>
  is_date ? 'a time with its zone, such as 2026-03-01T12:00:00Z' : 'a number';

export const showRange = (row: Typed & RangeColumns) => {
  const range = rangeOf(row);
  if (range === null) return null;
  const { open_min, open_max } = range;
  const [min, max] = [exactValue(range.min, range), exactValue(range.max, range)];
  return { min, max, unit: row.unit, open_min, open_max };
};

/** Returns the outcome as a number or a date; null before the question resolves. */
export const showOutcome = ({
  outcome_value: value,
  question_type,
}: {
  readonly question_type: string;
  readonly outcome_value: number | null;
}) => (value === null ? null : exactValue(value, { is_date: question_type === 'date' }));
