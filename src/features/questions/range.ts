import { dayText, grouped } from '../../kit/prose.js';
import { parseTime } from '../../kit/time.js';
import type { Value } from './schema.js';

/**
 * Questions whose outcome is a number or a date. Inside the program a date is a number too, of
 * milliseconds since 1970; on the wire it is an ISO time.
 */

/** The columns of a question. */
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

/** Null for a question that asks for no number. */
export const rangeOf = (row: Typed & Omit<RangeColumns, 'unit'>): Range | null => {
  const { range_min: min, range_max: max, open_min, open_max, question_type } = row;
  if (min === null || max === null) return null;
  return { min, max, open_min, open_max, is_date: question_type === 'date' };
};

/** As a client gave it; null where it is not of the kind that the question asks for. */
export const readValue = (given: Value, is_date: boolean): number | null => {
  if (!is_date) return typeof given === 'number' && Number.isFinite(given) ? given : null;
  return typeof given === 'string' ? (parseTime(given)?.getTime() ?? null) : null;
};

/** To twelve digits, which takes away the noise of a sum; of a date, to the millisecond. */
export const showValue = (value: number, { is_date }: Pick<Range, 'is_date'>): Value =>
  is_date ? new Date(Math.round(value)).toISOString() : Number(value.toPrecision(12));

/** For people: to four digits with the unit, or the day. */
export const valueText = (
  value: Value,
  { question_type, unit }: Typed & { unit: string | null },
) => {
  if (question_type === 'date') return dayText(new Date(value));
  const digits = Number(Number(value).toPrecision(4));
  const text = Math.abs(digits) >= 1_000 ? grouped(digits) : String(digits);
  return unit === null ? text : `${text} ${unit}`;
};

/** Of a value that was given. */
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

/** The outcome as a number or a date; null before the question resolves. */
export const showOutcome = ({
  outcome_value: value,
  question_type,
}: {
  readonly question_type: string;
  readonly outcome_value: number | null;
}) => (value === null ? null : exactValue(value, { is_date: question_type === 'date' }));
